"""File slices made by hand: a base file and log blocks in memory, and the task that reads them."""

from __future__ import annotations

import io
import json
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.formats.delete_blocks import _full_schema
from drawstring.formats.log_blocks import MAGIC, BlockType, Header
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.model.read_task import KeySpec, MergeSpec, ReadTask
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.storage.memory import MemoryStorage

META = ["commit_time", "commit_seqno", "record_key", "partition_path", "file_name"]
FILE_ID = "11111111-0000-0000-0000-000000000000-0"
SCHEMA = pa.schema(
    [pa.field(f"_hoodie_{name}", pa.string()) for name in META]
    + [
        pa.field("id", pa.string()),
        pa.field("v", pa.int64()),
        pa.field("s", pa.string()),
        pa.field("ts", pa.int64()),
    ]
)
COMMIT_TIME, EVENT_TIME = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"


def instant(number: int) -> str:
    return f"2026010100000{number:04d}"


def framed(content: bytes, headers: dict[Header, str], kind: BlockType) -> bytes:
    body = struct.pack(">iii", 1, kind, len(headers))
    for key, value in headers.items():
        body += struct.pack(">ii", key, len(value.encode())) + value.encode()
    body += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    return MAGIC + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 14)


def wrapped(ordering: Any) -> Any:
    if ordering is None:
        return None
    if isinstance(ordering, tuple):
        return ("ArrayWrapper", {"wrappedValues": [wrapped(value) for value in ordering]})
    name = {int: "Long", float: "Double", str: "String", Decimal: "Decimal"}[type(ordering)]
    return (f"{name}Wrapper", {"value": ordering})


class Slice:
    """One file slice being written, a log file per call."""

    def __init__(self, schema: pa.Schema = SCHEMA, *, partition: str = "p") -> None:
        self.schema = schema
        self.partition = partition
        self.storage = MemoryStorage()
        self.base_file: BaseFile | None = None
        self.logs: list[LogFile] = []
        self.count = 0

    def next_instant(self) -> str:
        self.count += 1
        return instant(self.count)

    def rows(self, rows: list[dict[str, Any]], written: str, file_name: str) -> list[dict[str, Any]]:
        meta = {"commit_time": written, "partition_path": self.partition, "file_name": file_name}
        return [
            dict.fromkeys(self.schema.names)
            | {f"_hoodie_{name}": value for name, value in meta.items()}
            | {"_hoodie_commit_seqno": f"{written}_0_{i}", "_hoodie_record_key": row.get("id")}
            | row
            for i, row in enumerate(rows)
        ]

    def base(self, rows: list[dict[str, Any]], *, schema: pa.Schema | None = None, **options: Any) -> Slice:
        written = self.next_instant()
        name = f"{FILE_ID}_0-0-0_{written}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(
            pa.Table.from_pylist(self.rows(rows, written, name), schema=schema or self.schema),
            sink,
            **options,
        )
        content = sink.getvalue().to_pybytes()
        path = f"{self.partition}/{name}"
        self.storage.write(path, content)
        self.base_file = BaseFile(path, len(content), FILE_ID, written, "0-0-0")
        return self

    def log(self, *blocks: bytes, written: str | None = None) -> Slice:
        written = written or self.next_instant()
        content = b"".join(blocks)
        path = f"{self.partition}/.{FILE_ID}_{written}.log.1_0-0-0"
        self.storage.write(path, content)
        self.logs.append(LogFile(path, len(content), FILE_ID, written, 1, "0-0-0"))
        return self

    def upsert(
        self, rows: list[dict[str, Any]], *, parquet: bool = False, columns: list[str] | None = None
    ) -> Slice:
        written = self.next_instant()
        return self.log(self.data_block(rows, written, parquet=parquet, columns=columns), written=written)

    def data_block(
        self,
        rows: list[dict[str, Any]],
        written: str,
        *,
        parquet: bool = False,
        columns: list[str] | None = None,
        schema: pa.Schema | None = None,
        **more: str,
    ) -> bytes:
        schema = schema or self.schema
        if columns is not None:
            schema = pa.schema(
                [schema.field(f"_hoodie_{n}") for n in META] + [schema.field(n) for n in columns]
            )
        avro = avro_schema_from_arrow(schema, name="t_record", namespace="hoodie.t")
        headers = {Header.INSTANT_TIME: written, Header.SCHEMA: json.dumps(avro)}
        headers |= {Header[name]: value for name, value in more.items()}
        if columns is not None:
            headers[Header.IS_PARTIAL] = "true"
        full = [{name: row.get(name) for name in schema.names} for row in self.rows(rows, written, FILE_ID)]
        if parquet:
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist(full, schema=schema), sink)
            return framed(sink.getvalue().to_pybytes(), headers, BlockType.PARQUET_DATA)
        parsed = fastavro.parse_schema(avro)
        body = b""
        for row in full:
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, parsed, row)
            body += struct.pack(">i", stream.tell()) + stream.getvalue()
        return framed(struct.pack(">ii", 3, len(full)) + body, headers, BlockType.AVRO_DATA)

    def delete(self, deletes: dict[str, Any]) -> Slice:
        written = self.next_instant()
        return self.log(self.delete_block(deletes, written), written=written)

    def delete_block(self, deletes: dict[str, Any], written: str) -> bytes:
        items = [
            {"recordKey": k, "partitionPath": "p", "orderingVal": wrapped(o)} for k, o in deletes.items()
        ]
        schema = {
            "type": "record",
            "name": "list",
            "fields": [{"name": "items", "type": {"type": "array", "items": _full_schema()}}],
        }
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"items": items})
        content = struct.pack(">ii", 3, stream.tell()) + stream.getvalue()
        return framed(content, {Header.INSTANT_TIME: written}, BlockType.DELETE)

    def rollback_block(self, target: str, written: str) -> bytes:
        headers = {
            Header.INSTANT_TIME: written,
            Header.TARGET_INSTANT_TIME: target,
            Header.COMMAND_BLOCK_TYPE: "0",
        }
        return framed(b"", headers, BlockType.COMMAND)

    def task(self, merge: MergeSpec | None = None, **facts: Any) -> ReadTask:
        written = self.base_file.instant if self.base_file else self.logs[0].instant
        part = FileSlice(FileGroupId(self.partition, FILE_ID), written, self.base_file, tuple(self.logs))
        facts.setdefault("keys", KeySpec(key_fields=("id",)))
        return ReadTask(part, merge=merge or MergeSpec(EVENT_TIME, ("ts",)), **facts)
