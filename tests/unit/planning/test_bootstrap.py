"""Files of a metadata-only bootstrap hold no rows: reading them must be refused."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.errors import UnsupportedTable
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice
from drawstring.planning.snapshot import METADATA_BOOTSTRAP, refuse_skeleton
from tests.golden import harness


def slice_of(instant: str) -> FileSlice:
    name = f"f-0_0-1-1_{instant}.parquet"
    return FileSlice(FileGroupId("p", "f-0"), instant, BaseFile(f"p/{name}", 10, "f-0", instant))


def test_a_skeleton_file_is_refused_by_name():
    with pytest.raises(UnsupportedTable) as caught:
        refuse_skeleton(slice_of(METADATA_BOOTSTRAP))
    assert caught.value.condition == "BOOTSTRAPPED_TABLE_NOT_SUPPORTED"


def test_a_file_of_a_full_record_bootstrap_is_read():
    refuse_skeleton(slice_of("00000000000002"))


def test_a_bootstrapped_table_is_refused_when_it_is_opened_while_rows_lie_outside_of_it(tmp_path):
    path = harness.extract("v9_mor_bootstrap", tmp_path)
    assert drawstring.open_table(path).config.was_bootstrapped
    for file in [found for found in path.rglob("*") if "00000000000002" in found.name]:
        file.rename(file.with_name(file.name.replace("00000000000002", METADATA_BOOTSTRAP)))
    for options in ({}, {"hoodie.datasource.query.type": "read_optimized"}):
        with pytest.raises(UnsupportedTable, match="outside") as caught:
            drawstring.open_table(path, options=options)
        assert caught.value.condition == "BOOTSTRAPPED_TABLE_NOT_SUPPORTED"
