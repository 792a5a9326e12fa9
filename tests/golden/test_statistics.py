"""Facts taken from footers and from the metadata table hold for the values in the files."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.planning.snapshot import Snapshot
from drawstring.planning.table_state import TableState
from drawstring.schema.projection import plan_projection
from drawstring.storage.local import LocalStorage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.reader import TimelineReader
from drawstring.view.column_stats import ColumnStats
from drawstring.view.footer_stats import footer_statistics
from tests.golden import harness


@pytest.mark.parametrize("name", [name for name in harness.table_names() if "on_read" not in name])
def test_every_value_of_a_base_file_obeys_the_facts(name, golden_path):
    storage = LocalStorage(golden_path(name))
    config = read_table_config(storage)
    state = TableState(storage, config, TimelineReader(storage, config).load())
    schema = Snapshot(state, read=lambda *_, **__: iter(())).schema
    columns = {field.name: field.type for field in schema if not pa.types.is_nested(field.type)}
    bases = [
        (partition, found.base_file)
        for partition in state.listing.partitions()
        for found in state.view(None).slices(partition)
        if found.base_file is not None
    ]
    index = ColumnStats.of(state.metadata_table)
    indexed = index.statistics(columns, {partition for partition, _ in bases}) if index else {}
    footers = footer_statistics(storage, [base.path for _, base in bases], columns)
    assert len(footers) == len(bases)
    for partition, base in bases:
        table = _table(storage, base.path, schema)
        for statistics in (footers[base.path], indexed.get((partition, base.name))):
            for column, facts in statistics.columns.items() if statistics else ():
                _check(facts, table.column(column).to_pylist(), f"{base.path} {column} {facts}")


def _table(storage, path, schema):
    with storage.open(path) as file:
        found = pq.ParquetFile(file).read()
    return plan_projection(found.schema, schema).apply_table(found.combine_chunks())


def _check(facts, values, where):
    present = [value for value in values if value is not None]
    assert facts.may_be_null or len(present) == len(values), where
    assert not (facts.all_null and present), where
    for value in present:
        is_nan = isinstance(value, float) and math.isnan(value)
        assert facts.lower is None or is_nan or facts.lower <= value, where
        assert facts.upper is None or (not is_nan and value <= facts.upper), where


def _state(path):
    storage = LocalStorage(path)
    config = read_table_config(storage)
    return TableState(storage, config, TimelineReader(storage, config).load())


def test_the_index_knows_every_file_but_is_not_trusted_with_floats_and_gaps(golden_path):
    state = _state(golden_path("v9_mor_column_stats"))
    index = ColumnStats.of(state.metadata_table)
    columns = {"id": pa.int32(), "d": pa.float64(), "dec": pa.decimal128(12, 4), "dt": pa.date32()}
    found = index.statistics(columns, state.listing.partitions())
    slices = [s for p in state.listing.partitions() for s in state.view(None).slices(p)]
    logs = {(s.group.partition_path, log.name) for s in slices for log in s.log_files}
    bases = {(s.group.partition_path, s.base_file.name) for s in slices}
    assert bases | logs <= set(found)
    assert all(set(found[key].columns) == {"id", "dec", "dt"} for key in bases)
    deletes = [key for key in logs if found[key].is_empty]
    assert len(deletes) == 1
    assert found[deletes[0]].columns == {}


def test_statistics_without_types_are_taken_for_numbers_and_texts_only(golden_path):
    state = _state(golden_path("v8_cow_secondary_index"))
    index = ColumnStats.of(state.metadata_table)
    found = index.statistics({"id": pa.int32(), "s": pa.string(), "ts": pa.timestamp("us")}, ["p=a"])
    assert found
    assert all(set(statistics.columns) == {"id", "s"} for statistics in found.values())


def test_statistics_of_partitions_hold_for_their_rows(golden_path):
    state = _state(golden_path("v9_mor_column_stats"))
    index = ColumnStats.of(state.metadata_table)
    columns = {"id": pa.int32(), "d": pa.float64(), "dec": pa.decimal128(12, 4)}
    found = index.partition_statistics(columns, ["a", "b", "c"])
    assert set(found) == {"a", "b", "c"}
    assert all(set(statistics.columns) == {"id", "dec"} for statistics in found.values())
    bounds = {path: (s.columns["id"].lower, s.columns["id"].upper) for path, s in found.items()}
    assert bounds == {"a": (0, 15), "b": (1, 16), "c": (2, 14)}
