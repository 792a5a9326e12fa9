"""Rules for record keys and partition paths that hold wherever they are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table_config import TableConfig
from drawstring.errors import InvalidInput
from drawstring.schema.meta_columns import META_COLUMNS

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
NULL_KEY_PART = "__null__"
EMPTY_KEY_PART = "__empty__"
LONGEST_SEGMENT = 255
ESCAPED_CHARACTERS = "".join(map(chr, range(0x20))) + "\x7f\"#%'*/:=?\\{[]^"
"""What url-encoded partition values write as %XX."""


@dataclass(frozen=True)
class KeyRule:
    """How keys and paths are made of columns.

    `prefixed` keys are written `field:value,…`; without `key_fields` keys are generated.
    """

    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    prefixed: bool
    hive_style: bool
    url_encode: bool


def key_rule(config: TableConfig, *, key_sample: str | None = None) -> KeyRule:
    """Return the rule of a table.

    A complex key of one field is written `field:value` by Hudi 1.1 and later, and `value` by some earlier
    releases: a table that holds keys of the other kind keeps it, else every upsert would duplicate rows.
    """
    fields = config.record_key_fields
    prefixed = len(fields) > 1
    if len(fields) == 1 and config.key_generator == "COMPLEX":
        prefixed = key_sample is None or key_sample.startswith(f"{fields[0]}:")
    return KeyRule(fields, config.partition_fields, prefixed, config.hive_style, config.url_encode)


def check_partition_path(path: str) -> str:
    """Return the path, or raise `InvalidInput` when it would leave its table or could not be a directory."""
    segments = path.split("/") if path else []
    if "\0" in path or any(segment in ("", ".", "..") for segment in segments):
        raise _bad_path(path, "expected no empty segment, no '.' or '..' and no NUL")
    if segments and segments[0] == ".hoodie":
        raise _bad_path(path, "'.hoodie' holds the table's own files")
    if any(len(segment.encode()) > LONGEST_SEGMENT for segment in segments):
        raise _bad_path(path, f"expected segments of at most {LONGEST_SEGMENT} bytes")
    return path


def _bad_path(path: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"The partition path {path[:300]!r} cannot be used: {what}. Correct the partition column, or set "
        "hoodie.datasource.write.partitionpath.urlencode=true. Nothing was written.",
        condition="INVALID_PARTITION_PATH",
        partition_path=path[:300],
    )


def is_derivable(rule: KeyRule, schema: pa.Schema) -> bool:
    """Whether keys and paths can be made of Arrow columns: whole numbers and texts read alike everywhere."""
    fields = (*rule.key_fields, *rule.partition_fields)
    simple = len(rule.key_fields) == 1 and not rule.prefixed and len(rule.partition_fields) <= 1
    return simple and all(name in schema.names and _is_plain(schema.field(name).type) for name in fields)


def _is_plain(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(arrow) or pa.types.is_string(arrow))


def derive_keys(batch: pa.RecordBatch, rule: KeyRule) -> pa.Array:
    """Return the record keys of rows that do not bring them; null where a row has none."""
    column = batch.column(rule.key_fields[0])
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    empty = pc.equal(column, "")
    return pc.if_else(empty, pa.scalar(None, column.type), column).cast(pa.string())


def derive_paths(batch: pa.RecordBatch, rule: KeyRule) -> pa.DictionaryArray:
    """Return the partition paths of rows that do not bring them; each distinct value is looked at once."""
    if not rule.partition_fields:
        indices = pa.array(bytes(batch.num_rows), pa.uint8()).cast(pa.int32())
        return pa.DictionaryArray.from_arrays(indices, pa.array([""]))
    name = rule.partition_fields[0]
    encoded = batch.column(name).dictionary_encode(null_encoding="encode")
    texts = [_path_text(name, value, rule) for value in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.string()))


def reserved_partition_value(name: str) -> InvalidInput:
    """Return the error for a text that stands for the absence of one in partition paths."""
    return InvalidInput(
        f"The partition column {name!r} holds the text {NULL_PARTITION}, which is the name of the partition of "
        "nulls: the row would be read back as null. Change the value. Nothing was written.",
        condition="RESERVED_PARTITION_VALUE",
        column=name,
    )


def ambiguous_key(name: str, following: str | None) -> InvalidInput:
    """Return the error for a part of a record key that would make two different keys look the same."""
    reserved = f"{NULL_KEY_PART} or {EMPTY_KEY_PART}" + (f", or holds ',{following}:'" if following else "")
    return InvalidInput(
        f"A value of the record key column {name!r} is {reserved}, which have a meaning of their own in keys of "
        "several columns: another row could have the same key. Change the value. Nothing was written.",
        condition="AMBIGUOUS_RECORD_KEY",
        column=name,
    )


def _path_text(name: str, value: Any, rule: KeyRule) -> str:
    if value == NULL_PARTITION:
        raise reserved_partition_value(name)
    text = NULL_PARTITION if value is None or value == "" else str(value)
    if rule.url_encode and text != NULL_PARTITION:
        text = "".join(f"%{ord(c):02X}" if c in ESCAPED_CHARACTERS else c for c in text)
    return f"{name}={text}" if rule.hive_style else text


def check_keys(keys: pa.Array, batch: pa.RecordBatch, key_fields: tuple[str, ...]) -> None:
    """Raise `InvalidInput` with an example when a row has no record key."""
    if not keys.null_count:
        return
    row = pc.indices_nonzero(keys.is_null())[0].as_py()
    example = batch.slice(row, 1).to_pylist()[0]
    raise missing_key(key_fields, example)


def missing_key(key_fields: tuple[str, ...], example: dict[str, Any]) -> InvalidInput:
    """Return the error for a row whose key columns are null or empty."""
    shown = {name: str(value)[:60] for name, value in example.items() if name not in META_COLUMNS}
    shown = dict(list(shown.items())[:8])
    return InvalidInput(
        f"A row has no record key: its column{'s' if len(key_fields) > 1 else ''} {', '.join(key_fields)} "
        f"{'are' if len(key_fields) > 1 else 'is'} null or empty, as in {shown}. Fill the key, or choose another "
        "with hoodie.datasource.write.recordkey.field. Nothing was written.",
        condition="NULL_RECORD_KEY",
        columns=list(key_fields),
        example=shown,
    )
