"""The write pipeline through Spark; every table is read back by drawstring and by an independent reader."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import hudi
import pyarrow as pa
import pytest

import drawstring
from drawstring.errors import (
    IncompatibleSchema,
    InvalidInput,
    InvalidOption,
    TableNotFound,
)
from drawstring.spark.write.writer import write_dataframe
from drawstring.storage import LocalStorage
from drawstring.write.transaction import Transaction

pytestmark = pytest.mark.spark

COLUMNS = "id int, city string, ts long, v string"
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "trips")


@pytest.fixture
def write(spark, path):
    """Write rows; keyword `op` is the operation, other keywords are options with dots as `__`."""

    def run(
        rows, columns: str = COLUMNS, *, mode: str = "append", op: str | None = None, options=OPTIONS, **more
    ):
        frame = spark.createDataFrame(rows, columns) if isinstance(rows, list) else rows
        settings = {**options, **{key.replace("__", "."): value for key, value in more.items()}}
        if op:
            settings["hoodie.datasource.write.operation"] = op
        return write_dataframe(frame, path=path, mode=mode, options=settings)

    return run


def rows_of(path: str, *columns: str) -> list[tuple]:
    """The table's rows as drawstring reads them; hudi-rs must read the same."""
    ours = drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist()
    names = columns or ("id", "city", "ts", "v")
    found = sorted((tuple(row[name] for name in names) for row in ours), key=repr)
    assert found == sorted(
        (tuple(row[name] for name in names) for row in _read_independently(path)), key=repr
    )
    return found


def _read_independently(path: str) -> list[dict]:
    batches = hudi.HudiTableBuilder.from_base_uri(path).build().read()
    return [row for batch in batches for row in pa.record_batch(batch).to_pylist()]


def files_of(path: str) -> set[str]:
    return {entry.path for entry in LocalStorage(path).list(recursive=True) if not entry.is_directory}


def test_dataframe_write_is_an_upsert_by_event_time(write, path):
    first = write([(1, "oslo", 1, "a"), (2, "oslo", 1, "b"), (3, "rome", 1, "x"), (3, "rome", 2, "c")])
    assert (first.operation, first.inserted, first.files_written) == ("upsert", 3, 2)
    second = write([(1, "oslo", 0, "late"), (2, "oslo", 1, "tie"), (4, "rome", 1, "d"), (5, None, 1, "e")])
    assert (second.inserted, second.updated) == (2, 1)
    assert rows_of(path, "id", "v") == [(1, "a"), (2, "tie"), (3, "c"), (4, "d"), (5, "e")]
    assert ("5", "__HIVE_DEFAULT_PARTITION__") in rows_of(
        path, "_hoodie_record_key", "_hoodie_partition_path"
    )
    assert len({name for (name,) in rows_of(path, "_hoodie_file_name")}) == 3


def test_key_lives_per_partition(write, path):
    write([(1, "oslo", 1, "a")])
    write([(1, "rome", 1, "b")])
    assert rows_of(path, "id", "city") == [(1, "oslo"), (1, "rome")]


def test_insert_keeps_both_rows_of_a_repeated_key_and_fills_the_small_file(write, path):
    write([(1, "oslo", 1, "a")], op="insert")
    write([(1, "oslo", 1, "b"), (1, "oslo", 1, "c")], op="insert")
    assert rows_of(path, "id", "v") == [(1, "a"), (1, "b"), (1, "c")]
    assert len({name for (name,) in rows_of(path, "_hoodie_file_name")}) == 1


def test_rows_marked_deleted_delete_unless_they_are_late(write, path):
    columns = COLUMNS + ", _hoodie_is_deleted boolean"
    write([(n, "oslo", 5, "a", None) for n in range(4)], columns)
    write([(1, "oslo", 6, None, True), (2, "oslo", 4, None, True), (9, "oslo", 1, None, True)], columns)
    assert [row[0] for row in rows_of(path)] == [0, 2, 3]


def test_delete_needs_only_the_keys(write, path):
    write([(1, "oslo", 9, "a"), (2, "rome", 9, "b")])
    result = write([(1, "oslo"), (7, "oslo")], "id int, city string", op="delete")
    assert result.deleted == 1
    assert rows_of(path, "id") == [(2,)]


def test_overwrites_replace_partitions_or_the_whole_table(write, path):
    write([(1, "oslo", 1, "a"), (2, "rome", 1, "b"), (3, "bonn", 1, "c")], op="bulk_insert")
    write([(4, "oslo", 1, "d")], op="insert_overwrite")
    assert rows_of(path, "id") == [(2,), (3,), (4,)]
    write([], op="insert_overwrite", hoodie__static__overwrite__partition__paths="rome")
    assert rows_of(path, "id") == [(3,), (4,)]
    drawstring.open_table(path).delete_partitions("bo*")
    assert rows_of(path, "id") == [(4,)]
    write([(5, "kiel", 1, "e")], op="insert_overwrite_table")
    assert rows_of(path, "id") == [(5,)]
    drawstring.open_table(path).delete_partitions("*")
    assert rows_of(path) == []
    write([(6, "kiel", 1, "f")])
    assert rows_of(path, "id") == [(6,)]


