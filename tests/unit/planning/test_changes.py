"""Changes with their kinds: every step, the outcome, and what is read for them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.errors import InvalidInput, InvalidOption
from tests.small_writes import new_table, write
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


def test_net_changes_are_the_outcome_of_the_steps(tmp_path):
    storage = new_table(tmp_path / "t", [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")])
    begin = drawstring.open_table(str(tmp_path / "t")).timeline.completed_writes[-1].completion_time
    write(storage, [("1", "oslo", 2, "A"), ("4", "oslo", 2, "D"), ("5", "rome", 2, "E")])
    write(storage, [("1", "oslo", 3, "AA"), ("4", "oslo", 3, "DD")])
    write(storage, [("2", "oslo", 9, ""), ("5", "rome", 9, "")], "delete")
    write(storage, [("6", "rome", 1, "F"), ("3", "rome", 1, "c")], "insert_overwrite")
    found = drawstring.open_table(str(tmp_path / "t")).changes(begin, net=True)
    outcome = [("+I", "4", "DD"), ("+I", "6", "F"), ("+U", "1", "AA"), ("+U", "3", "c"), ("-D", "2", "b")]
    outcome += [("-U", "1", "a"), ("-U", "3", "c")]
    for rows in (
        found.to_arrow(["_rowkind", "id", "v"]),
        found.scan().select("_rowkind", "id", "v").to_arrow(),
    ):
        assert sorted(tuple(row.values()) for row in rows.to_pylist()) == sorted(outcome)


def test_a_row_that_was_deleted_and_came_back_in_another_file_group_is_one_net_update(tmp_path):
    storage = new_table(tmp_path / "t", [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")])
    begin = drawstring.open_table(str(tmp_path / "t")).timeline.completed_writes[-1].completion_time
    write(storage, [("1", "oslo", 2, "")], "delete")
    write(storage, [("1", "oslo", 3, "A")], options={"hoodie.parquet.small.file.limit": "0"})
    found = drawstring.open_table(str(tmp_path / "t")).changes(begin, net=True)
    rows = found.to_arrow(["_rowkind", "id", "v"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("-U", "1", "a"), ("+U", "1", "A")]


def test_rows_name_their_commit_where_that_is_asked_for(builder):
    builder.commit(T1, {"a": [1], "b": [2]}).replace(T2, {"b": ["fb-0"]})
    found = builder.open().changes("earliest", commits=True)
    assert found.schema.names[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    rows = found.to_arrow(["_change_type", "_commit_version", "_commit_timestamp", "id"]).to_pylist()
    moments = [row.pop("_commit_timestamp").strftime("%Y%m%d%H%M%S%f")[:17] for row in rows]
    assert [tuple(row.values()) for row in rows] == [("insert", T1, 1), ("insert", T1, 2), ("delete", T2, 2)]
    # The builder's table keeps its timeline in this machine's zone.
    assert len(set(moments)) == 2
    net = builder.open().changes("earliest", net=True, commits=True).to_arrow(["_commit_version", "id"])
    assert net.to_pylist() == [{"_commit_version": T1, "id": 1}]


def test_a_column_that_is_called_as_the_kind_of_a_row_is_told(tmp_path):
    schema = pa.schema([("id", pa.string()), ("_rowkind", pa.string())])
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = drawstring.create_table(str(tmp_path / "t"), schema, options=options)
    table.write(pa.table({"id": ["1"], "_rowkind": ["x"]}))
    with pytest.raises(InvalidInput) as caught:
        table.changes("earliest").to_arrow()
    assert caught.value.condition == "CHANGELOG_COLUMN_TAKEN"
    assert table.changes("earliest", commits=True).to_arrow(["_rowkind", "_change_type"]).to_pylist() == [
        {"_rowkind": "x", "_change_type": "insert"}
    ]
