"""A filtered read returns what filtering a plain read returns, whatever the plan skipped."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import drawstring
from drawstring.predicates.arrow_filter import filter_batch
from drawstring.predicates.ast import And, Column, Comparison, IsNull, Literal, Not
from tests.golden import harness


@pytest.mark.parametrize("name", harness.table_names())
def test_filtered_reads_equal_filtered_rows(name, golden_path):
    options = next((read.options for read in harness.reads_of(name)), {})
    table = drawstring.open_table(golden_path(name), options=options)
    # Base files alone are asked every third question: for snapshots of tables without logs they are asked all.
    for query_type, every in (("snapshot", 1), ("read_optimized", 3))[: 2 if "_mor_" in name else 1]:
        snapshot = table.snapshot(query_type=query_type)
        plain = snapshot.scan().to_arrow()
        for predicate in itertools.islice(_predicates(plain), 0, None, every):
            found = snapshot.scan().where(predicate).to_arrow()
            expected = pa.Table.from_batches(
                [filter_batch(batch, predicate) for batch in plain.to_batches()], schema=plain.schema
            )
            assert _bag(found) == _bag(expected), f"{name} {query_type} {predicate}"


def test_the_index_and_footers_skip_slices(golden_path):
    table = drawstring.open_table(golden_path("v9_mor_column_stats"))
    plan = table.snapshot().scan().where("id = 16").plan()
    assert plan.skipped.slices_skipped > len(plan.tasks)
    assert {"partition statistics", "column statistics"} <= set(plan.skipped.reasons)
    unindexed = drawstring.open_table(golden_path("v9_cow_two_level"))
    assert "footer" in unindexed.snapshot().scan().where("id = 1").plan().skipped.reasons
    switched_off = drawstring.open_table(
        golden_path("v9_mor_column_stats"), options={"hoodie.enable.data.skipping": "false"}
    )
    assert switched_off.snapshot().scan().where("id = 16").plan().skipped.slices_skipped == 0


def _predicates(plain: pa.Table):
    """For each primitive column: its null rows, one of its values, what is below, and a pair with the key."""
    key = Column(("_hoodie_record_key" if "_hoodie_record_key" in plain.schema.names else "s",))
    for field in plain.schema:
        if pa.types.is_nested(field.type) or field.name.startswith("_hoodie_file"):
            continue
        column = Column((field.name,))
        values = [value for value in plain.column(field.name).to_pylist() if value is not None]
        yield IsNull(column)
        for value in values[:1]:
            yield Comparison("=", column, Literal(value))
            yield Comparison("<", column, Literal(value))
        for value in values[-1:]:
            yield And((Comparison(">=", column, Literal(value)), Not(Comparison("=", key, Literal("5")))))


def _bag(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("name", ["v6_mor_on_read", "v8_mor_on_read", "v9_mor_on_read"])
def test_columns_that_kept_their_names_skip_slices_of_older_schemas(name, golden_path):
    scan = drawstring.open_table(golden_path(name)).snapshot().scan()
    assert any(task.mappings for task in scan.plan().tasks)
    assert scan.where("id > 1000").plan().skipped.slices_skipped > 0
    # The column was called otherwise in older files, of whose statistics it may not be asked.
    older = [task for task in scan.plan().tasks if not task.keeps_names([("b2",)])]
    kept = scan.where("b2 < -1000000").plan().tasks if older else ()
    assert {task.slice.group for task in older} <= {task.slice.group for task in kept}
