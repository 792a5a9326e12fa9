from __future__ import annotations

import io
import json
import struct

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.errors import CorruptTable, InvalidInput, InvalidOption, UnsupportedTable
from drawstring.storage import MemoryStorage
from drawstring.table import Table, open_table
from drawstring.timeline.history import History

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": name, "type": ["null", kind], "default": None}
            for name, kind in (("id", "int"), ("p", "string"))
        ],
    }
)
META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def map_of(values: object) -> dict[str, object]:
    return {"type": "map", "values": values}


STAT = {
    "type": "record",
    "name": "stat",
    "fields": [
        {"name": "fileId", "type": "string"},
        {"name": "path", "type": "string"},
        {"name": "numWrites", "type": "long"},
    ],
}
COMMIT = {
    "type": "record",
    "name": "commit",
    "fields": [
        {"name": "partitionToWriteStats", "type": map_of({"type": "array", "items": STAT}), "default": {}},
        {"name": "operationType", "type": "string"},
        {"name": "extraMetadata", "type": map_of("string"), "default": {}},
        {
            "name": "partitionToReplaceFileIds",
            "type": map_of({"type": "array", "items": "string"}),
            "default": {},
        },
    ],
}
ARCHIVED = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "hoodieCommitMetadata", "type": COMMIT},
        {"name": "commitTime", "type": "string"},
        {"name": "actionType", "type": "string"},
        {"name": "actionState", "type": "string"},
    ],
}


class TableBuilder:
    """Writes small copy-on-write tables of version 6 in memory, commit by commit."""

    def __init__(self, root: str, **properties: str) -> None:
        self.storage = MemoryStorage(root)
        self.root = root
        given = {
            "hoodie.table.name": "t",
            "hoodie.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.table.partition.fields": "p",
            **{key.replace("__", "."): value for key, value in properties.items()},
        }
        text = "".join(f"{key}={value}\n" for key, value in given.items())
        self.storage.write(".hoodie/hoodie.properties", text.encode())

    def commit(
        self,
        instant: str,
        rows: dict[str, list[int]],
        *,
        schema: str = SCHEMA,
        operation: str = "UPSERT",
        in_files: str | None = None,
    ) -> TableBuilder:
        stats: dict[str, list[dict[str, object]]] = {}
        for partition, ids in rows.items():
            name = f"f{partition}-0_0-0-0_{instant}.parquet"
            self._write(f"{partition}/{name}", instant, in_files or partition, ids)
            self.storage.write(f"{partition}/.hoodie_partition_metadata", b"")
            stats[partition] = [
                {"fileId": f"f{partition}-0", "path": f"{partition}/{name}", "numWrites": len(ids)}
            ]
        metadata = {
            "partitionToWriteStats": stats,
            "operationType": operation,
            "extraMetadata": {"schema": schema},
        }
        self.storage.write(f".hoodie/{instant}.commit", json.dumps(metadata).encode())
        return self

    def clean(self, instant: str, deleted: dict[str, list[str]]) -> TableBuilder:
        metadata = {"partitionMetadata": {p: {"successDeleteFiles": names} for p, names in deleted.items()}}
        self.storage.write(f".hoodie/{instant}.clean", json.dumps(metadata).encode())
        return self

    def replace(self, instant: str, groups: dict[str, list[str]]) -> TableBuilder:
        metadata = {"partitionToReplaceFileIds": groups, "operationType": "DELETE_PARTITION"}
        self.storage.write(f".hoodie/{instant}.replacecommit", json.dumps(metadata).encode())
        return self

    def archive(self, instant: str, action: str = "commit") -> None:
        """Move a commit into the archived timeline of version 6: a log whose records hold its metadata."""
        metadata = json.loads(self.storage.read(f".hoodie/{instant}.{action}"))
        entry = {"commitTime": instant, "actionType": action, "actionState": "COMPLETED"}
        record = io.BytesIO()
        parsed = fastavro.parse_schema(ARCHIVED)
        fastavro.schemaless_writer(record, parsed, {**entry, "hoodieCommitMetadata": metadata})
        content = struct.pack(">iii", 3, 1, len(record.getvalue())) + record.getvalue()
        header = json.dumps(ARCHIVED).encode()
        body = struct.pack(">iiiii", 1, 3, 1, 2, len(header)) + header
        body += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
        block = b"#HUDI#" + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 14)
        self.storage.write(f".hoodie/archived/.commits_.archive.{int(instant[-3:])}_1-0-1", block)
        self.storage.delete(f".hoodie/{instant}.{action}")

    def _write(self, path: str, instant: str, partition: str, ids: list[int]) -> None:
        texts = {
            META[0]: [instant] * len(ids),
            META[2]: [str(i) for i in ids],
            META[3]: [partition] * len(ids),
        }
        meta = {name: pa.array(texts.get(name, [""] * len(ids)), pa.string()) for name in META}
        table = pa.table({**meta, "id": pa.array(ids, pa.int32()), "p": pa.array([partition] * len(ids))})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        self.storage.write(path, sink.getvalue().to_pybytes())

    def open(self, **options: str) -> Table:
        return open_table(self.root, options=options)


