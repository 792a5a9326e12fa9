"""Who wins is one rule: a rewrite of a base file, a merge of logs and combining the input decide alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.config.file_options import FileOptions
from drawstring.merge.merge_plan import build_merge_plan
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice
from drawstring.model.read_task import MergeSpec
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.storage import LocalStorage
from drawstring.write.assignment import Bucket, Way
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.group_writers import write_bucket
from drawstring.write.markers import staged_path
from drawstring.write.merge_group import DELETED, POSITION, MergeRules
from tests.ordering_values import ASCENDING, pairs
from tests.unit.merge.slices import EVENT_TIME, META, Slice

TYPES = sorted(ASCENDING)
RULES = MergeRules(ordering_fields=("o",))


def rows_of(kind: str, rows: list[tuple]) -> pa.Table:
    keys, orders, texts = (list(column) for column in zip(*rows, strict=True))
    return pa.table(
        {"id": pa.array(keys, pa.string()), "o": pa.array(orders, ASCENDING[kind][0]), "v": texts}
    )


def incoming(table: pa.Table, deleted: list[bool] | None = None) -> pa.Table:
    flags = pa.array(deleted or [False] * table.num_rows)
    front = {
        "_hoodie_record_key": table["id"],
        "_hoodie_partition_path": [""] * table.num_rows,
        DELETED: flags,
    }
    return pa.table(front | {name: table[name] for name in table.column_names})


class Group:
    """A file group that is written again and again."""

    def __init__(self, folder, schema: pa.Schema) -> None:
        self.storage, self.schema, self.base, self.writes = LocalStorage(str(folder)), schema, None, 0

    def write(self, rows: pa.Table, rules: MergeRules = RULES) -> None:
        self.writes += 1
        context = WriteContext(
            self.storage, f"2026010100000000{self.writes}", prepend_meta_columns(self.schema), FileOptions()
        )
        group = FileGroupId("", "f-0")
        bucket = Bucket(0, group)
        if self.base is not None:
            bucket = Bucket(0, group, FileSlice(group, self.base.instant, self.base), Way.REWRITE)
        for stat in write_bucket(context, TaskContext(0), bucket, rows, rules):
            self.base = BaseFile(
                staged_path(context.requested_time, stat.path),
                stat.file_size,
                "f-0",
                context.requested_time,
                "0-0-0",
            )

    def read(self) -> dict[str, str]:
        if self.base is None:
            return {}
        table = pq.read_table(self.storage.local_path(self.base.path), columns=["id", "v"])
        return dict(zip(*table.to_pydict().values(), strict=True))


def expected(kind: str) -> dict[str, str]:
    return {key: winner for key, _, _, winner in pairs(kind, null=True)}


def halves(kind: str) -> tuple[pa.Table, pa.Table]:
    found = pairs(kind, null=True)
    return (
        rows_of(kind, [(key, first, "first") for key, first, _, _ in found]),
        rows_of(kind, [(key, second, "second") for key, _, second, _ in found]),
    )


@pytest.mark.parametrize("kind", TYPES)
def test_rewriting_a_base_file_keeps_the_winner(kind, tmp_path):
    first, second = halves(kind)
    group = Group(tmp_path, first.schema)
    group.write(incoming(first))
    group.write(incoming(second))
    assert group.read() == expected(kind)


@pytest.mark.parametrize("kind", TYPES)
def test_combining_the_input_keeps_the_winner_whatever_order_the_rows_arrive_in(kind, tmp_path):
    first, second = halves(kind)
    rows = incoming(pa.concat_tables([first, second]))
    group = Group(tmp_path / "in order", first.schema)
    group.write(rows)
    assert group.read() == expected(kind)
    numbered = rows.append_column(POSITION, pa.array(range(rows.num_rows)))
    shuffled = Group(tmp_path / "shuffled", first.schema)
    shuffled.write(numbered.take(pa.array(range(rows.num_rows - 1, -1, -1))))
    assert shuffled.read() == expected(kind)


@pytest.mark.parametrize("base", [True, False], ids=["base and log", "two logs"])
@pytest.mark.parametrize("parquet", [False, True], ids=["avro", "parquet"])
@pytest.mark.parametrize("kind", TYPES)
def test_merging_logs_keeps_the_winner(kind, parquet, base):
    schema = pa.schema(
        [pa.field(f"_hoodie_{name}", pa.string()) for name in META]
        + [pa.field("id", pa.string()), pa.field("o", ASCENDING[kind][0]), pa.field("v", pa.string())]
    )
    first, second = (half.to_pylist() for half in halves(kind))
    part = Slice(schema)
    part = part.base(first) if base else part.upsert(first, parquet=parquet)
    part.upsert(second, parquet=parquet)
    plan = build_merge_plan(
        part.task(MergeSpec(EVENT_TIME, ("o",))),
        storage=part.storage,
        table_schema=schema,
        columns=["id", "v"],
    )
    merged = dict(zip(*plan.winners.to_pydict().values(), strict=True))
    stored = [row["id"] for row, hidden in zip(first, plan.hidden, strict=False) if not hidden]
    assert merged | dict.fromkeys(stored, "first") == expected(kind)


def test_several_fields_compare_one_after_the_other(tmp_path):
    schema = pa.schema([("id", pa.string()), ("a", pa.float64()), ("b", pa.string()), ("v", pa.string())])
    group = Group(tmp_path, schema)
    rules = MergeRules(ordering_fields=("a", "b"))

    def rows(*values):
        return incoming(
            pa.Table.from_pylist([dict(zip(schema.names, v, strict=True)) for v in values], schema)
        )

    nan = float("nan")
    group.write(rows(("1", nan, "b", "old"), ("2", -0.0, "z", "old"), ("3", 1.0, "a", "old")), rules)
    group.write(rows(("1", nan, "a", "new"), ("2", 0.0, "a", "new"), ("3", 1.0, "a", "new")), rules)
    assert group.read() == {"1": "old", "2": "new", "3": "new"}


def test_delete_without_ordering_value_voids_what_came_before_it_in_the_input(tmp_path):
    table = rows_of(
        "bigint", [("1", 9, "before"), ("1", None, "gone"), ("2", 9, "x"), ("2", None, ""), ("2", 1, "y")]
    )
    group = Group(tmp_path, table.schema)
    group.write(incoming(table, [False, True, False, True, False]))
    assert group.read() == {"2": "y"}


def test_int_zero_of_a_delete_means_no_ordering_value_as_in_logs(tmp_path):
    stored = rows_of("int", [("1", 9, "old"), ("2", 9, "old")])
    group = Group(tmp_path, stored.schema)
    group.write(incoming(stored))
    group.write(incoming(rows_of("int", [("1", 0, ""), ("2", 1, "")]), [True, True]))
    assert group.read() == {"2": "old"}
