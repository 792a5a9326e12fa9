from __future__ import annotations

import datetime as dt
import random
import tempfile
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.merge import log_scan, merge_plan
from drawstring.merge.merge_plan import build_merge_plan
from drawstring.model.read_task import KeySpec, MergeSpec
from drawstring.reading import merge_plan_for, read_task
from tests.unit.merge.model import folded, met, partially_folded, partially_met
from tests.unit.merge.slices import COMMIT_TIME, EVENT_TIME, FILE_ID, SCHEMA, Slice, instant

EVENT = MergeSpec(EVENT_TIME, ("ts",))
COMMIT = MergeSpec(COMMIT_TIME, ("ts",))


def read(made: Slice, merge: MergeSpec = EVENT, *, columns=("id", "v", "s", "ts"), **facts):
    task = made.task(merge, **facts)
    batches = list(read_task(task, storage=made.storage, table_schema=made.schema, columns=columns))
    plan = merge_plan_for(task, storage=made.storage, table_schema=made.schema, columns=columns)
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    if task.keep_commit_times is None:
        assert plan.row_count == len(rows)
    return sorted(rows, key=repr)


def row(key, v, ts, s="x"):
    return {"id": key, "v": v, "s": s, "ts": ts}


@pytest.mark.parametrize("parquet", [False, True], ids=["avro", "parquet"])
def test_updates_replace_base_rows_and_inserts_are_added(parquet):
    made = (
        Slice()
        .base([row("a", 1, 1), row("b", 2, 1)])
        .upsert([row("b", 3, 2), row("c", 4, 2)], parquet=parquet)
    )
    assert read(made) == [("a", 1, "x", 1), ("b", 3, "x", 2), ("c", 4, "x", 2)]


def test_rows_of_a_log_carry_the_file_id_as_file_name():
    made = Slice().base([row("a", 1, 1)]).upsert([row("b", 1, 1)])
    found = read(made, columns=("id", "_hoodie_file_name"))
    assert found == [("a", made.base_file.name), ("b", FILE_ID)]


def test_a_late_update_loses_by_event_time_and_wins_by_commit_time():
    made = Slice().base([row("a", 1, 5)]).upsert([row("a", 2, 4)])
    assert read(made) == [("a", 1, "x", 5)]
    assert read(made, COMMIT) == [("a", 2, "x", 4)]


def test_ties_go_to_the_newer_record():
    made = Slice().base([row("a", 1, 5)]).upsert([row("a", 2, 5)]).upsert([row("a", 3, 5)])
    assert read(made) == [("a", 3, "x", 5)]


def test_an_ordered_delete_loses_against_a_later_event():
    made = Slice().base([row("a", 1, 5), row("b", 1, 5)]).delete({"a": 4, "b": 5})
    assert read(made) == [("a", 1, "x", 5)]


def test_a_delete_without_ordering_value_always_deletes():
    assert read(Slice().base([row("a", 1, 5)]).delete({"a": None})) == []


def test_logs_fold_before_they_meet_the_base_row():
    """Deleted by key, then inserted again below the base row's ordering value: the base row is back."""
    made = Slice().base([row("a", 1, 5)]).delete({"a": None}).upsert([row("a", 2, 3)])
    assert read(made) == [("a", 1, "x", 5)]


def test_an_ordered_delete_in_the_log_outlasts_older_data():
    made = Slice().base([row("a", 1, 5)]).delete({"a": 20}).upsert([row("a", 2, 15)])
    assert read(made) == []
    assert read(made.upsert([row("a", 3, 20)])) == [("a", 3, "x", 20)]


def test_a_delete_whose_ordering_value_counts_for_nothing_deletes_and_is_forgotten():
    merge = MergeSpec(EVENT_TIME, ("ts",), deletes_unordered=True)
    late = Slice().base([row("a", 1, 9)]).delete({"a": 5})
    assert read(late, merge) == []
    older = Slice().base([row("a", 1, 1)]).delete({"a": 9}).upsert([row("a", 2, 5)])
    assert read(older, merge) == [("a", 2, "x", 5)]


