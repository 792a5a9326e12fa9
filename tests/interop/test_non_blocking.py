"""Apache Hudi and drawstring append to the same buckets at once, in Hudi's non-blocking mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import drawstring
from drawstring.storage import LocalStorage
from tests.interop.engine import read, run, shared, write
from tests.small_writes import SCHEMA as ARROW
from tests.small_writes import rows_of
from tests.support.metadata_check import assert_metadata_table_equals_table
from tests.unit.write.test_non_blocking import MODE, TABLE
from tests.unit.write.test_non_blocking import write as write_here

pytestmark = pytest.mark.interop

SCHEMA = "id string, city string, ts bigint, v string"
HUDI = {
    **TABLE,
    **{key: MODE[key] for key in MODE if "retries" not in key},
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
START = [("k0", "rome", 0, "start"), ("k1", "rome", 0, "start")]


def seen_by_hudi(path):
    rows = run("hudi", [read("all", path)])["all"]["rows"]
    return sorted(tuple(row[name] for name in ("id", "city", "ts", "v")) for row in rows)


def write_by_hudi(path, rows):
    shared("hudi").ask(**write(path, [list(row) for row in rows], SCHEMA, HUDI))


@pytest.mark.parametrize("first", ["hudi", "drawstring"])
def test_both_append_to_the_same_buckets_at_once(tmp_path, first):
    path = tmp_path / "t"
    if first == "hudi":
        write_by_hudi(path, START)
    else:
        drawstring.create_table(path, ARROW, options=TABLE)
        write_here(path, START)
    theirs = [("k0", "rome", 9, "theirs"), ("k1", "rome", 5, "theirs"), ("h0", "rome", 1, "theirs")]
    ours = [("k0", "rome", 7, "ours"), ("k1", "rome", 8, "ours"), ("o0", "rome", 1, "ours")]
    assert write_here(path, ours, act=lambda: write_by_hudi(path, theirs)).tries == 1
    expected = [theirs[0], ours[1], theirs[2], ours[2]]
    assert rows_of(path) == seen_by_hudi(path) == sorted(expected)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_by_hudi, path, [("k0", "rome", 99, "last"), ("h1", "rome", 1, "theirs")])
        for number in range(1, 4):
            rows = [("k0", "rome", 10 + number, "ours"), (f"o{number}", "rome", 1, "ours")]
            assert write_here(path, rows).tries == 1
            expected.append(rows[1])
        writing.result()
    expected = [("k0", "rome", 99, "last"), ("h1", "rome", 1, "theirs"), *expected[1:]]
    assert rows_of(path) == seen_by_hudi(path) == sorted(expected)
    ids = {found.group.file_id for found in drawstring.open_table(path).snapshot().all_slices()}
    assert ids == {f"0000000{n}-0000-0000-0000-000000000000-0" for n in range(2)}
    assert_metadata_table_equals_table(LocalStorage(str(path)))
    drawstring.open_table(path).compact()
    assert rows_of(path) == seen_by_hudi(path) == sorted(expected)
