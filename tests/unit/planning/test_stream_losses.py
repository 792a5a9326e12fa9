"""Streams in the middle of a commit of which files are gone: what is still there comes, once."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.planning.streams.batch import StreamBatch
from drawstring.storage import LocalStorage
from tests.small_writes import new_table, write
from tests.unit.planning.test_stream_histories import PLAIN, cluster

CITIES = ("bonn", "kiel", "oslo", "rome")
CHANGE_DATA = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}
CLEANED = {**PLAIN, "hoodie.clean.commits.retained": "1"}


class Reader:
    """A query that reads a commit of four file groups in two pieces; `lenient` goes on without what is lost."""

    def __init__(self, path: Path, *, lenient: bool = True, **options: str) -> None:
        self.path = str(path)
        captured = {"hoodie.table.cdc.enabled": str(options == CHANGE_DATA).lower()}
        new_table(path, [(city, city, 1, "old") for city in CITIES], options=PLAIN | captured)
        table = drawstring.open_table(self.path, options=options)
        self.stream = table.stream({"maxFilesPerTrigger": "2", "failOnDataLoss": str(not lenient).lower()})
        self.position = self.stream.initial_offset()

    def batch(self) -> StreamBatch:
        """The next batch."""
        start, self.position = self.position, self.stream.next_offset(self.position)
        return self.stream.batch(start, self.position)

    def next(self) -> tuple[list[str], int]:
        """The keys of the next batch, and how many files it counts as lost."""
        batch = self.batch()
        return sorted(batch.scan().select("id").to_arrow()["id"].to_pylist()), batch.lost_files

    def count(self) -> tuple[int, int]:
        """How many rows the next batch has, and how many files it counts as lost."""
        batch = self.batch()
        return batch.scan().to_arrow().num_rows, batch.lost_files

    def move(self, *cities: str) -> None:
        """Move partitions to other file groups."""
        for city in cities:
            cluster(drawstring.open_table(self.path), city)

    def clean(self) -> None:
        """Take the files that were replaced, once two writes have come that touch nothing else."""
        for number in range(2):
            write(LocalStorage(self.path), [("x", "lima", number, "x")], options=PLAIN)
        assert drawstring.open_table(self.path).clean(options=CLEANED).files


def test_rows_that_a_clustering_moved_come_with_the_first_piece_of_their_commit(tmp_path):
    reader = Reader(tmp_path)
    reader.move("bonn", "rome")
    reader.clean()
    assert reader.next() == (["bonn", "kiel", "rome"], 1)
    assert reader.next() == (["oslo"], 1)


def test_rows_that_were_moved_after_the_first_piece_was_read_are_lost_and_counted(tmp_path):
    reader = Reader(tmp_path)
    assert reader.next() == (["bonn", "kiel"], 0)
    reader.move("bonn")
    reader.clean()
    # Its file is still there, but for the commit, of which another one is gone, the newest files are read.
    reader.move("rome")
    assert reader.next() == (["oslo"], 1)


CONTENTS = [{}, {"read.changelog": "true"}, CHANGE_DATA]


@pytest.mark.parametrize("options", CONTENTS, ids=["rows", "changelog", "change data"])
@pytest.mark.parametrize("lenient", [False, True])
def test_files_that_earlier_pieces_have_read_are_not_missed(tmp_path, options, lenient):
    reader = Reader(tmp_path, lenient=lenient, **options)
    assert reader.count() == (2, 0)
    reader.move("bonn", "kiel")
    reader.clean()
    assert reader.count() == (2, 0)


@pytest.mark.parametrize("options", CONTENTS[1:], ids=["changelog", "change data"])
def test_changes_whose_files_are_gone_are_counted_in_their_piece(tmp_path, options):
    reader = Reader(tmp_path, **options)
    reader.move("bonn", "rome")
    reader.clean()
    assert [reader.count(), reader.count()] == [(1, 1), (1, 1)]