def test_delete_partition_drops_the_partitions_of_the_rows_where_no_option_names_others(write, path):
    write([(1, "oslo", 1, "a"), (2, "rome", 1, "b"), (3, "bonn", 1, "c")], op="bulk_insert")
    write([(9, "rome"), (9, "kiel")], "id int, city string", op="delete_partition")
    assert rows_of(path, "id") == [(1,), (3,)]
    write([], op="delete_partition", hoodie__datasource__write__partitions__to__delete="bonn")
    assert rows_of(path, "id") == [(1,)]


def test_save_modes(write, path):
    write([(1, "oslo", 1, "a")], mode="errorifexists")
    with pytest.raises(InvalidInput) as caught:
        write([(2, "oslo", 1, "b")], mode="errorifexists")
    assert caught.value.condition == "TABLE_EXISTS"
    assert write([(2, "oslo", 1, "b")], mode="ignore").instant is None
    assert rows_of(path, "id") == [(1,)]
    write([(3, 1.5)], "k int, x double", mode="overwrite", options={"hoodie.table.name": "other"})
    assert rows_of(path, "k", "x") == [(3, 1.5)]


def test_failed_overwrite_keeps_the_old_table(write, path):
    write([(1, "oslo", 1, "a")])
    before = files_of(path)
    with pytest.raises(InvalidInput):
        write([(None, "oslo", 1, "b")], mode="overwrite")
    assert files_of(path) == before


def test_keys_are_generated_when_none_is_configured(write, path):
    options = {"hoodie.table.name": "trips"}
    write([(1, "oslo", 1, "a"), (1, "oslo", 1, "a")], options=options)
    result = write([(1, "oslo", 1, "a")], options=options)
    keys = [key for (key,) in rows_of(path, "_hoodie_record_key")]
    assert len(set(keys)) == 3
    assert sum(key.startswith(f"{result.instant}_") for key in keys) == 1
    with pytest.raises(InvalidOption, match="needs a record key"):
        write([(1, "oslo", 1, "a")], op="upsert", options=options)


def test_values_become_text_in_keys_and_paths_as_in_hudi(spark, tmp_path):
    moment = dt.datetime(2024, 3, 5, 6, 7, 8, 123456)
    columns = "l long, d double, f float, b boolean, day date, n decimal(10,4), t timestamp, z timestamp_ntz, x binary"
    row = (7, 1e10, 2.0, True, moment.date(), Decimal("1.5"), moment, moment, b"\x00\xffA")
    expected = {
        "l": "7",
        "d": "1.0E10",
        "f": "2.0",
        "b": "true",
        "day": "2024-03-05",
        "n": "1.5000",
        "t": "1709618828123456",
        "z": "1709618828123456",
        "x": "00ff41",
    }
    frame = spark.createDataFrame([row], columns)
    keys = ",".join(expected)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": keys}
    options["hoodie.datasource.write.partitionpath.field"] = "l,day,n"
    write_dataframe(frame, path=str(tmp_path / "t"), mode="append", options=options)
    # hudi-rs does not know local timestamps.
    row = drawstring.open_table(str(tmp_path / "t")).snapshot().scan().to_arrow().to_pylist()[0]
    assert (row["_hoodie_record_key"], row["_hoodie_partition_path"]) == (
        ",".join(f"{k}:{v}" for k, v in expected.items()),
        "7/2024-03-05/1.5000",
    )


def test_complex_keys_name_their_fields_and_mark_null_and_empty(write, path):
    options = OPTIONS | {"hoodie.datasource.write.recordkey.field": "id,v"}
    write([(1, "oslo", 1, None), (2, "oslo", 1, ""), (3, "oslo", 1, "a:b,c")], options=options)
    assert rows_of(path, "_hoodie_record_key") == [
        ("id:1,v:__null__",),
        ("id:2,v:__empty__",),
        ("id:3,v:a:b,c",),
    ]


def test_single_field_of_a_complex_key_is_prefixed(write, path):
    complex_one = OPTIONS | {"hoodie.datasource.write.partitionpath.field": "city,v"}
    write([(1, "oslo", 1, "a")], options=complex_one)
    write([(1, "oslo", 2, "a")], options=complex_one)
    assert rows_of(path, "_hoodie_record_key", "_hoodie_partition_path") == [("id:1", "oslo/a")]


