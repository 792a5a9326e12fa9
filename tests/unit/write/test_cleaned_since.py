"""Writes that go on for so long that the files on which they are based are cleaned beneath them."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.errors import CommitConflict
from drawstring.storage import LocalStorage
from drawstring.write.in_process import ArrowRows
from drawstring.write.row_write import RowWrite
from tests.small_writes import new_table, rows_of, rows_of_hudi_rs, write

FIRST = [("k1", "oslo", 1, "a"), ("k4", "oslo", 1, "a"), ("k7", "rome", 1, "a")]
VERSIONS = "hoodie.clean.fileversions.retained"
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table"


def commit_and_clean(path, table_type, *, retained="1"):
    """What another writer does meanwhile: an update of the same file group, and a clean right after it."""
    write(LocalStorage(str(path)), [("k4", "oslo", 3, "theirs")])
    table = drawstring.open_table(str(path))
    if table_type == "MERGE_ON_READ":
        table.compact()
    cleaned = table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", VERSIONS: retained})
    assert cleaned.files_deleted


def once_before(monkeypatch, kind, name, act):
    """Let `act` run before a method is called for the first time."""
    original, called = getattr(kind, name), []

    def method(self, *args, **kwargs):
        if not called:
            called.append(True)
            act()
        return original(self, *args, **kwargs)

    monkeypatch.setattr(kind, name, method)


def made(path, table_type, index="SIMPLE", metadata="true"):
    options = {
        "hoodie.table.type": table_type,
        "hoodie.index.type": index,
        "hoodie.metadata.enable": metadata,
    }
    storage = new_table(path, FIRST, options=options)
    write(storage, [("k4", "oslo", 2, "before")], options=options)
    return storage, options


@pytest.mark.parametrize(
    ("table_type", "index", "metadata"),
    [(TYPES[0], "SIMPLE", "true"), (TYPES[0], "GLOBAL_SIMPLE", "false"), (TYPES[1], "SIMPLE", "true")],
)
def test_keys_of_a_file_group_that_was_cleaned_before_it_was_listed_are_no_new_keys(
    path, monkeypatch, table_type, index, metadata
):
    storage, options = made(path, table_type, index, metadata)
    once_before(monkeypatch, RowWrite, "run", lambda: commit_and_clean(path, table_type))
    result = write(storage, [("k1", "oslo", 5, "mine")], options=options)
    assert (result.tries, result.updated, result.inserted) == (2, 1, 0)
    assert rows_of(path) == [("k1", "oslo", 5, "mine"), ("k4", "oslo", 3, "theirs"), ("k7", "rome", 1, "a")]


def test_a_delete_does_not_overlook_keys_of_a_file_group_that_was_cleaned_before_it_was_listed(
    path, monkeypatch
):
    storage, options = made(path, "COPY_ON_WRITE")
    once_before(monkeypatch, RowWrite, "run", lambda: commit_and_clean(path, "COPY_ON_WRITE"))
    assert write(storage, [("k1", "oslo", 5, "mine")], "delete", options=options).deleted == 1
    assert rows_of(path) == rows_of_hudi_rs(path) == [("k4", "oslo", 3, "theirs"), ("k7", "rome", 1, "a")]


def test_an_overwrite_does_not_leave_a_file_group_that_was_cleaned_before_it_was_listed(path, monkeypatch):
    storage, options = made(path, "COPY_ON_WRITE")
    once_before(monkeypatch, RowWrite, "run", lambda: commit_and_clean(path, "COPY_ON_WRITE"))
    with pytest.raises(CommitConflict) as caught:
        write(storage, [("k9", "kiel", 5, "mine")], "insert_overwrite_table", options=options)
    assert caught.value.condition == "FILES_CLEANED"
    assert rows_of(path) == [("k1", "oslo", 1, "a"), ("k4", "oslo", 3, "theirs"), ("k7", "rome", 1, "a")]


def test_an_older_version_that_is_left_is_not_taken_for_the_one_that_was_cleaned(path, monkeypatch):
    storage, options = made(path, "COPY_ON_WRITE")
    write(storage, [("k2", "oslo", 2, "before")], options=options)
    oldest = sorted((path / "oslo").glob("*.parquet"), key=lambda file: file.name.rsplit("_", 1)[1])[0]
    content = oldest.read_bytes()

    def meanwhile():
        commit_and_clean(path, "COPY_ON_WRITE")
        # A cleaner deletes in any order.
        oldest.write_bytes(content)

    once_before(monkeypatch, RowWrite, "run", meanwhile)
    off = {**options, "hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"}
    result = write(storage, [("k2", "oslo", 5, "mine")], options=off)
    assert (result.tries, result.updated, result.inserted) == (2, 1, 0)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("step", ["locate", "write_groups"])
def test_a_write_whose_files_are_cleaned_before_it_reads_them_is_tried_again(
    path, monkeypatch, table_type, step
):
    storage, options = made(path, table_type)
    once_before(monkeypatch, ArrowRows, step, lambda: commit_and_clean(path, table_type))
    result = write(storage, [("k1", "oslo", 5, "mine")], options=options)
    assert (result.updated, result.inserted) == (1, 0)
    assert rows_of(path) == [("k1", "oslo", 5, "mine"), ("k4", "oslo", 3, "theirs"), ("k7", "rome", 1, "a")]


def test_without_tries_left_the_error_names_the_commit_and_the_clean(path, monkeypatch):
    storage, options = made(path, "COPY_ON_WRITE")
    once_before(monkeypatch, ArrowRows, "locate", lambda: commit_and_clean(path, "COPY_ON_WRITE"))
    once = {**options, "hoodie.write.num.retries.on.conflict.failures": "0"}
    with pytest.raises(CommitConflict) as caught:
        write(storage, [("k1", "oslo", 5, "mine")], options=once)
    assert caught.value.condition == "FILES_CLEANED"
    assert len(caught.value.fields["groups"]) == 1


def test_a_clean_of_versions_that_the_write_does_not_need_is_in_nobodys_way(path, monkeypatch):
    storage, options = made(path, "COPY_ON_WRITE")
    write(storage, [("k4", "oslo", 2, "again")], options=options)
    act = lambda: commit_and_clean(path, "COPY_ON_WRITE", retained="2")  # noqa: E731
    once_before(monkeypatch, RowWrite, "run", act)
    result = write(
        storage, [("k8", "oslo", 5, "mine")], options={**options, "hoodie.parquet.small.file.limit": "0"}
    )
    assert result.tries == 1


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("step", ["locate", "write_groups"])
def test_a_write_whose_table_is_overwritten_before_it_reads_its_files_is_tried_again_on_the_new_table(
    path, monkeypatch, table_type, step
):
    storage, options = made(path, table_type)
    new = [("k8", "oslo", 1, "new")]
    once_before(monkeypatch, ArrowRows, step, lambda: write(LocalStorage(str(path)), new, mode="overwrite"))
    result = write(storage, [("k1", "oslo", 5, "mine")], options=options)
    assert (result.tries, result.updated, result.inserted) == (2, 0, 1)
    assert rows_of(path) == [("k1", "oslo", 5, "mine"), *new]
