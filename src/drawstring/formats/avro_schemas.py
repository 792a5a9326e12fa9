"""The Avro schemas of Hudi's own records, kept as data in `avsc/`: one file per record, named like it.

Field names, their order and their types are the format; files without documentation texts, which are not.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import fastavro

from drawstring.schema.meta_columns import META_COLUMNS

COMMIT = "HoodieCommitMetadata"
REPLACE_COMMIT = "HoodieReplaceCommitMetadata"
REQUESTED_REPLACE = "HoodieRequestedReplaceMetadata"
COMPACTION_PLAN = "HoodieCompactionPlan"
CLEAN_PLAN = "HoodieCleanerPlan"
CLEAN = "HoodieCleanMetadata"
ROLLBACK_PLAN = "HoodieRollbackPlan"
ROLLBACK = "HoodieRollbackMetadata"
RESTORE_PLAN = "HoodieRestorePlan"
RESTORE = "HoodieRestoreMetadata"
SAVEPOINT = "HoodieSavepointMetadata"
METADATA_RECORD = "HoodieMetadataRecord"
LSM_INSTANT = "HoodieLSMTimelineInstant"
DELETES = "HoodieDeleteRecordList"
NAMES = (
    COMMIT,
    REPLACE_COMMIT,
    REQUESTED_REPLACE,
    COMPACTION_PLAN,
    CLEAN_PLAN,
    CLEAN,
    ROLLBACK_PLAN,
    ROLLBACK,
    RESTORE_PLAN,
    RESTORE,
    SAVEPOINT,
    METADATA_RECORD,
    LSM_INSTANT,
    DELETES,
)


@lru_cache(maxsize=len(NAMES))
def schema_json(name: str) -> str:
    """Return the schema of one of `NAMES` as compact JSON."""
    text = (files("drawstring.formats") / "avsc" / f"{name}.avsc").read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))


@lru_cache(maxsize=1)
def stored_metadata_schema() -> str:
    """Return the schema that records of the metadata table are stored with: meta columns in front."""
    schema = json.loads(schema_json(METADATA_RECORD))
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
    schema["fields"] = meta + schema["fields"]
    return json.dumps(schema, separators=(",", ":"))


@lru_cache(maxsize=len(NAMES) + 1)
def parsed_schema(name: str) -> Any:
    """Return the schema of one of `NAMES` as fastavro wants it."""
    return fastavro.parse_schema(json.loads(schema_json(name)))


def encode_container(name: str, record: Mapping[str, Any]) -> bytes:
    """Return an Avro container of one record, without compression, as instants are stored."""
    stream = io.BytesIO()
    fastavro.writer(stream, parsed_schema(name), [record], codec="null")
    return stream.getvalue()