def test_partition_values_are_escaped_and_named_on_demand(write, path):
    options = OPTIONS | {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    cities = ["a/b", "..", "50%", 'q"=?', "x y", "é", None, ""]
    write([(n, city, 1, "v") for n, city in enumerate(cities)], options=options)
    write([(n, city, 2, "w") for n, city in enumerate(cities)], options=options)
    found = dict(rows_of(path, "id", "_hoodie_partition_path"))
    assert [found[n] for n in range(8)] == [
        "city=a%2Fb",
        "city=..",
        "city=50%25",
        "city=q%22%3D%3F",
        "city=x y",
        "city=é",
        "city=__HIVE_DEFAULT_PARTITION__",
        "city=__HIVE_DEFAULT_PARTITION__",
    ]
    assert {v for (v,) in rows_of(path, "v")} == {"w"}


def test_partition_values_may_hold_characters_that_spark_takes_for_patterns(write, path):
    cities = ["a[1]", "b{c,d}", "d*", "q?", "a:b", "x y", "50%", "a\\b", "é", "_hidden", ".dot", "#h", "a=b"]
    for ts in (1, 2):
        write([(n, city, ts, f"v{ts}") for n, city in enumerate(cities)])
    found = drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["city"], row["v"]) for row in found) == [
        (n, city, "v2") for n, city in enumerate(cities)
    ]


def test_bulk_insert_writes_every_type(spark, tmp_path):
    path = str(tmp_path / "types")
    columns = (
        "id int, tiny tinyint, small smallint, big long, f float, d double, b boolean, s string, x binary, day date, "
        "t timestamp, z timestamp_ntz, n decimal(5,2), w decimal(38,18), xs array<int>, m map<string,date>, "
        "st struct<a:int,b:array<struct<c:string>>>"
    )
    moment = dt.datetime(2024, 3, 5, 6, 7, 8, 123456)
    row = (
        1, 2, 3, 4, 1.5, 2.5, True, "é", b"\x00", moment.date(), moment, moment, Decimal("1.25"),
        Decimal("1.000000000000000001"), [1, None], {"k": moment.date()}, (1, [("c",), (None,)]),
    )  # fmt: skip
    frame = spark.createDataFrame([row, (2, *[None] * 16)], columns)
    options = {"hoodie.table.name": "types", "hoodie.datasource.write.recordkey.field": "id"}
    for operation in ("bulk_insert", "upsert"):
        settings = options | {"hoodie.datasource.write.operation": operation}
        write_dataframe(frame, path=path, mode="append", options=settings)
        found = drawstring.open_table(path).snapshot().scan().to_arrow()
        assert found.schema.field("tiny").type == pa.int32()
        rows = sorted(found.to_pylist(), key=lambda r: r["id"])
        values = list(rows[0].values())[5:]
        assert values[:10] == list(row[:10])
        assert values[10] == moment.replace(tzinfo=dt.timezone.utc)
        assert values[11:14] == [moment, Decimal("1.25"), Decimal("1.000000000000000001")]
        assert values[14:] == [
            [1, None],
            [("k", moment.date())],
            {"a": 1, "b": [{"c": "c"}, {"c": None}]},
        ]
        assert list(rows[1].values())[6:] == [None] * 16
        assert len(rows) == 2


def test_columns_are_added_widened_and_filled(write, path):
    write([(1, "oslo", 1, "a"), (2, "rome", 1, "b")])
    write([("new", 2, "oslo", 7, 2.5)], "v string, ts int, CITY string, id long, extra double")
    assert rows_of(path, "id", "v", "extra") == [(1, "a", None), (2, "b", None), (7, "new", 2.5)]
    write(
        [(1, "oslo", 3)],
        "id int, city string, ts long",
        hoodie__write__set__null__for__missing__columns="true",
    )
    assert rows_of(path, "id", "v") == [(1, None), (2, "b"), (7, "new")]
    assert drawstring.open_table(path).snapshot().schema.field("id").type == pa.int64()


def test_each_of_many_file_groups_gets_a_task_of_its_own(write, path):
    rows = [(n, f"c{n % 70}", 1, "old") for n in range(140)]
    assert write(rows).files_written == 70
    second = write([(n, f"c{n % 70}", 2, "new") for n in range(70, 210)])
    assert (second.inserted, second.updated, second.files_written) == (70, 70, 70)
    found = rows_of(path, "id", "v")
    assert sorted(found) == [(n, "old" if n < 70 else "new") for n in range(210)]
    tasks = {name.split("_")[1].split("-")[0] for (name,) in rows_of(path, "_hoodie_file_name")}
    assert len(tasks) == 70


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "insert_overwrite_table"])
def test_incoming_rows_of_one_key_are_combined_on_demand(write, path, operation):
    rows = [(1, "oslo", 2, "b"), (1, "oslo", 1, "a"), (2, "oslo", None, "c"), (2, "oslo", 0, "d")]
    write(rows, op=operation, hoodie__combine__before__insert="true")
    assert rows_of(path, "id", "v") == [(1, "b"), (2, "d")]


