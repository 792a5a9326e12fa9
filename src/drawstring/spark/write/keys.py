"""Record keys and partition paths as native Spark columns; values become text as in Hudi."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.errors import InvalidInput
from drawstring.write.keys import (
    EMPTY_KEY_PART,
    ESCAPED_CHARACTERS,
    NULL_KEY_PART,
    NULL_PARTITION,
    KeyRule,
    ambiguous_key,
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
    T.DecimalType,
    T.CharType,
    T.VarcharType,
)


def key_column(df: DataFrame, rule: KeyRule, requested_time: str) -> Column:
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


def path_column(df: DataFrame, rule: KeyRule) -> Column:
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
    if isinstance(kind, _PLAIN):
        return value.cast("string")
    raise InvalidInput(
        f"The {role} column {name!r} has the type {kind.simpleString() if kind else None}; expected a text, "
        "number, boolean, date, timestamp or binary. Nothing was written.",
        condition="KEY_TYPE_NOT_SUPPORTED",
        column=name,
    )


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


def _path_part(df: DataFrame, name: str, rule: KeyRule) -> Column:
    value = text_of(df, name, "partition path")
    escaped = _escaped(value) if rule.url_encode else value
    filled = F.when(value.isNull() | (value == ""), NULL_PARTITION)
    if _is_text(df, name):
        filled = filled.when(value == NULL_PARTITION, _raised(reserved_partition_value(name)))
    filled = filled.otherwise(escaped)
    return F.concat(F.lit(f"{name}="), filled) if rule.hive_style else filled


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
