"""Golden messages, read by both languages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from drawstring.errors import BridgeError, TableNotFound
from drawstring.spark import catalog, wire
from drawstring.spark.errors import error_from_wire
from drawstring.spark.read import changelogs, streams
from drawstring.spark.read.filters import predicate_from_wire
from drawstring.spark.session.build import bridge_jar, java_executable, spark_home
from drawstring.spark.write import statements as writes

MESSAGES = Path(__file__).parent / "messages"
TYPES = {
    "load_table": wire.LoadTable,
    "table_loaded": wire.TableLoaded,
    "push_filters": wire.PushFilters,
    "filters_pushed": wire.FiltersPushed,
    "plan_scan": wire.PlanScan,
    "scan_planned": wire.ScanPlanned,
    "changelog_asked": changelogs.ChangelogAsked,
    "changelog_options": changelogs.ChangelogOptions,
    "stream_open": streams.OpenStream,
    "stream_opened": streams.StreamOpened,
    "stream_about": streams.AboutStream,
    "stream_next_offset": streams.NextOffset,
    "stream_offset_found": streams.OffsetFound,
    "stream_plan_batch": streams.PlanBatch,
    "stream_backlog": streams.Backlog,
    "stream_backlog_found": streams.BacklogFound,
    "stream_closed": streams.StreamClosed,
    "push_aggregation": wire.PlanScan,
    "aggregation_pushed": wire.AggregationPushed,
    "aggregation_pushed_in_part": wire.AggregationPushed,
    "summarise_columns": wire.PlanScan,
    "columns_summarised": wire.ColumnsSummarised,
    "create_table": catalog.CreateTable,
    "table_created": catalog.TableCreated,
    "list_partitions": catalog.ListPartitions,
    "partitions_listed": catalog.PartitionsListed,
    "write_data": writes.WriteData,
    "data_written": writes.DataWritten,
}


@pytest.mark.parametrize("name", TYPES)
def test_python_reads_and_writes_the_golden_message(name):
    text = (MESSAGES / f"{name}.json").read_text()
    assert json.loads(wire.to_json(wire.from_json(TYPES[name], text))) == json.loads(text)


def test_an_error_keeps_its_class_condition_and_fields():
    error = error_from_wire(json.loads((MESSAGES / "error.json").read_text())["error"])
    assert type(error) is TableNotFound
    assert (error.condition, error.fields) == ("TABLE_NOT_FOUND", {"path": "/data/nope"})


def test_another_protocol_version_is_refused():
    with pytest.raises(BridgeError, match="WIRE_VERSION_MISMATCH"):
        wire.from_json(wire.FiltersPushed, '{"version": 2, "classes": []}')


def test_unknown_fields_are_refused():
    with pytest.raises(BridgeError, match="surprise"):
        wire.from_json(wire.FiltersPushed, '{"version": 1, "classes": [], "surprise": 1}')


def test_the_filters_of_the_messages_are_predicates():
    request = wire.from_json(wire.PlanScan, (MESSAGES / "plan_scan.json").read_text())
    assert "date(2024, 10, 4)" in repr(predicate_from_wire(request.request.filters[0]))


@pytest.mark.spark
def test_the_bridge_understands_the_golden_messages():
    classpath = f"{bridge_jar()}:{spark_home().jars}/*"
    command = [java_executable(), "-cp", classpath, "drawstring.bridge.WireCheck", str(MESSAGES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    understood = [line for line in lines if not line.startswith("sends ")]
    assert understood == [
        "aggregation_pushed [[20000,3,20000],[null,1,null]] -",
        "aggregation_pushed_in_part [[20000,3,20000],[null,1,null]] 3 1 of 4 slices: logs have to be merged: a",
        "changelog_asked version 1",
        "changelog_options version 1",
        'columns_summarised [{"column":"id","distinct":9,"lower":1,"nulls":0,"upper":9}]',
        "create_table version 1",
        "data_written version 1",
        "error TableNotFound TABLE_NOT_FOUND",
        "filters_pushed partition,data,rest",
        "list_partitions version 1",
        "load_table version 1",
        "partitions_listed version 1",
        "plan_scan version 1",
        "push_aggregation version 1",
        "push_filters version 1",
        'scan_planned native:100:7:{"city":"bern","day":20000}:{"_bucket":null'
        ',"_file":"/data/trips/a_1-0-1_20260101000000000.parquet"}:[20000],arrow:100:-,native:100:5:cast - 12 4 2',
        "stream_about version 1",
        "stream_backlog version 1",
        "stream_backlog_found version 1",
        "stream_closed version 1",
        "stream_next_offset version 1",
        "stream_offset_found version 1",
        "stream_open version 1",
        "stream_opened version 1",
        "stream_plan_batch version 1",
        "summarise_columns version 1",
        "table_created version 1",
        "table_loaded trips /data/trips@0123::snapshot struct<id:int,day:date> day true id:8",
        "write_data version 1",
    ]
    sent = [line.split(" ", 2)[1:] for line in lines if line.startswith("sends ")]
    assert [kind for kind, _ in sent] == [
        "push_filters",
        "plan_scan",
        "push_aggregation",
        "summarise_columns",
    ]
    for kind, message in sent:
        assert json.loads(message) == json.loads((MESSAGES / f"{kind}.json").read_text())
