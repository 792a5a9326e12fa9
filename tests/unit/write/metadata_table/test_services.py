"""The metadata table stays small, and what is rolled back leaves no trace in it."""

from __future__ import annotations

import io
import uuid

import fastavro
import pyarrow as pa
import pytest

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.storage.memory import MemoryStorage
from drawstring.view.metadata_table import FOLDER, MetadataTable, open_metadata_table
from drawstring.write.metadata_table.services import archive_timeline, clean, roll_back
from drawstring.write.services.archive import ArchiveRetention, archive, plan_archive
from tests.support.hand_table import HandTable

SCHEMA = pa.schema([("id", pa.int32()), ("p", pa.string()), ("ts", pa.int64())])


@pytest.fixture
def table():
    return HandTable(MemoryStorage(f"memory://{uuid.uuid4()}"), SCHEMA).create().initialise()


def commits(table, count):
    for number in range(count):
        instant = table.next_time()
        table.commit(instant, [table.base_file(instant, "a", [{"id": number, "p": "a", "ts": 1}])])


def metadata_of(table) -> MetadataTable:
    found = open_metadata_table(table.storage, table.config, table.timeline)
    assert found is not None
    return found


def everything(table):
    return {
        entry.path: table.storage.read(entry.path)
        for entry in table.storage.list(FOLDER, recursive=True)
        if not entry.is_directory
    }


def test_a_rollback_leaves_the_files_that_were_there_before(table):
    commits(table, 2)
    before, listing = everything(table), metadata_of(table).all_files()
    target = table.next_time()
    table.storage.write(f".hoodie/timeline/{target}.commit.requested", b"")
    stat = table.base_file(target, "b", [{"id": 9, "p": "b", "ts": 1}])
    table.commit_metadata(target, CommitMetadata("UPSERT", (stat,)))
    assert any(target in path for path in everything(table))
    instant = table.next_time()
    steps = roll_back(table.storage, target, instant, table.next_time())
    steps.carry_out(table.storage)
    steps.carry_out(table.storage)
    table.storage.delete(f".hoodie/timeline/{target}.commit.requested")
    after = {path: content for path, content in everything(table).items() if instant not in path}
    assert after == before
    assert metadata_of(table).all_files() == listing
    plan = next(f.content for f in steps.creates if f.path.endswith("rollback.requested"))
    record = next(fastavro.reader(io.BytesIO(plan)))
    assert record["instantToRollback"] == {"commitTime": target, "action": "deltacommit"}
    assert len(record["RollbackRequests"]) == 3
    assert roll_back(table.storage, target, table.next_time(), table.next_time()).creates == ()


def test_old_slices_go_and_nothing_that_is_read(table):
    commits(table, 45)
    metadata = metadata_of(table)
    listing = metadata.all_files()
    old = len(everything(table))
    steps = clean(table.storage, metadata, table.next_time(), table.next_time())
    assert steps.removes
    steps.carry_out(table.storage)
    assert len(everything(table)) < old - 40
    assert metadata_of(table).all_files() == listing
    again = clean(table.storage, metadata_of(table), table.next_time(), table.next_time())
    assert again.creates == ()


def test_instants_go_only_when_no_file_and_no_active_instant_needs_them(table):
    commits(table, 45)
    few = ArchiveRetention(20, 25)
    assert archive_timeline(table.storage, metadata_of(table), table.timeline, few).creates == ()
    chosen = plan_archive(table.timeline, few)
    archive(table.storage, table.config, chosen).carry_out(table.storage)
    metadata = metadata_of(table)
    clean(table.storage, metadata, table.next_time(), table.next_time()).carry_out(table.storage)
    listing = metadata.all_files()
    before = len(metadata_of(table).timeline.completed_writes)
    steps = archive_timeline(table.storage, metadata_of(table), table.timeline, few)
    assert steps.creates
    steps.carry_out(table.storage)
    steps.carry_out(table.storage)
    metadata = metadata_of(table)
    assert len(metadata.timeline.completed_writes) < before
    assert metadata.all_files() == listing
    commits(table, 12)
    assert len(metadata_of(table).files("a")) == 57
