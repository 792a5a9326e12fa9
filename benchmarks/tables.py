"""Hudi tables made for measuring: any size, in seconds, without Spark.

The data of one file serves for all files of a table, as hard links: planners and readers see as many files as the
table should have, and making it stays cheap. Keys then repeat between file groups, which no read minds.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from drawstring.formats.hfile_writer import write_hfile
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.meta_columns import META_COLUMNS
from drawstring.write.bucket_index import BucketRule, bucket_file_id, bucket_numbers

FIRST, SECOND = "20260101000000000", "20260102000000000"


@dataclass(frozen=True)
class Shape:
    """How large a table is: `files` file groups of `rows_per_file` rows over `partitions` partitions."""

    files: int
    rows_per_file: int
    columns: int
    partitions: int = 1
    updated: float = 0.0

    @property
    def rows(self) -> int:
        return self.files * self.rows_per_file


@dataclass
class _Writer:
    path: Path
    name: str
    merge_on_read: bool = False
    metadata_table: bool = False
    stats: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def properties(self) -> None:
        lines = {
            "hoodie.table.name": self.name,
            "hoodie.table.type": "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            "hoodie.table.version": "9",
            "hoodie.table.initial.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": "p",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.table.keygenerator.type": "SIMPLE",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.table.checksum": str(zlib.crc32(f".{self.name}".encode())),
        }
        if self.metadata_table:
            lines["hoodie.table.metadata.partitions"] = "column_stats,files"
        (self.path / ".hoodie" / "timeline").mkdir(parents=True)
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (self.path / ".hoodie" / "hoodie.properties").write_text(text)

    def commit(self, instant: str, avro_schema: str, *, extra: Mapping[str, str] | None = None) -> None:
        action = "deltacommit" if self.merge_on_read else "commit"
        folder = self.path / ".hoodie" / "timeline"
        record = {
            "partitionToWriteStats": self.stats,
            "extraMetadata": {"schema": avro_schema, **(extra or {})},
            "operationType": "UPSERT" if instant == SECOND else "BULK_INSERT",
        }
        (folder / f"{instant}.{action}.requested").touch()
        (folder / f"{instant}.{action}.inflight").touch()
        (folder / f"{instant}_{int(instant) + 5000}.{action}").write_bytes(_container(_COMMIT_SCHEMA, record))
        self.stats = {}

    def note(self, partition: str, file_id: str, name: str, rows: int, size: int) -> None:
        stat = {"fileId": file_id, "path": f"{partition}/{name}", "partitionPath": partition}
        self.stats.setdefault(partition, []).append({**stat, "numWrites": rows, "fileSizeInBytes": size})

    def partition(self, name: str) -> Path:
        folder = self.path / name
        folder.mkdir(parents=True, exist_ok=True)
        metafile = "#partition metadata\ncommitTime=" + FIRST + "\npartitionDepth=1\n"
        (folder / ".hoodie_partition_metadata").write_text(metafile)
        return folder


def copy_on_write(path: Path, shape: Shape, *, schema: pa.Schema | None = None) -> Path:
    """Make a copy-on-write table; `schema`, if given, is the newer one that its second, empty commit declares."""
    writer = _Writer(path, path.name)
    writer.properties()
    data = rows_of(shape)
    _base_files(writer, shape, data)
    writer.commit(FIRST, avro_schema(data.schema))
    if schema is not None:
        writer.commit(SECOND, avro_schema(schema))
    return path


def merge_on_read(path: Path, shape: Shape, *, data: pa.Table | None = None) -> Path:
    """Make a merge-on-read table: base files, and in every file group an Avro log that updates some rows.

    `data` are the rows of one file, made by `rows_of` unless given.
    """
    writer = _Writer(path, path.name, merge_on_read=True)
    writer.properties()
    data = rows_of(shape) if data is None else data
    _base_files(writer, shape, data)
    writer.commit(FIRST, avro_schema(data.schema))
    _log_files(writer, shape, data)
    writer.commit(SECOND, avro_schema(data.schema))
    return path


def clustered(path: Path, shape: Shape) -> Path:
    """Make a copy-on-write table whose files follow each other by `id`; each file is written on its own."""
    writer = _Writer(path, path.name)
    writer.properties()
    data = rows_of(shape)
    for partition in range(shape.partitions):
        writer.partition(f"p={partition}")
    at = data.schema.get_field_index("id")
    for number, (partition_name, file_id, name) in enumerate(_names(shape, path.name)):
        first = number * shape.rows_per_file
        ids = pa.array(np.arange(first, first + shape.rows_per_file, dtype=np.int64))
        pq.write_table(data.set_column(at, "id", ids), path / partition_name / name, compression="snappy")
        size = (path / partition_name / name).stat().st_size
        writer.note(partition_name, file_id, name, shape.rows_per_file, size)
    writer.commit(FIRST, avro_schema(data.schema))
    return path


def bucketed(path: Path, shape: Shape) -> Path:
    """Make a table whose file groups are the buckets of Hudi's simple bucket index, one file for each."""
    writer = _Writer(path, path.name)
    writer.properties()
    writer.partition("p=0")
    data = rows_of(Shape(1, shape.rows, shape.columns))
    keys = data["id"].cast(pa.string())
    data = data.set_column(data.schema.get_field_index("_hoodie_record_key"), "_hoodie_record_key", keys)
    numbers = bucket_numbers(keys.combine_chunks(), BucketRule(shape.files, ("id",)))
    for bucket in range(shape.files):
        rows = data.filter(pa.array(numbers == bucket))
        file_id = bucket_file_id(bucket)
        name = f"{file_id}_0-1-{bucket}_{FIRST}.parquet"
        pq.write_table(rows, path / "p=0" / name, compression="snappy")
        writer.note("p=0", file_id, name, rows.num_rows, (path / "p=0" / name).stat().st_size)
    writer.commit(FIRST, avro_schema(data.schema))
    return path


