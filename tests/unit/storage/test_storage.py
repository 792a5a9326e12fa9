from __future__ import annotations

import errno
import os
import pickle
import resource
import signal
from concurrent.futures import ThreadPoolExecutor

import pyarrow.fs as pafs
import pytest

from drawstring.errors import InvalidInput, InvalidOption, UnsupportedTable
from drawstring.storage import (
    ArrowStorage,
    LocalStorage,
    MemoryStorage,
    NestedStorage,
    local_swap,
    open_storage,
)
from drawstring.write.staging import drop_folder
from tests.small_writes import in_child


@pytest.fixture(params=["local", "memory", "nested", "arrow"])
def storage(request, tmp_path):
    if request.param == "local":
        return LocalStorage(str(tmp_path))
    if request.param == "arrow":
        arrow = ArrowStorage("s3://bucket/table")
        arrow.__dict__["_connection"] = (pafs.LocalFileSystem(), str(tmp_path))
        return arrow
    memory = MemoryStorage(f"memory://{request.node.name}")
    return memory if request.param == "memory" else NestedStorage(memory, "inner")


def test_a_written_file_is_read_back(storage):
    storage.write("a/b.txt", b"content")
    assert storage.read("a/b.txt") == b"content"
    assert storage.stat("a/b.txt").size == 7
    with storage.open("a/b.txt") as file:
        assert file.read() == b"content"


@pytest.mark.parametrize("storage", ["local", "memory", "nested"], indirect=True)
def test_create_if_absent_keeps_the_first_content(storage):
    assert storage.create_if_absent("t/x", b"first")
    assert not storage.create_if_absent("t/x", b"second")
    assert storage.read("t/x") == b"first"
    assert [entry.name for entry in storage.list("t")] == ["x"]


@pytest.mark.parametrize("storage", ["local", "memory", "nested"], indirect=True)
def test_replace_if_changes_only_what_is_as_expected(storage):
    assert not storage.replace_if("t/x", b"a", b"b")
    assert not storage.replace_if("t/x", b"a", None)
    assert storage.replace_if("t/x", None, b"a")
    assert not storage.replace_if("t/x", None, b"b")
    assert not storage.replace_if("t/x", b"b", b"c")
    assert not storage.replace_if("t/x", b"", None)
    assert storage.read("t/x") == b"a"
    assert storage.replace_if("t/x", b"a", b"")
    assert storage.read("t/x") == b""
    assert storage.replace_if("t/x", b"", b"")
    assert storage.replace_if("t/x", b"", None)
    assert not storage.exists("t/x")


def test_folder_into_which_a_straggler_writes_is_left_to_the_next_sweep(tmp_path, monkeypatch):
    """A clean or a made metadata table stands: it must not end in an error over its own folder."""
    storage, rmdir = LocalStorage(str(tmp_path)), os.rmdir
    storage.write(".hoodie/.temp/1/x", b"")

    def straggle(path):
        storage.write(".hoodie/.temp/1/late", b"")
        rmdir(path)

    monkeypatch.setattr(os, "rmdir", straggle)
    drop_folder(storage, "1")
    monkeypatch.undo()
    drop_folder(storage, "1")
    assert not storage.exists(".hoodie/.temp/1")


@pytest.mark.parametrize("content", [None, b"a"], ids=["deleted", "renewed"])
def test_replace_if_of_a_file_that_another_engine_deletes_meanwhile_changes_nothing(
    tmp_path, monkeypatch, content
):
    storage, read = LocalStorage(str(tmp_path)), local_swap._read
    storage.write("x", b"a")

    def read_then_deleted(path):
        found = read(path)
        (tmp_path / "x").unlink()
        return found

    monkeypatch.setattr(local_swap, "_read", read_then_deleted)
    assert not storage.replace_if("x", b"a", content)
    assert not storage.exists("x")


@pytest.mark.parametrize("durable", [False, True])
def test_replace_if_writes_all_where_the_system_takes_a_part_only(tmp_path, monkeypatch, durable):
    """Half of an owner's name would be a lock of nobody, which stands for good."""
    storage, take = LocalStorage(str(tmp_path)), os.write
    storage.write("x", b"a")
    monkeypatch.setattr(os, "write", lambda descriptor, content: take(descriptor, bytes(content[:3])))
    assert storage.replace_if("x", b"a", b"0123456789", durable=durable)
    assert storage.create_if_absent("y", b"0123456789", durable=durable)
    assert storage.read("x") == storage.read("y") == b"0123456789"