def test_deletes_after_a_commit_time_delete_change_nothing():
    made = Slice().delete({"a": None}).delete({"a": 50}).upsert([row("a", 1, 10)])
    assert read(made) == [("a", 1, "x", 10)]
    assert read(made.delete({"a": 20})) == []


def test_missing_ordering_values_are_the_lowest():
    made = Slice().base([row("a", 1, None), row("b", 1, 1)]).upsert([row("a", 2, -5), row("b", 2, None)])
    assert read(made) == [("a", 2, "x", -5), ("b", 1, "x", 1)]


def test_a_slice_without_base_file():
    made = Slice().upsert([row("a", 1, 1), row("b", 1, 1)]).delete({"b": 3})
    assert read(made) == [("a", 1, "x", 1)]


def test_several_ordering_fields_compare_left_to_right():
    merge = MergeSpec(EVENT_TIME, ("ts", "s"))
    made = Slice().base([row("a", 1, 5, "m"), row("b", 1, 5, "m"), row("c", 1, 5, "m")])
    made.upsert([row("a", 2, 5, "l"), row("b", 2, 5, "n")]).delete({"c": (5, "m")})
    assert read(made, merge) == [("a", 1, "m", 5), ("b", 2, "n", 5)]


def test_a_key_that_the_base_holds_twice_meets_the_logs_once():
    made = Slice().base([row("a", 1, 1), row("a", 2, 1)]).upsert([row("a", 3, 2)])
    assert read(made) == [("a", 2, "x", 1), ("a", 3, "x", 2)]


def test_custom_delete_markers():
    merge = MergeSpec(EVENT_TIME, ("ts",), delete_field="s", delete_marker="D")
    made = Slice().base([row("a", 1, 5), row("b", 1, 5)]).upsert([row("a", 2, 6, "D"), row("b", 2, 4, "D")])
    assert read(made, merge) == [("b", 1, "x", 5)]


def test_rows_flagged_as_deleted():
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    made = Slice(schema).base([row("a", 1, 5), row("b", 1, 5)])
    made.upsert(
        [row("a", 2, 6) | {"_hoodie_is_deleted": True}, row("b", 2, 6) | {"_hoodie_is_deleted": False}]
    )
    assert read(made) == [("b", 2, "x", 6)]


def test_a_flag_that_is_no_boolean_does_not_delete():
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.string()))
    made = Slice(schema).base([row("a", 1, 5)]).upsert([row("a", 2, 6) | {"_hoodie_is_deleted": "true"}])
    assert read(made) == [("a", 2, "x", 6)]


@pytest.mark.parametrize(("operation", "expected"), [("D", []), ("-U", []), ("U", [2]), ("I", [2])])
def test_operations_of_a_changelog(operation, expected):
    schema = SCHEMA.append(pa.field("_hoodie_operation", pa.string()))
    made = Slice(schema).base([row("a", 1, 5)]).upsert([row("a", 2, 6) | {"_hoodie_operation": operation}])
    assert [found[0] for found in read(made, columns=("v",))] == expected


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [1.0, 2.0, 3.0]),
        (pa.string(), ["1", "2", "3"]),
        (pa.decimal128(12, 4), [Decimal("1.5000"), Decimal("2.5000"), Decimal("10.5000")]),
        (
            pa.timestamp("us", tz="UTC"),
            [dt.datetime(2024, 1, day, tzinfo=dt.timezone.utc) for day in (1, 2, 3)],
        ),
        (pa.date32(), [dt.date(2024, 1, day) for day in (1, 2, 3)]),
        (pa.int32(), [1, 2, 3]),
    ],
    ids=str,
)
def test_ordering_values_of_many_types(kind, values):
    schema = SCHEMA.set(SCHEMA.get_field_index("ts"), pa.field("ts", kind))
    low, middle, high = values
    made = Slice(schema).base([row(key, 0, middle) for key in "abcd"])
    made.upsert(
        [row("a", 1, low), row("b", 1, middle), row("c", 1, high), row("d", 1, high), row("d", 2, low)]
    )
    assert read(made, columns=("id", "v")) == [("a", 0), ("b", 1), ("c", 1), ("d", 1)]


