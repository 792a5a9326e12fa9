"""The metadata table that Hudi wrote names the same slices as the directories do."""

from __future__ import annotations

import pytest

from drawstring.planning.table_state import TableState
from drawstring.storage.local import LocalStorage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.reader import TimelineReader
from drawstring.view.file_system_view import visible_slices
from drawstring.view.listing import StorageListing
from drawstring.view.metadata_table import open_metadata_table
from tests.golden import harness


@pytest.mark.parametrize("name", harness.table_names())
def test_the_metadata_table_and_the_directories_agree(name, golden_path):
    storage = LocalStorage(golden_path(name))
    config = read_table_config(storage)
    timeline = TimelineReader(storage, config).load()
    listing = StorageListing(storage, config)
    metadata = open_metadata_table(storage, config, timeline)
    if "files" not in config.metadata_partitions:
        assert metadata is None
        return
    assert metadata is not None
    visibility = TableState(storage, config, timeline).visibility(None)

    def slices(source):
        found = {p: visible_slices(p, source.files(p), visibility) for p in source.partitions()}
        return {partition: slices for partition, slices in found.items() if slices}

    assert slices(metadata) == slices(listing)