T1, T2, T3 = "20260101000000001", "20260101000000002", "20260101000000003"


@pytest.fixture
def builder(request):
    return TableBuilder(f"memory://{request.node.name}")


def ids(read) -> list[int]:
    return sorted(read.scan().select("id").to_arrow().column("id").to_pylist())


def test_snapshots_time_travel_and_incremental_reads(builder):
    table = builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]}).open()
    assert ids(table.snapshot()) == [1, 2, 3]
    assert ids(table.snapshot(T1)) == [1, 2]
    assert ids(table.snapshot("2026-01-01 00:00:00.001")) == [1, 2]
    assert ids(table.snapshot("2026-01-01 00:00:00")) == [1, 2, 3]
    assert ids(table.snapshot("2026-01-01")) == []
    assert ids(table.incremental("000", "2026-01-01 00:00:00")) == [1, 2, 3]
    assert ids(table.incremental("2026-01-01 00:00:00")) == []
    assert ids(table.incremental("2026-01-01", "2026-01-02")) == [1, 2, 3]
    assert ids(table.incremental("Earliest")) == [1, 2, 3]
    assert ids(table.incremental(T1)) == [1, 3]
    assert ids(table.incremental("000", T1)) == [1, 2]


def test_a_snapshot_is_pinned(builder):
    snapshot = builder.commit(T1, {"a": [1]}).open().snapshot()
    builder.commit(T2, {"a": [1, 2]})
    assert ids(snapshot) == [1]
    assert ids(builder.open().snapshot()) == [1, 2]


def test_a_lost_file_does_not_pass_for_older_data(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"a": [1, 2]})
    builder.storage.delete(f"a/fa-0_0-0-0_{T2}.parquet")
    with pytest.raises(CorruptTable, match=T2) as caught:
        builder.open().snapshot().scan().plan()
    assert caught.value.condition == "FILE_MISSING"
    assert ids(builder.open().snapshot(T1)) == [1]


def test_a_file_that_no_instant_of_the_timeline_wrote_is_extra_and_not_read(builder):
    builder.commit(T1, {"a": [1]}).commit(T3, {"b": [3]})
    builder._write(f"a/fa-0_0-0-0_{T2}.parquet", T2, "a", [1, 2])
    assert ids(builder.open().snapshot()) == [1, 3]
    assert ids(builder.open().incremental("000")) == [1, 3]


def test_a_cleaned_snapshot_is_refused(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"a": [1, 2]})
    builder.storage.delete(f"a/fa-0_0-0-0_{T1}.parquet")
    assert ids(builder.open().snapshot()) == [1, 2]
    with pytest.raises(CorruptTable, match="cleaner"):
        ids(builder.open().snapshot(T1))