def test_deletes_carry_ordering_values_in_other_types_than_the_column():
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    micros = int(moment.timestamp() * 1_000_000)
    schema = SCHEMA.set(SCHEMA.get_field_index("ts"), pa.field("ts", pa.timestamp("us", tz="UTC")))
    made = (
        Slice(schema)
        .base([row("a", 0, moment), row("b", 0, moment)])
        .delete({"a": micros - 1, "b": micros + 1})
    )
    assert read(made, columns=("id",)) == [("a",)]
    schema = SCHEMA.set(SCHEMA.get_field_index("ts"), pa.field("ts", pa.decimal128(12, 4)))
    price = Decimal("2.5000")
    made = Slice(schema).base([row("a", 0, price), row("b", 0, price)])
    made.delete({"a": Decimal("2.4999"), "b": Decimal("2.5000")})
    assert read(made, columns=("id",)) == [("a",)]


def test_rolled_back_blocks_do_not_count():
    made = Slice().base([row("a", 1, 1)])
    bad, good = made.next_instant(), made.next_instant()
    made.log(
        made.data_block([row("a", 2, 2)], bad),
        made.data_block([row("a", 3, 3)], good),
        made.data_block([row("a", 4, 4)], bad),
        made.rollback_block(bad, made.next_instant()),
    )
    assert read(made) == [("a", 3, "x", 3)]


def test_only_committed_blocks_up_to_the_read_instant_count():
    made = Slice().base([row("a", 1, 1)])
    one, two, three = (made.next_instant() for _ in range(3))
    made.log(
        made.data_block([row("a", 2, 2)], one),
        made.data_block([row("a", 3, 3)], two),
        made.data_block([row("a", 4, 4)], three),
    )
    assert read(made, valid_instants=frozenset({one, three})) == [("a", 4, "x", 4)]
    assert read(made, valid_instants=frozenset({one, three}), max_instant=two) == [("a", 2, "x", 2)]
    assert read(made, valid_instants=frozenset({two}), valid_before=two) == [("a", 3, "x", 3)]


def test_compacted_logs_stand_where_the_newest_of_them_stood():
    made = Slice().base([row("a", 1, 1)])
    made.upsert([row("a", 2, 2)]).upsert([row("b", 2, 2)]).upsert([row("a", 9, 9)])
    compacted = made.data_block(
        [row("a", 2, 2), row("b", 7, 2)],
        made.next_instant(),
        COMPACTED_BLOCK_TIMES=f"{instant(2)},{instant(3)}",
    )
    made.log(compacted)
    assert read(made, COMMIT) == [("a", 9, "x", 9), ("b", 7, "x", 2)]


def test_incremental_reads_keep_rows_of_their_commits():
    made = Slice().base([row("a", 1, 1), row("b", 1, 1)]).upsert([row("b", 2, 2)])
    assert read(made, keep_commit_times=frozenset({instant(2)})) == [("b", 2, "x", 2)]


def test_in_incremental_reads_late_updates_do_not_meet_base_rows_of_other_commits():
    made = Slice().base([row("a", 1, 9), row("b", 1, 1)]).upsert([row("a", 2, 2)])
    assert read(made) == [("a", 1, "x", 9), ("b", 1, "x", 1)]
    assert read(made, keep_commit_times=frozenset({instant(2)})) == [("a", 2, "x", 2)]
    assert read(made, keep_commit_times=frozenset({instant(1), instant(2)})) == read(made)


def test_keys_are_computed_where_records_do_not_carry_them():
    keys = KeySpec(populate_meta_fields=False, key_fields=("id", "v"), key_generator="COMPLEX")
    without = {"_hoodie_record_key": None}
    made = Slice().base([row("a", 1, 1) | without, row("a", 2, 1) | without])
    made.upsert([row("a", 2, 5) | without]).delete({"id:a,v:1": None})
    assert read(made, keys=keys) == [("a", 2, "x", 5)]


