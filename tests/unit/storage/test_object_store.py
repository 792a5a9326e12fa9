"""Tables on an S3-compatible store, read as Arrow."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.errors import DrawstringError
from tests.golden import harness
from tests.support.object_store import ObjectStore, object_store

NAMES = ("v9_cow_clustered", "v9_mor_commit_time", "v6_mor_compacted", "v2_mor_event_time")


@pytest.fixture(scope="module")
def store():
    with object_store() as found:
        yield found


@pytest.fixture(scope="module")
def tables(store: ObjectStore, tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("uploaded")
    return {name: store.upload(Path(harness.extract(name, folder)), name) for name in NAMES}


def _reads(name: str) -> list[harness.Read]:
    return [read for read in harness.reads_of(name) if read.kind in ("snapshot", "read_optimized")]


@pytest.mark.parametrize("read", [r for name in NAMES for r in _reads(name)], ids=lambda read: read.id)
def test_arrow_reads_a_table_of_the_store(read, tables, store):
    options = {**read.options, **store.settings}
    kind = "read_optimized" if read.kind == "read_optimized" else None
    scan = drawstring.open_table(tables[read.table], options=options).snapshot(query_type=kind).scan()
    harness.assert_rows(read, harness.arrow_rows(scan.to_arrow()))


def test_a_bucket_has_settings_of_its_own(tables, store):
    wrong = {"fs.s3a.endpoint": "http://127.0.0.1:1", "fs.s3a.bucket.tables.endpoint": store.endpoint}
    table = drawstring.open_table(tables["v9_cow_clustered"], options={**store.settings, **wrong})
    assert table.snapshot().scan().count() > 0


def test_a_store_that_does_not_answer_is_an_error_that_names_the_table(store):
    dead = {**store.settings, "fs.s3a.endpoint": "http://127.0.0.1:1"}
    with pytest.raises((DrawstringError, OSError), match=r"none/\.hoodie"):
        drawstring.open_table("s3a://tables/none", options=dead)