def listed(path: Path, shape: Shape) -> Path:
    """Make a table whose metadata table lists the files; the files themselves are not needed to plan."""
    writer = _Writer(path, path.name, metadata_table=True)
    writer.properties()
    files: dict[str, dict[str, int]] = {}
    for partition, file_id, name in _names(shape, path.name):
        files.setdefault(partition, {})[name] = 100_000_000
        writer.note(partition, file_id, name, 1_000_000, 100_000_000)
    writer.commit(FIRST, avro_schema(rows_of(Shape(1, 1, shape.columns)).schema))
    _metadata_table(path, path.name, files)
    return path


def many_commits(path: Path, *, commits: int, files: int, last: int | None = None) -> Path:
    """Make a table of many commits, each of new file groups; the files are named, and empty, for nothing reads them.

    The last ten commits have `last` files each, where that is given.
    """
    writer = _Writer(path, path.name)
    writer.properties()
    schema = avro_schema(rows_of(Shape(1, 1, 7)).schema)
    folder = writer.partition("p=0")
    for number in range(commits):
        instant = str(int(FIRST) + number * 10_000)
        for file in range(last or files if commits - number <= 10 else files):
            file_id = f"{number:08x}-0000-4000-8000-{file:012x}-0"
            name = f"{file_id}_0-1-{file}_{instant}.parquet"
            (folder / name).touch()
            writer.note("p=0", file_id, name, 1_000_000, 100_000_000)
        writer.commit(instant, schema)
    return path


def rows_of(shape: Shape) -> pa.Table:
    """The rows of one file: meta columns, id, ts, p, then numbers and texts in turn."""
    count, random = shape.rows_per_file, np.random.default_rng(7)
    keys = pa.array([f"{number:09d}" for number in range(count)])
    columns: dict[str, Any] = {
        "_hoodie_commit_time": _repeated(FIRST, count),
        "_hoodie_commit_seqno": pa.array([f"{FIRST}_0_{number}" for number in range(count)]),
        "_hoodie_record_key": keys,
        "_hoodie_partition_path": _repeated("p=0", count),
        "_hoodie_file_name": _repeated("file", count),
        "id": pa.array(np.arange(count, dtype=np.int64)),
        "ts": pa.array(np.full(count, 10, dtype=np.int64)),
        "p": _repeated("0", count),
    }
    texts = pa.array([f"text number {number}" for number in range(1000)])
    for number in range(3, shape.columns):
        kind = number % 4
        if kind == 3:
            columns[f"c{number}"] = texts.take(pa.array(random.integers(0, 1000, count)))
        elif kind == 2:
            columns[f"c{number}"] = pa.array(random.integers(0, 1000, count).astype(np.int32))
        elif kind == 1:
            columns[f"c{number}"] = pa.array(random.random(count))
        else:
            columns[f"c{number}"] = pa.array(random.integers(0, 10**9, count))
    return pa.table(columns)


def avro_schema(schema: pa.Schema) -> str:
    """The Avro schema that a commit records: data columns only, all nullable."""
    return json.dumps(_avro(pa.schema([item for item in schema if item.name not in META_COLUMNS])))


def _avro(schema: pa.Schema) -> dict[str, Any]:
    return avro_schema_from_arrow(schema, name="bench", namespace="hoodie")


def _repeated(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [text]).cast(pa.string())