def test_partial_blocks_assign_only_their_columns():
    made = Slice().base([row("a", 1, 1, "name")])
    made.upsert([{"_hoodie_record_key": "a", "v": 9, "ts": 2}], columns=["v", "ts"])
    made.upsert([{"_hoodie_record_key": "a", "s": "late", "ts": 0}], columns=["s", "ts"])
    assert read(made) == [("a", 9, "late", 2)]


def test_a_partial_block_that_sets_null_sets_null():
    made = Slice().base([row("a", 1, 1, "name")])
    made.upsert([{"_hoodie_record_key": "a", "s": None, "ts": 2}], columns=["s", "ts"])
    assert read(made) == [("a", 1, None, 2)]


def test_defaults_are_ignored_where_the_table_says_so():
    merge = MergeSpec(EVENT_TIME, ("ts",), partial_update_mode="IGNORE_DEFAULTS")
    made = Slice().base([row("a", 1, 5, "base"), row("b", None, 5, None)])
    made.upsert([row("a", None, 6, "new"), row("b", 7, 4, "old")])
    assert read(made, merge) == [("a", 1, "new", 6), ("b", 7, "old", 5)]


def test_unavailable_values_come_from_the_older_record():
    merge = MergeSpec(EVENT_TIME, ("ts",), "FILL_UNAVAILABLE", "__unavailable__")
    made = Slice().base([row("a", 1, 5, "base")]).upsert([row("a", None, 6, "__unavailable__")])
    assert read(made, merge) == [("a", None, "base", 6)]


def test_a_partial_update_over_a_delete_starts_afresh():
    merge = MergeSpec(COMMIT_TIME, (), partial_update_mode="IGNORE_DEFAULTS")
    made = Slice().upsert([row("a", 1, 5, "old")]).delete({"a": None}).upsert([row("a", 2, 6, None)])
    assert read(made, merge) == [("a", 2, None, 6)]


def test_meta_columns_of_the_newer_record_where_the_payload_keeps_them():
    merge = MergeSpec(EVENT_TIME, ("ts",), "IGNORE_DEFAULTS", meta_from_newer=True)
    made = Slice().base([row("a", 1, 5, None)]).upsert([row("a", 2, 4, "late")])
    columns = ("v", "s", "_hoodie_commit_time")
    assert read(made, merge, columns=columns) == [(1, "late", instant(2))]


def test_a_missing_log_file_is_named():
    made = Slice().base([row("a", 1, 1)]).upsert([row("a", 2, 2)])
    made.storage.delete(made.logs[0].path)
    with pytest.raises(CorruptTable, match="Missing") as caught:
        read(made)
    assert caught.value.fields == {"path": made.logs[0].path, "partition": "p", "instant": instant(2)}


def test_a_damaged_committed_block_is_named():
    made = Slice().base([row("a", 1, 1)])
    broken = bytearray(made.data_block([row("a", 2, 2)], instant(2)))
    broken[-1] ^= 1
    made.log(bytes(broken), written=instant(2))
    with pytest.raises(CorruptTable) as caught:
        read(made)
    assert caught.value.fields["partition"] == "p"
    assert caught.value.fields["instant"] == instant(2)


def test_a_torn_block_of_a_writer_that_died_is_passed_over():
    made = Slice().base([row("a", 1, 1)])
    good = made.data_block([row("a", 2, 2)], instant(2))
    torn = made.data_block([row("a", 3, 3)], instant(3))
    made.log(good + torn[:-20], written=instant(1))
    made.logs[0] = replace(made.logs[0], size=0)
    assert read(made, valid_instants=frozenset({instant(1), instant(2)})) == [("a", 2, "x", 2)]


def test_what_follows_the_committed_bytes_is_passed_over():
    made = Slice().base([row("a", 1, 1)]).upsert([row("a", 2, 2)])
    content = made.storage.read(made.logs[0].path)
    for tail in (content[:-20], content[:30], b"garbage", bytes(100)):
        made.storage.write(made.logs[0].path, content + tail)
        assert read(made) == [("a", 2, "x", 2)]


