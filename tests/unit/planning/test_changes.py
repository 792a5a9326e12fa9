"""Changes with their kinds: every step, the outcome, and what is read for them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.errors import InvalidInput, InvalidOption
from drawstring.planning.changes.net import net_changes
from drawstring.schema.row_kinds import ROW_KIND
from tests.unit.planning.test_reads import T1, T2, T3, TableBuilder


@pytest.fixture
def builder(request):
    return TableBuilder(f"memory://{request.node.name}")


def changes(builder: TableBuilder, begin: str, **options) -> list[tuple[str, str]]:
    table = builder.open().changes(begin, **options).to_arrow(["_rowkind", "_hoodie_commit_time"])
    return [tuple(row.values()) for row in table.to_pylist()]


def test_a_new_file_group_is_inserted_and_a_replaced_one_deleted(builder):
    builder.commit(T1, {"a": [1], "b": [2, 3]}).replace(T2, {"b": ["fb-0"]})
    assert changes(builder, "000") == [*[("+I", T1)] * 3, *[("-D", T1)] * 2]
    assert changes(builder, T1) == [*[("-D", T1)] * 2]
    assert changes(builder, "000", net=True) == [("+I", T1)]


def test_columns_can_be_chosen_and_unknown_ones_are_refused(builder):
    builder.commit(T1, {"a": [1]})
    found = builder.open().changes("earliest")
    assert found.schema.names[-1] == "_rowkind"
    assert found.to_arrow(["id"]).to_pylist() == [{"id": 1}]
    with pytest.raises(InvalidInput, match="'nope'"):
        found.to_arrow(["nope"])


def test_changes_need_a_begin(builder):
    with pytest.raises(InvalidOption) as caught:
        builder.commit(T1, {"a": [1]}).open().changes()
    assert caught.value.condition == "BEGIN_INSTANT_MISSING"


def test_changes_whose_older_rows_were_cleaned_are_refused(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"a": [1, 2]}).commit(T3, {"b": [3]})
    builder.storage.delete(f"a/fa-0_0-0-0_{T1}.parquet")
    with pytest.raises(InvalidInput, match=f"a/fa-0_0-0-0_{T1}.parquet") as caught:
        builder.open().changes(T1).to_arrow()
    assert caught.value.condition == "CHANGES_WERE_CLEANED"
    assert changes(builder, T2) == [("+I", T3)]


def test_rows_from_before_an_archived_commit_are_found(builder):
    builder.commit(T1, {"a": [1]}).commit(T2, {"b": [2]}).commit(T3, {"a": [1, 4]})
    everything = changes(builder, "000")
    builder.archive(T1)
    builder.archive(T2)
    assert changes(builder, T2) == everything[2:]
    assert changes(builder, "000") == everything


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ("+I", "+I1"),
        ("+I -U +U", "+I3"),
        ("+I -D", ""),
        ("+I -U +U -D", ""),
        ("-D", "-D1"),
        ("-U +U", "-U1 +U2"),
        ("-U +U -U +U", "-U1 +U4"),
        ("-U +U -D", "-D1"),
        ("-D +I", "-U1 +U2"),
        ("-D +I -D", "-D1"),
        ("+I -D +I", "+I3"),
    ],
)
def test_net_changes_are_the_outcome_of_the_steps(steps, outcome):
    kinds = steps.split()
    table = pa.table(
        {"p": ["a"] * len(kinds), "k": ["x"] * len(kinds), "n": range(1, len(kinds) + 1), ROW_KIND: kinds}
    )
    other = pa.table({"p": ["b"], "k": ["x"], "n": [9], ROW_KIND: ["+I"]})
    found = net_changes(pa.concat_tables([other, table]), ("p", "k")).to_pylist()
    assert {"p": "b", "k": "x", "n": 9, ROW_KIND: "+I"} in found
    assert " ".join(f"{row[ROW_KIND]}{row['n']}" for row in found if row["p"] == "a") == outcome
