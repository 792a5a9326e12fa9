"""What each index type does with rows whose keys are there already, here or in another partition."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.config.write_options import WriteOptions
from drawstring.errors import CommitConflict, InvalidOption, UnsupportedTable
from drawstring.model.file_names import bucket_of_file_id
from drawstring.storage import LocalStorage
from drawstring.write.bucket_index import BucketRule, bucket_numbers
from drawstring.write.in_process import ArrowRows
from drawstring.write.pipeline import write_rows
from tests import small_writes
from tests.small_writes import OPTIONS, arrow, rows_of, rows_of_hudi_rs, write

FIRST = [("1", "rome", 5, "a"), ("2", "rome", 5, "a"), ("3", "oslo", 5, "a")]
GLOBAL = ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"]
PREFIX = {"GLOBAL_SIMPLE": "simple", "GLOBAL_BLOOM": "bloom"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}


def indexed(kind: str, moves: bool | None = None) -> dict[str, str]:
    options = {"hoodie.index.type": kind}
    if moves is not None:
        name = f"hoodie.{PREFIX.get(kind, 'record')}.index.update.partition.path"
        options[name] = str(moves).lower()
    return options


@pytest.fixture(autouse=True, params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table_type(request, monkeypatch) -> str:
    options = {**OPTIONS, "hoodie.datasource.write.table.type": request.param}
    monkeypatch.setattr(small_writes, "OPTIONS", options)
    return str(request.param)


@pytest.fixture
def table(tmp_path) -> LocalStorage:
    storage = LocalStorage(str(tmp_path / "t"))
    write(storage, FIRST)
    return storage


def places(storage: LocalStorage) -> dict[str, tuple[str, str]]:
    """Key to partition path and value."""
    found = drawstring.open_table(storage.root).snapshot().scan().to_arrow()
    rows = zip(
        found.column("_hoodie_record_key").to_pylist(),
        found.column("_hoodie_partition_path").to_pylist(),
        found.column("v").to_pylist(),
        strict=True,
    )
    listed = [(key, (path, v)) for key, path, v in rows]
    assert len(dict(listed)) == len(listed), f"a key is there twice: {listed}"
    return dict(listed)


@pytest.mark.parametrize("kind", ["SIMPLE", "BLOOM"])
def test_other_indexes_know_a_key_in_its_partition_only(table, kind):
    write(table, [("1", "oslo", 6, "b")], options=indexed(kind))
    assert [row[:2] for row in rows_of(table.root)].count(("1", "oslo")) == 1
    assert len(rows_of(table.root)) == 4


@pytest.mark.parametrize("kind", GLOBAL)
def test_rows_move_to_the_partition_that_they_name(table, kind):
    result = write(table, [("1", "oslo", 6, "b"), ("4", "rome", 6, "b")], options=indexed(kind, True))
    assert places(table) == {"1": ("oslo", "b"), "2": ("rome", "a"), "3": ("oslo", "a"), "4": ("rome", "b")}
    assert (result.inserted, result.deleted) == (2, 1)


@pytest.mark.parametrize("kind", GLOBAL)
def test_rows_stay_in_the_partition_that_holds_their_key(table, kind):
    write(table, [("1", "oslo", 6, "b")], options=indexed(kind, False))
    assert places(table) == {"1": ("rome", "b"), "2": ("rome", "a"), "3": ("oslo", "a")}


def test_record_indexes_leave_rows_where_they_are_by_default(table):
    write(table, [("1", "oslo", 6, "b")], options=indexed("RECORD_INDEX"))
    write(table, [("2", "oslo", 6, "b")], options=indexed("GLOBAL_SIMPLE"))
    assert places(table) == {"1": ("rome", "b"), "2": ("oslo", "b"), "3": ("oslo", "a")}


@pytest.mark.parametrize("moves", [True, False])
def test_rows_that_are_older_than_what_is_stored_change_nothing(table, moves):
    write(table, [("1", "oslo", 4, "old")], options=indexed("GLOBAL_SIMPLE", moves))
    assert places(table)["1"] == ("rome", "a")


@pytest.mark.parametrize("moves", [True, False])
def test_a_delete_finds_its_key_in_any_partition(table, moves):
    write(table, [("1", "oslo", 6, "")], "delete", options=indexed("GLOBAL_SIMPLE", moves))
    assert set(places(table)) == {"2", "3"}


def test_of_several_rows_of_a_key_one_counts_whatever_partitions_they_name(table):
    rows = [("9", "rome", 7, "x"), ("9", "oslo", 8, "y"), ("1", "oslo", 7, "x"), ("1", "rome", 8, "y")]
    write(table, rows, options=indexed("GLOBAL_SIMPLE", True))
    assert places(table)["9"] == ("oslo", "y")
    assert places(table)["1"] == ("rome", "y")


def test_a_key_that_is_in_two_partitions_ends_up_in_one(table):
    write(table, [("1", "oslo", 6, "b")])
    write(table, [("1", "bonn", 7, "c")], options=indexed("GLOBAL_SIMPLE", True))
    assert places(table)["1"] == ("bonn", "c")
    write(table, [("2", "oslo", 6, "b")])
    write(table, [("2", "oslo", 7, "c")], options=indexed("GLOBAL_SIMPLE", True))
    assert places(table)["2"] == ("oslo", "c")


def test_a_row_can_come_back_older_than_it_left(table, table_type):
    if table_type == "MERGE_ON_READ":
        pytest.skip("as in Hudi, a record in a log after a delete is held against the base file once more")
    write(table, [("1", "oslo", 6, "b")], options=indexed("GLOBAL_SIMPLE", True))
    write(table, [("1", "", 6, "")], "delete", options=indexed("GLOBAL_SIMPLE", True))
    write(table, [("1", "rome", 2, "c")], options=indexed("GLOBAL_SIMPLE", True))
    assert places(table)["1"] == ("rome", "c")


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
@pytest.mark.parametrize("kind", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
def test_an_update_of_a_row_that_was_deleted_and_inserted_again_does_not_bring_the_old_one_back(
    table, kind, operation
):
    """The base file still has the deleted row, beside the file group of the new one."""
    options = indexed(kind)
    write(table, [("1", "rome", 5, "")], "delete", options=options)
    write(table, [("1", "rome", 6, "b")], operation, options=options)
    write(table, [("1", "rome", 7, "c"), ("2", "rome", 7, "c")], options=options)
    assert places(table) == {"1": ("rome", "c"), "2": ("rome", "c"), "3": ("oslo", "a")}
    # Deleted in both groups, it comes back in one.
    write(table, [("1", "rome", 8, "")], "delete", options=options)
    write(table, [("1", "rome", 9, "d")], options=options)
    assert places(table)["1"] == ("rome", "d")


@pytest.mark.parametrize("kind", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_a_late_row_that_names_the_partition_that_its_key_left_changes_nothing(table, kind):
    write(table, [("1", "oslo", 8, "moved")], options=indexed(kind, True))
    write(table, [("1", "rome", 7, "late")], options=indexed(kind, True))
    assert places(table)["1"] == ("oslo", "moved")
    write(table, [("1", "rome", 9, "back")], options=indexed(kind, True))
    write(table, [("1", "oslo", 7, "late")], options=indexed(kind, True))
    assert places(table)["1"] == ("rome", "back")
    write(table, [("1", "oslo", 10, "again"), ("2", "rome", 10, "b")], options=indexed(kind, True))
    assert places(table) == {"1": ("oslo", "again"), "2": ("rome", "b"), "3": ("oslo", "a")}


def group_ids(storage: LocalStorage) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for group in drawstring.open_table(storage.root).snapshot().all_slices():
        found.setdefault(group.group.partition_path, []).append(group.group.file_id)
    return found


def test_rows_go_to_the_buckets_of_their_keys(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    # Through a metadata table hudi-rs does not see groups of logs alone, as buckets of merge-on-read tables are.
    given = {**BUCKETS, "hoodie.metadata.enable": "false"}
    first = [(str(i), "rome" if i % 2 else "oslo", 1, "a") for i in range(40)]
    write(storage, first, options=given)
    groups = group_ids(storage)
    second = [(str(i), "rome" if i % 2 else "oslo", 2, "b") for i in range(20, 60)]
    write(storage, second, options=given)
    assert group_ids(storage) == groups
    assert {path: len(ids) for path, ids in groups.items()} == {"rome": 4, "oslo": 4}
    assert rows_of(storage.root) == sorted([*first[:20], *second])
    assert rows_of_hudi_rs(storage.root) == rows_of(storage.root)
    found = drawstring.open_table(storage.root).snapshot().scan().to_arrow()
    numbers = bucket_numbers(found.column("_hoodie_record_key").combine_chunks(), BucketRule(4, ("id",)))
    names = found.column("_hoodie_file_name").to_pylist()
    assert [bucket_of_file_id(name) for name in names] == numbers.tolist()


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_inserts_into_buckets_only_add_rows(tmp_path, operation, table_type):
    storage = LocalStorage(str(tmp_path / "t"))
    write(storage, FIRST, operation, options=BUCKETS)
    write(storage, FIRST, operation, options=BUCKETS)
    # Logs know a key once.
    times = 2 if table_type == "COPY_ON_WRITE" else 1
    assert rows_of(storage.root) == sorted(FIRST * times)
    assert all(len(set(map(bucket_of_file_id, ids))) == len(ids) for ids in group_ids(storage).values())


@pytest.mark.parametrize(("operation", "left"), [("insert_overwrite", 2), ("insert_overwrite_table", 1)])
def test_overwrites_make_new_groups_of_the_same_buckets(tmp_path, operation, left):
    storage = LocalStorage(str(tmp_path / "t"))
    write(storage, FIRST, options=BUCKETS)
    before = group_ids(storage)
    write(storage, [("1", "rome", 1, "c")], operation, options=BUCKETS)
    after = group_ids(storage)
    assert set(after["rome"]).isdisjoint(before["rome"])
    assert len(rows_of(storage.root)) == left
    assert ("1", "rome", 1, "c") in rows_of(storage.root)


def test_deletes_in_buckets_make_no_groups(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    write(storage, FIRST, options=BUCKETS)
    before = group_ids(storage)
    gone = [("1", "rome", 9, ""), *((str(i), "rome", 9, "") for i in range(50, 80))]
    write(storage, gone, "delete", options=BUCKETS)
    assert group_ids(storage) == before
    assert rows_of(storage.root) == sorted(FIRST[1:])


@pytest.mark.parametrize(
    "options",
    [{}, {**BUCKETS, "hoodie.bucket.index.num.buckets": "1"}],
    ids=["another index", "another number"],
)
def test_buckets_are_not_spoilt_by_writers_with_other_options(tmp_path, options):
    storage = LocalStorage(str(tmp_path / "t"))
    rows = [(str(i), "rome", 1, "a") for i in range(40)]
    write(storage, rows, options=BUCKETS)
    with pytest.raises(UnsupportedTable) as caught:
        write(storage, rows, options=options)
    assert caught.value.condition == "WRITE_BUCKET_INDEX"
    assert rows_of(storage.root) == sorted(rows)


def test_two_writers_of_a_new_bucket_conflict(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    write(storage, [("1", "rome", 1, "a")], options={**BUCKETS, "hoodie.bucket.index.num.buckets": "1"})
    one = {**BUCKETS, "hoodie.bucket.index.num.buckets": "1", **OPTIONS}

    class Slow(ArrowRows):
        def write_groups(self, *args):
            stats = super().write_groups(*args)
            write(storage, [("2", "oslo", 1, "theirs")], "insert", options=one)
            return stats

    options = {
        **one,
        "hoodie.datasource.write.operation": "insert",
        "hoodie.write.num.retries.on.conflict.failures": "0",
    }
    with pytest.raises(CommitConflict):
        write_rows(
            Slow(arrow([("3", "oslo", 1, "ours")])), storage, mode="append", options=WriteOptions.of(options)
        )
    assert {row[0] for row in rows_of(storage.root)} == {"1", "2"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"hoodie.index.type": "HBASE"}, "HBASE"),
        ({"hoodie.index.type": "FLINK_STATE"}, "FLINK_STATE"),
        ({"hoodie.index.type": "RECORD_LEVEL_INDEX"}, "RECORD_LEVEL_INDEX"),
        ({**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "CONSISTENT_HASHING"),
        ({**BUCKETS, "hoodie.bucket.index.partition.expressions": "rome,8"}, "partition.expressions"),
        ({**BUCKETS, "hoodie.bucket.index.hash.field": "v"}, "['v']"),
    ],
)
def test_what_is_not_done_is_refused_by_name(tmp_path, options, named):
    storage = LocalStorage(str(tmp_path / "t"))
    with pytest.raises(InvalidOption) as caught:
        write(storage, FIRST, options=options)
    assert named in caught.value.message


def test_keys_of_several_columns_fall_into_buckets_by_some_of_them(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    options = {
        **BUCKETS,
        "hoodie.datasource.write.recordkey.field": "id,v",
        "hoodie.bucket.index.hash.field": "v",
    }
    write(storage, [(str(i), "rome", 1, "same") for i in range(20)], options=options)
    assert len(group_ids(storage)["rome"]) == 1
    rule = BucketRule(4, ("id", "v"), ("v",))
    number = bucket_numbers(pa.array(["id:1,v:same"]), rule)[0]
    assert bucket_of_file_id(group_ids(storage)["rome"][0]) == number