def test_a_log_file_that_lost_its_end_is_named():
    made = Slice().base([row("a", 1, 1)])
    block = made.data_block([row("a", 2, 2)], instant(2))
    made.log(block + made.delete_block({"a": None}, instant(2)), written=instant(2))
    made.storage.write(made.logs[0].path, block)
    with pytest.raises(CorruptTable, match="were committed") as caught:
        read(made)
    assert caught.value.fields["path"] == made.logs[0].path


def test_unknown_commands_are_refused_by_name():
    made = Slice().base([row("a", 1, 1)])
    block = made.rollback_block("x", instant(2)).replace(b"\x00\x00\x00\x010", b"\x00\x00\x00\x017")
    with pytest.raises(UnsupportedTable, match="command '7'"):
        read(made.log(block))


@pytest.mark.parametrize("parquet", [False, True], ids=["avro", "parquet"])
@pytest.mark.parametrize("mode", ["whole", "partial"])
@pytest.mark.parametrize("seed", range(3))
def test_logs_larger_than_memory_merge_to_the_same_rows(seed, mode, parquet):
    chance = random.Random(seed)
    made = Slice().base([row(f"key {i}", 0, chance.randrange(9)) for i in range(300)])
    for number in range(1, 12):
        keys = chance.sample(range(400), 120)
        if number % 4:
            made.upsert(
                [row(f"key {i}", number, chance.randrange(9), chance.choice(["x", None])) for i in keys],
                parquet=parquet,
            )
        else:
            made.delete({f"key {i}": chance.choice([None, 1, 5]) for i in keys})
    merge = EVENT if mode == "whole" else MergeSpec(EVENT_TIME, ("ts",), "IGNORE_DEFAULTS")
    facts = {"storage": made.storage, "table_schema": made.schema, "columns": ["id", "v", "s", "ts"]}
    whole = build_merge_plan(made.task(merge), **facts)
    parts = build_merge_plan(made.task(merge), memory_bytes=40_000, **facts)
    assert (parts.hidden == whole.hidden).all()
    assert parts.winner_count == whole.winner_count > 50
    assert sorted(map(repr, parts.winners.to_pylist())) == sorted(map(repr, whole.winners.to_pylist()))


@pytest.mark.parametrize(
    ("parquet", "count", "memory"),
    [(False, 2_000, 100_000), (True, 70_000, 1_000_000)],
    ids=["avro", "parquet"],
)
def test_a_block_larger_than_memory_is_read_in_pieces(parquet, count, memory, monkeypatch):
    made = Slice().base([row(f"key {i}", 0, 5) for i in range(500)])
    made.upsert([row(f"key {i}", 1, i % 10, "y" * 50) for i in range(count)], parquet=parquet)
    sizes = []
    stream = merge_plan.stream_records
    monkeypatch.setattr(
        merge_plan,
        "stream_records",
        lambda *given, **more: (sizes.append(len(r.kinds)) or r for r in stream(*given, **more)),
    )
    facts = {"storage": made.storage, "table_schema": made.schema, "columns": ["id", "v", "s", "ts"]}
    parts = build_merge_plan(made.task(), memory_bytes=memory, **facts)
    assert len(sizes) > 1
    assert sum(sizes) == count
    assert parts.row_count == count
    assert parts.hidden_count == 250


def test_a_key_with_more_records_than_memory_holds_is_merged_all_the_same():
    made = Slice().base([row("a", 0, 0), row("b", 0, 0)])
    made.upsert([row("a", i, i % 777) for i in range(1_000)])
    facts = {"storage": made.storage, "table_schema": made.schema, "columns": ["id", "v"]}
    plan = build_merge_plan(made.task(), memory_bytes=20_000, **facts)
    assert plan.winners.to_pylist() == [{"id": "a", "v": 776}]
    assert plan.hidden.tolist() == [True, False]


