"""Record keys and partition paths as native Spark columns; values become text as in Hudi."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.errors import InvalidInput
from drawstring.model.key_names import EMPTY_KEY_PART, NULL_KEY_PART, NULL_PARTITION
from drawstring.schema.time_partitions import TimePartition
from drawstring.write.key_generator import (
    ESCAPED_CHARACTERS,
    KeyGenerator,
    ambiguous_key,
    key_type_not_supported,
    reserved_partition_value,
)

_DAY_MICROS = 86_400_000_000
_PLAIN = (
    T.StringType,
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DateType,
    T.CharType,
    T.VarcharType,
)


def key_column(df: DataFrame, rule: KeyGenerator, requested_time: str) -> Column:
    """Return the record key; null where the row has none."""
    if not rule.key_fields:
        return _generated_key(requested_time)
    if not rule.prefixed:
        value = text_of(df, rule.key_fields[0], "record key")
        return F.when(value != "", value)
    following = (*rule.key_fields[1:], None)
    parts = [_key_part(df, name, after) for name, after in zip(rule.key_fields, following, strict=True)]
    usable = [part != "" for part in (text_of(df, name, "record key") for name in rule.key_fields)]
    joined = F.concat_ws(",", *parts)
    return F.when(reduce(lambda a, b: a | b, [F.coalesce(u, F.lit(False)) for u in usable]), joined)


def path_column(df: DataFrame, rule: KeyGenerator) -> Column:
    """Return the partition path, an empty text without partition fields."""
    if not rule.partition_fields:
        return F.lit("")
    return F.concat_ws("/", *[_path_part(df, name, rule) for name in rule.partition_fields])


def require_columns(df: DataFrame, names: tuple[str, ...], role: str) -> None:
    """Raise `InvalidInput` when the rows lack one of the columns."""
    for name in names:
        if data_type(df.schema, name) is None:
            raise InvalidInput(
                f"The {role} column {name!r} is not among the columns of the rows: {', '.join(df.columns)}. "
                "Correct the option or the rows. Nothing was written.",
                condition="COLUMN_NOT_FOUND",
                column=name,
                columns=df.columns,
            )


def column(df: DataFrame, name: str) -> Column:
    """Return a column by its name, or a field of a struct by its dotted path; names are quoted."""
    if any(field.name.lower() == name.lower() for field in df.schema.fields):
        return F.col(_quoted(name))
    return F.col(".".join(map(_quoted, name.split("."))))


def data_type(schema: T.StructType, name: str) -> T.DataType | None:
    """Return the type of a column or of a dotted field; None when there is none. Case is ignored."""
    fields = {field.name.lower(): field.dataType for field in schema.fields}
    if name.lower() in fields:
        return fields[name.lower()]
    head, _, rest = name.partition(".")
    inner = fields.get(head.lower())
    return data_type(inner, rest) if rest and isinstance(inner, T.StructType) else None


def text_of(df: DataFrame, name: str, role: str) -> Column:
    """Return a column's value as the text that Hudi writes into keys and paths."""
    kind, value = data_type(df.schema, name), column(df, name)
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value).cast("string")
    if isinstance(kind, T.TimestampNTZType):
        return _ntz_micros(value).cast("string")
    if isinstance(kind, T.BinaryType):
        return F.lower(F.hex(value))
    if isinstance(kind, T.DecimalType):
        return _decimal_text(value, kind.scale)
    if isinstance(kind, _PLAIN):
        return value.cast("string")
    raise key_type_not_supported(name, role, kind.simpleString() if kind else "none")


def _decimal_text(value: Column, scale: int) -> Column:
    """A decimal as Java's BigDecimal writes it; Spark writes small ones with or without exponent, by its mode."""
    plain = value.cast("string")
    if scale <= 6:
        return plain
    digits = F.regexp_replace(plain, r"^-?0\.0*", "")
    sign = F.when(value < 0, "-").otherwise("")
    rest = F.when(F.length(digits) > 1, F.concat(F.lit("."), F.substring(digits, 2, 40))).otherwise("")
    exponent = (F.length(digits) - 1 - scale).cast("string")
    small = F.concat(sign, F.substring(digits, 1, 1), rest, F.lit("E"), exponent)
    is_plain_small = (F.abs(value) < F.lit("0.000001").cast("decimal(7,6)")) & ~plain.contains("E")
    zero = F.lit(f"0E-{scale}")
    return F.when(is_plain_small, F.when(digits == "", zero).otherwise(small)).otherwise(plain)


def _generated_key(requested_time: str) -> Column:
    row = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    return F.concat(
        F.lit(f"{requested_time}_"), F.spark_partition_id().cast("string"), F.lit("_"), row.cast("string")
    )


