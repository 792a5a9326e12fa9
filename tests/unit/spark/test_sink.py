"""How a batch of a streaming write is tried, given up, and told from others."""

from __future__ import annotations

import pytest

from drawstring.config.sink_options import SinkOptions
from drawstring.errors import CommitConflict, CorruptTable, InvalidOption
from drawstring.spark.write.sink import SinkMessage, batch_options, write_batch
from drawstring.write.pipeline import CommitResult

OPERATION = "hoodie.datasource.write.operation"
MESSAGE = SinkMessage(batch=3, query="id", output_mode="append")
DONE = CommitResult("/t", "upsert", "001")


class Writer:
    """Fails as often as it has errors, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.batches, self.pauses = list(errors), [], []

    def __call__(self, batch):
        self.batches.append(batch)
        if self.errors:
            raise self.errors.pop(0)
        return DONE


def run(writer, **options):
    wanted = SinkOptions.of(
        {f"hoodie.datasource.write.streaming.{key}": value for key, value in options.items()}
    )
    return write_batch(MESSAGE, wanted, writer, sleep=writer.pauses.append)


def broken() -> CorruptTable:
    return CorruptTable("the disk is away", condition="STORAGE")


def test_a_batch_is_tried_three_times_with_pauses_that_double():
    writer = Writer(broken(), broken())
    assert run(writer) == DONE
    assert writer.pauses == [2.0, 4.0]
    assert {(b.identifier, b.number, b.query) for b in writer.batches} == {("default_single_writer", 3, "id")}


def test_the_last_error_ends_the_query():
    writer = Writer(*[broken() for _ in range(5)])
    with pytest.raises(CorruptTable):
        run(writer, **{"retry.count": "2", "retry.interval.ms": "10"})
    assert writer.pauses == [0.01]


def test_what_waiting_does_not_mend_is_not_tried_again():
    writer = Writer(InvalidOption("no", condition="X"))
    with pytest.raises(InvalidOption):
        run(writer)
    assert writer.pauses == []


def test_a_failed_batch_is_given_up_at_once_where_the_option_says_so():
    writer = Writer(broken())
    assert run(writer, **{"ignore.failed.batch": "true"}) is None
    assert writer.pauses == []


def test_a_batch_that_another_driver_committed_is_done():
    writer = Writer(CommitConflict("x", condition="BATCH_COMMITTED", path="/t"))
    found = run(writer)
    assert found is not None
    assert found.instant is None


def test_output_modes_choose_the_operation():
    def chosen(mode, **options):
        return batch_options(SinkMessage(0, "", mode), options).get(OPERATION)

    assert chosen("append") is None
    assert chosen("append", **{OPERATION: "bulk_insert"}) == "bulk_insert"
    assert chosen("complete") == "insert_overwrite_table"
    assert chosen("complete", **{OPERATION: "upsert"}) == "insert_overwrite_table"
    assert chosen("complete", **{OPERATION: "insert_overwrite"}) == "insert_overwrite"
    assert chosen("update") == "upsert"
    with pytest.raises(InvalidOption, match="OUTPUT_MODE_NEEDS_UPSERT"):
        chosen("update", **{OPERATION: "insert"})


def test_numbers_that_make_no_sense_are_named():
    with pytest.raises(InvalidOption, match=r"retry\.count"):
        SinkOptions.of({"hoodie.datasource.write.streaming.retry.count": "many"})
