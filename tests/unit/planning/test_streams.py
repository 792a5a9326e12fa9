"""Tables as streams: where they begin, what they wait for, and what they miss."""

from __future__ import annotations

import json
from typing import Any

import pytest

import drawstring
from drawstring.errors import IncompatibleSchema, InvalidInput, InvalidOption
from drawstring.planning.streams import source
from drawstring.planning.streams.offsets import BEFORE_ALL, StreamOffset
from drawstring.planning.streams.source import TableStream
from drawstring.storage import MemoryStorage
from tests.unit.planning.test_reads import SCHEMA, T1, T2, T3, TableBuilder

T4, T5 = "20260101000000004", "20260101000000005"
START = "hoodie.datasource.streaming.startOffset"


@pytest.fixture
def builder(request):
    return TableBuilder(f"memory://{request.node.name}")


def stream(builder: TableBuilder, **options: Any) -> TableStream:
    return builder.open().stream({key.replace("start", START): value for key, value in options.items()})


def ids(found: TableStream, start: StreamOffset, end: StreamOffset) -> list[int]:
    table = found.batch(start, end).scan().select("id").to_arrow()
    return sorted(table.column("id").to_pylist())


def drained(found: TableStream, start: StreamOffset | None = None) -> list[list[int]]:
    start = found.initial_offset() if start is None else start
    batches = []
    while (end := found.next_offset(start)) != start:
        batches.append(ids(found, start, end))
        start = end
    return batches


def test_a_stream_begins_with_the_earliest_the_latest_or_after_an_instant(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]})
    latest = stream(builder, start="latest")
    begin = latest.initial_offset()
    assert (begin, drained(latest)) == (StreamOffset(T2), [])
    builder.commit(T3, {"c": [3]})
    assert drained(stream(builder)) == [[1, 2, 3]]
    assert drained(latest, begin) == [[3]]
    assert drained(stream(builder, start=T1)) == [[2, 3]]
    assert drained(stream(builder, start="2026-01-01 00:00:00.002")) == [[3]]
    with pytest.raises(InvalidInput, match="startOffset"):
        stream(builder, start="soon").initial_offset()


def test_a_stream_of_a_table_without_commits_waits_for_the_first(builder):
    found = stream(builder, start="snapshot")
    begin = found.initial_offset()
    assert (begin, found.next_offset(begin)) == (StreamOffset(), StreamOffset())


def test_a_misspelt_limit_is_named(builder):
    builder.commit(T1, {"a": [1]})
    with pytest.raises(InvalidOption, match=r"read\.stream\.maxFilesPerTrigger") as caught:
        builder.open().stream({"read.stream.maxFilePerTrigger": 1})
    assert caught.value.condition == "UNKNOWN_OPTION"


def test_a_stream_of_an_older_state_is_refused(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]})
    with pytest.raises(InvalidOption, match=r"as\.of\.instant"):
        drawstring.open_table(builder.root, options={"as.of.instant": T1}).stream()


def test_a_stream_of_an_incremental_query_needs_no_begin(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]})
    table = drawstring.open_table(builder.root, options={"hoodie.datasource.query.type": "incremental"})
    assert drained(table.stream()) == [[1, 2]]
    with pytest.raises(InvalidOption) as caught:
        table.asked()
    assert caught.value.condition == "BEGIN_INSTANT_MISSING"


def test_limits_divide_a_commit_and_a_restart_goes_on_inside_it(builder):
    builder.commit(T1, {"a": [1], "b": [2], "c": [3]}).commit(T2, {"a": [1, 4]})
    found = stream(builder, maxFilesPerTrigger=2)
    first = found.next_offset(StreamOffset())
    assert first == StreamOffset(BEFORE_ALL, commit=T1, done=2)
    builder.commit(T3, {"b": [5]})
    again = stream(builder, maxFilesPerTrigger=2)
    assert ids(found, StreamOffset(), first) == [1, 2]
    assert drained(again, StreamOffset.from_json(first.to_json())) == [[3], [1, 4, 5]]


def test_what_is_available_now_does_not_grow(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]})
    found = stream(builder, maxFilesPerTrigger=1)
    until = found.newest_offset()
    builder.commit(T3, {"c": [3]})
    end = found.next_offset(StreamOffset(), until=until)
    assert end == StreamOffset(T1)
    end = found.next_offset(end, until=until)
    assert (end, found.next_offset(end, until=until)) == (StreamOffset(T2), StreamOffset(T2))


