"""Tables whose files and metadata table drawstring's byte-level writers made, read and extended by Apache Hudi 1.2.

Hudi reads with its metadata table and data skipping on: a file that the metadata table lacks, or statistics that
are too narrow, would cost rows.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.instant import Action
from drawstring.storage.local import LocalStorage
from drawstring.timeline.history import History
from drawstring.view.listing import StorageListing
from drawstring.view.metadata_table import MetadataTable, open_metadata_table
from drawstring.write.commit_encoding import encode_inflight
from drawstring.write.metadata_table.changes import change_of_commit
from drawstring.write.metadata_table.definitions import indexed_columns
from drawstring.write.metadata_table.services import archive_timeline, clean
from drawstring.write.metadata_table.writer import MetadataTableWriter
from drawstring.write.services.archive import ArchiveRetention, archive, plan_archive
from tests.interop.engine import Action as EngineAction
from tests.interop.engine import read, run, write
from tests.support.hand_table import HandTable, Row

pytestmark = pytest.mark.interop

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("p", pa.string()),
        ("s", pa.string()),
        ("d", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("n", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("l", pa.list_(pa.int32())),
        ("ts", pa.int64()),
    ]
)
LONG = "z" * 5000
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "d > 1e300": lambda r: r["d"] is not None and (math.isnan(r["d"]) or r["d"] > 1e300),
    "not (d < 3)": lambda r: r["d"] is not None and not r["d"] < 3,
    "d <= 1": lambda r: r["d"] is not None and r["d"] <= 1,
    f"s >= '{'z' * 600}'": lambda r: r["s"] is not None and r["s"] >= "z" * 600,
    "s = 's1'": lambda r: r["s"] == "s1",
    "m >= 2.5": lambda r: r["m"] >= Decimal("2.5"),
    "m < -7": lambda r: r["m"] < -7,
    "day = date'2024-01-03'": lambda r: r["day"] == dt.date(2024, 1, 3),
    "at < timestamp'2024-01-01 00:00:02'": lambda r: r["at"].second < 2,
    "s is null": lambda r: r["s"] is None,
    "s is not null and id > 3": lambda r: r["s"] is not None and r["id"] > 3,
    "_hoodie_record_key = '5'": lambda r: r["id"] == 5,
}
"""What is asked, and what the answer must be."""


def row(i: int, p: str, ts: int, **other: Any) -> Row:
    plain = {
        "s": f"s{i}",
        "d": i * 0.5,
        "m": Decimal(i) / 2,
        "day": dt.date(2024, 1, 1 + i % 28),
        "at": dt.datetime(2024, 1, 1, 0, 0, i % 60, tzinfo=dt.timezone.utc),
        "n": {"x": i, "y": f"y{i}"},
        "l": [i, i + 1],
    }
    return {"id": i, "p": p, **plain, **other, "ts": ts}


FIRST = {p: [row(i, p, 1) for i in ids] for p, ids in (("a", (0, 2, 4)), ("b", (1, 3, 5)))}
AGAIN = [row(0, "a", 2, d=float("nan")), row(2, "a", 2, s=LONG), row(4, "a", 2, s=None, m=Decimal("-7.25"))]
THIRD = [row(9, "c", 2, d=None)]
THEIRS = [row(1, "b", 3), row(20, "a", 3)]


def spark_rows(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Rows for the engine, which carries them as JSON."""
    kept = ("id", "p", "s", "ts")
    return [[found[name] for name in kept] for found in rows]


NARROW = "id int, p string, s string, ts bigint"


def options(name: str, **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        **more,
    }


def seen_by_hudi(name: str, path: Path) -> list[EngineAction]:
    found = [read(f"{name}:all", path, options=SKIPPING)]
    found.append(read(f"{name}:listed", path, options={"hoodie.metadata.enable": "false"}))
    if name in FILTERED:
        found += [read(f"{name}:{what}", path, where=what, options=SKIPPING) for what in CONDITIONS]
    return found


def ids(result: Any) -> list[int]:
    assert "rows" in result, result
    return sorted(found["id"] for found in result["rows"])


def check_in_step(path: Path) -> None:
    """The metadata table as drawstring reads it lists what storage lists."""
    table = HandTable(LocalStorage(str(path)), SCHEMA)
    metadata = open_metadata_table(table.storage, table.config, table.timeline)
    assert metadata is not None
    listing = StorageListing(table.storage, table.config)
    data = {".parquet", ".log."}
    listed = {
        p: sorted((n, s) for n, s in listing.files(p) if any(end in n for end in data) and ".crc" not in n)
        for p in listing.partitions()
    }
    assert {p: sorted(found) for p, found in metadata.all_files().items()} == listed


