from __future__ import annotations

import io

import fastavro

from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.timeline.commit_metadata import parse_commit_metadata
from drawstring.write.commit_encoding import encode_commit, encode_rollback, encode_rollback_plan

STAT = WriteStat("f-0", "p/f-0_0-0-0_1.parquet", "p", 3, 1, 2, 99, num_updates=1, prev_commit="0")


def test_commit_comes_back_as_it_was():
    metadata = CommitMetadata("UPSERT", (STAT,), extra={"schema": "{}"})
    assert parse_commit_metadata(encode_commit(metadata, is_replace=False), source="x") == metadata


def test_a_log_file_is_described_as_hudi_does():
    name = ".f-0_20240101000000000.log.2_1-2-3"
    stat = WriteStat("f-0", f"p/{name}", "p", 3, 1, file_size=99, log_files=(name,), prev_commit="1")
    content = encode_commit(CommitMetadata("UPSERT", (stat,)), is_replace=False)
    found = next(fastavro.reader(io.BytesIO(content)))["partitionToWriteStats"]["p"][0]
    assert {key: found[key] for key in ("logVersion", "logOffset", "baseFile", "logFiles")} == {
        "logVersion": 2,
        "logOffset": 0,
        "baseFile": "",
        "logFiles": [name],
    }
    assert parse_commit_metadata(content, source="x").stats == (stat,)


def test_only_a_compaction_counts_as_compacted():
    for operation, compacted in (("COMPACT", True), ("UPSERT", False)):
        content = encode_commit(CommitMetadata(operation, (STAT,)), is_replace=False)
        assert next(fastavro.reader(io.BytesIO(content)))["compacted"] is compacted


def test_replacecommit_names_what_it_replaces():
    metadata = CommitMetadata("INSERT_OVERWRITE", (STAT,), {"p": ("a", "b")}, {"schema": "{}"})
    assert parse_commit_metadata(encode_commit(metadata, is_replace=True), source="x") == metadata


def test_fields_stand_in_hudis_order_without_compression():
    reader = fastavro.reader(io.BytesIO(encode_commit(CommitMetadata("INSERT", (STAT,)), is_replace=True)))
    assert set(reader.metadata) <= {"avro.schema", "avro.codec"}
    assert [f["name"] for f in reader.writer_schema["fields"]] == [
        "partitionToWriteStats",
        "compacted",
        "extraMetadata",
        "version",
        "operationType",
        "partitionToReplaceFileIds",
    ]


def test_rollback_names_the_instant_and_the_files():
    plan = next(fastavro.reader(io.BytesIO(encode_rollback_plan("1", "commit", {"p": ["/t/p/f"]}))))
    assert plan["instantToRollback"] == {"commitTime": "1", "action": "commit"}
    done = encode_rollback("2", "1", "commit", files={"p": ["/t/p/f"]}, millis=5)
    assert next(fastavro.reader(io.BytesIO(done)))["totalFilesDeleted"] == 1