def test_cleaned_files_of_a_range_are_replaced_by_the_newest(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"a": [1]}).commit(T3, {"a": [1, 2]})
    name = f"fa-0_0-0-0_{T2}.parquet"
    builder.clean("20260101000000004", {"a": [name]}).storage.delete(f"a/{name}")
    assert ids(builder.open().incremental(T1, T2)) == []
    assert ids(builder.open().incremental(T1)) == [1, 2]


def test_a_lost_file_of_a_range_is_named_where_nothing_was_ever_cleaned(builder):
    """The newest slices would answer without the rows that were in it."""
    builder.commit(T1, {"a": [1]}).commit(T2, {"a": [1, 3]})
    builder.storage.delete(f"a/fa-0_0-0-0_{T2}.parquet")
    with pytest.raises(CorruptTable, match=f"a/fa-0_0-0-0_{T2}.parquet") as caught:
        ids(builder.open().incremental(T1))
    assert caught.value.condition == "FILE_MISSING"


def test_an_archived_instant_is_read_from_what_is_left_or_refused(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]}).commit(T3, {"c": [4]})
    builder.archive(T1)
    assert ids(builder.open().snapshot(T1)) == [1, 2]
    builder.storage.delete(f"a/fa-0_0-0-0_{T1}.parquet")
    assert ids(builder.open().snapshot(T2)) == [1, 2, 3]
    with pytest.raises(CorruptTable, match="cleaner"):
        ids(builder.open().snapshot(T1))


def test_files_that_a_clean_took_from_the_past_are_missed(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"b": [2, 5]}).commit(T3, {"a": [1, 3]})
    builder.archive(T1)
    name = f"fa-0_0-0-0_{T1}.parquet"
    builder.clean("20260101000000004", {"a": [name]}).storage.delete(f"a/{name}")
    assert ids(builder.open().snapshot()) == [1, 2, 3, 5]
    with pytest.raises(InvalidInput, match="a cleaner removed"):
        ids(builder.open().snapshot(T2))


def test_damage_inside_an_archive_is_told_and_a_torn_end_is_not(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]}).commit(T3, {"c": [3]})
    builder.archive(T1)
    builder.archive(T2)
    first, second = (f".hoodie/archived/.commits_.archive.{n}_1-0-1" for n in (1, 2))
    whole, later = builder.storage.read(first), builder.storage.read(second)
    builder.storage.delete(second)

    def store(content: bytes) -> None:
        builder.storage.delete(first)
        builder.storage.write(first, content)

    store(whole + later + b"#HUDI#torn")
    assert ids(builder.open().incremental("earliest")) == [1, 2, 3]
    for damaged in (
        whole[:-1] + bytes([whole[-1] ^ 1]) + later,
        whole + later[:-1] + bytes([later[-1] ^ 1]),
        whole + later.replace(b'"name"', b'"nam\xe5"', 1),
        (whole + later).replace(b"hoodieCommitMetadata", b"hoodieCommitMetadatb"),
        (whole + later).replace(b"partitionToWriteStats", b"partitionToWriteStatr"),
        (whole + later).replace(b"commitTime", b"commitTimf"),
    ):
        store(damaged)
        with pytest.raises(CorruptTable, match=r"archive\.1"):
            assert History(builder.storage, builder.open().config).writes


def test_a_flipped_bit_in_a_column_of_a_commits_schema_is_noticed(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]})
    assert "id" in builder.open().schema.names
    path = f".hoodie/{T2}.commit"
    content = builder.storage.read(path)
    builder.storage.delete(path)
    builder.storage.write(f".hoodie/{T3}.commit", content.replace(b'\\"id\\"', b'\\"ie\\"'))
    with pytest.raises(CorruptTable, match="'ie'") as caught:
        _ = builder.open().schema
    assert caught.value.fields["instant"] == T3


def test_groups_that_an_archived_commit_replaced_are_not_missed(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).replace(T2, {"a": ["fa-0"]}).commit(T3, {"c": [4]})
    builder.archive(T1)
    builder.archive(T2, "replacecommit")
    builder.storage.delete(f"a/fa-0_0-0-0_{T1}.parquet")
    assert ids(builder.open().snapshot(T2)) == [2]


