"""Requests carry what their answer is made of: which snapshots the planner remembers changes nothing."""

from __future__ import annotations

import json
import os

import pytest

from drawstring.errors import InvalidInput
from drawstring.spark import wire
from drawstring.spark.read import reads
from tests.golden import harness

FIELD, MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
QUERY_TYPE = "hoodie.datasource.query.type"
GLOB = "hoodie.datasource.read.incr.path.glob"
REQUEST = wire.ScanRequest(None, [], None, 0, [], None, [])
SNAPSHOT_OPTIONS = (
    {},
    {FIELD: "s", MARKER: "last"},
    {"as.of.instant": "20261115203110966"},
    {QUERY_TYPE: "read_optimized"},
    {QUERY_TYPE: "incremental", "hoodie.datasource.read.begin.instanttime": "000"},
    {"hoodie.metadata.enable": "false"},
    {"hoodie.enable.data.skipping": "false"},
    {"hoodie.schema.on.read.enable": "true"},
    {"fs.s3a.endpoint": "http://store"},
)


@pytest.fixture(autouse=True)
def planner(monkeypatch):
    """A planner that has seen nothing yet."""
    monkeypatch.setattr(reads, "_snapshots", reads.Snapshots())


@pytest.fixture
def path(tmp_path):
    return str(harness.extract("v9_mor_commit_time", tmp_path))


def load(path, options=None, session=None):
    request = wire.LoadTable(path, options or {}, session or {})
    loaded = wire.from_json(wire.TableLoaded, reads.load_table(wire.to_json(request)))
    return wire.SnapshotReference(loaded.snapshot, path, loaded.timeline, options or {}, session or {})


def plan(reference):
    reply = json.loads(reads.plan_scan(wire.to_json(wire.PlanScan(reference, REQUEST))))
    return {**reply, "planning_ms": 0}


def forget():
    reads._snapshots = reads.Snapshots()


def test_every_setting_that_changes_a_plan_is_part_of_the_name(path):
    names = [load(path, options).snapshot for options in SNAPSHOT_OPTIONS]
    assert len(set(names)) == len(names)
    by_session = [load(path, session=options).snapshot for options in SNAPSHOT_OPTIONS]
    assert by_session == names


def test_the_road_to_the_rows_is_no_part_of_the_name(path):
    assert load(path, {"hoodie.datasource.read.use.dsv2": "true"}).snapshot == load(path).snapshot


def test_a_second_read_with_other_options_leaves_the_first_as_it_was(path):
    first = load(path, {FIELD: "s", MARKER: "last"})
    before = plan(first)
    second = load(path)
    assert plan(first) == before
    merges = [reply["contexts"][0]["facts"]["merge"]["delete_marker"] for reply in (before, plan(second))]
    assert merges == ["last", None]


@pytest.mark.parametrize("options", SNAPSHOT_OPTIONS, ids=str)
def test_a_forgotten_snapshot_is_planned_alike(path, options):
    for reference in (load(path, options), load(path, session=options)):
        before = plan(reference)
        forget()
        assert plan(reference) == before


def test_a_snapshot_outlives_three_hundred_newer_ones(path):
    reference = load(path, session={QUERY_TYPE: "read_optimized"})
    before = plan(reference)
    for number in range(300):
        load(path, {GLOB: f"/{number}"})
    assert reference.snapshot not in reads._snapshots._known
    assert plan(reference) == before


def test_a_forgotten_snapshot_does_not_see_later_commits(path, tmp_path):
    timeline = f"{path}/.hoodie/timeline"
    last = sorted(name for name in os.listdir(timeline) if name.startswith("20261115203128249"))
    for name in last:
        os.rename(f"{timeline}/{name}", tmp_path / name)
    reference = load(path)
    before = plan(reference)
    for name in last:
        os.rename(tmp_path / name, f"{timeline}/{name}")
    assert plan(load(path)) != before
    forget()
    assert plan(reference) == before


def test_a_snapshot_of_a_table_whose_properties_changed_is_refused_by_name(path):
    reference = load(path)
    forget()
    with open(f"{path}/.hoodie/hoodie.properties", "a") as properties:
        properties.write("hoodie.table.something.new=1\n")
    with pytest.raises(InvalidInput, match="SNAPSHOT_FORGOTTEN"):
        plan(reference)