def test_a_large_block_that_is_damaged_is_named_and_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = Slice().base([row("a", 0, 0)])
    made.upsert([row(f"key {i}", i, 1) for i in range(1_000)])
    log = made.logs[0]
    content = bytearray(made.storage.read(log.path))
    start = content.index(b"key 900") - 120
    content[start : start + 60] = b"\xff" * 60
    made.storage.write(log.path, bytes(content))
    facts = {"storage": made.storage, "table_schema": made.schema, "columns": ["id", "v"]}
    with pytest.raises(CorruptTable) as caught:
        build_merge_plan(made.task(), memory_bytes=20_000, **facts)
    assert caught.value.fields["path"] == log.path
    assert list(tmp_path.iterdir()) == []


def test_logs_in_many_small_files_are_not_held_all_at_once(monkeypatch):
    monkeypatch.setattr(log_scan, "_HELD_BYTES", 2_000)
    made = Slice().base([row("a", 0, 0)])
    for number in range(1, 8):
        made.upsert([row("a", number, number)])
    blocks = log_scan.blocks_of(made.task(), made.storage)
    assert sum(block.held_bytes for block in blocks) <= 2_000
    assert read(made) == [("a", 7, "x", 7)]


KEYS = [f"k{i}" for i in range(6)]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("merge", [EVENT, COMMIT], ids=["event time", "commit time"])
def test_any_history_reads_as_folding_it_one_by_one(merge, seed):
    chance = random.Random(seed)
    made, logs = Slice(), {}
    base = {key: row(key, 0, chance.randrange(5)) for key in KEYS if chance.random() < 0.6}
    made.base(list(base.values()))
    for number in range(1, chance.randrange(2, 8)):
        keys = [key for key in KEYS if chance.random() < 0.5]
        ordering = {key: chance.choice([None, 0, 1, 2, 3, 4, 5]) for key in keys}
        if chance.random() < 0.6:
            rows = {key: row(key, number, ordering[key]) for key in keys}
            made.upsert(list(rows.values()), parquet=chance.random() < 0.3)
            events = {key: ("data", ordering[key], rows[key]) for key in keys}
        else:
            made.delete(ordering)
            events = {key: ("delete", ordering[key], None) for key in keys}
        for key, event in events.items():
            logs[key] = folded(logs.get(key), event, merge.mode)
    expected = [met(base.get(key), logs.get(key), merge.mode) for key in KEYS]
    assert read(made, merge) == sorted(
        (tuple(r[c] for c in ("id", "v", "s", "ts")) for r in expected if r), key=repr
    )


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
def test_any_history_of_partial_updates_reads_as_folding_it_one_by_one(mode, seed):
    merge = MergeSpec(mode, ("ts",), "IGNORE_DEFAULTS")
    chance = random.Random(seed)
    made, logs = Slice(), {}
    base = {key: random_row(chance, key, 0) for key in KEYS if chance.random() < 0.6}
    made.base(list(base.values()))
    for number in range(1, chance.randrange(2, 8)):
        keys = [key for key in KEYS if chance.random() < 0.5]
        if chance.random() < 0.75:
            events = {key: ("data", random_row(chance, key, number)) for key in keys}
            made.upsert([record for _, record in events.values()])
        else:
            events = {key: ("delete", {"ts": chance.choice([None, 1, 3, 5])}) for key in keys}
            made.delete({key: record["ts"] for key, (_, record) in events.items()})
        for key, event in events.items():
            logs[key] = partially_folded(logs.get(key), event, merge.mode)
    expected = [partially_met(base.get(key), logs.get(key), merge.mode) for key in KEYS]
    rows = [tuple(found[name] for name in ("id", "v", "s", "ts")) for found in expected if found]
    assert read(made, merge) == sorted(rows, key=repr)


def random_row(chance, key, number):
    return {
        "id": key,
        "v": chance.choice([None, number]),
        "s": chance.choice([None, f"s{number}"]),
        "ts": chance.randrange(1, 6),
    }
