"""Slots on real storage, in the orders of events that the model of the protocol found."""

from __future__ import annotations

import pytest
from conftest_write import metadata_of, stage_file

from drawstring.storage import LocalStorage
from drawstring.write import slots
from drawstring.write.create import create_table
from drawstring.write.rollback import rollback_pending
from drawstring.write.slots import Decision, Step, slot_path
from drawstring.write.transaction import Committed, Conflicted, Transaction


class Interrupted(LocalStorage):
    """Lets something else happen once, right before a call whose path fits."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.before: tuple[str, str] | None = None
        self.happens = lambda: None

    def at(self, call: str, path: str, happens) -> None:
        self.before, self.happens = (call, path), happens

    def _pause(self, call: str, path: str) -> None:
        if self.before is not None and call == self.before[0] and self.before[1] in path:
            self.before = None
            self.happens()

    def read(self, path):
        self._pause("read", path)
        return super().read(path)

    def create_if_absent(self, path, content, **more):
        self._pause("create_if_absent", path)
        return super().create_if_absent(path, content, **more)


@pytest.fixture
def storage(tmp_path):
    return Interrupted(str(tmp_path / "table"))


def creating(name: str) -> Decision:
    return Decision(name, (Step.create(name, b"x"),), creates=name)


def test_decided_change_is_finished_by_whoever_comes_next(storage):
    assert slots.take(storage, 1, creating("a"))
    assert not storage.exists("a")
    assert slots.settle(storage) == 1
    assert storage.exists("a")
    assert slots.settle(storage) == 1


def test_number_that_was_deleted_and_taken_again_before_it_was_read_is_not_carried_out(storage):
    """A change that was validated long ago must not be carried out by one who listed the slots long ago."""
    storage.write("committed", b"rows of a commit that was acknowledged")
    assert slots.take(storage, 1, creating("a"))
    late = Decision("late", (Step.delete("committed"),), removes="committed")

    def meanwhile():
        slots.carry_out(storage, creating("a"))
        assert slots.take(storage, 2, creating("b"))
        slots.carry_out(storage, creating("b"))
        storage.delete(slot_path(1))
        assert not slots.take(storage, 1, late), "it finds the higher slot"

    storage.at("read", slot_path(1), meanwhile)
    assert slots.settle(storage) == 2
    assert storage.exists("committed")


def test_number_that_was_deleted_before_it_was_read_is_looked_for_again(storage):
    assert slots.take(storage, 1, creating("a"))

    def meanwhile():
        slots.carry_out(storage, creating("a"))
        assert slots.take(storage, 2, creating("b"))
        storage.delete(slot_path(1))

    storage.at("read", slot_path(1), meanwhile)
    assert slots.settle(storage) == 2
    assert storage.exists("b"), "the change of the newest slot is finished"


def test_slot_that_is_ours_although_the_store_says_it_exists_is_taken(storage):
    """A store that repeats a request answers that the file exists: its own."""
    LocalStorage.create_if_absent(storage, slot_path(1), creating("a").to_bytes())
    assert slots.take(storage, 1, creating("a"))
    assert not slots.take(storage, 1, creating("b"))


def test_write_rolled_back_before_its_inflight_file_was_made_does_not_commit(storage):
    from conftest_write import OPTIONS

    create_table(storage, OPTIONS)

    def meanwhile():
        # The lease of the writer has lapsed, and it is taken for dead.
        storage.delete(".hoodie/lock")
        entries = storage.list(".hoodie/timeline")
        requested = next(entry.name for entry in entries if entry.name.endswith(".commit.requested"))
        rollback_pending(storage, requested.partition(".")[0])

    storage.at("create_if_absent", ".inflight", meanwhile)
    transaction = Transaction.begin(storage, operation="INSERT")
    outcome = transaction.commit(metadata_of(stage_file(transaction)))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "ROLLED_BACK"
    again = Transaction.begin(storage, operation="INSERT")
    assert isinstance(again.commit(metadata_of(stage_file(again))), Committed)