def _names(shape: Shape, table: str) -> list[tuple[str, str, str]]:
    # File names differ between tables: what is cached of one must not serve another.
    found, salt = [], f"{zlib.crc32(table.encode()):08x}"
    for number in range(shape.files):
        file_id = f"{number:08x}-{salt[:4]}-4{salt[4:7]}-8000-000000000000-0"
        found.append((f"p={number % shape.partitions}", file_id, f"{file_id}_0-1-{number}_{FIRST}.parquet"))
    return found


def _base_files(writer: _Writer, shape: Shape, data: pa.Table) -> None:
    original = writer.path / ".hoodie" / "base.parquet"
    pq.write_table(
        data, original, compression="snappy", row_group_size=max(1, min(shape.rows_per_file, 1_000_000))
    )
    size = original.stat().st_size
    for partition in range(shape.partitions):
        writer.partition(f"p={partition}")
    for partition_name, file_id, name in _names(shape, writer.name):
        os.link(original, writer.path / partition_name / name)
        writer.note(partition_name, file_id, name, shape.rows_per_file, size)
    original.unlink()


def _log_files(writer: _Writer, shape: Shape, data: pa.Table) -> None:
    updated = (
        data.slice(0, 0) if not shape.updated else data.take(_spread(shape.rows_per_file, shape.updated))
    )
    block = _data_block(updated)
    for partition, file_id, _ in _names(shape, writer.name):
        name = f".{file_id}_{SECOND}.log.1_0-2-0"
        target = writer.path / partition / name
        target.write_bytes(block)
        writer.note(partition, file_id, name, updated.num_rows, len(block))


def _spread(count: int, share: float) -> pa.Array:
    return pa.array(np.arange(0, count, max(1, round(1 / share)), dtype=np.int64))


def _data_block(updated: pa.Table) -> bytes:
    schema = _avro(updated.schema)
    parsed, content = fastavro.parse_schema(schema), io.BytesIO()
    content.write(struct.pack(">ii", 3, updated.num_rows))
    for record in updated.to_pylist():
        record.update(_hoodie_commit_time=SECOND, ts=20)
        single = io.BytesIO()
        fastavro.schemaless_writer(single, parsed, record)
        content.write(struct.pack(">i", single.tell()) + single.getvalue())
    return _framed(3, {0: SECOND, 2: json.dumps(schema)}, content.getvalue())


def _framed(kind: int, headers: Mapping[int, str], content: bytes) -> bytes:
    body = struct.pack(">iii", 1, kind, len(headers))
    for key, text in headers.items():
        body += struct.pack(">ii", key, len(text.encode())) + text.encode()
    body += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    length = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", length) + body + struct.pack(">q", length + 6)


def _metadata_table(path: Path, name: str, files: Mapping[str, Mapping[str, int]]) -> None:
    folder = path / ".hoodie" / "metadata"
    (folder / ".hoodie" / "timeline").mkdir(parents=True)
    properties = {
        "hoodie.table.name": f"{name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "9",
        "hoodie.table.initial.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.checksum": str(zlib.crc32(f".{name}_metadata".encode())),
    }
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    (folder / ".hoodie" / "hoodie.properties").write_text(text)
    indexes = {
        "files": ("files-0000-0", _files_hfile(files)),
        "column_stats": ("col-stats-0000-0", _stats_hfile(files)),
    }
    stats = {}
    for index, (file_id, content) in indexes.items():
        base = f"{file_id}_0-1-0_{FIRST}.hfile"
        (folder / index).mkdir()
        (folder / index / base).write_bytes(content)
        (folder / index / ".hoodie_partition_metadata").write_text(f"commitTime={FIRST}\npartitionDepth=1\n")
        stat = {"fileId": file_id, "path": f"{index}/{base}", "partitionPath": index}
        stats[index] = [{**stat, "fileSizeInBytes": len(content)}]
    record = {"partitionToWriteStats": stats, "extraMetadata": {}, "operationType": "BULK_INSERT"}
    timeline = folder / ".hoodie" / "timeline"
    (timeline / f"{FIRST}_{int(FIRST) + 4000}.deltacommit").write_bytes(_container(_COMMIT_SCHEMA, record))


def _files_hfile(files: Mapping[str, Mapping[str, int]]) -> bytes:
    parsed = fastavro.parse_schema(_FILES_SCHEMA)

    def value(kind: int, entries: Mapping[str, int]) -> bytes:
        listing = {name: {"size": size, "isDeleted": False} for name, size in entries.items()}
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, {"key": "", "type": kind, "filesystemMetadata": listing})
        return buffer.getvalue()

    entries = {b"__all_partitions__": value(1, dict.fromkeys(files, 0))}
    entries.update({partition.encode(): value(2, listing) for partition, listing in files.items()})
    return write_hfile(sorted(entries.items()), schema=json.dumps(_FILES_SCHEMA))


