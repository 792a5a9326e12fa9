"""A copy-on-write or merge-on-read table of version 9 written file by file, without the transaction.

It shows that the byte-level writers suffice: every file of it comes from `formats` and `write.metadata_table`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import drawstring
from drawstring.config.file_options import FileOptions
from drawstring.config.properties import format_properties, table_checksum
from drawstring.config.table_config import TableConfig
from drawstring.formats.avro_encoder import AvroEncoder
from drawstring.formats.log_writer import Positions, avro_block, data_headers, delete_blocks, parquet_block
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_names import base_file_name, join_path, log_file_name
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import PROPERTIES, read_table_config, updated_content
from drawstring.timeline.reader import TimelineReader
from drawstring.timeline.timeline import Timeline
from drawstring.view.listing import METAFILE
from drawstring.view.metadata_table import MetadataTable
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.clock import newest_time, next_time, system_clock
from drawstring.write.commit_encoding import encode_commit, encode_inflight
from drawstring.write.compaction import CompactionLimits, compact_slice, select_slices
from drawstring.write.compaction_plan import encode_compaction_plan
from drawstring.write.markers import staged_path
from drawstring.write.metadata_table.changes import change_of_commit, located_in_slices
from drawstring.write.metadata_table.column_ranges import ColumnRange, ranges_of_batches
from drawstring.write.metadata_table.compaction import is_due, prepare_compaction
from drawstring.write.metadata_table.definitions import default_columns, indexed_columns
from drawstring.write.metadata_table.initialise import (
    default_partitions,
    existing_files,
    initialise,
    settings_with,
)
from drawstring.write.metadata_table.layout import BLOOM_FILTERS, RECORD_INDEX
from drawstring.write.metadata_table.records import KeyLocation
from drawstring.write.metadata_table.writer import MetadataTableWriter
from tests.support.located_keys import located_by_reading

Row = dict[str, Any]


class HandTable:
    """One table; `schema` is without meta columns, `id` is the key, `p` the partition, `ts` the ordering field."""

    def __init__(self, storage: Storage, schema: pa.Schema, *, name: str = "hand") -> None:
        self.storage, self.schema, self.name = storage, schema, name
        self.instants: list[str] = []
        self.log_ranges: dict[str, list[ColumnRange]] = {}

    def create(
        self, *, table_type: str = "COPY_ON_WRITE", partitioned: bool = True, **more: str
    ) -> HandTable:
        properties = {
            "hoodie.table.name": self.name,
            "hoodie.table.type": table_type,
            "hoodie.table.version": "9",
            "hoodie.table.initial.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.table.format": "native",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.keygenerator.type": "SIMPLE" if partitioned else "NON_PARTITION",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.datasource.write.hive_style_partitioning": "false",
            **({"hoodie.table.partition.fields": "p"} if partitioned else {}),
            **more,
        }
        properties["hoodie.table.checksum"] = str(table_checksum(properties))
        self.storage.write(".hoodie/hoodie.properties", format_properties(properties, comment="hand"))
        return self

    @property
    def config(self) -> TableConfig:
        return read_table_config(self.storage)

    @property
    def timeline(self) -> Timeline:
        return TimelineReader(self.storage, self.config).load()

    def next_time(self) -> str:
        times = [newest_time(self.timeline.ascending_instants), *self.instants]
        found = next_time(max(times), clock=system_clock, timezone=self.config.timezone)
        self.instants.append(found)
        return found

    def initialise(self, *extra: str) -> HandTable:
        """Make the metadata table with the default partitions and more."""
        config, partitions = self.config, (*default_partitions(self.config), *extra)
        columns = {name: self._full.field(name).type for name in default_columns(self.schema)}
        located: list[KeyLocation] = []
        if RECORD_INDEX in partitions and self.timeline.completed_writes:
            tasks = drawstring.open_table(self.storage.root).snapshot().scan().plan().tasks
            located = list(located_in_slices(self.storage, tasks, self._full))
        change = existing_files(
            self.storage,
            config,
            self.timeline,
            columns=columns,
            with_bloom_filters=BLOOM_FILTERS in partitions,
            located=located,
        )
        steps = initialise(self.storage, config, change, partitions=partitions, newest_time=self.next_time())
        steps.carry_out(self.storage)
        self.storage.write(PROPERTIES, updated_content(settings_with(config, partitions)))
        return self

    @property
    def _full(self) -> pa.Schema:
        return prepend_meta_columns(self.schema)

    @property
    def avro(self) -> str:
        names = {"name": f"{self.name}_record", "namespace": f"hoodie.{self.name}"}
        return json.dumps(avro_schema_from_arrow(self._full, **names))

    @property
    def table_schema(self) -> str:
        names = {"name": f"{self.name}_record", "namespace": f"hoodie.{self.name}"}
        return json.dumps(avro_schema_from_arrow(self.schema, **names))

    def with_meta(self, rows: Sequence[Row], partition: str, instant: str, file_name: str) -> pa.Table:
        full = [
            {
                "_hoodie_commit_time": instant,
                "_hoodie_commit_seqno": f"{instant}_0_{number}",
                "_hoodie_record_key": str(row["id"]),
                "_hoodie_partition_path": partition,
                "_hoodie_file_name": file_name,
                **row,
            }
            for number, row in enumerate(rows)
        ]
        return pa.Table.from_pylist(full, schema=self._full)

    def base_file(
        self,
        instant: str,
        partition: str,
        rows: Sequence[Row],
        *,
        previous: WriteStat | None = None,
        file_id: str | None = None,
    ) -> WriteStat:
        """Write a base file of a new file group, or the next one of the group of `previous`."""
        file_id = previous.file_id if previous else file_id or f"{uuid.uuid4()}-0"
        name = base_file_name(file_id, "0-0-0", instant)
        sink = pa.BufferOutputStream()
        # Bounds that hide NaN would make every reader skip rows.
        bounded = [
            f.name for f in self._full if not pa.types.is_floating(f.type) and not pa.types.is_nested(f.type)
        ]
        pq.write_table(self.with_meta(rows, partition, instant, name), sink, write_statistics=bounded)
        self._metafile(partition, instant)
        content = sink.getvalue().to_pybytes()
        self.storage.write(join_path(partition, name), content)
        earlier = previous.name.rsplit("_", 1)[-1].split(".")[0] if previous else "null"
        return WriteStat(
            file_id,
            join_path(partition, name),
            partition,
            num_writes=len(rows),
            num_inserts=0 if previous else len(rows),
            num_updates=len(rows) if previous else 0,
            file_size=len(content),
            prev_commit=earlier,
            prev_base_file=previous.name if previous else None,
        )

    def log_file(
        self,
        instant: str,
        base: WriteStat,
        rows: Sequence[Row],
        deletes: Sequence[tuple[str, Any]] = (),
        *,
        positions: Sequence[int] | None = None,
        as_parquet: bool = False,
    ) -> WriteStat:
        """Write a log file of updated rows and of deletes (key and ordering value, None for none)."""
        name = log_file_name(base.file_id, instant, 1, "0-0-0")
        table = self.with_meta(rows, base.partition_path, instant, base.file_id)
        located = None
        if positions is not None:
            located = Positions(base.name.rsplit("_", 1)[-1].split(".")[0], positions)
        blocks = []
        if rows:
            headers = data_headers(instant, self.avro, positions=located)
            batches = table.combine_chunks().to_batches()
            blocks.append(
                parquet_block(table, headers)
                if as_parquet
                else avro_block(batches, headers, AvroEncoder(self.avro))
            )
        if deletes:
            keys = pa.array([key for key, _ in deletes])
            orderings = pa.array([ordering for _, ordering in deletes], self.schema.field("ts").type)
            blocks += delete_blocks(instant, self.avro, keys, base.partition_path, [orderings])
        content = b"".join(blocks)
        path = join_path(base.partition_path, name)
        self._metafile(base.partition_path, instant)
        self.storage.write(path, content)
        columns = indexed_columns(self.storage, self.config, self.schema)
        self.log_ranges[path] = ranges_of_batches(table.to_batches(), columns)
        return WriteStat(
            base.file_id,
            path,
            base.partition_path,
            num_writes=len(rows),
            num_updates=len(rows),
            num_deletes=len(deletes),
            file_size=len(content),
            log_files=(name,),
            prev_commit=instant,
        )

    def _metafile(self, partition: str, instant: str) -> None:
        depth = str(len(partition.split("/")) if partition else 0)
        content = format_properties(
            {"commitTime": instant, "partitionDepth": depth}, comment="partition metadata"
        )
        self.storage.create_if_absent(join_path(partition, METAFILE), content)

    def commit(
        self, instant: str, stats: Sequence[WriteStat], *, operation: str = "UPSERT", **more: Any
    ) -> None:
        """Complete a commit: first in the metadata table, then in the data table."""
        is_mor = self.config.table_type == "MERGE_ON_READ"
        action = "deltacommit" if is_mor else "commit"
        inflight = "deltacommit.inflight" if is_mor else "inflight"
        metadata = CommitMetadata(operation, tuple(stats), extra={"schema": self.table_schema})
        timeline = ".hoodie/timeline"
        self.storage.create_if_absent(f"{timeline}/{instant}.{action}.requested", b"")
        self.storage.create_if_absent(f"{timeline}/{instant}.{inflight}", encode_inflight(operation))
        if self.config.metadata_partitions:
            self.commit_metadata(instant, metadata, **more)
        completed = f"{timeline}/{instant}_{self.next_time()}.{action}"
        self.storage.create_if_absent(completed, encode_commit(metadata, is_replace=False))

    def commit_metadata(self, instant: str, metadata: CommitMetadata, **more: Any) -> None:
        """Complete the deltacommit of the metadata table."""
        self.compact_metadata()
        writer = MetadataTableWriter(self.storage, self.config, self.timeline)
        if RECORD_INDEX in writer.partitions and "located" not in more:
            more["located"], more["deleted_keys"] = located_by_reading(self.storage, metadata)
        change = change_of_commit(
            self.storage,
            metadata,
            columns=indexed_columns(self.storage, self.config, self.schema),
            with_bloom_filters=BLOOM_FILTERS in writer.partitions,
            ranges_of=lambda stat: self.log_ranges.get(stat.path),
            **more,
        )
        writer.publish(writer.prepare(change, instant), self.next_time())

    def compact_metadata(self) -> bool:
        """Compact the metadata table when it is due."""
        metadata = MetadataTable(self.storage, self.config, self.timeline)
        if not is_due(metadata):
            return False
        prepare_compaction(metadata, self.next_time()).publication(self.next_time()).carry_out(self.storage)
        return True

    def compact(self) -> None:
        """Compact every slice that has logs: plan, base files, then the commit, as Hudi orders them."""
        tasks = list(drawstring.open_table(self.storage.root).snapshot().scan().plan().tasks)
        chosen = select_slices([task.slice for task in tasks], CompactionLimits())
        instant, timeline = self.next_time(), ".hoodie/timeline"
        requested = f"{timeline}/{instant}.compaction.requested"
        self.storage.create_if_absent(requested, encode_compaction_plan(chosen))
        self.storage.create_if_absent(f"{timeline}/{instant}.compaction.inflight", b"")
        context = WriteContext(self.storage, instant, self._full, FileOptions())
        stats = []
        for number, task in enumerate(task for task in tasks if task.slice in chosen):
            stat = compact_slice(context, TaskContext(number), task)
            self.storage.write(stat.path, self.storage.read(staged_path(instant, stat.path)))
            stats.append(stat)
        self.storage.delete(f".hoodie/.temp/{instant}", recursive=True)
        metadata = CommitMetadata("COMPACT", tuple(stats), extra={"schema": self.table_schema})
        if self.config.metadata_partitions:
            self.commit_metadata(instant, metadata, located=[], deleted_keys=None)
        completed = f"{timeline}/{instant}_{self.next_time()}.commit"
        self.storage.create_if_absent(completed, encode_commit(metadata, is_replace=False))