def _key_part(df: DataFrame, name: str, following: str | None) -> Column:
    value = text_of(df, name, "record key")
    filled = F.when(value.isNull(), NULL_KEY_PART).when(value == "", EMPTY_KEY_PART)
    if _is_text(df, name):
        ambiguous = value.isin(NULL_KEY_PART, EMPTY_KEY_PART)
        ambiguous = ambiguous | value.contains(f",{following}:") if following else ambiguous
        filled = filled.when(ambiguous, _raised(ambiguous_key(name, following)))
    return F.concat(F.lit(f"{name}:"), filled.otherwise(value))


def _path_part(df: DataFrame, name: str, rule: KeyGenerator) -> Column:
    if rule.time is not None and name in rule.time_fields:
        text = _time_text(df, name, rule.time)
        escaped = _escaped(text) if rule.url_encode else text
        return F.concat(F.lit(f"{name}="), escaped) if rule.hive_style else escaped
    value = text_of(df, name, "partition path")
    escaped = _escaped(value) if rule.url_encode else value
    filled = F.when(value.isNull() | (value == ""), NULL_PARTITION)
    if _is_text(df, name):
        filled = filled.when(value == NULL_PARTITION, _raised(reserved_partition_value(name)))
    filled = filled.otherwise(escaped)
    return F.concat(F.lit(f"{name}="), filled) if rule.hive_style else filled


def _time_text(df: DataFrame, name: str, time: TimePartition) -> Column:
    """A formatted time. Numbers are made whole here; what is left is done by the one who does it for Arrow."""
    import pandas as pd
    import pyarrow as pa

    kind, value = data_type(df.schema, name), column(df, name)
    is_text = isinstance(kind, (T.StringType, T.CharType, T.VarcharType))
    number = None if is_text else _whole_number(value, kind)
    if number is None and not is_text:
        raise key_type_not_supported(name, "partition path", kind.simpleString() if kind else "none")

    def texts(values: pd.Series) -> pd.Series:
        arrow = pa.array(values, pa.string() if is_text else pa.int64(), from_pandas=True)
        return pd.Series(time.texts(arrow, name).to_pylist(), dtype=object)

    if is_text == (time.unit is not None):
        texts(pd.Series([], dtype=object if is_text else "int64"))
    filled = F.coalesce(value if is_text else number, F.lit(time.null_value))
    # Given by values: names of types in annotations could not be resolved here.
    texts.__annotations__ = {"values": pd.Series, "return": pd.Series}
    return F.pandas_udf(texts, T.StringType())(filled)


def _whole_number(value: Column, kind: T.DataType | None) -> Column | None:
    """A number as Java's `longValue` makes it; dates as days, timestamps as microseconds. None for others."""
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        limit = 2.0**63
        limited = F.greatest(F.least(value, F.lit(limit - 1024)), F.lit(-limit))
        return F.when(F.isnan(value), 0).when(value.isNotNull(), limited.cast("long"))
    if isinstance(kind, T.DecimalType):
        return F.when(value < 0, F.ceil(value)).otherwise(F.floor(value)).cast("long")
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value)
    if isinstance(kind, T.TimestampNTZType):
        return _ntz_micros(value)
    if isinstance(kind, T.DateType):
        return F.unix_date(value).cast("long")
    return value.cast("long") if isinstance(kind, T.IntegralType) else None


def _is_text(df: DataFrame, name: str) -> bool:
    return isinstance(data_type(df.schema, name), (T.StringType, T.CharType, T.VarcharType))


def _raised(error: InvalidInput) -> Column:
    """An expression that fails with the error, spelt as the writer finds errors of tasks in Spark's messages."""
    return F.raise_error(F.lit(f"drawstring.errors.{type(error).__name__}: {error}"))


def _escaped(value: Column) -> Column:
    special = "%" + ESCAPED_CHARACTERS.replace("%", "")
    replaced = reduce(
        lambda text, char: F.replace(text, F.lit(char), F.lit(f"%{ord(char):02X}")), special, value
    )
    pattern = "[" + "".join(f"\\x{ord(char):02X}" for char in special) + "]"
    return F.when(value.rlike(pattern), replaced).otherwise(value)


def _ntz_micros(value: Column) -> Column:
    # A cast would go through the session's time zone.
    seconds = F.hour(value) * 3600 + F.minute(value) * 60
    micros = (F.date_format(value, "ss").cast("long") * 1_000_000) + F.date_format(value, "SSSSSS").cast(
        "long"
    )
    days = F.unix_date(F.to_date(value)).cast("long")
    return days * F.lit(_DAY_MICROS) + seconds.cast("long") * 1_000_000 + micros


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
