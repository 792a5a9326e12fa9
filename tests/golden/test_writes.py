"""drawstring writes to tables that Apache Hudi made: seeded changes, each read back and compared with a model."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.errors import DrawstringError, UnsupportedTable
from drawstring.schema.meta_columns import META_COLUMNS, OPERATION, RECORD_KEY
from drawstring.storage import LocalStorage
from drawstring.table import Table
from tests.golden.harness import extract, table_names
from tests.support.metadata_check import assert_metadata_table_equals_table

REFUSED = {
    r"^v[2-6]_": "WRITE_TABLE_VERSION",
    r"_no_meta$": "WRITE_WITHOUT_META_FIELDS",
}
"""What tables are called that are not written, and why."""
NOT_WRITTEN_BACK = {
    "time_keygen": "rows show the path in place of the column that it is made of",
    "custom_keygen": "rows show the path in place of the column that it is made of",
    "bootstrap": "rows lie outside the table",
    "log_only": "its groups are buckets of an index",
    "empty": "there are no rows to change",
    "operation_field": "rows say by a sixth column what they are",
}
NOT_CHANGED = [*REFUSED, *(f"_{part}" for part in NOT_WRITTEN_BACK)]
NAMES = [name for name in table_names() if not any(re.search(part, name) for part in NOT_CHANGED)]
WRITES = 3


def rows_of(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows by partition path and key."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table.snapshot().scan().to_arrow().to_pylist():
        key = row["_hoodie_partition_path"], row[RECORD_KEY]
        assert key not in found
        found[key] = {name: value for name, value in row.items() if name not in (*META_COLUMNS, OPERATION)}
    return found


def written_rows(table: Table, chosen: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema([f for f in table.schema if f.name not in (*META_COLUMNS, OPERATION)])
    return pa.Table.from_pylist(chosen, schema=schema)


class Change:
    """Takes a column's values from other rows: keys, paths and ordering values stay, so the later version wins."""

    def __init__(self, table: Table, seed: int) -> None:
        self._table, self._random = table, random.Random(seed)
        config = table.config
        fixed = {*config.record_key_fields, *config.partition_fields, *config.ordering_fields}
        fixed |= {config.merge.delete_field or "", "_hoodie_is_deleted"}
        schema = pa.schema([f for f in table.schema if f.name not in META_COLUMNS])
        self._columns = [field.name for field in schema if field.name not in fixed]

    def choose(self, model: dict[tuple[str, str], dict[str, Any]]) -> list[tuple[str, str]]:
        keys = sorted(model)
        return self._random.sample(keys, min(len(keys), self._random.randint(1, 3)))

    def changed(self, model: dict[tuple[str, str], dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
        column = self._random.choice(self._columns)
        values = [row[column] for row in model.values() if row[column] is not None]
        return {
            key: {**model[key], column: self._random.choice(values) if values else None}
            for key in self.choose(model)
        }


@pytest.mark.parametrize("name", NAMES)
def test_seeded_changes(name, tmp_path):
    path = extract(name, tmp_path)
    table = drawstring.open_table(path)
    model, known_to_hudi_rs = rows_of(table), _keys_by_hudi_rs(path)
    change, before = Change(table, seed=len(name)), model
    for number in range(WRITES):
        if not model:
            break
        if number == 1:
            gone = change.choose(model)
            given = written_rows(table, [model[key] for key in gone])
            drawstring.open_table(path).write(given, operation="delete")
            model = {key: row for key, row in model.items() if key not in gone}
        else:
            changed = change.changed(model)
            drawstring.open_table(path).write(written_rows(table, list(changed.values())))
            model |= changed
        # As text, for NaN is not equal to itself.
        found = rows_of(drawstring.open_table(path))
        assert {k: repr(v) for k, v in found.items()} == {k: repr(v) for k, v in model.items()}, number
    if known_to_hudi_rs == sorted(key for _, key in before):
        found = _keys_by_hudi_rs(path)
        # It reads some types in Parquet blocks only, and no metadata table that a Hudi before 1.1 began.
        assert found == sorted(key for _, key in model) or (found is None and name.startswith("v8_mor"))


def _keys_by_hudi_rs(path: Path) -> list[str] | None:
    """The record keys that hudi-rs reads; None for a table that it does not read."""
    try:
        batches = hudi.HudiTableBuilder.from_base_uri(str(path)).build().read()
    except BaseException as error:  # a panic of Rust is no Exception
        if type(error).__name__ not in ("PanicException", "HudiCoreError"):
            raise
        return None
    columns = (pa.record_batch(batch).column(RECORD_KEY).to_pylist() for batch in batches)
    return sorted(key for column in columns for key in column)


@pytest.mark.parametrize("name", [n for n in table_names() if any(re.search(p, n) for p in REFUSED)])
def test_what_is_not_written_is_refused_by_name_and_left_alone(name, tmp_path):
    path = extract(name, tmp_path)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    table = drawstring.open_table(path)
    some = table.snapshot().scan().to_arrow().slice(0, 1).to_pylist()
    with pytest.raises(UnsupportedTable) as caught:
        table.write(written_rows(table, some))
    assert caught.value.condition in [why for part, why in REFUSED.items() if re.search(part, name)]
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


@pytest.mark.parametrize("name", ["v6_mor_died", "v6_cow_pending_clustering"])
def test_tables_of_older_versions_are_neither_rolled_back_nor_given_a_new_metadata_table(name, tmp_path):
    """Their logs are shared by commits, and their timelines and metadata tables have other names."""
    path = extract(name, tmp_path)
    table = drawstring.open_table(path)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    instant = table.timeline.pending[0].requested_time
    for refused in (
        lambda: table.rollback(instant),
        lambda: table.rollback(options={"hoodie.clean.failed.writes.policy": "EAGER"}),
        lambda: table.pending_rollbacks(instant),
        table.rebuild_metadata,
    ):
        with pytest.raises(UnsupportedTable) as caught:
            refused()
        assert caught.value.condition == "WRITE_TABLE_VERSION"
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


def test_statistics_that_tell_no_types_still_cover_after_writes_and_compaction(tmp_path, caplog):
    """Hudi 1.0 stores no types; a partition's range that forgot older files would hide their rows from Hudi."""
    path = extract("v8_cow_secondary_index", tmp_path)
    table = drawstring.open_table(path)
    change = Change(table, seed=3)
    for _ in range(12):
        changed = change.changed(rows_of(drawstring.open_table(path)))
        drawstring.open_table(path).write(written_rows(table, list(changed.values())))
        assert_metadata_table_equals_table(LocalStorage(str(path)))
    assert "secondary_index_idx_s" in caplog.text
    assert any((path / ".hoodie" / "metadata" / ".hoodie" / "timeline").glob("*_*.commit"))


def test_column_ids_are_handed_on_and_a_write_that_changes_the_schema_is_refused(tmp_path):
    path = extract("v9_mor_on_read", tmp_path)
    table = drawstring.open_table(path)
    some = table.snapshot().scan().to_arrow().slice(0, 1).to_pylist()
    state = table.state()
    before = state.metadata(state.timeline.completed_writes[-1])
    result = table.write(written_rows(table, some))
    state = drawstring.open_table(path).state()
    after = state.metadata(state.timeline.by_requested_time[result.instant])
    assert after.internal_schema == before.internal_schema != ""
    stored = sorted((path / ".hoodie" / ".schema").glob("*_*.schemacommit"), key=lambda file: file.name)
    assert stored[-1].name.startswith(f"{result.instant}_{result.completion_time}")
    assert stored[-1].read_bytes() == stored[-2].read_bytes() != b""
    with pytest.raises(UnsupportedTable) as caught:
        table.write(written_rows(table, some).append_column("added", pa.array([1])))
    assert caught.value.condition == "WRITE_SCHEMA_ON_READ"


_TIMES = "hoodie.keygen.timebased."
OTHERS: dict[str, dict[str, str]] = {
    "v8_cow_time_keygen_unix": {},
    "v9_mor_time_keygen_epochmillis": {},
    "v9_cow_custom_keygen": {
        f"{_TIMES}timestamp.type": "EPOCHMILLISECONDS",
        f"{_TIMES}output.dateformat": "yyyyMMdd",
    },
    "v9_mor_log_only": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "v9_mor_operation_field": {},
}
"""Tables whose rows cannot be written back as they are read, and what a write must tell."""


def stored_rows(path: Path, table: Table) -> pa.Table:
    """Two rows with the values that files hold, which paths do not stand for."""
    bases = sorted(file for file in path.rglob("*.parquet") if ".hoodie" not in file.parts)
    found = pq.ParquetFile(bases[0]).read() if bases else table.snapshot().scan().to_arrow()
    return found.select([n for n in found.column_names if n not in (*META_COLUMNS, OPERATION)]).slice(0, 2)


@pytest.mark.parametrize("name", OTHERS)
def test_tables_whose_paths_or_groups_are_made_of_the_rows_are_written(name, tmp_path):
    path = extract(name, tmp_path)
    table = drawstring.open_table(path)
    before, given = rows_of(table), stored_rows(path, table)
    later = pa.array(
        [value + 1000 for value in given.column("ts").to_pylist()], given.schema.field("ts").type
    )
    given = given.set_column(given.column_names.index("ts"), "ts", later)
    given = given.set_column(given.column_names.index("s"), "s", pa.array(["changed"] * len(given)))
    result = drawstring.open_table(path).write(given, options=OTHERS[name])
    assert (result.operation, result.inserted, result.updated) == ("upsert", 0, len(given))
    after = rows_of(drawstring.open_table(path))
    assert after.keys() == before.keys()
    assert sum(row["s"] == "changed" for row in after.values()) == len(given)
    changed = {key for key, row in after.items() if row["s"] == "changed"}
    assert {k: repr(r) for k, r in after.items() if k not in changed} == {
        k: repr(r) for k, r in before.items() if k not in changed
    }
    assert_metadata_table_equals_table(LocalStorage(str(path)))


def test_an_empty_table_gets_its_first_rows(tmp_path):
    path = extract("v9_cow_empty", tmp_path)
    schema = pa.schema([f for f in drawstring.open_table(path).schema if f.name not in META_COLUMNS])
    row = {f.name: None for f in schema} | {"id": 1, "p": "a", "ts": 1, "s": "first"}
    drawstring.open_table(path).write(pa.Table.from_pylist([row], schema=schema))
    assert [found["s"] for found in rows_of(drawstring.open_table(path)).values()] == ["first"]


@pytest.mark.parametrize("name", ["v9_mor_log_only", "v9_cow_custom_keygen"])
def test_what_only_a_write_can_tell_is_asked_for_by_name(name, tmp_path):
    path = extract(name, tmp_path)
    table = drawstring.open_table(path)
    with pytest.raises(DrawstringError) as caught:
        table.write(stored_rows(path, table))
    assert caught.value.condition in ("WRITE_BUCKET_INDEX", "TIME_SETTING_MISSING")
    assert any(key.split("=")[0] in str(caught.value) for key in OTHERS[name])