def _stats_hfile(files: Mapping[str, Mapping[str, int]]) -> bytes:
    """Statistics of a number and of a text for each file: file n has the ids from 1000 n to 1000 n + 999."""
    parsed = fastavro.parse_schema(_STATS_SCHEMA)
    entries: dict[bytes, bytes] = {}
    names = [(partition, name) for partition, listing in files.items() for name in listing]
    for number, (partition, name) in enumerate(names):
        place = (
            _hash(partition) + b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()
        )
        bounds = {
            "id": ("LongWrapper", 1000 * number, 1000 * number + 999, 4),
            "c3": ("StringWrapper", f"text {number:09d}", f"text {number:09d}z", 7),
        }
        for column, (wrapper, low, high, ordinal) in bounds.items():
            stats = {
                "fileName": name,
                "columnName": column,
                "minValue": (f"{_NAMESPACE}.{wrapper}", {"value": low}),
                "maxValue": (f"{_NAMESPACE}.{wrapper}", {"value": high}),
                "valueCount": 1000,
                "nullCount": 0,
                "totalSize": 1,
                "totalUncompressedSize": 1,
                "isDeleted": False,
                "isTightBound": True,
                "valueType": {"typeOrdinal": ordinal, "additionalInfo": None},
            }
            buffer = io.BytesIO()
            record = {"key": "", "type": 3, "ColumnStatsMetadata": stats}
            fastavro.schemaless_writer(buffer, parsed, record)
            entries[(_hash(column) + place).encode()] = buffer.getvalue()
    return write_hfile(sorted(entries.items()), schema=json.dumps(_STATS_SCHEMA))


def _hash(text: str) -> str:
    return b64encode(xxhash.xxh64(text.encode(), seed=0xFFFFFFFFDABADABA).digest()).decode()


def _container(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(dict(schema)), [dict(record)], codec="deflate")
    return buffer.getvalue()


def _nullable(*fields: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "type": ["null", kind], "default": None} for name, kind in fields]


_STAT_FIELDS: Sequence[tuple[str, Any]] = (
    ("fileId", "string"),
    ("path", "string"),
    ("numWrites", "long"),
    ("partitionPath", "string"),
    ("fileSizeInBytes", "long"),
)
_STAT = {"type": "record", "name": "HoodieWriteStat", "fields": _nullable(*_STAT_FIELDS)}
_COMMIT_SCHEMA = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "namespace": "org.apache.hudi.avro.model",
    "fields": _nullable(
        ("partitionToWriteStats", {"type": "map", "values": {"type": "array", "items": _STAT}}),
        ("extraMetadata", {"type": "map", "values": "string"}),
        ("operationType", "string"),
    ),
}
_FILE_INFO = {
    "type": "record",
    "name": "HoodieMetadataFileInfo",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
_META_FIELDS = _nullable(*((name, "string") for name in META_COLUMNS))
_FILES_SCHEMA = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *_META_FIELDS,
        {"name": "key", "type": "string"},
        {"name": "type", "type": "int"},
        *_nullable(("filesystemMetadata", {"type": "map", "values": _FILE_INFO})),
    ],
}
_NAMESPACE = "org.apache.hudi.avro.model"


def _wrapper(name: str, kind: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}


_VALUE_TYPE = {
    "type": "record",
    "name": "HoodieValueTypeInfo",
    "fields": [{"name": "typeOrdinal", "type": "int"}, *_nullable(("additionalInfo", "string"))],
}
_COLUMN_STATS = {
    "type": "record",
    "name": "HoodieMetadataColumnStats",
    "fields": [
        *_nullable(("fileName", "string"), ("columnName", "string")),
        {
            "name": "minValue",
            "type": ["null", _wrapper("LongWrapper", "long"), _wrapper("StringWrapper", "string")],
        },
        {"name": "maxValue", "type": ["null", "LongWrapper", "StringWrapper"]},
        *_nullable(("valueCount", "long"), ("nullCount", "long"), ("totalSize", "long")),
        *_nullable(("totalUncompressedSize", "long")),
        {"name": "isDeleted", "type": "boolean"},
        {"name": "isTightBound", "type": "boolean"},
        *_nullable(("valueType", _VALUE_TYPE)),
    ],
}
_STATS_SCHEMA = {
    **_FILES_SCHEMA,
    "fields": [*_FILES_SCHEMA["fields"], *_nullable(("ColumnStatsMetadata", _COLUMN_STATS))],
}
