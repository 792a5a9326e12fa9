"""Record keys and partition paths of Arrow columns, as Apache Hudi 1.2 makes them of the same rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D

import pyarrow as pa
import pytest

from drawstring.errors import InvalidInput, InvalidOption
from drawstring.model.key_names import NULL_PARTITION
from drawstring.schema.time_partitions import TimePartition
from drawstring.write.key_generator import (
    KeyGenerator,
    generated_keys,
    is_derivable,
    partition_paths,
    record_keys,
)
from tests.time_partition_cases import CASES, Case

NAN, INF = float("nan"), float("inf")
UTC = dt.timezone.utc
TYPED: dict[str, tuple[pa.DataType, dict]] = {
    "b": (pa.bool_(), {True: "true", False: "false"}),
    "i8": (pa.int8(), {-1: "-1", 127: "127"}),
    "l": (pa.int64(), {-(2**63): "-9223372036854775808", 12345678901: "12345678901"}),
    "f": (
        pa.float32(),
        {1.5: "1.5", 0.1: "0.1", 3.4e38: "3.4E38", -0.0: "-0.0", NAN: "NaN", INF: "Infinity", 1e-5: "1.0E-5"}
        | {16777216.0: "1.6777216E7", 1e10: "1.0E10"},
    ),
    "d": (
        pa.float64(),
        {1.5: "1.5", 0.1: "0.1", 1e10: "1.0E10", -0.0: "-0.0", NAN: "NaN", -INF: "-Infinity", 1e-5: "1.0E-5"}
        | {123456789.123: "1.23456789123E8", 2e-3: "0.002", 1e22: "1.0E22"},
    ),
    "c": (pa.decimal128(10, 2), {D("1.50"): "1.50", D("-0.05"): "-0.05", D("0"): "0.00"}),
    "c2": (
        pa.decimal128(30, 10),
        {D("1.5"): "1.5000000000", D("1E-10"): "1E-10", D(0): "0E-10"}
        | {D("-1234567890123.0000000001"): "-1234567890123.0000000001"},
    ),
    "dt": (
        pa.date32(),
        {
            dt.date(2024, 3, 5): "2024-03-05",
            dt.date(1, 1, 1): "0001-01-01",
            dt.date(9999, 12, 31): "9999-12-31",
        },
    ),
    "ts": (
        pa.timestamp("us", "UTC"),
        {dt.datetime(2024, 3, 5, 6, 7, 8, 123456, UTC): "1709618828123456"}
        | {dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC): "-1"},
    ),
    "ntz": (pa.timestamp("us"), {dt.datetime(1900, 1, 1, 0, 0, 0, 1): "-2208988799999999"}),
    "x": (pa.binary(), {b"\x00\xffA": "00ff41"}),
    "s": (pa.string(), {"a b": "a b", "é😀": "é😀", "x%y": "x%y", "a=b": "a=b"}),
}
SIMPLE = KeyGenerator(("k",), ("k",), False, False, False)


@pytest.mark.parametrize("name", TYPED)
def test_values_of_every_type_become_the_text_that_hudi_writes(name):
    arrow, texts = TYPED[name]
    batch = pa.record_batch({"k": pa.array([*texts, None], arrow)})
    assert is_derivable(SIMPLE, batch.schema)
    assert record_keys(batch, SIMPLE).to_pylist() == [*texts.values(), None]
    paths = partition_paths(batch, SIMPLE).to_pylist()
    assert paths == [*texts.values(), "__HIVE_DEFAULT_PARTITION__"]
    composite = KeyGenerator(("n", "k"), (), True, False, False)
    numbered = batch.append_column("n", pa.array(range(batch.num_rows)))
    expected = [f"n:{i},k:{text}" for i, text in enumerate([*texts.values(), "__null__"])]
    assert record_keys(numbered, composite).to_pylist() == expected


def test_slices_and_empty_values_of_binary_columns():
    batch = pa.record_batch({"k": pa.array([b"zz", b"", None, b"\x01\xaf"], pa.binary())}).slice(1)
    assert record_keys(batch, SIMPLE).to_pylist() == [None, None, "01af"]
    assert partition_paths(batch, SIMPLE).to_pylist() == ["__HIVE_DEFAULT_PARTITION__"] * 2 + ["01af"]


def test_fields_of_structs_and_names_of_another_case_are_found():
    batch = pa.record_batch({"A": pa.array([{"Id": 1}, {"Id": None}, None])})
    assert record_keys(batch, KeyGenerator(("a.id",), (), False, False, False)).to_pylist() == [
        "1",
        None,
        None,
    ]


def test_keys_of_several_columns_mark_what_is_missing_and_refuse_what_reads_alike():
    rule = KeyGenerator(("a", "b"), (), True, False, False)
    batch = pa.record_batch({"a": ["x", "", None, None], "b": ["1,a:2", None, "y", ""]})
    assert record_keys(batch, rule).to_pylist() == ["a:x,b:1,a:2", None, "a:__null__,b:y", None]
    for bad in ("__null__", "__empty__", "1,b:2"):
        with pytest.raises(InvalidInput) as caught:
            record_keys(pa.record_batch({"a": [bad], "b": ["z"]}), rule)
        assert caught.value.condition == "AMBIGUOUS_RECORD_KEY"


def test_values_that_share_a_path_share_its_number():
    texts = partition_paths(
        pa.record_batch({"p": ["a", None, "", "a"]}), KeyGenerator(("n",), ("p",), False, False, True)
    )
    assert texts.to_pylist() == ["a", NULL_PARTITION, NULL_PARTITION, "a"]
    assert len(texts.dictionary) == 2
    twelve_hours = {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyyMMddhh", "timezone": "UTC"}
    rule = KeyGenerator(("n",), ("t",), False, False, False, frozenset({"t"}), TimePartition.of(twelve_hours))
    hours = partition_paths(pa.record_batch({"t": [3600, 13 * 3600]}), rule)
    assert hours.to_pylist() == ["1970010101", "1970010101"]
    assert len(hours.dictionary) == 1


def test_generated_keys_number_the_rows_of_a_task():
    keys = generated_keys("20261118040854387", task=1, start=5, count=2).to_pylist()
    assert keys == ["20261118040854387_1_5", "20261118040854387_1_6"]


def generator_of(case: Case) -> KeyGenerator:
    time = TimePartition.of(case.settings)
    return KeyGenerator(("n",), ("t",), False, case.hive_style, case.url_encode, frozenset({"t"}), time)


@pytest.fixture(autouse=True)
def _zone_of_the_machine(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_times_become_the_paths_that_hudi_makes(case):
    batch = pa.record_batch({"t": case.arrow()})
    if case.paths is None:
        with pytest.raises((InvalidInput, InvalidOption)):
            partition_paths(batch, generator_of(case))
    else:
        assert partition_paths(batch, generator_of(case)).to_pylist() == case.paths


NO_ZONE = [
    # What Hudi makes in a JVM whose zone is New York.
    (
        "bigint",
        ["1700000000", None],
        {"timestamp.type": "UNIX_TIMESTAMP"},
        ["2023/11/14/17", "1969/12/31/19"],
    ),
    ("string", ["2024-03-05 06:07:08", None], {}, ["2024/03/05/06", "1970/01/01/00"]),
    ("string", ["2024-03-05 06:07:08", None], {"input.timezone": "UTC"}, ["2024/03/05/06", "1970/01/01/00"]),
    ("string", ["2024-03-05 06:07:08", None], {"output.timezone": "UTC"}, ["2024/03/05/11", "1970/01/01/05"]),
]


@pytest.mark.parametrize(("kind", "values", "settings", "paths"), NO_ZONE)
def test_zone_that_is_not_configured_is_that_of_the_machine(kind, values, settings, paths, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    texts = {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd HH:mm:ss"}
    case = Case("local", kind, values, paths, {"output.dateformat": "yyyy/MM/dd/HH", **texts, **settings})
    batch = pa.record_batch({"t": case.arrow()})
    assert partition_paths(batch, generator_of(case)).to_pylist() == paths


def test_custom_generator_mixes_times_and_values():
    time = TimePartition.of(
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd", "timezone": "UTC"}
    )
    batch = pa.record_batch(
        {"t": [1700000000123, None, 1700000000123], "p": ["a", "b", None], "q": [1.5, 2.5, None]}
    )
    rule = KeyGenerator(("n",), ("t", "p", "q"), False, True, False, frozenset({"t"}), time)
    assert partition_paths(batch, rule).to_pylist() == [
        "t=2023/11/14/p=a/q=1.5",
        "t=1970/01/01/p=b/q=2.5",
        "t=2023/11/14/p=__HIVE_DEFAULT_PARTITION__/q=__HIVE_DEFAULT_PARTITION__",
    ]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"output.dateformat": "yyyy"}, "timestamp.type"),
        ({"timestamp.type": "UNIX_TIMESTAMP"}, "output.dateformat"),
        ({"timestamp.type": "DATE_STRING", "output.dateformat": "yyyy"}, "input.dateformat"),
        ({"timestamp.type": "LUNAR", "output.dateformat": "yyyy"}, "timestamp.type"),
        ({"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy q"}, "output.dateformat"),
        (
            {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy", "timezone": "No/Where"},
            "timezone",
        ),
        (
            {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "WEEKS", "output.dateformat": "yyyy"},
            "timestamp.scalar.time.unit",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(settings, key):
    with pytest.raises(InvalidOption) as caught:
        TimePartition.of(settings)
    assert caught.value.fields["key"] == f"hoodie.keygen.timebased.{key}"