def test_a_batch_is_put_off_until_rows_or_time_are_enough(builder):
    builder.commit(T1, {"a": [1]})
    found = stream(builder, minRowsPerTrigger=3, maxTriggerDelayMs=1000)
    assert found.next_offset(StreamOffset(), waited_ms=10) == StreamOffset()
    assert found.next_offset(StreamOffset(), waited_ms=1000) == StreamOffset(T1)
    assert found.next_offset(StreamOffset()) == StreamOffset(T1)
    builder.commit(T2, {"b": [2, 3]})
    assert found.next_offset(StreamOffset(), waited_ms=10) == StreamOffset(T2)


def test_a_pending_write_of_version_6_holds_back_what_began_after_it(builder):
    """Its rows would be passed over: commits are ordered by when they began."""
    builder.commit(T1, {"a": [1]}).commit(T3, {"c": [3]})
    builder.storage.write(f".hoodie/{T2}.commit.requested", b"")
    found = stream(builder)
    assert drained(found) == [[1]]
    assert found.newest_offset() == StreamOffset(T1)
    builder.commit(T2, {"b": [2]})
    assert drained(found, StreamOffset(T1)) == [[2, 3]]


def test_a_pending_clustering_holds_nothing_back(builder):
    builder.commit(T1, {"a": [1]}).commit(T3, {"c": [3]})
    plan = json.dumps({"operationType": "CLUSTER", "clusteringPlan": {"version": 1}})
    builder.storage.write(f".hoodie/{T2}.replacecommit.requested", plan.encode())
    assert drained(stream(builder)) == [[1, 3]]


def test_files_that_a_cleaner_took_end_the_stream_with_how_far_behind_it_was(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]}).commit(T3, {"b": [2, 4]})
    name = f"fa-0_0-0-0_{T1}.parquet"
    builder.clean(T4, {"a": [name]}).storage.delete(f"a/{name}")
    found = stream(builder, maxFilesPerTrigger=1)
    end = found.next_offset(StreamOffset())
    with pytest.raises(InvalidInput, match="3 commits behind") as caught:
        found.batch(StreamOffset(), end)
    assert caught.value.condition == "STREAM_DATA_LOST"
    assert caught.value.fields["path"] == f"a/{name}"
    assert caught.value.fields["commits_behind"] == 3


def test_without_failure_on_loss_the_stream_reads_what_newer_files_hold_and_counts(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]})
    name = f"fa-0_0-0-0_{T1}.parquet"
    builder.clean(T4, {"a": [name]}).storage.delete(f"a/{name}")
    found = stream(builder, failOnDataLoss="false", maxRowsPerTrigger=2)
    batch = found.batch(StreamOffset(), StreamOffset(T1))
    assert batch.lost_files == 1
    # The builder writes every row of a file anew, so row 1 carries T2 and comes with it.
    assert drained(found) == [[2], [1, 3]]


def test_files_that_no_batch_reads_are_not_missed(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"a": [1, 3]})
    name = f"fa-0_0-0-0_{T1}.parquet"
    builder.clean(T4, {"a": [name]}).storage.delete(f"a/{name}")
    assert drained(stream(builder)) == [[1, 3]]


def test_a_checkpoint_of_commits_that_the_table_does_not_know_is_refused(builder):
    builder.commit(T3, {"a": [1]})
    found = stream(builder)
    with pytest.raises(InvalidInput, match="1 commits behind") as caught:
        found.batch(StreamOffset(T1), StreamOffset(T3))
    assert caught.value.condition == "STREAM_INSTANTS_LOST"
    assert ids(stream(builder, failOnDataLoss="false"), StreamOffset(T1), StreamOffset(T3)) == [1]
    assert ids(stream(builder, start=T1), StreamOffset(T1), StreamOffset(T3)) == [1]


def test_archived_commits_are_read_as_long_as_their_files_are_there(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]}).commit(T3, {"c": [3]})
    builder.archive(T1)
    builder.archive(T2)
    assert drained(stream(builder, maxFilesPerTrigger=1)) == [[1], [2], [3]]
    assert drained(stream(builder), StreamOffset(T1)) == [[2, 3]]


