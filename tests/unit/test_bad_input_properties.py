"""Malformed settings files: the line is named, the backup counts, and nothing named by them is loaded."""

from __future__ import annotations

import sys

import pytest

from drawstring import open_table
from drawstring.config.properties import SIZE_LIMIT, format_properties, parse_properties, table_checksum
from drawstring.config.table_options import TableOptions
from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.storage import LocalStorage
from drawstring.storage.table_properties import BACKUP, PROPERTIES, are_settings_changed
from drawstring.write.create import create_table

MODEL = "org.apache.hudi.common.model."


def write(folder, extra=None, *, raw=None, path=PROPERTIES) -> str:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
    }
    properties |= extra or {}
    properties["hoodie.table.checksum"] = str(table_checksum(properties))
    (folder / ".hoodie/timeline").mkdir(parents=True, exist_ok=True)
    content = raw if raw is not None else format_properties(properties, comment="test")
    (folder / path).write_bytes(content)
    return str(folder)


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"hoodie.table.name=t\nhoodie.table.version=\0009", 2, "NUL"),
        (b"a=1\nb=\\u00", 2, "bad escape"),
        (b"a=1\nb=2\n\na=2", 4, "a second time"),
        (b"a=1\n: 2", 2, "no key"),
        (b"a=1\nb=cut\\", 2, "continuation"),
        (b"a=" + b"x" * SIZE_LIMIT, 0, "limit"),
        (b"a=" + b"x" * (10 << 20), 0, "limit"),
    ],
)
def test_the_line_is_named_when_a_table_is_opened(tmp_path, content, line, what):
    with pytest.raises(CorruptTable, match=what) as caught:
        open_table(write(tmp_path, raw=content))
    assert caught.value.condition == "MALFORMED_PROPERTIES"
    assert caught.value.fields["line"] == line
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("content", [b"", b"a=\0", b"hoodie.table.na", b"a=1\na=2"])
def test_the_backup_counts_when_the_file_is_malformed(tmp_path, content):
    write(tmp_path, {"hoodie.table.name": "rescued"}, path=BACKUP)
    assert open_table(write(tmp_path, raw=content)).name == "rescued"


def test_the_same_key_with_the_same_value_is_harmless():
    assert parse_properties(b"a=1\na=1", source="s") == {"a": "1"}


def test_a_cut_file_without_backup_does_not_pass_its_checksum(tmp_path):
    whole = (tmp_path / write(tmp_path, {"hoodie.table.name": "orders"}) / PROPERTIES).read_bytes()
    with pytest.raises(CorruptTable):
        open_table(write(tmp_path, raw=whole.replace(b"=orders", b"=order")))


@pytest.mark.parametrize(
    ("extra", "condition"),
    [
        ({"hoodie.table.version": "10"}, "TABLE_VERSION_TOO_NEW"),
        ({"hoodie.table.version": "7"}, "TABLE_VERSION_NOT_SUPPORTED"),
        ({"hoodie.table.version": "-1"}, "TABLE_VERSION_NOT_SUPPORTED"),
        ({"hoodie.timeline.layout.version": "1"}, "TIMELINE_LAYOUT_NOT_SUPPORTED"),
        ({"hoodie.timeline.layout.version": "99"}, "TIMELINE_LAYOUT_NOT_SUPPORTED"),
        ({"hoodie.table.version": "1"}, "TABLE_VERSION_NOT_SUPPORTED"),
        ({"hoodie.table.base.file.format": "ORC"}, "BASE_FILE_FORMAT_NOT_SUPPORTED"),
        ({"hoodie.table.base.file.format": "lance"}, "BASE_FILE_FORMAT_NOT_SUPPORTED"),
    ],
)
def test_unknown_versions_are_refused_and_never_guessed(tmp_path, extra, condition):
    with pytest.raises(UnsupportedTable) as caught:
        open_table(write(tmp_path, extra))
    assert caught.value.condition == condition


@pytest.mark.parametrize("position", range(len("hoodie.table.ordering.fields=")))
@pytest.mark.parametrize("bit", [0, 2, 4, 6, 7])
def test_a_flipped_bit_in_a_key_is_noticed(tmp_path, position, bit):
    """Without its key the table would be merged by commit time."""
    path = write(tmp_path, {"hoodie.table.ordering.fields": "ts", "hoodie.table.type": "MERGE_ON_READ"})
    file = tmp_path / path / PROPERTIES
    content = bytearray(file.read_bytes())
    content[content.index(b"hoodie.table.ordering.fields=") + position] ^= 1 << bit
    file.write_bytes(content)
    with pytest.raises(CorruptTable, match=PROPERTIES):
        open_table(path)


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_in_the_end_of_a_line_is_noticed(tmp_path, bit):
    path = write(tmp_path, {"hoodie.populate.meta.fields": "true", "hoodie.table.ordering.fields": "ts"})
    file = tmp_path / path / PROPERTIES
    content = bytearray(file.read_bytes())
    end = content.index(b"hoodie.table.ordering.fields=") - 1
    assert content[end] == 0x0A
    content[end] ^= 1 << bit
    file.write_bytes(content)
    with pytest.raises(CorruptTable):
        open_table(path)


