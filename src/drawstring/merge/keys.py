"""Record keys: stored with each record, or computed as Hudi's key generators do."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.support import found_in_files
from drawstring.model.read_task import KeySpec
from drawstring.schema.java_text import float_text

RECORD_KEY = "_hoodie_record_key"
NULL_KEY, EMPTY_KEY = "__null__", "__empty__"


def key_columns(keys: KeySpec) -> list[str]:
    """The top-level columns that record keys are made of."""
    if keys.populate_meta_fields:
        return [RECORD_KEY]
    if not keys.key_fields:
        raise found_in_files("NO_RECORD_KEYS")
    return list(dict.fromkeys(field.split(".")[0] for field in keys.key_fields))


def record_keys(batch: pa.RecordBatch | pa.Table, keys: KeySpec) -> pa.Array | pa.ChunkedArray:
    """The record key of each row."""
    if keys.populate_meta_fields:
        return batch.column(RECORD_KEY)
    texts = [_text(_field(batch, name)) for name in keys.key_fields]
    if len(texts) == 1:
        return texts[0]
    parts = [
        pc.binary_join_element_wise(f"{name}:", _marked(text), "")
        for name, text in zip(keys.key_fields, texts, strict=True)
    ]
    return reduce(lambda left, right: pc.binary_join_element_wise(left, right, ","), parts)


def deleted_keys(found: pa.Array, keys: KeySpec) -> pa.Array:
    """The keys of a delete block, spelled as `record_keys` spells them.

    Complex generators of some releases write a single field as `name:value`, others as `value`.
    """
    if keys.populate_meta_fields or len(keys.key_fields) != 1:
        return found
    prefix = f"{keys.key_fields[0]}:"
    if not len(found) or not pc.all(pc.starts_with(found, prefix)).as_py():
        return found
    return pc.utf8_slice_codeunits(found, len(prefix))


def _field(batch: pa.RecordBatch | pa.Table, path: str) -> pa.Array | pa.ChunkedArray:
    if path in batch.schema.names:
        return batch.column(path)
    head, *rest = path.split(".")
    return reduce(lambda array, name: pc.struct_field(array, name), rest, batch.column(head))


def _marked(text: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(pc.fill_null(text, NULL_KEY), ""), EMPTY_KEY, pc.fill_null(text, NULL_KEY))


def _text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Values as Java spells them."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    kind = values.type
    if pa.types.is_floating(kind):
        return float_text(values)
    if pa.types.is_timestamp(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_binary(kind):
        return pa.array([None if v is None else v.hex() for v in values.to_pylist()], pa.string())
    if pa.types.is_decimal(kind):
        return pa.array([None if v is None else f"{v:f}" for v in values.to_pylist()], pa.string())
    return values.cast(pa.string())
