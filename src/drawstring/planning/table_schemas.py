"""Which schema a table has at a point in time, and how files of older schemas map to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.errors import CorruptTable, DrawstringError
from drawstring.formats.log_blocks import scan_log_file
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_names import parse_base_file, parse_log_file
from drawstring.model.flipped_names import flipped_name
from drawstring.model.instant import Action, Instant
from drawstring.planning.table_state import TableState
from drawstring.schema.internal_schema import (
    InternalSchema,
    SchemaHistory,
    parse_schema_history,
    schema_history,
)
from drawstring.schema.meta_columns import (
    META_FIELDS,
    OPERATION,
    prepend_meta_columns,
    strip_meta_columns,
    with_operation,
)
from drawstring.schema.table_schema import (
    OPERATIONS_WITHOUT_SCHEMA,
    internal_schema_from_extra_metadata,
    table_schema_from_avro,
    table_schema_from_file,
)
from drawstring.timeline import layout_v1, layout_v2

SCHEMA_FOLDER = ".hoodie/.schema"
_FILES_ASKED = 3
"""How many files of a commit are looked for to learn what columns files have; some may have been cleaned."""


@dataclass(frozen=True)
class TableSchemas:
    """The schemas of a table as seen at `max_instant` (None: now)."""

    state: TableState
    max_instant: str | None

    @cached_property
    def table_schema(self) -> pa.Schema:
        """The table's schema, meta columns first; partition columns that files do not hold come last."""
        schema = self._recorded or self._from_files or self._created
        if schema is None and self.max_instant is not None:
            # Before its first commit a table has no rows; its columns are those it has now.
            return TableSchemas(self.state, None).table_schema
        schema = schema if schema is not None else pa.schema(META_FIELDS)
        if not self.state.config.populate_meta_fields:
            schema = strip_meta_columns(schema)
        return self._with_dropped_columns(self._with_time_columns(schema))

    def _with_dropped_columns(self, schema: pa.Schema) -> pa.Schema:
        """Files lack these columns, and so does the recorded schema: Hudi reads them from the path, as text."""
        if not self.state.config.drop_partition_columns:
            return schema
        missing = [name for name in self.state.config.partition_fields if name not in schema.names]
        return pa.schema([*schema, *(pa.field(name, pa.string()) for name in missing)])

    def _with_time_columns(self, schema: pa.Schema) -> pa.Schema:
        """Hudi 1.x gives a whole number that the timestamp-based key generator partitions by as text."""
        config = self.state.config
        if config.key_generator != "TIMESTAMP" or config.version < 8:
            return schema
        numbers = {
            f.name for f in schema if f.name in config.partition_fields and pa.types.is_integer(f.type)
        }
        return pa.schema([f.with_type(pa.string()) if f.name in numbers else f for f in schema])

    @cached_property
    def internal_schema(self) -> InternalSchema | None:
        """The schema with column ids, where the table was altered by schema on read."""
        found = internal_schema_from_extra_metadata(self._newest[1].extra) if self._newest else None
        return found if found and found.fields else None

    @cached_property
    def history(self) -> SchemaHistory | None:
        """All versions of the schema with column ids."""
        if self.internal_schema is None:
            return None
        stored = self._stored_history()
        return schema_history([self.internal_schema, *(stored.schemas if stored else ())])

    def matches(self, instant: str) -> bool:
        """Whether files written by an instant are known to have the table's schema."""
        completed = self.state.timeline.by_requested_time.get(instant)
        if completed is None or not self.state.metadata(completed).schema:
            return False
        recorded = _recorded_schema(completed, self.state.metadata(completed))
        return bool(recorded.equals(self.table_schema))

    @cached_property
    def _newest(self) -> tuple[Instant, CommitMetadata] | None:
        """The newest commit that changed rows or schema and says with which schema."""
        for instant, metadata in self.state.writes_descending(self.max_instant):
            if metadata.operation not in OPERATIONS_WITHOUT_SCHEMA and metadata.schema:
                return instant, metadata
        return None

    @cached_property
    def _recorded(self) -> pa.Schema | None:
        if self.internal_schema is not None:
            return prepend_meta_columns(self.internal_schema.arrow_schema)
        if self._newest is None:
            return None
        schema = _recorded_schema(*self._newest)
        self._check_names(schema.names)
        return with_operation(schema) if self._files_have_operation() else schema

    def _files_have_operation(self) -> bool:
        """Whether writers keep what happened to each row, as Flink's changelogs do: only files tell, not commits."""
        if not self.state.config.populate_meta_fields:
            return False
        for _, metadata in self.state.writes_descending(self.max_instant):
            paths = [stat.path for stat in metadata.stats if stat.path][:_FILES_ASKED]
            if paths:
                return OPERATION in next(filter(None, map(self._written_names, paths)), [])
        return False

    def _written_names(self, path: str) -> list[str]:
        """The columns of a file; none when it cannot be read, which is told when its rows are asked for."""
        try:
            found = self._file_schema(path)
        except (DrawstringError, OSError):
            return []
        return found.names if found is not None else []

    def _check_names(self, names: Sequence[str]) -> None:
        """Nothing checks the bytes of a commit: a column with a flipped bit in its name would be null in all rows.

        Where such a name seems to stand for one of the write before, a file that the commit wrote must have it.
        """
        assert self._newest is not None
        instant, metadata = self._newest
        before = self._schema_before(instant, metadata.schema)
        flipped = flipped_name(names, before.names) if before is not None else None
        if flipped is None:
            return
        written = next(filter(None, (self._file_schema(stat.path) for stat in metadata.stats)), None)
        if written is not None and flipped not in written.names:
            raise CorruptTable(
                f"The schema in the {instant.action.value} of instant {instant.requested_time} has a column "
                f"{flipped!r}, which neither the files of the commit nor the schema before it have: it is damaged. "
                "Restore the commit's file.",
                condition="INVALID_AVRO_SCHEMA",
                instant=instant.requested_time,
                column=flipped,
            )

    def _schema_before(self, newest: Instant, schema: str) -> pa.Schema | None:
        """The schema of the write before, where it is another one."""
        for instant, metadata in self.state.writes_descending(self.max_instant):
            if instant.requested_time < newest.requested_time and metadata.schema:
                return None if metadata.schema == schema else _recorded_schema(instant, metadata)
        return None

    @cached_property
    def _from_files(self) -> pa.Schema | None:
        for _, metadata in self.state.writes_descending(self.max_instant):
            for stat in reversed(metadata.stats):
                schema = self._file_schema(stat.path)
                if schema is not None:
                    return schema
        return None

    def _file_schema(self, path: str) -> pa.Schema | None:
        storage, name = self.state.storage, path.rsplit("/", 1)[-1]
        try:
            if parse_base_file("", name, 0):
                with storage.open(path) as file:
                    return table_schema_from_file(pq.read_schema(file))
            if parse_log_file("", name, 0):
                schemas = [b.schema_json for b in scan_log_file(storage, path).blocks if b.schema_json]
                return _table_schema(schemas[-1]) if schemas else None
        except FileNotFoundError:
            return None
        except pa.ArrowInvalid as error:
            raise CorruptTable(
                f"Cannot read the schema of {path}: {error}. Restore the file.",
                condition="CORRUPT_BASE_FILE",
                path=path,
            ) from error
        return None

    @cached_property
    def _created(self) -> pa.Schema | None:
        avro = self.state.config.create_schema
        return _table_schema(avro) if avro else None

    def _stored_history(self) -> SchemaHistory | None:
        found = self._newest_history()
        return _stored_versions(*found) if found else None

    def stored_history(self) -> bytes | None:
        """The newest stored history of schemas, as it is stored."""
        found = self._newest_history()
        return found[0] if found else None

    def _newest_history(self) -> tuple[bytes, str] | None:
        """The content and path of the newest stored history whose instant completed."""
        for instant in sorted(self._schema_commits(), key=lambda i: i.requested_time, reverse=True):
            if self.state.timeline.is_committed(instant.requested_time):
                path = f"{SCHEMA_FOLDER}/{instant.file_name}"
                content = self.state.storage.read(path)
                if content:
                    return content, path
        return None

    def _schema_commits(self) -> Iterator[Instant]:
        parse = layout_v2.parse_instant if self.state.config.layout >= 2 else layout_v1.parse_instant
        try:
            entries = self.state.storage.list(SCHEMA_FOLDER)
        except FileNotFoundError:
            return
        for entry in entries:
            instant = None if entry.is_directory else parse(entry)
            if instant and instant.is_completed and instant.action is Action.SCHEMACOMMIT:
                yield instant


def _stored_versions(content: bytes, path: str) -> SchemaHistory | None:
    try:
        return parse_schema_history(content)
    except CorruptTable as error:
        raise CorruptTable(
            f"The schema history {path} is damaged. {error.message} Restore the file.",
            condition=error.condition,
            path=path,
        ) from error


def _recorded_schema(instant: Instant, metadata: CommitMetadata) -> pa.Schema:
    """The schema that a commit records; an error names the commit."""
    try:
        return _table_schema(metadata.schema)
    except CorruptTable as error:
        raise CorruptTable(
            f"The schema in the {instant.action} of instant {instant.requested_time} is damaged. {error.message} "
            "Restore the file, or roll the instant back with Hudi.",
            condition=error.condition,
            instant=instant.requested_time,
            **error.fields,
        ) from error


@lru_cache(maxsize=256)
def _table_schema(avro: str) -> pa.Schema:
    return table_schema_from_avro(avro)
