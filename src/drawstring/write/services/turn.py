"""A turn at a table: the lock, held, with everything that others decided carried out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.errors import CommitConflict
from drawstring.model.instant import Action, Instant, State
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write import slots
from drawstring.write.clock import Clock, newest_time, next_time
from drawstring.write.locks import configured_lock
from drawstring.write.rollback import roll_back_dead_writers
from drawstring.write.services.support import check_serviceable
from drawstring.write.slots import Decision, Step
from drawstring.write.table_facts import load_state


@dataclass
class Turn:
    """What one holder of the lock sees, and the newest slot; `decide` goes on from there."""

    state: TableState
    slot: int
    clock: Clock

    @property
    def storage(self) -> Storage:
        """Where the table is."""
        return self.state.storage

    @property
    def directory(self) -> str:
        """Where the active timeline lies."""
        return self.state.config.timeline_directory

    @property
    def newest_time(self) -> str:
        """The newest time on the timeline."""
        return newest_time(self.state.timeline.ascending_instants)

    def next_time(self, newest: str | None = None) -> str:
        """Return a time later than everything on the timeline, or than the given one."""
        after = self.newest_time if newest is None else newest
        return next_time(after, clock=self.clock, timezone=self.state.config.timezone)

    def decide(self, decision: Decision) -> None:
        """Take the next slot and carry the change out; the state is looked at anew.

        Raises `CommitConflict` when this holder has lost its lock, and another took the slot.
        """
        self.slot += 1
        if not slots.take(self.storage, self.slot, decision):
            raise CommitConflict(
                f"The service {decision.instant} of {self.storage.root} did not go on: another writer changed the "
                "table at the same moment. Nothing of it was decided; run it again.",
                condition="OVERTAKEN",
                path=self.storage.root,
                instant=decision.instant,
            )
        slots.carry_out(self.storage, decision)
        slots.forget_old(self.storage, self.slot)
        self.state = load_state(self.storage)

    def request(self, action: Action, plan: bytes) -> Instant:
        """Put a plan on the timeline: from here on everybody respects it, and may run it."""
        time = self.next_time()
        name = f"{time}.{action.value}.requested"
        path = f"{self.directory}/{name}"
        self.decide(Decision(f"plan_{time}", (Step.create(path, plan),), creates=path))
        return Instant(time, action, State.REQUESTED, None, name)

    def find(self, instant: Instant) -> Instant | None:
        """Return what has become of an instant; None when it is gone."""
        found = self.state.timeline.ascending_instants
        return next((i for i in found if i.requested_time == instant.requested_time), None)


@contextmanager
def turn(
    storage: Storage, options: ConcurrencyOptions, *, clock: Clock, action: str, rolls_back: bool = False
) -> Iterator[Turn]:
    """Take the lock; finish what others decided and, if asked, roll back what dead writers left.

    Raises `UnsupportedTable` when the service would spoil the table.
    """
    with configured_lock(storage, options):
        number = slots.settle(storage)
        state = load_state(storage)
        check_serviceable(state, action)
        if rolls_back:
            number, state = roll_back_dead_writers(state, number, options, clock=clock)
        yield Turn(state, number, clock)
