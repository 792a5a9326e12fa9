"""Paths that try to leave the table, hide something in it, or carry secrets."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from drawstring import open_table
from drawstring.config.table_options import TableOptions
from drawstring.errors import DrawstringError, InvalidInput, InvalidOption, UnsupportedTable
from drawstring.model.key_names import NULL_PARTITION
from drawstring.storage import ArrowStorage, LocalStorage, open_storage
from drawstring.write.create import create_table
from drawstring.write.key_generator import (
    ESCAPED_CHARACTERS,
    KeyGenerator,
    check_partition_path,
    partition_paths,
)
from drawstring.write.locks import table_lock
from drawstring.write.partition_names import similar_paths, warn_of_similar_paths

LEAVING = ["..", "../x", "a/../../x", "/etc/passwd", "//host/share", "a\0b"]


@pytest.mark.parametrize("path", LEAVING)
@pytest.mark.parametrize("method", ["read", "open", "stat", "exists", "list", "delete", "make_directory"])
@pytest.mark.parametrize("kind", ["local", "arrow"])
def test_no_method_takes_a_path_that_leaves_the_table(tmp_path, kind, method, path):
    storage = LocalStorage(str(tmp_path)) if kind == "local" else ArrowStorage("s3://bucket/table")
    storage.__dict__["_connection"] = (pafs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(InvalidInput) as caught:
        getattr(storage, method)(path)
    assert caught.value.condition == "PATH_OUTSIDE_TABLE"


@pytest.mark.parametrize(
    "path", ["%2e%2e/secret", "file:/etc/passwd", "..%2fsecret", "~/x", "*", "[a-z]*", "$HOME"]
)
def test_paths_inside_a_table_are_taken_literally(tmp_path, path):
    (tmp_path / "secret").write_bytes(b"secret")
    storage = LocalStorage(str(tmp_path / "table"))
    assert not storage.exists(path)
    storage.write(path, b"own")
    assert storage.read(path) == b"own"
    assert (tmp_path / "table" / path).is_file()


@pytest.mark.parametrize(
    "name", ["t[1]", "a*b?", "{a,b}", "with space", "50%", "%41", "naïve 🜚", "a'b\"c", "x;y&z"]
)
def test_tables_at_odd_places_are_opened(tmp_path, name):
    options = TableOptions(name="t", record_key_fields=("id",))
    create_table(LocalStorage(str(tmp_path / name)), options)
    assert open_table(str(tmp_path / name)).name == "t"
    assert open_table(str(tmp_path / name)).timeline.ascending_instants == ()


class TestLinks:
    @pytest.fixture
    def storage(self, tmp_path):
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside/kept").write_bytes(b"kept")
        (tmp_path / "table/p").mkdir(parents=True)
        os.symlink(tmp_path / "outside", tmp_path / "table/link")
        return LocalStorage(str(tmp_path / "table"))

    @pytest.mark.parametrize(
        "change",
        [
            lambda s: s.write("link/new", b""),
            lambda s: s.create_if_absent("link/new", b""),
            lambda s: s.open_output("link/new"),
            lambda s: s.delete("link/kept"),
            lambda s: s.make_directory("link/new"),
            lambda s: s.write("link/deeper/new", b""),
        ],
    )
    def test_nothing_is_changed_behind_a_link_out_of_the_table(self, storage, tmp_path, change):
        with pytest.raises(InvalidInput) as caught:
            change(storage)
        assert caught.value.condition == "PATH_OUTSIDE_TABLE"
        assert [(p.name, p.read_bytes()) for p in (tmp_path / "outside").iterdir()] == [("kept", b"kept")]

    def test_deleting_a_link_leaves_what_it_points_to(self, storage, tmp_path):
        storage.delete("link", recursive=True)
        assert not storage.exists("link")
        assert (tmp_path / "outside/kept").exists()

    def test_a_link_that_leads_back_is_not_followed(self, storage, tmp_path):
        os.symlink(tmp_path / "table", tmp_path / "table/p/loop")
        (tmp_path / "table/p/file").write_bytes(b"")
        assert [e.path for e in storage.list("p")] == ["p/file"]
        assert "p/file" in {e.path for e in storage.list("", recursive=True)}

    def test_a_table_may_itself_be_reached_through_a_link(self, storage, tmp_path):
        os.symlink(tmp_path / "table", tmp_path / "alias")
        LocalStorage(str(tmp_path / "alias")).write("p/x", b"1")
        assert storage.read("p/x") == b"1"


@pytest.mark.parametrize(
    "uri",
    [
        "s3://AKIA:hunter2@bucket/table",
        "s3a://AKIA:hunter2@bucket/table",
        "hdfs://user:hunter2@host:8020/t",
        "gs://bucket/t?access_token=hunter2",
        "s3://bucket/t?access_key=AKIA&secret_key=hunter2",
        "ftp://user:hunter2@host/t",
        "s3://AKIA:hun/ter2@bucket/table",
    ],
)
def test_credentials_in_a_path_are_refused_and_not_repeated(uri):
    with pytest.raises(InvalidOption) as caught:
        open_storage(uri)
    assert "hunter2" not in str(caught.value) + repr(caught.value.fields)
    assert "ter2@" not in str(caught.value)


@pytest.mark.parametrize(
    "uri", ["hdfs://user@host:8020/t", "hdfs://host:8020/a@b", "s3://bucket/a@b/c:d", "s3a://bucket/p=1?x/y"]
)
def test_colons_and_at_signs_elsewhere_are_fine(uri):
    assert open_storage(uri).root == uri


def test_secrets_among_the_options_are_not_shown():
    storage = ArrowStorage("s3://b/t", {"fs.s3a.access.key": "AKIA", "fs.s3a.secret.key": "hunter2"})
    assert "hunter2" not in repr(storage) + storage.root
    with pytest.raises(DrawstringError) as caught:
        ArrowStorage("s3://b/t", {"fs.s3a.secret.key": "hunter2"}).read("x")
    assert "hunter2" not in str(caught.value) + repr(caught.value.fields)


@pytest.mark.parametrize(
    "path",
    [
        "..", ".", "../other", "a/..", "a/./b", "/a", "a//b", "a/", "p\0q", ".hoodie", ".hoodie/timeline",
        "x" * 256, "é" * 128, "🜚" * 64, f"a/{'%2F' * 86}",
    ],
)  # fmt: skip
def test_partition_paths_that_cannot_be_are_refused_before_anything_is_written(path):
    with pytest.raises(InvalidInput) as caught:
        check_partition_path(path)
    assert caught.value.condition == "INVALID_PARTITION_PATH"
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "path",
    [
        "p=..", "...", "%2e%2e", "a\\..\\b", "a:b", "p=a b", NULL_PARTITION, "x" * 255, "é" * 127,
        "é", "e\N{COMBINING ACUTE ACCENT}", "🜚", "\N{RIGHT-TO-LEFT MARK}a", "A", "a",
    ],
)  # fmt: skip
def test_odd_partition_paths_are_kept_byte_for_byte(tmp_path, path):
    storage = LocalStorage(str(tmp_path))
    storage.write(f"{check_partition_path(path)}/x", b"1")
    assert [entry.path for entry in storage.list()] == [path]


def test_url_encoding_covers_whatever_would_change_the_shape_of_a_path():
    assert {*map(chr, range(32)), "/", "\\", ":", "%", "\x7f", "=", "?", "#", "*", "[", "{"} <= {
        *ESCAPED_CHARACTERS
    }


@pytest.mark.parametrize(
    ("new", "known", "pairs"),
    [
        (["Bern"], ["bern"], [("Bern", "bern")]),
        (["é"], ["e\N{COMBINING ACUTE ACCENT}"], [("e\N{COMBINING ACUTE ACCENT}", "é")]),
        (["E\N{COMBINING ACUTE ACCENT}"], ["é"], [("E\N{COMBINING ACUTE ACCENT}", "é")]),
        (["a", "A"], [], [("A", "a")]),
        (["x/A/2"], ["x/a/1"], [("x/A", "x/a")]),
        (["straße"], ["STRASSE"], [("STRASSE", "straße")]),
        (["a", "b"], ["c", "ab"], []),
        (["a"], ["a"], []),
        ([], ["a", "A"], []),
        ([""], [""], []),
        (["x/a"], ["y/A"], []),
    ],
)
def test_paths_that_differ_in_case_or_composition_are_found(new, known, pairs):
    assert similar_paths(new, known) == pairs


def test_similar_paths_are_warned_about_once_and_by_name(caplog):
    warn_of_similar_paths("/data/t", ["Bern", "Basel"], ["bern", "basel"])
    assert len(caplog.records) == 1
    assert "'Basel' and 'basel'" in caplog.text
    warn_of_similar_paths("/data/t", ["Bern"], ["Bern", "bern"])
    assert len(caplog.records) == 1


@pytest.mark.parametrize("uri", ["s3://bucket/t", "s3a://bucket/t", "gs://bucket/t", "hdfs://host:8020/t"])
def test_stores_without_atomic_creation_are_refused_before_they_are_reached(uri):
    with pytest.raises(UnsupportedTable, match="Nothing was written") as caught:
        create_table(open_storage(uri), TableOptions(name="t", record_key_fields=("id",)))
    assert caught.value.condition == "WRITE_STORAGE"
    with pytest.raises(UnsupportedTable), table_lock(open_storage(uri)):
        pass


@pytest.mark.parametrize("url_encode", [False, True])
def test_the_name_of_the_null_partition_is_no_value(url_encode):
    rule = KeyGenerator(("id",), ("p",), False, False, url_encode)
    batch = pa.record_batch({"id": ["1"], "p": [NULL_PARTITION]})
    with pytest.raises(InvalidInput, match="'p'") as caught:
        partition_paths(batch, rule)
    assert caught.value.condition == "RESERVED_PARTITION_VALUE"
    nothing = pa.record_batch({"id": ["1", "2"], "p": pa.array([None, ""], pa.string())})
    assert partition_paths(nothing, rule).to_pylist() == [NULL_PARTITION] * 2
