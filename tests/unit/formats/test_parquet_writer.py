"""Statistics that mislead no reader: chunks with NaN have no bounds, at any depth."""

from __future__ import annotations

import io

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from drawstring.formats.parquet_writer import ParquetWriter

NAN, INF = float("nan"), float("inf")


def written(*tables: pa.Table, metadata=None, **options) -> pq.ParquetFile:
    sink = io.BytesIO()
    writer = ParquetWriter(sink, tables[0].schema, **options)
    for table in tables:
        writer.write_table(table)
    writer.close(metadata)
    assert not sink.closed
    return pq.ParquetFile(io.BytesIO(sink.getvalue()))


def bounds(file: pq.ParquetFile, group: int = 0) -> dict[str, tuple | None]:
    found = {}
    for number in range(file.metadata.num_columns):
        chunk = file.metadata.row_group(group).column(number)
        stats = chunk.statistics
        found[chunk.path_in_schema] = (stats.min, stats.max) if stats.has_min_max else None
    return found


def test_only_the_chunks_that_hold_nan_lose_their_bounds():
    clean = pa.table({"i": [1, 2], "d": [1.0, 2.0], "e": [NAN, 5.0], "s": ["a", "b"]})
    file = written(clean, pa.table({"i": [3, 4], "d": [NAN, None], "e": [1.0, 2.0], "s": ["c", "d"]}))
    assert bounds(file, 0) == {"i": (1, 2), "d": (1.0, 2.0), "e": None, "s": ("a", "b")}
    assert bounds(file, 1) == {"i": (3, 4), "d": None, "e": (1.0, 2.0), "s": ("c", "d")}
    assert file.metadata.row_group(1).column(1).statistics.null_count == 1
    assert [v for v in file.read().column("d").to_pylist() if v == v] == [1.0, 2.0, None]


def test_nested_columns_lose_theirs_one_by_one():
    rows = [
        {"s": {"a": 1.0, "b": NAN}, "l": [1.0, 2.0], "m": [("k", 1.0)], "f": 0.5},
        {"s": {"a": 2.0, "b": 1.0}, "l": [NAN], "m": [("j", 3.0)], "f": 1.5},
    ]
    schema = pa.schema(
        [
            ("s", pa.struct([("a", pa.float64()), ("b", pa.float64())])),
            ("l", pa.list_(pa.float32())),
            ("m", pa.map_(pa.string(), pa.float64())),
            ("f", pa.float32()),
        ]
    )
    found = list(bounds(written(pa.Table.from_pylist(rows, schema))).values())
    assert found == [(1.0, 2.0), None, None, ("j", "k"), (1.0, 3.0), (0.5, 1.5)]


def test_bounds_cover_both_zeros():
    found = bounds(written(pa.table({"a": [0.0, 1.0], "b": [-1.0, -0.0]})))
    assert {name: tuple(map(str, pair)) for name, pair in found.items()} == {
        "a": ("-0.0", "1.0"),
        "b": ("-1.0", "0.0"),
    }


def test_metadata_comes_with_the_last_call():
    file = written(pa.table({"d": [NAN]}), metadata={"k": "v" * 100_000}, store_schema=False)
    assert file.metadata.metadata == {b"k": b"v" * 100_000}


def test_file_without_rows_is_a_file():
    sink = io.BytesIO()
    ParquetWriter(sink, pa.schema([("d", pa.float64())])).close()
    assert pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.num_rows == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.floats(allow_nan=True) | st.none(), st.floats(width=32) | st.none()),
            min_size=1,
            max_size=5,
        ),
        min_size=1,
        max_size=20,
    )
)
def test_bounds_are_there_exactly_where_no_nan_is(groups):
    schema = pa.schema([("a", pa.float64()), ("b", pa.float32()), ("c", pa.string())])
    tables = [
        pa.table([[a for a, _ in rows], [b for _, b in rows], ["x"] * len(rows)], schema=schema)
        for rows in groups
    ]
    file = written(*tables)
    assert file.read().equals(pa.concat_tables(tables)) or any(v != v for g in groups for r in g for v in r)
    for number, rows in enumerate(groups):
        found = bounds(file, number)
        for position, name in enumerate("ab"):
            values = [row[position] for row in rows if row[position] is not None]
            bounded = bool(values) and all(v == v for v in values)
            assert (found[name] is not None) == bounded
        assert found["c"] == ("x", "x")


@pytest.mark.parametrize("columns", [1, 40])
@pytest.mark.parametrize("groups", [1, 40])
def test_footers_of_many_columns_and_row_groups(columns, groups):
    table = pa.table({f"c{i}": [float(i), NAN if i % 3 == 0 else 1.0] for i in range(columns)})
    file = written(*[table] * groups)
    for group in range(groups):
        assert [pair is None for pair in bounds(file, group).values()] == [i % 3 == 0 for i in range(columns)]
    assert file.read().num_rows == 2 * groups