def test_before_the_first_commit_a_table_has_its_columns_and_no_rows(builder):
    table = builder.commit(T1, {"a": [1]}).open()
    assert ids(table.snapshot("2000-01-01")) == []


def test_incremental_reads_are_planned_without_listing_a_directory(builder, monkeypatch):
    builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]}).clean(T2[:-1] + "0", {})
    table = builder.open()
    listed: list[str] = []
    plain = MemoryStorage.list
    monkeypatch.setattr(MemoryStorage, "list", lambda self, path: listed.append(path) or plain(self, path))
    assert ids(table.incremental(T1)) == [1, 3]
    assert listed == [".hoodie"]


def test_cleans_tell_which_files_of_a_range_are_gone(builder, monkeypatch):
    name = f"a/fa-0_0-0-0_{T2}.parquet"
    builder.clean("20260101000000000", {}).commit(T1, {"a": [1]}).commit(T2, {"a": [1]})
    builder.commit(T3, {"a": [1, 2]}).clean("20260101000000004", {"a": [name.removeprefix("a/")]})
    builder.storage.delete(name)
    monkeypatch.setattr(MemoryStorage, "exists", None)
    assert ids(builder.open().incremental(T1, T2)) == []
    assert ids(builder.open().incremental(T1)) == [1, 2]


def test_commits_archived_behind_a_savepoint_belong_to_a_range(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]}).commit(T3, {"c": [3]})
    builder.storage.write(f".hoodie/{T1}.savepoint", b"")
    builder.archive(T2)
    assert ids(builder.open().incremental(T1)) == [2, 3]


def test_partitions_that_cannot_match_are_skipped_with_a_reason(builder):
    plan = builder.commit(T1, {"a": [1], "b": [2, 3]}).open().snapshot().scan().where("p = 'b'").plan()
    assert [task.slice.group.partition_path for task in plan.tasks] == ["b"]
    assert (plan.row_count, plan.skipped.slices_skipped, plan.skipped.reasons) == (2, 1, {"partition": 1})


def test_columns_that_are_not_there_are_told(builder):
    scan = builder.commit(T1, {"a": [1]}).open().snapshot().scan()
    for refine in (lambda: scan.select("nope"), lambda: scan.where("nope = 1"), lambda: scan.limit(-1)):
        with pytest.raises(InvalidInput):
            refine()
    assert scan.select("ID").limit(1).to_arrow().schema.names == ["id"]


def test_files_of_the_commits_schema_are_known_to_need_no_conversion(builder):
    other = SCHEMA.replace('"int"', '"long"')
    plan = builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]}, schema=other).open().snapshot().scan().plan()
    assert {t.slice.base_instant: t.file_schema_known_equal for t in plan.tasks} == {T1: False, T2: True}


def test_reads_that_cannot_be_answered_are_refused(builder):
    builder.commit(T1, {"a": [1]})
    with pytest.raises(InvalidOption):
        builder.open().snapshot(query_type="incremental")
    cdc = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
    with pytest.raises(UnsupportedTable, match="CDC_NOT_ENABLED"):
        builder.open(**cdc).asked()


def test_rows_show_the_partition_they_lie_in_whatever_their_file_says(builder):
    """A global index may keep an updated row in its old partition: the file then holds the new value."""
    snapshot = builder.commit(T1, {"a": [1]}, in_files="b").commit(T2, {"b": [2]}).open().snapshot()
    read = {where: snapshot.scan().where(where).to_arrow() for where in ("p = 'a'", "p = 'b'", "p != 'a'")}
    assert snapshot.scan().select("id", "p").to_arrow().to_pydict() == {"id": [1, 2], "p": ["a", "b"]}
    assert {where: table.column("id").to_pylist() for where, table in read.items()} == {
        "p = 'a'": [1],
        "p = 'b'": [2],
        "p != 'a'": [2],
    }
    assert snapshot.scan().where("p = 'a' and id = 1").to_arrow().column("p").to_pylist() == ["a"]


GLOB = "hoodie.datasource.read.incr.path.glob"