@pytest.mark.parametrize("version", ["nine", "9.0", "", "9" * 5000])
def test_a_version_that_is_no_number_is_told(tmp_path, version):
    with pytest.raises(CorruptTable) as caught:
        open_table(write(tmp_path, {"hoodie.table.version": version}))
    assert caught.value.fields["key"] == "hoodie.table.version"
    assert caught.value.fields["path"].endswith(".hoodie/hoodie.properties")


@pytest.mark.parametrize(
    "extra",
    [
        {"hoodie.compaction.payload.class": "antigravity"},
        {"hoodie.compaction.payload.class": "com.acme.Payload"},
        {"hoodie.compaction.payload.class": MODEL + "DefaultHoodieRecordPayload$Evil"},
        {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "antigravity"},
        {"hoodie.record.merge.mode": "CUSTOM", "hoodie.compaction.payload.class": "os.system"},
        {"hoodie.record.merge.mode": "CUSTOM"},
        {"hoodie.record.merge.mode": "NEWER_THAN_NINE"},
        {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": "GUESS"},
    ],
)
def test_mergers_that_are_not_on_the_list_are_refused_and_not_loaded(tmp_path, extra):
    with pytest.raises(UnsupportedTable) as caught:
        open_table(write(tmp_path, {"hoodie.table.type": "MERGE_ON_READ", **extra}))
    assert caught.value.condition == "MERGER_NOT_SUPPORTED"
    assert "antigravity" not in sys.modules


def test_base_files_are_read_without_the_code_that_would_merge_logs(tmp_path):
    custom = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.compaction.payload.class": "com.acme.Payload"}
    path = write(tmp_path, custom)
    table = open_table(path, options={"hoodie.datasource.query.type": "read_optimized"})
    assert table.snapshot(query_type="read_optimized").query_type == "read_optimized"
    for read in (lambda: table.snapshot(query_type="snapshot"), lambda: table.incremental("000")):
        with pytest.raises(UnsupportedTable, match=r"com\.acme\.Payload"):
            read()


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.table.keygenerator.class",
        "hoodie.table.partition_extractor_class",
        "hoodie.write.lock.provider",
        "hoodie.bootstrap.index.class",
    ],
)
def test_other_class_names_are_only_text(tmp_path, key):
    assert open_table(write(tmp_path, {key: "antigravity"})).name == "t"
    assert "antigravity" not in sys.modules


def test_an_unknown_table_type_is_refused(tmp_path):
    with pytest.raises(CorruptTable, match="COPY_ON_WRITE") as caught:
        open_table(write(tmp_path, {"hoodie.table.type": "COPY_ON_WRITE; DROP"}))
    assert caught.value.condition == "INVALID_PROPERTY"
    assert caught.value.fields["key"] == "hoodie.table.type"


@pytest.fixture
def made(tmp_path):
    """A table that drawstring made."""
    create_table(LocalStorage(str(tmp_path)), TableOptions(name="orders", record_key_fields=("id",)))
    return tmp_path / PROPERTIES


def test_an_edit_that_the_checksum_misses_is_told_and_not_refused(made, caplog):
    content = made.read_bytes()
    assert not open_table(str(made.parents[1])).inspect().settings_changed
    made.write_bytes(content.replace(b"recordkey.fields=id", b"recordkey.fields=ie"))
    table = open_table(str(made.parents[1]))
    assert table.config.record_key_fields == ("ie",)
    assert "edited or damaged" in caplog.text
    assert table.inspect().settings_changed
    assert "damaged" in table.inspect().facts()["settings"]


def test_every_flipped_bit_of_the_settings_is_refused_or_told(made):
    content, storage = made.read_bytes(), LocalStorage(str(made.parents[1]))
    for place in range(content.index(b"\nhoodie.") * 8 + 8, len(content) * 8, 5):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        made.write_bytes(flipped)
        try:
            told = are_settings_changed(storage)
        except CorruptTable:
            continue
        # Line breaks and separators have other spellings, which mean the same.
        assert told or parse_properties(bytes(flipped), source="s") == parse_properties(content, source="s")


def test_settings_that_hudi_stored_again_carry_no_stale_digest(made, caplog):
    """Java keeps every key and drops comments when it stores properties."""
    kept = [line for line in made.read_bytes().splitlines() if not line.startswith(b"#")]
    made.write_bytes(b"\n".join([b"#Updated at 2026", *kept, b"hoodie.table.some.new.key=1"]))
    assert not open_table(str(made.parents[1])).inspect().settings_changed
    assert not caplog.records
