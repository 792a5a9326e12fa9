"""Structured Streaming from Hudi tables: batches, limits, restarts, and what ends a query."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drawstring.errors import InvalidOption
from tests.golden import harness
from tests.integration.conftest import USE_V2

pytestmark = pytest.mark.spark

START = "hoodie.datasource.streaming.startOffset"
COW = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}


class Query:
    """A query with a checkpoint folder that can be started again; keeps the rows of each batch."""

    def __init__(self, spark: Any, folder: Path, path: str, **options: Any) -> None:
        self.spark, self.path, self.options = spark, path, options
        self.checkpoint = folder / "checkpoint"
        self.batches: dict[int, list[str]] = {}
        self.progress: list[Any] = []
        self.dies_in: int | None = None
        self.meanwhile: Callable[[int], Any] = lambda number: None

    def frame(self) -> Any:
        options = {key: str(value) for key, value in self.options.items()}
        return self.spark.readStream.format("hudi").options(**options).load(self.path)

    def run(self, frame: Any = None, **trigger: Any) -> Query:
        def take(batch: Any, number: int) -> None:
            rows = sorted(map(str, harness.spark_rows(batch.collect())))
            if number == self.dies_in:
                raise RuntimeError("the sink died")
            self.batches[number] = rows
            self.meanwhile(number)

        writer = (self.frame() if frame is None else frame).writeStream.foreachBatch(take)
        running = writer.option("checkpointLocation", str(self.checkpoint))
        query = running.trigger(**(trigger or {"availableNow": True})).start()
        try:
            assert query.awaitTermination(600)
        finally:
            query.stop()
            self.progress = [json.loads(p.json) if hasattr(p, "json") else p for p in query.recentProgress]
        return self

    @property
    def rows(self) -> list[str]:
        return sorted(row for batch in self.batches.values() for row in batch)

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for _, batch in sorted(self.batches.items())]

    def offsets(self) -> list[str]:
        """The offsets of the checkpoint, in order."""
        files = sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        return [file.read_text().splitlines()[-1] for file in files]


@pytest.fixture
def query(spark, tmp_path):
    """Make a query of a table."""
    return lambda path, **options: Query(spark, tmp_path, path, **options)


def write(spark: Any, path: str, rows: list[tuple[int, str, str]], *, ts: int = 1, **more: str) -> None:
    schema = "id int, p string, s string, ts int" + (", extra int" if "extra" in more else "")
    tail = (int(more.pop("extra")),) if "extra" in more else ()
    frame = spark.createDataFrame([(i, p, s, ts, *tail) for i, p, s in rows], schema)
    frame.write.format("hudi").options(**COW, **more).mode("append").save(path)


def incremental(spark: Any, path: str, **options: str) -> list[str]:
    wanted = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    frame = spark.read.format("hudi").options(**wanted, **options).load(path)
    return sorted(map(str, harness.spark_rows(frame.collect())))


@pytest.mark.parametrize(
    "name", ["v9_cow_types", "v9_cow_clustered", "v9_mor_cdc", "v6_mor_compacted", "v6_cow_overwrite"]
)
def test_a_stream_without_limits_is_the_incremental_read(spark, query, table_path, read_path, name):
    found = query(table_path(name)).run()
    assert len(found.batches) == 1
    assert found.rows == incremental(spark, table_path(name))


@pytest.mark.parametrize("name", ["v9_cow_slashes", "v9_mor_commit_time", "v6_cow_add_columns"])
def test_limits_divide_commits_and_every_row_comes_once(query, table_path, name):
    whole = query(table_path(name), maxFilesPerTrigger=1).run()
    assert len(whole.batches) > 3
    assert all("offsetCommitTime" in offset for offset in whole.offsets())
    keys = [eval(row) for row in whole.rows]
    versions = [(row["_hoodie_record_key"], row["_hoodie_commit_seqno"]) for row in keys]
    assert len(versions) == len(set(versions))


def test_a_restart_goes_on_where_the_query_stood(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x"), (2, "b", "x")])
    found = query(path).run()
    write(spark, path, [(1, "a", "y"), (3, "c", "y")], ts=2)
    write(spark, path, [(4, "c", "z")], ts=3)
    found.run()
    assert found.sizes == [2, 3]
    assert [offset for offset in found.offsets() if "commit" in json.loads(offset)] == []
    found.run()
    assert len(found.batches) == 2


@pytest.mark.parametrize("dies_in", [0, 1, 2, 3])
def test_a_query_that_dies_in_a_batch_delivers_every_row_once(spark, query, tmp_path, dies_in):
    path = str(tmp_path / "t")
    write(spark, path, [(i, "abc"[i % 3], "x") for i in range(9)])
    write(spark, path, [(i, "abc"[i % 3], "y") for i in range(20, 23)], ts=2)
    found = query(path, maxFilesPerTrigger=1)
    found.dies_in = dies_in
    with pytest.raises(Exception, match="the sink died"):
        found.run()
    write(spark, path, [(30, "a", "z")], ts=3)
    found.dies_in = None
    found.run()
    versions = [eval(row)["_hoodie_record_key"] for row in found.rows]
    assert sorted(map(int, versions)) == [*range(9), 20, 21, 22, 30]


def test_latest_stays_what_it_was_when_the_query_first_started(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x")])
    found = query(path, **{START: "latest"}).run()
    assert found.batches == {}
    assert (found.checkpoint / "sources" / "0" / "0").read_text().startswith('v1\n{"offsetCommitTime":"2')
    write(spark, path, [(2, "b", "y")], ts=2)
    assert found.run().sizes == [1]


def test_the_snapshot_comes_first_and_then_changes(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x"), (2, "b", "x")])
    write(spark, path, [(1, "a", "y")], ts=2)
    found = query(path, **{START: "snapshot"}).run()
    write(spark, path, [(3, "c", "z")], ts=3)
    assert found.run().sizes == [2, 1]


def test_a_table_of_the_catalog_is_streamed_by_name(spark, query, name):
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    found = query("").run(spark.readStream.table(name).select("id"))
    assert found.rows == ["{'id': 1}", "{'id': 2}"]


def test_columns_and_filters_of_a_query_are_applied(query, table_path):
    found = query(table_path("v9_cow_two_level"))
    found.run(found.frame().where("id < 3").select("id", "s"))
    assert [eval(row)["id"] for row in found.rows] == [0, 1, 2]
    assert set(eval(found.rows[0])) == {"id", "s"}


def test_progress_tells_how_far_behind_the_query_is(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x"), (2, "b", "x")])
    write(spark, path, [(3, "a", "x")], ts=2)
    found = query(path, maxRowsPerTrigger=2).run()
    figures = [p["sources"][0]["metrics"] for p in found.progress if p["numInputRows"]]
    assert [int(f["commitsBehind"]) for f in figures] == [1, 0]
    assert [int(f["rowsBehind"]) for f in figures] == [1, 0]
    assert int(figures[0]["filesBehind"]) == 1
    assert int(figures[0]["bytesBehind"]) > 0
    assert figures[0]["filesLost"] == "0"
    sources = [p["sources"][0] for p in found.progress if p["numInputRows"]]
    assert {s["description"] for s in sources} == {f"HoodieMicroBatchStream[{path}]"}
    reached = [s["latestOffset"] for s in sources]
    assert reached == [sources[-1]["endOffset"]] * 2


def test_all_that_is_there_is_one_batch_where_the_trigger_says_so(query, table_path):
    path = table_path("v9_cow_two_level")
    assert len(query(path, maxFilesPerTrigger=1).run(once=True).batches) == 1


def test_what_is_available_ends_though_others_go_on_writing(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x")])
    write(spark, path, [(2, "b", "x")], ts=2)
    found = query(path, maxFilesPerTrigger=1)
    found.meanwhile = lambda number: write(spark, path, [(10 + number, "m", "later")], ts=3 + number)
    assert found.run().sizes == [1, 1]
    found.meanwhile = lambda number: None
    assert [eval(row)["id"] for row in found.run().batches[2] + found.batches[3]] == [10, 11]


def test_a_batch_waits_for_rows(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x")])
    found = query(path, minRowsPerTrigger=3, maxTriggerDelayMs=600_000)
    writer = found.frame().writeStream.foreachBatch(
        lambda batch, number: found.batches.update({number: batch.collect()})
    )
    running = writer.option("checkpointLocation", str(found.checkpoint))
    started = running.trigger(processingTime="100 milliseconds").start()
    try:
        # It has looked, and waits.
        _until(lambda: started.lastProgress is not None or started.status["message"].startswith("Waiting"))
        write(spark, path, [(2, "a", "y"), (3, "b", "y")], ts=2)
        _until(lambda: found.batches or started.exception())
    finally:
        started.stop()
    assert found.sizes == [3]


def _until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_column_that_is_added_ends_the_query_and_the_next_start_has_it(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x")])
    found = query(path).run()
    stale = found.frame()
    write(spark, path, [(2, "b", "y")], ts=2, extra="7")
    with pytest.raises(Exception, match=r"STREAM_SCHEMA_CHANGED.*extra"):
        found.run(stale)
    assert found.run().sizes == [1, 1]
    assert "'extra': 7" in found.rows[-1]


def test_the_old_columns_are_kept_where_the_option_says_so(spark, query, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x")])
    found = query(path, **{"read.stream.keepSchema": "true"})
    stale = found.frame()
    write(spark, path, [(2, "b", "y")], ts=2, extra="7")
    assert found.run(stale).sizes == [2]
    assert "extra" not in found.rows[-1]


def test_files_that_are_gone_end_the_query_or_are_counted(spark, query, table_path, tmp_path):
    copy = str(tmp_path / "copy")
    shutil.copytree(table_path("v9_mor_archived"), copy)
    found = query(copy, maxFilesPerTrigger=1)
    with pytest.raises(Exception, match=r"STREAM_DATA_LOST.*commits behind"):
        found.run()
    found.options["failOnDataLoss"] = "false"
    found.run()
    assert int(found.progress[-1]["sources"][0]["metrics"]["filesLost"]) > 0


def test_the_query_type_incremental_needs_no_begin_where_it_is_a_stream(spark, query, table_path, read_path):
    path = table_path("v9_cow_slashes")
    options = {"hoodie.datasource.query.type": "incremental"}
    assert query(path, **options).run().rows == incremental(spark, path)
    with pytest.raises(InvalidOption, match=r"begin\.instanttime"):
        spark.read.format("hudi").options(**options).load(path)


def test_limits_that_make_no_sense_are_named(query, table_path):
    with pytest.raises(Exception, match="maxFilesPerTrigger"):
        query(table_path("v9_cow_two_level"), maxFilesPerTrigger=0).run()


def test_reading_as_a_stream_needs_no_flag(spark, query, table_path):
    found = query(table_path("v9_cow_two_level"), **{USE_V2: "false"}).run()
    assert found.rows == incremental(spark, table_path("v9_cow_two_level"))
