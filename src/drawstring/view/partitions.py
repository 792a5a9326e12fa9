"""Partition paths and the column values they stand for."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from drawstring.config.table_config import PartitionField, TableConfig
from drawstring.model.key_names import NULL_PARTITION

_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_EPOCH = dt.datetime(1970, 1, 1)


def partition_texts(config: TableConfig, path: str) -> dict[str, str] | None:
    """Split a partition path into the texts of its fields, decoded; None when it cannot be told apart.

    Values may hold slashes unless they are url-encoded, so that the number of directories need not be the
    number of fields.
    """
    fields = config.partitioning
    if not fields:
        return {}
    parts = _hive_parts(fields, path) if config.hive_style else _plain_parts(fields, path)
    if parts is not None and config.slash_separated_dates and _is_date_of_slashes(config):
        parts = [parts[0].replace("/", "-")]
    if parts is None:
        return None
    decode = unescape if config.url_encode else str
    return {field.name: decode(part) for field, part in zip(fields, parts, strict=True)}


def partition_values(config: TableConfig, path: str, types: Mapping[str, pa.DataType]) -> dict[str, Any]:
    """Values of the partition columns that a path tells for certain, typed; for skipping partitions.

    Left out are columns whose path is derived from the value (formatted times), and texts that do not parse as
    the column's type. Empty strings lie in the null partition too, and are null when read, as in Hudi; its old
    name, `default` (before 0.12), is an ordinary text, as in Hudi.
    """
    texts = {} if _is_ambiguous(config, path) else partition_texts(config, path) or {}
    values: dict[str, Any] = {}
    for field in config.partitioning:
        text, arrow = texts.get(field.name), types.get(field.name)
        if text is None or arrow is None or field.derived:
            continue
        if text == NULL_PARTITION:
            values[field.name] = None
            continue
        try:
            values[field.name] = parse_value(text, arrow)
        except (ValueError, ArithmeticError, OverflowError):
            continue
    return values


def dropped_values(config: TableConfig, path: str, types: Mapping[str, pa.DataType]) -> dict[str, Any]:
    """Values of all partition columns, for tables whose files do not hold them."""
    texts = partition_texts(config, path)
    if texts is None:
        return dict.fromkeys(config.partition_fields)
    return {
        name: None if text == NULL_PARTITION else parse_value(text, types.get(name, pa.string()))
        for name, text in texts.items()
    }


def shown_values(config: TableConfig, path: str, types: Mapping[str, pa.DataType]) -> dict[str, Any]:
    """Values of partition columns that rows show whatever their files hold, as in Hudi.

    Path and file differ where a global index kept an updated row in its old partition. Columns whose text may
    stand for another value than the file's (times, fractions) are left to the files.
    """
    if config.drop_partition_columns:
        return dropped_values(config, path, types)
    told = partition_values(config, path, types)
    return {name: value for name, value in told.items() if is_shown(types[name])}


def is_shown(arrow: pa.DataType) -> bool:
    """Whether a path's text and a value of this type stand for each other."""
    exact = pa.types.is_integer(arrow) or pa.types.is_boolean(arrow) or pa.types.is_date32(arrow)
    return bool(exact or pa.types.is_string(arrow))


def parse_value(text: str, arrow: pa.DataType) -> Any:
    """Turn a path's text into a value of the column's type; raises ValueError when it is none."""
    if _is_text(arrow):
        return text
    if pa.types.is_boolean(arrow):
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if pa.types.is_integer(arrow):
        return int(text)
    if pa.types.is_floating(arrow):
        return float(text)
    if pa.types.is_decimal(arrow):
        return Decimal(text)
    if pa.types.is_date(arrow):
        return dt.date.fromisoformat(text)
    if pa.types.is_timestamp(arrow):
        return _timestamp(text, arrow)
    raise ValueError(f"no partition value of type {arrow}")


def unescape(text: str) -> str:
    """Undo Hive's escaping, once."""
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), text) if "%" in text else text


def _is_ambiguous(config: TableConfig, path: str) -> bool:
    """Whether a value that holds slashes reads like the next column: where it ends cannot be told."""
    if not config.hive_style:
        return False
    segments = path.split("/")
    prefixes = [f"{field.name}=" for field in config.partitioning]
    return any(sum(segment.startswith(prefix) for segment in segments) > 1 for prefix in prefixes)


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))


def _timestamp(text: str, arrow: pa.DataType) -> dt.datetime:
    if text.lstrip("-").isdigit():
        value = _EPOCH + dt.timedelta(microseconds=int(text))
    else:
        value = dt.datetime.fromisoformat(text)
    return value.replace(tzinfo=dt.timezone.utc) if arrow.tz and value.tzinfo is None else value


def _hive_parts(fields: Sequence[PartitionField], path: str) -> list[str] | None:
    parts: list[str] = []
    for segment in path.split("/"):
        expected = f"{fields[len(parts)].name}=" if len(parts) < len(fields) else None
        if expected is not None and segment.startswith(expected):
            parts.append(segment[len(expected) :])
        elif parts:
            parts[-1] += f"/{segment}"
        else:
            return None
    return parts if len(parts) == len(fields) else None


def _is_date_of_slashes(config: TableConfig) -> bool:
    """Whether paths are dates as yyyy/MM/dd: Hudi makes and reads them so for one column, without its name."""
    return len(config.partitioning) == 1 and not config.hive_style and not config.partitioning[0].derived


def _plain_parts(fields: Sequence[PartitionField], path: str) -> list[str] | None:
    if len(fields) == 1:
        return [path]
    segments = path.split("/")
    if len(segments) == len(fields):
        return segments
    # Only one field may take several directories for sure: the one whose value is a formatted time.
    derived = [index for index, field in enumerate(fields) if field.derived]
    if len(derived) != 1 or len(segments) < len(fields):
        return None
    first, after = derived[0], len(fields) - derived[0] - 1
    middle = "/".join(segments[first : len(segments) - after])
    return [*segments[:first], middle, *segments[len(segments) - after :]]
