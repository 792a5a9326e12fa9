"""Structured Streaming into Hudi tables: each batch once, in every output mode, and errors that end the query."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from drawstring import open_table

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
SCHEMA = "id int, p string, s string, ts int"
OPERATION = "hoodie.datasource.write.operation"
IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
RETRIES = "hoodie.datasource.write.streaming.retry.count"
CHECKPOINT = "_hudi_streaming_sink_checkpoint"


class Pipe:
    """Files of JSON as a source, and a Hudi table behind it; each file is a batch."""

    def __init__(self, spark: Any, folder: Path, **options: str) -> None:
        self.spark, self.folder = spark, folder
        self.source, self.checkpoint, self.path = folder / "in", folder / "checkpoint", str(folder / "t")
        self.options = {**OPTIONS, **options}
        self.source.mkdir(exist_ok=True)

    def add(self, *rows: tuple[int, str, str, int]) -> None:
        number = len(list(self.source.iterdir()))
        texts = [json.dumps(dict(zip(("id", "p", "s", "ts"), row, strict=True))) for row in rows]
        fresh = self.folder / "fresh"
        fresh.write_text("\n".join(texts))
        os.utime(fresh, (1_700_000_000 + number,) * 2)
        fresh.rename(self.source / f"{number:05}.json")

    def frame(self) -> Any:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.source))

    def writer(self, frame: Any = None, mode: str = "append") -> Any:
        found = (self.frame() if frame is None else frame).writeStream.outputMode(mode)
        return found.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)

    def run(self, frame: Any = None, mode: str = "append") -> Any:
        writer = self.writer(frame, mode).format("hudi").options(**self.options)
        return self.ended(writer.start(self.path))

    @staticmethod
    def ended(query: Any) -> Any:
        try:
            assert query.awaitTermination(600)
        finally:
            query.stop()
        return query

    def forget_last(self) -> None:
        """Put the checkpoint back to where it was before the last batch was known to be done."""
        last = max((self.checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)

    @property
    def rows(self) -> list[tuple[int, str]]:
        found = open_table(self.path).snapshot().scan().select("id", "s").to_arrow()
        return sorted((row["id"], row["s"]) for row in found.to_pylist())

    @property
    def batches(self) -> list[str | None]:
        state = open_table(self.path).state()
        return [state.metadata(i).extra.get(CHECKPOINT) for i in state.timeline.completed_writes]


@pytest.fixture
def pipe(spark, tmp_path):
    """Make a stream into a table."""
    return lambda **options: Pipe(spark, tmp_path, **options)


def test_each_batch_is_a_commit_that_tells_which_it_is(pipe):
    found = pipe(**{IDENTIFIER: "mine"})
    found.add((1, "a", "x", 1), (2, "b", "x", 1))
    found.add((1, "a", "y", 2))
    found.run()
    assert found.rows == [(1, "y"), (2, "x")]
    assert found.batches == ['{"mine":"0"}', '{"mine":"1"}']
    found.add((3, "c", "z", 1))
    found.run()
    assert found.rows == [(1, "y"), (2, "x"), (3, "z")]
    assert found.batches[-1] == '{"mine":"2"}'


def test_a_batch_that_was_committed_before_a_crash_is_skipped_after_it(spark, pipe):
    found = pipe(**{OPERATION: "bulk_insert"})
    found.add((1, "a", "x", 1))
    found.add((2, "a", "x", 1))
    found.run()
    found.forget_last()
    found.add((3, "a", "x", 1))
    # Others may write meanwhile: their commits tell nothing of the stream.
    frame = spark.createDataFrame([(9, "a", "w", 1)], SCHEMA)
    frame.write.format("hudi").options(**OPTIONS).mode("append").save(found.path)
    found.run()
    assert found.rows == [(1, "x"), (2, "x"), (3, "x"), (9, "w")]


def test_a_new_checkpoint_folder_is_another_query(pipe):
    found = pipe(**{OPERATION: "insert"})
    found.add((1, "a", "x", 1))
    found.run()
    shutil.rmtree(found.checkpoint)
    found.run()
    assert found.rows == [(1, "x"), (1, "x")]


def test_the_complete_mode_replaces_the_table_and_keeps_its_history(pipe):
    found = pipe()
    found.options.update({"hoodie.datasource.write.recordkey.field": "p"})
    del found.options["hoodie.datasource.write.partitionpath.field"]
    del found.options["hoodie.datasource.write.precombine.field"]
    for s, rows in (("x", [(1, "a"), (2, "a"), (3, "b")]), ("y", [(4, "a"), (5, "c")])):
        found.add(*((i, p, s, 1) for i, p in rows))
        counts = found.frame().groupBy("p").count()
        found.run(counts, "complete")
    table = open_table(found.path)
    rows = table.snapshot().scan().select("p", "count").to_arrow().to_pylist()
    assert sorted((r["p"], r["count"]) for r in rows) == [("a", 3), ("b", 1), ("c", 1)]
    assert [i.action.value for i in table.timeline.completed_writes] == ["replacecommit"] * 2
    first = table.timeline.completed_writes[0].requested_time
    before = table.snapshot(as_of=first).scan().select("p", "count").to_arrow().to_pylist()
    assert sorted((r["p"], r["count"]) for r in before) == [("a", 2), ("b", 1)]


def test_the_update_mode_upserts_what_changed(pipe):
    found = pipe(**{"hoodie.datasource.write.recordkey.field": "p"})
    del found.options["hoodie.datasource.write.partitionpath.field"]
    del found.options["hoodie.datasource.write.precombine.field"]
    found.add((1, "a", "x", 1), (2, "b", "x", 1))
    found.add((3, "a", "x", 1))
    found.run(found.frame().groupBy("p").count(), "update")
    rows = open_table(found.path).snapshot().scan().select("p", "count").to_arrow().to_pylist()
    assert sorted((r["p"], r["count"]) for r in rows) == [("a", 2), ("b", 1)]


def test_every_operation_is_a_batch_and_services_run_between_batches(pipe):
    found = pipe(
        **{
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "2",
            "hoodie.clean.commits.retained": "1",
        }
    )
    batches = [
        ("insert", [(1, "a", "x", 1), (2, "a", "x", 1), (3, "b", "x", 1)]),
        ("upsert", [(1, "a", "y", 2), (4, "b", "y", 2)]),
        ("upsert", [(1, "a", "z", 3)]),
        ("delete", [(2, "a", "", 9)]),
        ("insert_overwrite", [(5, "b", "w", 1)]),
        ("bulk_insert", [(6, "c", "v", 1)]),
    ]
    for operation, rows in batches:
        found.add(*rows)
        found.options[OPERATION] = operation
        found.run()
    assert found.rows == [(1, "z"), (5, "w"), (6, "v")]
    known = [text for text in found.batches if text]
    assert known == [json.dumps({"default_single_writer": str(n)}, separators=(",", ":")) for n in range(6)]
    timeline = open_table(found.path).timeline
    assert timeline.completed_cleans
    # On a merge-on-read table only compactions are commits.
    assert [i for i in timeline.completed_writes if i.action.value == "commit"]
    found.forget_last()
    found.run()
    assert found.rows == [(1, "z"), (5, "w"), (6, "v")]


def test_two_queries_with_identifiers_of_their_own_write_one_table(spark, tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    pipes = [Pipe(spark, tmp_path / n, **{IDENTIFIER: f"q{n}", OPERATION: "insert"}) for n in "12"]
    for number, each in enumerate(pipes):
        each.path = str(tmp_path / "t")
        for i in range(3):
            each.add((10 * number + i, "ab"[number], "x", 1))
    queries = [p.writer().format("hudi").options(**p.options).start(p.path) for p in pipes]
    for query in queries:
        Pipe.ended(query)
    assert [i for i, _ in pipes[0].rows] == [0, 1, 2, 10, 11, 12]
    for each in pipes:
        each.forget_last()
        each.run()
    assert [i for i, _ in pipes[0].rows] == [0, 1, 2, 10, 11, 12]


def test_a_batch_that_cannot_be_written_ends_the_query_with_the_error(pipe):
    found = pipe(**{OPERATION: "bulk_insert"})
    found.add((1, "a", "x", 1))
    found.run()
    found.options["hoodie.datasource.write.recordkey.field"] = "s"
    found.add((2, "a", "x", 1))
    with pytest.raises(Exception, match="CONFIG_CONFLICT"):
        found.run()
    assert found.rows == [(1, "x")]
    found.options["hoodie.datasource.write.recordkey.field"] = "id"
    found.run()
    assert found.rows == [(1, "x"), (2, "x")]


def test_a_failed_batch_is_given_up_where_the_option_says_so(pipe):
    found = pipe(**{"hoodie.datasource.write.streaming.ignore.failed.batch": "true"})
    found.add((1, "a", "x", 1))
    found.run()
    found.add((2, "a", "x", 1))
    found.options["hoodie.datasource.write.recordkey.field"] = "s"
    found.run()
    found.options["hoodie.datasource.write.recordkey.field"] = "id"
    found.add((3, "a", "x", 1))
    found.run()
    assert found.rows == [(1, "x"), (3, "x")]


def test_a_table_of_the_catalog_is_written_by_name(spark, pipe, name):
    spark.sql(
        f"CREATE TABLE {name} (id INT, s STRING, ts INT, p STRING) USING hudi PARTITIONED BY (p) "
        "TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')"
    )
    found = pipe()
    found.add((1, "a", "x", 1))
    found.add((1, "a", "y", 2), (2, "b", "y", 2))
    found.ended(found.writer().format("hudi").toTable(name))
    rows = spark.table(name).select("id", "s", "p").collect()
    assert sorted(map(tuple, rows)) == [(1, "y", "a"), (2, "y", "b")]
    assert sorted(map(tuple, spark.sql(f"SELECT id, s FROM {name}").collect())) == [(1, "y"), (2, "y")]


def test_a_hudi_table_streams_into_another_one(spark, pipe, tmp_path):
    found = pipe()
    found.add((1, "a", "x", 1), (2, "b", "x", 1))
    found.run()
    copy = Pipe(spark, tmp_path, **{OPERATION: "upsert"})
    copy.checkpoint, copy.path = tmp_path / "second", str(tmp_path / "copy")
    copy.run(spark.readStream.format("hudi").load(found.path))
    found.add((1, "a", "y", 2))
    found.run()
    copy.run(spark.readStream.format("hudi").load(found.path))
    assert copy.rows == found.rows == [(1, "y"), (2, "x")]


def test_for_each_batch_is_untouched(spark, pipe):
    found = pipe()
    found.add((1, "a", "x", 1))

    def take(batch, _number):
        batch.write.format("hudi").options(**OPTIONS).mode("append").save(found.path)

    found.ended(found.writer().foreachBatch(take).start())
    assert found.rows == [(1, "x")]
    assert found.batches == [None]


_DRIVER = """
import sys
import drawstring
from tests.conftest import _spark_settings
from tests.integration.test_stream_sink import OPERATION, Pipe
from pathlib import Path
folder = Path(sys.argv[1])
spark = drawstring.session("driver", master="local[2]", conf=_spark_settings(folder / "spark"))
print("begun", flush=True)
Pipe(spark, folder, **{OPERATION: "bulk_insert"}).run()
"""


def drive(folder: Path, seconds: float | None) -> bool:
    """Run the stream in a driver of its own, and kill that after so many seconds; whether it ended by itself."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    child = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=environment,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(0 if seconds is None else seconds)
        if seconds is None:
            assert child.wait(900) == 0
            return True
        return child.poll() is not None
    finally:
        # The driver's JVM is of its group: a driver that is killed takes nothing with it by itself.
        if child.poll() is None or seconds is not None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def kill_and_restart(folder: Path, spark: Any, pauses: list[float]) -> None:
    found = Pipe(spark, folder, **{OPERATION: "bulk_insert"})
    for i in range(40):
        found.add((i, "abc"[i % 3], "x", 1))
    for pause in pauses:
        if drive(folder, pause):
            break
    drive(folder, None)
    assert [i for i, _ in found.rows] == list(range(40))


def test_a_driver_that_is_killed_between_batches_writes_each_row_once(spark, tmp_path):
    kill_and_restart(tmp_path, spark, [3.0])


@pytest.mark.torture
def test_fifty_kills_of_the_driver_leave_each_row_once(spark, tmp_path):
    for kill in range(50):
        folder = tmp_path / str(kill)
        folder.mkdir()
        kill_and_restart(folder, spark, [1.0 + 0.17 * kill])
        shutil.rmtree(folder)