def test_stream_of_which_the_system_takes_a_part_only_is_an_error(tmp_path):
    """The kernel says how much it took, and nothing else until it is asked for the rest."""

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        try:
            LocalStorage(str(tmp_path)).open_output("x").write(b"x" * 100_000)
        except OSError as error:
            os._exit(error.errno)

    assert in_child(limited) == errno.EFBIG


@pytest.mark.parametrize("storage", ["local", "memory", "nested"], indirect=True)
def test_directory_is_renamed_with_all_that_is_in_it(storage):
    storage.write("t/a/x", b"x")
    storage.write("t/y", b"y")
    storage.write("tt/z", b"z")
    storage.rename("t", "u/v")
    assert not storage.exists("t")
    assert (storage.read("u/v/a/x"), storage.read("u/v/y"), storage.read("tt/z")) == (b"x", b"y", b"z")


@pytest.mark.parametrize("storage", ["local", "memory", "nested"], indirect=True)
def test_replace_if_lets_one_of_many_threads_through(storage):
    storage.replace_if("x", None, b"0")
    with ThreadPoolExecutor(8) as pool:
        for turn in range(20):
            tries = [pool.submit(storage.replace_if, "x", b"%d" % turn, b"%d" % (turn + 1)) for _ in range(8)]
            assert sum(done.result() for done in tries) == 1


def test_replace_if_refuses_paths_outside_the_table(tmp_path):
    with pytest.raises(InvalidInput):
        LocalStorage(str(tmp_path / "table")).replace_if("../x", None, b"")


def test_stores_without_atomic_creation_refuse_to_pretend(tmp_path):
    storage = ArrowStorage("s3://bucket/table")
    storage.__dict__["_connection"] = (pafs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(UnsupportedTable, match="s3://bucket/table") as caught:
        storage.create_if_absent("x", b"")
    with pytest.raises(UnsupportedTable, match="s3://bucket/table"):
        storage.replace_if("x", None, b"")
    assert caught.value.condition == "WRITE_STORAGE"
    assert not list(tmp_path.iterdir())


def test_listing_names_directories_and_hidden_files(storage):
    for path in ("d/.hidden", "d/e/f", "d/g"):
        storage.write(path, b"")
    assert {(e.name, e.is_directory) for e in storage.list("d")} == {
        (".hidden", False),
        ("e", True),
        ("g", False),
    }
    assert "d/e/f" in {entry.path for entry in storage.list("d", recursive=True)}


def test_missing_paths(storage):
    storage.write("there", b"")
    assert not storage.exists("gone")
    storage.delete("gone")
    for question in (storage.read, storage.stat, lambda path: list(storage.list(path))):
        with pytest.raises(FileNotFoundError):
            question("gone")


def test_deleting_a_directory(storage):
    storage.write("d/e/f", b"")
    storage.delete("d", recursive=True)
    assert not storage.exists("d/e/f")


def test_storages_travel_to_other_processes(storage):
    storage.write("x", b"1")
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.root == storage.root
    if not isinstance(storage, ArrowStorage):
        assert copy.read("x") == b"1"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a\0b"])
def test_local_paths_do_not_leave_the_table(tmp_path, path):
    with pytest.raises(InvalidInput, match="leaves the table"):
        LocalStorage(str(tmp_path)).read(path)


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_local_paths_in_all_spellings(tmp_path, form):
    (tmp_path / "x").write_bytes(b"1")
    assert open_storage(form.format(tmp_path)).read("x") == b"1"


def test_replacing_a_file_drops_its_stale_checksum(tmp_path):
    storage = LocalStorage(str(tmp_path))
    storage.write("p", b"old")
    (tmp_path / ".p.crc").write_bytes(b"stale")
    storage.write("p", b"new")
    assert not (tmp_path / ".p.crc").exists()


@pytest.mark.parametrize(("uri", "condition"), [("", "PATH_MISSING"), ("ftp://x/y", "UNKNOWN_SCHEME")])
def test_impossible_paths_are_refused(uri, condition):
    with pytest.raises(InvalidOption) as caught:
        open_storage(uri)
    assert caught.value.condition == condition
