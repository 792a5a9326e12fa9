"""The five columns that Hudi keeps in front of every record."""

from __future__ import annotations

import pyarrow as pa

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
OPERATION = "_hoodie_operation"
IS_DELETED = "_hoodie_is_deleted"
"""A column of the user's, not one of Hudi's: rows in which it is true delete."""

META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
META_FIELDS = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)


def strip_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Return the schema without Hudi's columns."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def prepend_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the five columns first, wherever it had them before."""
    return pa.schema([*META_FIELDS, *strip_meta_columns(schema)])


def with_operation(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the sixth column, which only some writers keep, behind the five."""
    others = [field for field in strip_meta_columns(schema) if field.name != OPERATION]
    return pa.schema([*META_FIELDS, pa.field(OPERATION, pa.string()), *others])
