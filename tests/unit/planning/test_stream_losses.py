"""Streams that go on although files of a commit in pieces are gone: what the newest files hold of it, once."""

from __future__ import annotations

from pathlib import Path

import drawstring
from drawstring.storage import LocalStorage
from tests.small_writes import new_table, write
from tests.unit.planning.test_stream_histories import PLAIN, cluster

CITIES = ("bonn", "kiel", "oslo", "rome")
CLEANED = {**PLAIN, "hoodie.clean.commits.retained": "1"}


class Reader:
    """A query that goes on without what is lost, two file groups at a time, over a commit of four."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        new_table(path, [(city, city, 1, "old") for city in CITIES], options=PLAIN)
        table = drawstring.open_table(self.path)
        self.stream = table.stream({"maxFilesPerTrigger": "2", "failOnDataLoss": "false"})
        self.position = self.stream.initial_offset()

    def next(self) -> tuple[list[str], int]:
        """The keys of the next batch, and how many files it counts as lost."""
        end = self.stream.next_offset(self.position)
        batch = self.stream.batch(self.position, end)
        self.position = end
        return sorted(batch.scan().select("id").to_arrow()["id"].to_pylist()), batch.lost_files

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
