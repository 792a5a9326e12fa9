"""Key generators: record keys and partition paths made of columns, value for value as Hudi makes them.

The rules are told from the table once, as a `KeyGenerator`; this module carries them out on Arrow columns, and
`drawstring.spark.write.keys` as native Spark columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import InvalidInput, InvalidOption
from drawstring.model.key_names import EMPTY_KEY_PART, NULL_KEY_PART, NULL_PARTITION
from drawstring.schema.arrays import counted_texts, number_array, text_array, text_scalar
from drawstring.schema.key_text import composite_key, field_type, field_values, is_key_type, key_text
from drawstring.schema.meta_columns import META_COLUMNS
from drawstring.schema.time_partitions import TimePartition

if TYPE_CHECKING:
    from drawstring.config.table_config import TableConfig

LONGEST_SEGMENT = 255
_EMPTY, _NULL_PARTITION = text_scalar(""), text_scalar(NULL_PARTITION)
_NULL = pa.nulls(1, pa.string())[0]
ESCAPED_CHARACTERS = "".join(map(chr, range(0x20))) + "\x7f\"#%'*/:=?\\{[]^"
"""What url-encoded partition values write as %XX."""


@dataclass(frozen=True)
class KeyGenerator:
    """How keys and paths are made of columns: Hudi's simple, complex, timestamp-based and custom generators.

    `prefixed` keys are written `field:value,…`; without `key_fields` keys are generated. Values of `time_fields`
    become formatted times, by `time`.
    """

    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    prefixed: bool
    hive_style: bool
    url_encode: bool
    time_fields: frozenset[str] = frozenset()
    time: TimePartition | None = None


def key_generator(
    config: TableConfig, *, key_sample: str | None = None, time_settings: Mapping[str, str] | None = None
) -> KeyGenerator:
    """Return the key generator of a table; `time_settings` of the write complete those that the table keeps.

    A complex key of one field is written `field:value` by Hudi 1.1 and later, and `value` by some earlier
    releases: a table that holds keys of the other kind keeps it, else every upsert would duplicate rows.
    """
    fields = config.record_key_fields
    prefixed = len(fields) > 1
    if is_told_by_keys(config):
        prefixed = key_sample is None or key_sample.startswith(f"{fields[0]}:")
    times = _time_fields(config)
    time = TimePartition.of({**(time_settings or {}), **config.time_settings}) if times else None
    return KeyGenerator(
        fields, config.partition_fields, prefixed, config.hive_style, config.url_encode, times, time
    )


def is_told_by_keys(config: TableConfig) -> bool:
    """Whether only stored keys tell how keys are written."""
    return len(config.record_key_fields) == 1 and config.key_generator == "COMPLEX"


def _time_fields(config: TableConfig) -> frozenset[str]:
    if config.key_generator == "CUSTOM":
        stored = config.properties.get("hoodie.table.partition.fields", "")
        unknown = [entry for entry in stored.split(",") if entry.strip() and ":" not in entry]
        if unknown:
            raise InvalidOption(
                f"The table's custom key generator does not say whether {unknown[0]!r} is a time: "
                "hoodie.table.partition.fields should name it as field:SIMPLE or field:TIMESTAMP. Correct the "
                "table's properties, or write with Apache Hudi.",
                condition="KEY_GENERATOR_MISMATCH",
                key="hoodie.table.partition.fields",
            )
    elif config.key_generator != "TIMESTAMP":
        return frozenset()
    return frozenset(field.name for field in config.partitioning if field.derived)


def is_derivable(generator: KeyGenerator, schema: pa.Schema) -> bool:
    """Whether rows of the schema tell all keys and paths: they have the columns, of types that keys know."""
    fields = (*generator.key_fields, *generator.partition_fields)
    types = [field_type(schema, name) for name in fields]
    return bool(generator.key_fields) and all(arrow is not None and is_key_type(arrow) for arrow in types)


def record_keys(batch: pa.RecordBatch, generator: KeyGenerator) -> pa.Array:
    """Return the record keys of rows; null where a row has none."""
    names = generator.key_fields
    texts = [_text(batch, name, "record key") for name in names]
    if not generator.prefixed:
        return pc.if_else(pc.equal(texts[0], _EMPTY), _NULL, texts[0])
    for name, text, following in zip(names, texts, (*names[1:], None), strict=True):
        _check_ambiguous(name, text, following)
    usable = [pc.fill_null(pc.not_equal(text, _EMPTY), False) for text in texts]
    any_usable = usable[0]
    for more in usable[1:]:
        any_usable = pc.or_(any_usable, more)
    return pc.if_else(any_usable, composite_key(names, texts), _NULL)


def partition_paths(batch: pa.RecordBatch, generator: KeyGenerator) -> pa.DictionaryArray:
    """Return the partition paths of rows, each once in the dictionary; each distinct value is looked at once."""
    names = generator.partition_fields
    if not names:
        indices = number_array(np.zeros(batch.num_rows, dtype=np.int32))
        return pa.DictionaryArray.from_arrays(indices, text_array([""]))
    parts = [_path_part(batch, name, generator) for name in names]
    if len(parts) == 1:
        return parts[0]
    joined = pc.binary_join_element_wise(*(part.cast(pa.string()) for part in parts), "/")
    return joined.dictionary_encode()


def generated_keys(requested_time: str, *, task: int, start: int, count: int) -> pa.Array:
    """Return keys for rows of a table that has no key columns: the instant, the task and the row's number in it."""
    return counted_texts(f"{requested_time}_{task}_", start, count)


