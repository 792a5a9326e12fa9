"""RFC-82 through two Spark sessions: what two jobs with other schemas make of one table, in the eight scenarios."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

import drawstring
from drawstring.config.write_options import WriteOptions
from drawstring.schema.table_schema import table_schema_from_avro
from drawstring.storage import LocalStorage
from drawstring.write.create import create_table
from drawstring.write.transaction import Transaction

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
}
COLUMNS = {"S1": ["v"], "S2": ["v", "x"], "S3": ["v", "y"]}
SCENARIOS = {
    # start, now, writer, recorded (None: a conflict)
    1: (None, None, "S1", "S1"),
    2: (None, "S1", "S1", "S1"),
    3: (None, "S2", "S3", None),
    4: ("S1", "S1", "S1", "S1"),
    5: ("S1", "S1", "S2", "S2"),
    6: ("S1", "S2", "S1", "S2"),
    7: ("S1", "S2", "S2", "S2"),
    8: ("S1", "S2", "S3", None),
}


def write(session, path, schema, key, partition, operation):
    """One row, whose columns are those of a schema, all holding the key."""
    columns = ", ".join(f"CAST({key} AS INT) AS {name}" for name in COLUMNS[schema])
    rows = session.sql(f"SELECT {key}L AS id, '{partition}' AS p, {columns}")
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation}
    rows.write.format("hudi").options(**options).mode("append").save(path)


CASES = [
    *((scenario, "upsert", kind) for scenario in SCENARIOS for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")),
    (6, "bulk_insert", "COPY_ON_WRITE"),
    (8, "bulk_insert", "COPY_ON_WRITE"),
]


def beside(monkeypatch, act):
    """Let something happen between the writing of files and the validation of the next write; returns what began it."""
    commit, entered = Transaction.commit, []

    def late(self, *args, **kwargs):
        monkeypatch.undo()
        entered.append(self.requested_time)
        act()
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    return entered


@pytest.mark.parametrize(("scenario", "operation", "table_type"), CASES)
def test_scenario(spark, tmp_path, monkeypatch, scenario, operation, table_type):
    start, now, writer, recorded = SCENARIOS[scenario]
    path, other = str(tmp_path / "t"), spark.newSession()
    options = WriteOptions.of({**OPTIONS, "hoodie.table.type": table_type})
    create_table(LocalStorage(path), options.table)
    if start:
        write(spark, path, start, 1, "mine", "insert")
    entered = beside(monkeypatch, lambda: now and write(other, path, now, 10, "other", "insert"))
    if recorded is None:
        with pytest.raises(Exception, match="schema") as caught:
            write(spark, path, writer, 1, "mine", operation)
        assert "CONCURRENT_SCHEMA_EVOLUTION" in str(caught.value), caught.value
    else:
        write(spark, path, writer, 1, "mine", operation)
    assert entered
    expected = [(1, 1)] * ((start is not None) + (recorded is not None and operation == "bulk_insert"))
    expected = expected or [(1, 1)] * (recorded is not None)
    assert_recorded(spark, path, expected + [(10, 10)] * (now is not None), COLUMNS[recorded or now or start])


def assert_recorded(session, path, rows, columns):
    """The table has these rows and columns, its newest commit says so, and nothing is left pending."""
    found = session.read.format("hudi").load(path)
    assert sorted((row.id, row.v) for row in found.collect()) == rows
    assert [name for name in found.columns if name in ("v", "x", "y")] == columns
    state = drawstring.open_table(path).state()
    newest = state.metadata(state.timeline.completed_writes[-1]).schema
    assert [f.name for f in table_schema_from_avro(newest) if f.name in ("v", "x", "y")] == columns
    assert not state.timeline.pending


@pytest.mark.parametrize("statement", ["INSERT INTO", "INSERT OVERWRITE"])
@pytest.mark.parametrize(("now", "columns"), [("S1", ["v"]), ("S2", ["v", "x"])])
def test_sql_writes_beside_another_session_that_keeps_or_widens_the_schema(
    spark, tmp_path, monkeypatch, statement, now, columns
):
    """Scenarios 4 and 6: a statement writes with the columns that the table had when it was analysed."""
    path, other = str(tmp_path / "t"), spark.newSession()
    create_table(LocalStorage(path), WriteOptions.of(OPTIONS).table)
    write(spark, path, "S1", 1, "mine", "insert")
    spark.sql(f"CREATE TABLE two_sessions USING hudi LOCATION '{path}'")
    try:
        entered = beside(monkeypatch, lambda: write(other, path, now, 10, "other", "insert"))
        spark.sql(f"{statement} two_sessions PARTITION (p = 'mine') SELECT 2L AS id, 2 AS v")
    finally:
        spark.sql("DROP TABLE two_sessions")
    assert entered
    found = spark.read.format("hudi").load(path)
    kept = [(1, 1)] if statement == "INSERT INTO" else []
    assert sorted((row.id, row.v) for row in found.collect()) == [*kept, (2, 2), (10, 10)]
    assert [name for name in found.columns if name in ("v", "x")] == columns


@pytest.mark.parametrize("scenario", [5, 7, 8])
def test_write_that_widens_the_schema_beside_a_session_that_speaks_sql(
    spark, tmp_path, monkeypatch, scenario
):
    """No statement widens a table: the other session's inserts have the columns that a DataFrame gave it before."""
    _, now, writer, recorded = SCENARIOS[scenario]
    path, other = str(tmp_path / "t"), spark.newSession()
    create_table(LocalStorage(path), WriteOptions.of(OPTIONS).table)
    write(spark, path, "S1", 1, "mine", "insert")
    spark.sql(f"CREATE TABLE sql_beside USING hudi LOCATION '{path}'")
    expected = [(1, 1), (10, 10)]

    def insert_by_sql():
        if now == "S2":
            write(other, path, now, 11, "other", "insert")
            other.catalog.refreshTable("sql_beside")
            expected.append((11, 11))
        other.sql(f"INSERT INTO sql_beside {insert(COLUMNS[now], 10, 'other')}")

    try:
        with pytest.raises(AnalysisException, match="too many data columns"):
            spark.sql(f"INSERT INTO sql_beside {insert(['v', 'x'], 1, 'mine')}")
        entered = beside(monkeypatch, insert_by_sql)
        if recorded is None:
            with pytest.raises(Exception, match="CONCURRENT_SCHEMA_EVOLUTION"):
                write(spark, path, writer, 2, "mine", "upsert")
        else:
            write(spark, path, writer, 2, "mine", "upsert")
            expected.append((2, 2))
    finally:
        spark.sql("DROP TABLE sql_beside")
    assert entered
    assert_recorded(spark, path, sorted(expected), COLUMNS[recorded or now])


def insert(columns, key, partition):
    """A partition and the values of one row."""
    values = ", ".join(f"{key} AS {name}" for name in columns)
    return f"PARTITION (p = '{partition}') SELECT {key}L AS id, {values}"
