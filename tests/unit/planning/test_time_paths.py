"""Partitions of formatted times are left out by conditions on the column that their paths were made of."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.errors import InvalidOption
from drawstring.planning.scan_plan import BY_PARTITION
from drawstring.planning.scan_planner import ScanPlanner
from drawstring.planning.scan_request import ScanRequest
from drawstring.predicates.ast import Call, Column, Comparison, Computed, Literal
from drawstring.predicates.parse import parse
from drawstring.spark.read.pinned import PinnedTable
from tests.support.row_evaluator import outcome

UTC = dt.timezone.utc
FIRST = dt.datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 6


def make(path, kind, settings, *, fields="t", generator="TIMESTAMP", options=None):
    schema = pa.schema([("id", pa.int64()), ("t", kind), ("region", pa.string())])
    named = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": fields,
        "hoodie.table.keygenerator.type": generator,
        **{f"hoodie.keygen.timebased.{key}": value for key, value in settings.items()},
    }
    drawstring.create_table(str(path), schema, options=named)
    moments = [None, *(FIRST + dt.timedelta(hours=9 * k) for k in range(DAYS * 24 // 9))]
    values = pa.array(moments, pa.timestamp("us", tz="UTC"))
    if pa.types.is_string(kind):
        values = pa.array([None if moment is None else f"{moment:%Y-%m-%d %H:%M}" for moment in moments])
    elif not pa.types.is_timestamp(kind):
        values = pc.divide(values.cast(pa.int64()), 1000)
    ids = pa.array(range(len(values)), pa.int64())
    regions = pa.array([("eu", "us")[k % 2] for k in range(len(values))])
    table = drawstring.open_table(str(path))
    table.write(pa.table([ids, values, regions], schema=schema), options={**named, **(options or {})})
    return str(path)


SETTINGS = {"timestamp.type": "EPOCHMICROSECONDS", "output.dateformat": "yyyy/MM/dd", "timezone": "UTC"}


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    return make(tmp_path_factory.mktemp("days") / "t", pa.timestamp("us", tz="UTC"), SETTINGS)


def plan(path, condition):
    return drawstring.open_table(path).snapshot().scan().where(condition).plan()


def check(path, condition):
    scan = drawstring.open_table(path).snapshot().scan()
    rows = scan.to_arrow().to_pylist()
    wanted = sorted(row["id"] for row in rows if outcome(parse(condition), row) is True)
    assert sorted(scan.where(condition).to_arrow()["id"].to_pylist()) == wanted
    assert scan.where(condition).count() == len(wanted)


# With the partition of 1970, in which nulls lie, there are seven.
CONDITIONS = {
    "t >= TIMESTAMP '2024-01-05 00:00:00'": ("partition", 2),
    "t < TIMESTAMP '2024-01-03 00:00:00' AND t > TIMESTAMP '2024-01-01 23:59:59.999999'": ("partition", 1),
    "t > TIMESTAMP '2024-01-05 00:00:00'": ("data", 2),
    "t = TIMESTAMP '2024-01-02 12:00:00'": ("data", 1),
    "t IN (TIMESTAMP '2024-01-02 12:00:00', TIMESTAMP '2024-01-04 12:00:00')": ("data", 2),
    "t IS NULL": ("data", 1),
    "t IS NOT NULL": ("data", 7),
    "NOT t < TIMESTAMP '2024-01-05 00:00:00'": ("partition", 2),
    "t >= TIMESTAMP '2024-01-05 00:00:00' AND id > 3": ("data", 2),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_paths_are_pruned_by_the_times_that_they_were_made_of(days, condition):
    kind, partitions = CONDITIONS[condition]
    check(days, condition)
    skipped = plan(days, condition).skipped
    assert skipped.partitions - skipped.partitions_skipped == partitions
    assert skipped.reasons.get(BY_PARTITION, 0) == 7 - partitions
    assert PinnedTable.open(days, {}, session={}).classify(parse(condition)) == kind


def test_numbers_and_zones(tmp_path):
    settings = {
        "timestamp.type": "EPOCHMILLISECONDS",
        "output.dateformat": "yyyyMMdd",
        "timezone": "America/New_York",
    }
    path = make(tmp_path / "t", pa.int64(), settings)
    moment = int((FIRST + dt.timedelta(days=3)).timestamp() * 1000)
    for condition in (f"t = '{moment}'", f"t IN ('{moment}', '7')", "t > '1704'"):
        check(path, condition)
    assert plan(path, f"t = '{moment}'").skipped.partitions_skipped == 7
    assert plan(path, "t > '1704'").skipped.partitions_skipped == 0
    later = Computed(
        Call("cast", Column(("t",)), type=pa.int64()), Comparison(">", Column(("t",)), Literal(moment))
    )
    request = ScanRequest(predicates=(later,))
    planned = ScanPlanner(drawstring.open_table(path).snapshot(), request).plan()
    assert 3 <= planned.skipped.partitions_skipped < 8


def test_texts_lie_in_the_paths_that_are_made_of_them(tmp_path):
    settings = {
        "timestamp.type": "DATE_STRING",
        "input.dateformat": "yyyy-MM-dd HH:mm",
        "output.dateformat": "yyyyMMdd",
        "timezone": "UTC",
    }
    path = make(tmp_path / "t", pa.string(), settings)
    for condition in (
        "t = '2024-01-02 12:00'",
        "NOT t = '2024-01-02 12:00'",
        "t IN ('2024-01-02 12:00', 'no time')",
        "t > '2024-01-03'",
    ):
        check(path, condition)
    assert plan(path, "t = '2024-01-02 12:00'").skipped.partitions_skipped == 6
    assert plan(path, "NOT t = '2024-01-02 12:00'").skipped.partitions_skipped == 0


def test_a_zone_that_is_not_told_leaves_a_day_in_doubt(tmp_path):
    path = make(
        tmp_path / "t", pa.timestamp("us", tz="UTC"), {k: v for k, v in SETTINGS.items() if k != "timezone"}
    )
    condition = "t >= TIMESTAMP '2024-01-05 00:00:00'"
    check(path, condition)
    skipped = plan(path, condition).skipped
    assert skipped.partitions - skipped.partitions_skipped == 3


def test_fields_of_the_custom_generator(tmp_path):
    path = make(
        tmp_path / "t",
        pa.timestamp("us", tz="UTC"),
        SETTINGS,
        fields="region:SIMPLE,t:TIMESTAMP",
        generator="CUSTOM",
    )
    condition = "t >= TIMESTAMP '2024-01-05 00:00:00' AND region = 'eu'"
    check(path, condition)
    assert PinnedTable.open(path, {}, session={}).classify(parse(condition)) == "partition"


def test_a_record_index_leaves_rows_where_they_were(tmp_path):
    index = {"hoodie.metadata.global.record.level.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
    path = make(tmp_path / "t", pa.timestamp("us", tz="UTC"), SETTINGS, options=index)
    later = pa.array([FIRST + dt.timedelta(days=400)], pa.timestamp("us", tz="UTC"))
    moved = pa.table({"id": pa.array([3], pa.int64()), "t": later, "region": ["eu"]})
    drawstring.open_table(path).write(moved, operation="upsert", options=index)
    check(path, "t > TIMESTAMP '2025-01-01 00:00:00'")
    check(path, "t < TIMESTAMP '2024-01-03 00:00:00'")


@pytest.mark.parametrize(
    ("index", "key"), [("GLOBAL_SIMPLE", "simple"), ("GLOBAL_BLOOM", "bloom"), ("RECORD_INDEX", "record")]
)
def test_rows_do_not_stay_where_the_path_tells_another_time(tmp_path, index, key):
    """Nothing would tell readers that they did: Apache Hudi's miss such rows, too."""
    kind = pa.timestamp("us", tz="UTC")
    path = make(tmp_path / "t", kind, SETTINGS)
    table, key = drawstring.open_table(path), f"hoodie.{key}.index.update.partition.path"
    moved = pa.table(
        {"id": [1], "t": pa.array([FIRST + dt.timedelta(days=400)], kind), "region": ["eu"]},
    )
    with pytest.raises(InvalidOption, match=f"Set {key}=true") as caught:
        table.write(moved, options={"hoodie.index.type": index, key: "false"})
    assert caught.value.condition == "TIME_PATH_NOT_KEPT"
    table.write(moved, options={"hoodie.index.type": index, key: "true"})
    condition = "t > TIMESTAMP '2025-01-01 00:00:00'"
    check(path, condition)
    found = table.snapshot().scan().where(condition).select("id").to_arrow()
    assert found.column("id").to_pylist() == [1]