def _path_part(batch: pa.RecordBatch, name: str, generator: KeyGenerator) -> pa.DictionaryArray:
    if generator.time is not None and name in generator.time_fields:
        encoded = generator.time.texts(field_values(batch, name), name)
        texts = encoded.dictionary
    else:
        encoded = _text(batch, name, "partition path").dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary
        if pc.any(pc.equal(texts, _NULL_PARTITION)).as_py():
            raise reserved_partition_value(name)
    segments = text_array([path_segment(name, text, generator) for text in texts.to_pylist()])
    # Null and the empty text share a path, which must have one number.
    paths = segments.dictionary_encode()
    return pa.DictionaryArray.from_arrays(paths.indices.take(encoded.indices), paths.dictionary)


def path_segment(name: str, text: str | None, generator: KeyGenerator) -> str:
    """Return what a path holds for a field whose value has this text."""
    if not text:
        segment = NULL_PARTITION
    elif generator.url_encode:
        segment = "".join(f"%{ord(c):02X}" if c in ESCAPED_CHARACTERS else c for c in text)
    else:
        segment = text
    return f"{name}={segment}" if generator.hive_style else segment


def _text(batch: pa.RecordBatch, name: str, role: str) -> pa.Array:
    values = field_values(batch, name)
    if not is_key_type(values.type):
        raise key_type_not_supported(name, role, str(values.type))
    return key_text(values)


def _check_ambiguous(name: str, text: pa.Array, following: str | None) -> None:
    found = pc.is_in(text, value_set=pa.array([NULL_KEY_PART, EMPTY_KEY_PART]))
    if following is not None:
        found = pc.or_(found, pc.fill_null(pc.match_substring(text, f",{following}:"), False))
    if pc.any(found).as_py():
        raise ambiguous_key(name, following)


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


def key_type_not_supported(name: str, role: str, found: str) -> InvalidInput:
    """Return the error for a column whose values cannot stand in a key or a path."""
    return InvalidInput(
        f"The {role} column {name!r} has the type {found}; expected a text, number, boolean, date, timestamp or "
        "binary. Nothing was written.",
        condition="KEY_TYPE_NOT_SUPPORTED",
        column=name,
    )


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


def check_keys(keys: pa.Array, batch: pa.RecordBatch, key_fields: Sequence[str]) -> None:
    """Raise `InvalidInput` with an example when a row has no record key."""
    if not keys.null_count:
        return
    row = pc.indices_nonzero(keys.is_null())[0].as_py()
    example = batch.slice(row, 1).to_pylist()[0]
    raise missing_key(tuple(key_fields), example)


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
