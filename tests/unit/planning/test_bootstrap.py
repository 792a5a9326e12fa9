"""Files of a metadata-only bootstrap hold no rows: reading them must be refused."""

from __future__ import annotations

import pytest

from drawstring.errors import UnsupportedTable
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice
from drawstring.planning.snapshot import METADATA_BOOTSTRAP, _refuse_skeleton


def slice_of(instant: str) -> FileSlice:
    name = f"f-0_0-1-1_{instant}.parquet"
    return FileSlice(FileGroupId("p", "f-0"), instant, BaseFile(f"p/{name}", 10, "f-0", instant))


def test_a_skeleton_file_is_refused_by_name():
    with pytest.raises(UnsupportedTable) as caught:
        _refuse_skeleton(slice_of(METADATA_BOOTSTRAP))
    assert caught.value.condition == "BOOTSTRAPPED_TABLE_NOT_SUPPORTED"


def test_a_file_of_a_full_record_bootstrap_is_read():
    _refuse_skeleton(slice_of("00000000000002"))