def build(
    path: Path, *, partitioned: bool, extra: tuple[str, ...], table_type: str, more: int = 0
) -> HandTable:
    table = HandTable(LocalStorage(str(path)), SCHEMA, name=path.name)
    table.create(table_type=table_type, partitioned=partitioned).initialise(*extra)
    where = {"a": "a", "b": "b", "c": "c"} if partitioned else dict.fromkeys("abc", "")
    instant = table.next_time()
    base = {p: table.base_file(instant, where[p], rows) for p, rows in FIRST.items()}
    table.commit(instant, list(base.values()))
    instant = table.next_time()
    if table_type == "MERGE_ON_READ":
        changed = table.log_file(instant, base["a"], AGAIN, positions=[0, 1, 2])
    else:
        changed = table.base_file(instant, where["a"], AGAIN, previous=base["a"])
    table.commit(instant, [changed, table.base_file(instant, where["c"], THIRD)])
    if table_type == "MERGE_ON_READ":
        instant = table.next_time()
        log = table.log_file(instant, base["b"], [], [("3", 7), ("5", 0), ("1", None)])
        deleted = pa.array(["3", "1"])
        table.commit(instant, [log], operation="DELETE", located=[], deleted_keys=deleted)
    for number in range(more):
        instant = table.next_time()
        table.commit(instant, [table.base_file(instant, "d", [row(100 + number, "d", 1)])])
    assert (_compactions(table) > 0) == (more > 9)
    return table


METADATA_TIMELINE = ".hoodie/metadata/.hoodie/timeline"


def _compactions(table: HandTable) -> int:
    return sum(entry.name.endswith(".commit") for entry in table.storage.list(METADATA_TIMELINE))


SHAPES = {
    "cow": {"partitioned": True, "extra": (), "table_type": "COPY_ON_WRITE", "more": 12},
    "flat": {"partitioned": False, "extra": (), "table_type": "COPY_ON_WRITE"},
    "indexed": {"partitioned": True, "extra": ("record_index",), "table_type": "COPY_ON_WRITE"},
    "mor": {"partitioned": True, "extra": (), "table_type": "MERGE_ON_READ"},
    "mor_indexed": {
        "partitioned": True,
        "extra": ("record_index",),
        "table_type": "MERGE_ON_READ",
        "more": 12,
    },
}
ALL = [0, 1, 2, 3, 4, 5, 9]
FILTERED = ("cow", "mor")
LATER = [100 + number for number in range(12)]
KEPT = {
    name: ([0, 2, 4, 5, 9] if name.startswith("mor") else ALL) + (LATER if "more" in shape else [])
    for name, shape in SHAPES.items()
}


def test_hudi_reads_and_extends_what_drawstring_compacted(tmp_path):
    path = tmp_path / "compacted"
    table = build(path, partitioned=True, extra=(), table_type="MERGE_ON_READ")
    table.compact()
    check_in_step(path)
    more = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.reconcile.schema": "true",
        "hoodie.write.set.null.for.missing.columns": "true",
    }
    found = run(
        "hudi",
        [
            read("merged", path, options=SKIPPING),
            read("optimised", path, options={"hoodie.datasource.query.type": "read_optimized"}),
            read("filtered", path, where="d > 1e300", options=SKIPPING),
            write(path, spark_rows(THEIRS), NARROW, options("compacted", **more), name="upsert"),
            read("after", path, options=SKIPPING),
        ],
    )
    assert ids(found["merged"]) == ids(found["optimised"]) == [0, 2, 4, 5, 9]
    assert ids(found["filtered"]) == [0]
    assert ids(found["after"]) == [0, 1, 2, 4, 5, 9, 20]
    check_in_step(path)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("metadata")
    for name, shape in SHAPES.items():
        build(folder / name, **shape)  # type: ignore[arg-type]
        check_in_step(folder / name)
    actions = [action for name in SHAPES for action in seen_by_hudi(name, folder / name)]
    for name, shape in SHAPES.items():
        more = {"hoodie.datasource.write.table.type": str(shape["table_type"])}
        more["hoodie.datasource.write.reconcile.schema"] = "true"
        more["hoodie.write.set.null.for.missing.columns"] = "true"
        if "record_index" in shape["extra"]:  # type: ignore[operator]
            more["hoodie.metadata.global.record.level.index.enable"] = "true"
            more["hoodie.index.type"] = "GLOBAL_RECORD_LEVEL_INDEX"
        if shape["partitioned"]:
            more["hoodie.datasource.write.partitionpath.field"] = "p"
        else:
            more["hoodie.datasource.write.keygenerator.class"] = (
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            )
        rows = spark_rows(THEIRS)
        actions.append(write(folder / name, rows, NARROW, options(name, **more), name=f"{name}:upsert"))
        actions += [read(f"{name}:after", folder / name, options=SKIPPING)]
        actions += [read(f"{name}:after filtered", folder / name, where="id = 20", options=SKIPPING)]
    found = run("hudi", actions)
    found["folder"] = str(folder)
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_hudi_reads_every_row_through_the_metadata_table(seen, name):
    assert ids(seen[f"{name}:all"]) == KEPT[name]
    found, listed = (
        sorted(seen[f"{name}:{how}"]["rows"], key=lambda r: r["id"]) for how in ("all", "listed")
    )
    assert found == listed