def wider() -> str:
    schema = json.loads(SCHEMA)
    schema["fields"].append({"name": "more", "type": ["null", "int"], "default": None})
    return json.dumps(schema)


def test_a_schema_that_evolves_ends_the_query_and_a_new_one_goes_on(builder):
    builder.commit(T1, {"a": [1]})
    found = stream(builder)
    builder.commit(T2, {"b": [2]}, schema=wider())
    with pytest.raises(IncompatibleSchema, match="more") as caught:
        found.batch(StreamOffset(T1), StreamOffset(T2))
    assert (caught.value.condition, caught.value.fields["added"]) == ("STREAM_SCHEMA_CHANGED", ["more"])
    again = stream(builder).batch(StreamOffset(T1), StreamOffset(T2)).scan().to_arrow()
    assert again.column("more").to_pylist() == [None]


def test_the_old_schema_is_kept_where_told(builder):
    builder.commit(T1, {"a": [1]})
    found = stream(builder, **{"read.stream.keepSchema": "true"})
    builder.commit(T2, {"b": [2]}, schema=wider())
    rows = found.batch(StreamOffset(T1), StreamOffset(T2)).scan().to_arrow()
    assert (rows.column("id").to_pylist(), "more" in rows.column_names) == ([2], False)


def test_a_snapshot_comes_first_as_it_was_when_the_query_began(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]})
    found = stream(builder, start="snapshot", maxFilesPerTrigger=1)
    begin = found.initial_offset()
    first = found.next_offset(begin)
    assert ids(found, begin, first) == [1, 3]
    builder.commit(T3, {"b": [2, 4]}).commit(T4, {"c": [5]})
    again = stream(builder, maxFilesPerTrigger=1)
    assert drained(again, StreamOffset.from_json(first.to_json())) == [[2], [2, 4], [5]]


def test_rows_limit_the_pieces_of_a_snapshot(builder):
    builder.commit(T1, {"a": [1, 2], "b": [3], "c": [4]})
    found = stream(builder, start="snapshot", maxRowsPerTrigger=2)
    assert drained(found) == [[1, 2], [3, 4]]
    assert found.backlog(found.initial_offset()).amount.rows == 4


def test_the_backlog_tells_commits_files_rows_and_seconds(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]}).commit(T3, {}, operation="CLUSTER")
    backlog = stream(builder).backlog(StreamOffset(BEFORE_ALL, commit=T1, done=1))
    assert (backlog.commits, backlog.amount.files, backlog.amount.rows) == (2, 2, 3)
    assert backlog.seconds > 0
    assert stream(builder).backlog(StreamOffset(T2)).commits == 0


def test_replaced_and_deleted_partitions_yield_the_new_rows_only(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).replace(T2, {"a": ["fa-0"]}).commit(T3, {"c": [3]})
    assert drained(stream(builder), StreamOffset(T1)) == [[3]]
    # A batch holds what its range of commits left behind: the group that was replaced within it is not read.
    assert drained(stream(builder, maxFilesPerTrigger=2)) == [[2], [3]]
    assert ids(stream(builder), StreamOffset(), StreamOffset(T1)) == [1, 2]


def test_planning_lists_the_timeline_only(builder, monkeypatch):
    builder.clean("20260101000000000", {}).commit(T1, {"a": [1], "b": [2]}).commit(T2, {"a": [1, 3]})
    found = stream(builder)
    listed: list[str] = []
    plain = MemoryStorage.list
    monkeypatch.setattr(MemoryStorage, "list", lambda self, path: listed.append(path) or plain(self, path))
    assert drained(found, StreamOffset(T1)) == [[1, 3]]
    # Once for the batch, once to find that there is no other.
    assert listed == [".hoodie"] * 2
    assert found.backlog(StreamOffset(T2), look=False).commits == 0
    assert len(listed) == 2


def test_what_commits_say_is_worked_out_once_however_many_batches_they_wait_for(builder, monkeypatch):
    for time, name in ((T1, "a"), (T2, "b"), (T3, "c")):
        builder.commit(time, {name: [1]})
    worked_out = []
    plain = source._commit_of
    monkeypatch.setattr(source, "_commit_of", lambda at, *more: worked_out.append(at) or plain(at, *more))
    found = stream(builder, maxFilesPerTrigger=1)
    assert len(drained(found)) == 3
    assert [instant.requested_time for instant in worked_out] == [T1, T2, T3]