@pytest.mark.parametrize("mode", ["GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION_AND_SORT"])
def test_bulk_insert_arranges_rows(write, path, mode):
    rows = [(n, f"c{n % 3}", 1, "v") for n in range(50)]
    write(
        rows,
        op="bulk_insert",
        hoodie__bulkinsert__sort__mode=mode,
        hoodie__bulkinsert__shuffle__parallelism="2",
    )
    assert [row[0] for row in sorted(rows_of(path))] == list(range(50))


OTHER_KEY = {"hoodie.datasource.write.recordkey.field": "v"}
BAD_CODEC = {"hoodie.parquet.compression.codec": "zip"}


def refused(write, path, rows, columns, error, **more) -> str:
    """Write rows that must be refused; return the condition once it is sure that nothing was written."""
    write([(1, "oslo", 1, "a")])
    before = files_of(path)
    with pytest.raises(error) as caught:
        write(rows, columns, **more)
    assert files_of(path) == before
    return caught.value.condition


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_row_without_key_or_with_a_path_out_of_the_table_is_refused(write, path, operation):
    condition = refused(write, path, [(None, "oslo", 1, "a")], COLUMNS, InvalidInput, op=operation)
    assert condition == "NULL_RECORD_KEY"
    before = files_of(path)
    with pytest.raises(InvalidInput) as caught:
        write([(8, "../..", 1, "a")], op=operation)
    assert caught.value.condition == "INVALID_PARTITION_PATH"
    assert files_of(path) == before


@pytest.mark.parametrize(
    ("columns", "more", "error", "condition"),
    [
        ("key int, city string, ts long, v string", {}, InvalidInput, "COLUMN_NOT_FOUND"),
        ("id int, city string, ts long, v boolean", {}, IncompatibleSchema, "COLUMN_TYPE_MISMATCH"),
        ("id int, city string, ts long", {}, IncompatibleSchema, "COLUMN_MISSING"),
        (COLUMNS, BAD_CODEC, InvalidOption, "INVALID_OPTION_VALUE"),
        (COLUMNS, OTHER_KEY, InvalidOption, "CONFIG_CONFLICT"),
    ],
)
def test_rows_or_options_that_do_not_fit_are_refused(write, path, columns, more, error, condition):
    assert refused(write, path, [], columns, error, options=OPTIONS | more) == condition


def test_failed_first_write_leaves_no_table(write, path):
    with pytest.raises(InvalidInput, match="null or empty, as in"):
        write([(1, "oslo", 1, "a"), (None, "rome", 2, "culprit")])
    with pytest.raises(TableNotFound):
        drawstring.open_table(path)
    assert not LocalStorage(path).exists("")
    with pytest.raises(InvalidOption, match="without a name"):
        write([(1, "oslo", 1, "a")], options={})


def test_write_beside_another_pending_one_succeeds(write, path):
    write([(1, "oslo", 1, "a")])
    other = Transaction.begin(LocalStorage(path), operation="UPSERT")
    write([(1, "oslo", 2, "b")])
    other.abort()
    assert rows_of(path, "v") == [("b",)]


def test_conflicting_write_is_tried_again_on_the_new_state(write, path, monkeypatch):
    write([(1, "oslo", 1, "a"), (2, "oslo", 1, "b")])
    commit, evaluated = Transaction.commit, []

    def commit_late(self, *args, **kwargs):
        monkeypatch.undo()
        evaluated.append(self.requested_time)
        write([(1, "oslo", 2, "other")])
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", commit_late)
    result = write([(2, "oslo", 2, "mine")])
    assert result.tries == 2
    assert result.instant not in evaluated
    assert rows_of(path, "id", "v") == [(1, "other"), (2, "mine")]


def test_a_column_that_another_writer_adds_meanwhile_is_not_lost(write, path, monkeypatch):
    write([(1, "bern", 1, "a"), (2, "bern", 1, "b")])
    begin = Transaction.begin

    def begin_late(storage, **settings):
        monkeypatch.undo()
        write([(1, "bern", 2, "A", 7)], COLUMNS + ", extra int")
        return begin(storage, **settings)

    monkeypatch.setattr(Transaction, "begin", begin_late)
    write([(2, "bern", 2, "B")], hoodie__write__set__null__for__missing__columns="true")
    assert rows_of(path, "id", "v", "extra") == [(1, "A", 7), (2, "B", None)]
