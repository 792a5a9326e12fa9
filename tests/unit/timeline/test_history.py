from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable
from drawstring.storage import MemoryStorage
from drawstring.timeline.history import History

CONFIG = TableConfig.from_properties({"hoodie.table.name": "t", "hoodie.table.version": "9"})
FOLDER = ".hoodie/timeline/history"
COLUMNS = ("instantTime", "completionTime", "action", "metadata", "plan", "version")


@pytest.fixture
def storage(request):
    return MemoryStorage(f"memory://{request.node.name}")


def write_segment(storage: MemoryStorage, name: str, *rows: tuple[str, str, str]) -> None:
    metadata = json.dumps({"operationType": "UPSERT"}).encode()
    values = [(time, done, action, metadata, None, 1) for time, done, action in rows]
    table = pa.table(
        {column: list(cells) for column, cells in zip(COLUMNS, zip(*values, strict=True), strict=True)}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    storage.write(f"{FOLDER}/{name}", sink.getvalue().to_pybytes())


def write_manifest(storage: MemoryStorage, number: int, *names: str) -> None:
    content = {"files": [{"fileName": name, "fileLen": 1} for name in names]}
    storage.write(f"{FOLDER}/manifest_{number}", json.dumps(content).encode())


def test_only_files_of_the_current_manifest_count(storage):
    write_segment(storage, "1_1_0.parquet", ("1", "2", "commit"))
    write_segment(storage, "3_5_0.parquet", ("3", "4", "deltacommit"), ("5", "6", "clean"))
    write_manifest(storage, 1, "1_1_0.parquet")
    write_manifest(storage, 2, "1_1_0.parquet", "3_5_0.parquet")
    storage.write(f"{FOLDER}/_version_", b"1")
    assert History(storage, CONFIG).completion_times == {"1": "2"}
    storage.write(f"{FOLDER}/_version_", b"2")
    assert History(storage, CONFIG).completion_times == {"1": "2", "3": "4"}


def test_without_a_readable_version_the_newest_manifest_counts(storage):
    write_segment(storage, "1_1_0.parquet", ("1", "2", "commit"))
    write_manifest(storage, 9)
    write_manifest(storage, 10, "1_1_0.parquet")
    storage.write(f"{FOLDER}/_version_", b"?")
    found = History(storage, CONFIG).writes
    assert [(w.instant.requested_time, w.metadata.operation) for w in found] == [("1", "UPSERT")]


def test_a_table_without_history_has_none_and_a_broken_one_is_told(storage):
    assert History(storage, CONFIG).writes == ()
    storage.write(f"{FOLDER}/x.parquet", b"junk")
    write_manifest(storage, 1, "x.parquet")
    with pytest.raises(CorruptTable, match=r"x\.parquet"):
        assert History(storage, CONFIG).writes


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"files": [{"fileNamf": "x"}]}', b'{"files": 3}']
)
def test_a_damaged_manifest_is_told(storage, content):
    storage.write(f"{FOLDER}/manifest_1", content)
    with pytest.raises(CorruptTable, match="manifest_1") as caught:
        assert History(storage, CONFIG).writes
    assert caught.value.condition == "CORRUPT_HISTORY"


@pytest.mark.parametrize(
    ("version", "key", "usual"),
    [
        ("9", "hoodie.timeline.history.path", ".hoodie/timeline/history"),
        ("6", "hoodie.archivelog.folder", ".hoodie/archived"),
    ],
)
def test_a_damaged_name_of_the_folder_does_not_pass_for_no_history(storage, version, key, usual):
    config = TableConfig.from_properties(
        {"hoodie.table.name": "t", "hoodie.table.version": version, key: usual.rpartition("/")[2][:-1] + "?"}
    )
    assert History(storage, config).writes == ()
    storage.write(f"{usual}/_version_", b"1")
    with pytest.raises(CorruptTable, match=key):
        assert History(storage, config).writes


def test_a_lost_segment_is_told(storage):
    write_manifest(storage, 1, "1_1_0.parquet")
    with pytest.raises(CorruptTable, match=r"1_1_0\.parquet"):
        assert History(storage, CONFIG).writes


def test_a_denied_permission_is_no_damage(storage, monkeypatch):
    write_segment(storage, "1_1_0.parquet", ("1", "2", "commit"))
    write_manifest(storage, 1, "1_1_0.parquet")
    open_file = storage.open

    def denied(path):
        if path.endswith(".parquet"):
            raise PermissionError(13, "Permission denied", path)
        return open_file(path)

    monkeypatch.setattr(storage, "open", denied)
    for question in ("writes", "newest_completion"):
        with pytest.raises(PermissionError):
            getattr(History(storage, CONFIG), question)


def test_when_the_last_archived_instant_completed_is_told_by_footers_or_rows(storage):
    assert History(storage, CONFIG).newest_completion == ""
    write_segment(storage, "1_3_0.parquet", ("1", "9", "commit"), ("3", "4", "commit"))
    write_segment(storage, "5_5_0.parquet", ("5", "6", "commit"))
    write_manifest(storage, 1, "1_3_0.parquet", "5_5_0.parquet")
    assert History(storage, CONFIG).newest_completion == "9"
    storage.delete(f"{FOLDER}/1_3_0.parquet")
    # Files of the archive are never changed: they are read once.
    assert History(storage, CONFIG).newest_completion == "9"
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"completionTime": ["7", "11"]}), sink, write_statistics=False)
    storage.write(f"{FOLDER}/7_8_0.parquet", sink.getvalue().to_pybytes())
    write_manifest(storage, 2, "7_8_0.parquet")
    assert History(storage, CONFIG).newest_completion == "7"
