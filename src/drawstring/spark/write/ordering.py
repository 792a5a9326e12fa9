"""Ordering values as Spark columns that sort as `drawstring.merge.ordering` compares."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.spark.write.keys import column, data_type


def latest_first(df: DataFrame, names: tuple[str, ...]) -> list[Column]:
    """Return sort expressions that bring the row that wins to the front; ties are left to what follows."""
    return [order for name in names for order in _latest_first(column(df, name), data_type(df.schema, name))]


def _latest_first(value: Column, kind: T.DataType | None) -> list[Column]:
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        # Spark holds both zeros to be equal, Java does not.
        is_negative_zero = (value == F.lit(0.0)) & (value.cast("string") == "-0.0")
        return [value.desc_nulls_last(), F.when(is_negative_zero, 0).otherwise(1).desc()]
    if isinstance(kind, T.BinaryType):
        return [_signed_bytes(value).desc_nulls_last()]
    return [value.desc_nulls_last()]


def _signed_bytes(value: Column) -> Column:
    """A text that sorts as the signed bytes do: bytes from 00 to 7F get a letter in front that sorts after F."""
    spaced = F.regexp_replace(F.hex(value), "(..)", "$1 ")
    return F.regexp_replace(spaced, "([0-7][0-9A-F] )", "Z$1")
