"""Record keys: stored with each record, or computed as Hudi's key generators do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.support import found_in_files
from drawstring.model.read_task import KeySpec
from drawstring.schema.key_text import composite_key, field_values, key_text
from drawstring.schema.meta_columns import RECORD_KEY


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
    texts = [key_text(field_values(batch, name)) for name in keys.key_fields]
    return texts[0] if len(texts) == 1 else composite_key(keys.key_fields, texts)


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
