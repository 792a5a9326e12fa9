"""Tables over whose settings a process died while it replaced them, as Apache Hudi does it: by deleting the file."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.errors import InvalidInput
from drawstring.storage.table_properties import BACKUP, PROPERTIES, recover_table_properties
from tests.small_writes import OPTIONS, SCHEMA, arrow, new_table, rows_of, write

ROWS = [("1", "oslo", 1, "a")]


@pytest.fixture
def died_in_the_settings(tmp_path):
    """A table as Apache Hudi leaves it that dies while it replaces the settings: only their backup is there."""
    storage = new_table(tmp_path / "t", ROWS, options={"hoodie.table.type": "MERGE_ON_READ"})
    (tmp_path / "t" / PROPERTIES).rename(tmp_path / "t" / BACKUP)
    return storage


def test_write_to_a_table_whose_settings_have_only_a_backup_puts_them_back(died_in_the_settings, tmp_path):
    before = died_in_the_settings.read(BACKUP)
    drawstring.open_table(str(tmp_path / "t")).write(arrow([("2", "oslo", 1, "b")]))
    assert died_in_the_settings.read(PROPERTIES) == before
    assert not died_in_the_settings.exists(BACKUP)
    assert rows_of(tmp_path / "t") == sorted([*ROWS, ("2", "oslo", 1, "b")])


def test_table_whose_settings_have_only_a_backup_is_there(died_in_the_settings, tmp_path):
    """It used to get the settings of whoever wrote next, which hid its rows."""
    acts = (
        lambda: drawstring.create_table(str(tmp_path / "t"), SCHEMA, options=OPTIONS),
        lambda: write(died_in_the_settings, [("2", "oslo", 1, "b")], mode="errorifexists"),
    )
    for act in acts:
        with pytest.raises(InvalidInput) as caught:
            act()
        assert caught.value.condition == "TABLE_EXISTS"
    assert write(died_in_the_settings, [("2", "oslo", 1, "b")], mode="ignore").instant is None
    assert rows_of(tmp_path / "t") == ROWS
    result = write(died_in_the_settings, [("2", "oslo", 1, "b")], mode="overwrite")
    assert result.path == died_in_the_settings.root
    assert rows_of(tmp_path / "t") == [("2", "oslo", 1, "b")]


def test_metadata_table_of_a_table_whose_settings_have_only_a_backup_can_be_made_anew(
    died_in_the_settings, tmp_path
):
    assert drawstring.open_table(str(tmp_path / "t")).rebuild_metadata()
    assert rows_of(tmp_path / "t") == ROWS


def test_backup_beside_settings_that_can_be_read_goes(tmp_path):
    storage = new_table(tmp_path / "t", ROWS)
    before = storage.read(PROPERTIES)
    storage.write(BACKUP, before.replace(b"trips", b"older"))
    recover_table_properties(storage)
    assert storage.read(PROPERTIES) == before
    assert not storage.exists(BACKUP)