@pytest.mark.parametrize(
    ("glob", "found"), [("/a/*", [1]), ("/{a,c}/*", [1, 3]), ("/x/*", []), ("", [1, 2, 3])]
)
def test_incremental_reads_return_rows_of_files_that_match_the_pattern(glob, found):
    builder = TableBuilder(f"memory://glob{len(glob)}")
    table = builder.commit(T1, {"a": [1], "b": [2], "c": [3]}).open(**{GLOB: glob})
    assert ids(table.incremental("000")) == found
    assert ids(table.snapshot()) == [1, 2, 3]


def test_reads_of_other_patterns_are_not_taken_for_each_other(builder):
    builder.commit(T1, {"a": [1], "b": [2]})
    names = {builder.open(**{GLOB: glob}).incremental("000").snapshot_id for glob in ("", "/a/*", "/b/*")}
    assert len(names) == 3


def test_a_cleaned_range_is_an_error_when_the_fallback_is_off(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"a": [1]}).commit(T3, {"a": [1, 2]})
    name = f"fa-0_0-0-0_{T2}.parquet"
    builder.clean("20260101000000004", {"a": [name]}).storage.delete(f"a/{name}")
    table = builder.open(**{"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"})
    assert ids(table.incremental(T2)) == [1, 2]
    with pytest.raises(InvalidInput, match=T2) as caught:
        ids(table.incremental(T1, T2))
    assert caught.value.condition == "RANGE_WAS_CLEANED"


@pytest.mark.parametrize(("operation", "option"), [("COMPACT", "skip_compact"), ("CLUSTER", "skip_cluster")])
def test_table_services_can_be_left_out_of_a_range(builder, operation, option):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]}, operation=operation)
    assert ids(builder.open().incremental("000")) == [1, 2]
    assert ids(builder.open(**{f"hoodie.datasource.read.incr.{option}": "true"}).incremental("000")) == [1]


def test_a_range_is_read_in_the_schema_of_its_end_when_asked(builder):
    wider = SCHEMA.replace("]}", ', {"name": "q", "type": ["null", "int"], "default": null}]}')
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]}, schema=wider)
    table = builder.open(**{"hoodie.datasource.read.schema.use.end.instanttime": "true"})
    assert "q" not in table.incremental("000", T1).schema.names
    assert "q" in table.incremental("000").schema.names
    assert "q" in builder.open().incremental("000", T1).schema.names


def test_reading_without_merging_is_refused_where_there_are_logs(request):
    option = {"hoodie.datasource.merge.type": "skip_merge"}
    assert ids(
        TableBuilder(f"memory://{request.node.name}_cow").commit(T1, {"a": [1]}).open(**option).snapshot()
    )
    merged = TableBuilder(f"memory://{request.node.name}", hoodie__table__type="MERGE_ON_READ")
    with pytest.raises(InvalidOption, match="skip_merge") as caught:
        merged.open(**option)
    assert caught.value.condition == "READ_OPTION_NOT_SUPPORTED"
    assert merged.open(**option, **{"hoodie.datasource.query.type": "read_optimized"})


@pytest.mark.parametrize("extension", ["orc", "lance", "hfile", "vortex"])
def test_a_base_file_of_another_format_is_refused_and_not_overlooked(builder, extension):
    builder.commit(T1, {"a": [1], "b": [2]})
    name = f"a/fa-0_0-0-0_{T1}"
    builder.storage.write(f"{name}.{extension}", builder.storage.read(f"{name}.parquet"))
    builder.storage.delete(f"{name}.parquet")
    instant = next(
        info.path for info in builder.storage.list(".hoodie", recursive=True) if info.path.endswith(".commit")
    )
    said = builder.storage.read(instant).replace(f"{name}.parquet".encode(), f"{name}.{extension}".encode())
    builder.storage.delete(instant)
    builder.storage.write(instant, said)
    with pytest.raises(UnsupportedTable, match=extension.upper()) as caught:
        builder.open().snapshot().scan().plan()
    assert caught.value.fields["partition"] == "a"
    assert caught.value.fields["instant"] == T1