@pytest.mark.parametrize("what", CONDITIONS)
@pytest.mark.parametrize("name", FILTERED)
def test_statistics_cost_hudi_no_row(seen, name, what):
    later = [row(key, "d", 1) for key in LATER]
    rows = {found["id"]: found for found in [*FIRST["a"], *FIRST["b"], *AGAIN, *THIRD, *later]}
    expected = [key for key in KEPT[name] if CONDITIONS[what](rows[key])]
    assert ids(seen[f"{name}:{what}"]) == expected


@pytest.mark.parametrize("name", SHAPES)
def test_hudi_extends_the_table(seen, name):
    assert seen[f"{name}:upsert"] == "written"
    assert ids(seen[f"{name}:after"]) == sorted({*KEPT[name], 1, 20})
    assert ids(seen[f"{name}:after filtered"]) == [20]
    check_in_step(Path(seen["folder"]) / name)


@pytest.mark.parametrize("completed_here", [True, False])
def test_hudi_rolls_back_what_a_crash_left_in_both_tables(tmp_path, completed_here):
    path = tmp_path / "crashed"
    table = build(path, partitioned=True, extra=(), table_type="COPY_ON_WRITE")
    pending, timeline = table.next_time(), ".hoodie/timeline"
    table.storage.create_if_absent(f"{timeline}/{pending}.commit.requested", b"")
    table.storage.create_if_absent(f"{timeline}/{pending}.inflight", encode_inflight("UPSERT"))
    name = "ffffffff-0000-0000-0000-000000000000-0"
    marker = f".hoodie/.temp/{pending}/a/{name}_0-0-0_{pending}.parquet.marker.CREATE"
    table.storage.write(marker, b"")
    stat = table.base_file(pending, "a", [row(77, "a", 1)], file_id=name)
    writer = MetadataTableWriter(table.storage, table.config, table.timeline)
    columns = indexed_columns(table.storage, table.config, SCHEMA)
    change = change_of_commit(table.storage, CommitMetadata("UPSERT", (stat,)), columns=columns)
    steps = writer.prepare(change, pending).publication(table.next_time())
    for file in steps.creates if completed_here else steps.creates[:-1]:
        table.storage.create_if_absent(file.path, file.content)
    more = {
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.reconcile.schema": "true",
        "hoodie.write.set.null.for.missing.columns": "true",
    }
    found = run(
        "hudi",
        [
            read("before", path, options=SKIPPING),
            write(path, spark_rows(THEIRS), NARROW, options("crashed", **more), name="upsert"),
            read("after", path, options=SKIPPING),
        ],
    )
    assert ids(found["before"]) == ALL
    assert ids(found["after"]) == [*ALL, 20]
    assert not table.storage.exists(stat.path)
    check_in_step(path)
    left = [
        e.path for e in table.storage.list(".hoodie/metadata", recursive=True) if f"_{pending}.log" in e.path
    ]
    assert left == []


def test_hudi_reads_and_extends_what_drawstring_archived_and_cleaned(tmp_path):
    path = tmp_path / "archived"
    table = build(path, partitioned=True, extra=(), table_type="COPY_ON_WRITE", more=30)
    metadata = MetadataTable(table.storage, table.config, table.timeline)
    compacted = [i.requested_time for i in metadata.timeline.completed_writes if i.action is Action.COMMIT]
    chosen = plan_archive(table.timeline, ArchiveRetention(), metadata_compacted=max(compacted))
    assert len(chosen) == 12
    for part in (chosen[:6], chosen[6:]):
        archive(table.storage, table.config, part).carry_out(table.storage)
    metadata = MetadataTable(table.storage, table.config, table.timeline)
    cleaned = clean(table.storage, metadata, table.next_time(), table.next_time())
    cleaned.carry_out(table.storage)
    metadata = MetadataTable(table.storage, table.config, table.timeline)
    moved = archive_timeline(table.storage, metadata, table.timeline, ArchiveRetention(15, 20))
    moved.carry_out(table.storage)
    assert cleaned.removes
    assert moved.removes
    check_in_step(path)
    more = {
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.reconcile.schema": "true",
        "hoodie.write.set.null.for.missing.columns": "true",
        "hoodie.keep.min.commits": "12",
        "hoodie.keep.max.commits": "14",
    }
    incremental = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    late = spark_rows([row(200, "a", 3), row(201, "b", 3)])
    found = run(
        "hudi",
        [
            read("now", path, options=SKIPPING),
            read("then", path, options={"as.of.instant": chosen[3].requested_time}),
            read("changes", path, options=incremental),
            write(path, late[:1], NARROW, options("archived", **more), name="write 1"),
            write(path, late[1:], NARROW, options("archived", **more), name="write 2"),
            read("after", path, options=SKIPPING),
        ],
    )
    everything = sorted([*ALL, *range(100, 130)])
    assert ids(found["now"]) == ids(found["changes"]) == everything
    assert ids(found["then"]) == [*ALL, 100, 101]
    assert ids(found["after"]) == [*everything, 200, 201]
    check_in_step(path)
    archived = History(table.storage, table.config).writes
    assert len(archived) > len(chosen)
    assert len(archived) + len(table.timeline.completed_writes) == 34
