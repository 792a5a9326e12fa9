from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable, IncompatibleSchema, UnsupportedTable
from drawstring.predicates.parse import parse
from drawstring.reading import merge_plan_for, read_task
from tests.unit.merge.slices import SCHEMA, Slice, instant

COLUMNS = ["id", "v"]


def read(made: Slice, task=None, *, columns=COLUMNS, **options):
    task = task or made.task()
    found = read_task(task, storage=made.storage, table_schema=made.schema, columns=columns, **options)
    return sorted(tuple(row.values()) for batch in found for row in batch.to_pylist())


def read_or_error(made: Slice):
    """The rows, or the file and partition that the error names."""
    try:
        return read(made)
    except (CorruptTable, UnsupportedTable, IncompatibleSchema) as error:
        return error.fields.get("path"), error.fields.get("partition")


def slice_of(count: int, **options) -> Slice:
    return Slice().base([{"id": f"k{i:04d}", "v": i, "s": "text", "ts": 1} for i in range(count)], **options)


def test_columns_come_back_in_the_order_asked_for():
    (batch,) = read_task(
        slice_of(2).task(),
        storage=slice_of(2).storage,
        table_schema=SCHEMA,
        columns=["v", "_hoodie_record_key", "id"],
    )
    assert batch.schema.names == ["v", "_hoodie_record_key", "id"]


def test_rows_are_counted_without_any_column():
    made = slice_of(5).upsert([{"id": "k0000", "v": 9, "ts": 2}, {"id": "new", "v": 9, "ts": 2}])
    batches = list(read_task(made.task(), storage=made.storage, table_schema=SCHEMA, columns=[]))
    assert sum(batch.num_rows for batch in batches) == 6
    assert merge_plan_for(made.task(), storage=made.storage, table_schema=SCHEMA, columns=[]).row_count == 6


def test_batches_hold_no_more_rows_than_asked_for():
    made = slice_of(100)
    batches = list(
        read_task(made.task(), storage=made.storage, table_schema=SCHEMA, columns=["v"], batch_rows=30)
    )
    assert [batch.num_rows for batch in batches] == [30, 30, 30, 10]


def test_a_condition_may_look_at_columns_that_are_not_returned():
    made = slice_of(10).upsert([{"id": "k0003", "v": 3, "s": "changed", "ts": 2}])
    assert read(made, predicate=parse("s = 'changed' or v = 7")) == [("k0003", 3), ("k0007", 7)]


def test_partition_columns_that_files_lack_are_filled_in():
    schema = SCHEMA.append(pa.field("day", pa.int32()))
    made = Slice(schema).base([{"id": "a", "v": 1, "ts": 1}], schema=SCHEMA)
    task = replace(made.task(), partition_values={"day": 7})
    assert read(made, task, columns=["id", "day"]) == [("a", 7)]
    assert read(made, task, columns=["id"], predicate=parse("day = 7")) == [("a",)]
    assert read(made, task, columns=["id"], predicate=parse("day = 8")) == []


def test_a_missing_base_file_is_named():
    made = slice_of(3)
    made.storage.delete(made.base_file.path)
    with pytest.raises(CorruptTable, match="Missing") as caught:
        read(made)
    assert caught.value.condition == "MISSING_FILE"
    assert caught.value.fields == {"path": made.base_file.path, "partition": "p", "instant": instant(1)}


@pytest.mark.parametrize("with_logs", [False, True], ids=["alone", "merged"])
@pytest.mark.parametrize("kept", [0, 4, -8, -1, 0.5])
def test_a_cut_base_file_is_named(kept, with_logs):
    made = slice_of(300, compression="gzip")
    if with_logs:
        made.upsert([{"id": "k0001", "v": 0, "ts": 5}])
    content = made.storage.read(made.base_file.path)
    end = int(len(content) * kept) if isinstance(kept, float) else kept
    made.storage.write(made.base_file.path, content[:end])
    with pytest.raises(CorruptTable) as caught:
        read(made)
    assert caught.value.fields["path"] == made.base_file.path
    assert caught.value.fields["partition"] == "p"
    assert caught.value.fields["instant"] == instant(1)


def test_flipped_bits_of_a_base_file_are_reported_or_harmless():
    made = slice_of(300, compression="gzip")
    content, right = made.storage.read(made.base_file.path), read(made)
    chance = random.Random(3)
    for _ in range(300):
        damaged = bytearray(content)
        damaged[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        made.storage.write(made.base_file.path, bytes(damaged))
        found = read_or_error(made)
        assert found == right or found == (made.base_file.path, "p")


def test_flipped_bits_of_a_log_file_never_lose_or_add_rows():
    made = slice_of(50).upsert(
        [{"id": f"k{i:04d}", "v": -i, "s": "changed", "ts": 2} for i in range(0, 50, 2)]
    )
    content = made.storage.read(made.logs[0].path)
    chance = random.Random(4)
    for _ in range(400):
        damaged = bytearray(content)
        damaged[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        made.storage.write(made.logs[0].path, bytes(damaged))
        found = read_or_error(made)
        assert len(found) in (50, 51) or found == (made.logs[0].path, "p")


def test_other_base_file_formats_are_refused_by_name():
    made = slice_of(1)
    base = replace(made.base_file, path=made.base_file.path.replace(".parquet", ".orc"))
    task = replace(made.task(), slice=replace(made.task().slice, base_file=base))
    with pytest.raises(UnsupportedTable, match="orc"):
        read(made, task)
