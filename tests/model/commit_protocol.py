"""The commit protocol as a state machine, small enough to visit every state.

Writers change one file group. Every step below is one access to storage; writers interleave in any order, and one
that is not scheduled any more is a crashed one. The lock is a lease that may lapse at any moment, so it never keeps
anybody out; what orders changes are the slots:

    begin:   look at the table, create the requested, then the inflight file, stage data files
    commit:  take the lock, look for the highest slot, finish what it decided, validate, create the next slot,
             look for higher slots (then ours is a deleted number: void), give staged files their final names,
             tell the metadata table (its deltacommit of the same instant), create the completed file, delete old
             slots, release the lock
    rollback, of one's own write or of any other at any moment: the same, and instead of publishing it takes back what
             the metadata table was told while the instant is pending, then deletes

What the metadata table says of an instant counts unless the instant is pending, for Hudi's readers and for ours.

Each `Variant` switches one rule off; the explorer must find what that breaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

COMMIT, ROLLBACK = 0, 1


class Violation(Exception):
    """An invariant does not hold."""


class Shared(NamedTuple):
    """Storage. Sets of instants are bit masks; `slots` holds by number - 1 what was decided, 0 where there is none."""

    slots: tuple[int, ...] = ()
    requested: int = 0
    inflight: int = 0
    staged: int = 0
    final: int = 0
    completed: int = 0
    rolled_back: int = 0
    torn: int = 0
    straggled: int = 0
    told: int = 0
    abandoned: int = 0
    lock: int = 0


class Actor(NamedTuple):
    """A process: its next step and what it remembers."""

    step: str = "begin"
    number: int = 0
    base: int = 0
    target: int = -1
    decision: int = 0
    answer: str = ""


@dataclass(frozen=True)
class Variant:
    """Rules of the protocol; the defaults are the protocol itself."""

    name: str = "the protocol"
    slots: bool = True
    owner_check: bool = False
    lock_lapses: bool = True
    release_checks_owner: bool = True
    finishes: bool = True
    waits_for_others_to_finish: bool = False
    finishes_any_slot: bool = False
    confirms: bool = True
    voids_unfinished: bool = False
    atomic_creation: bool = True
    renames_after_slot: bool = True
    renames_before_completed: bool = True
    rollback_takes_slot: bool = True
    rollback_finishes: bool = True
    post_check: bool = True
    abort_sees_completed: bool = True
    number_before_validation: bool = True
    validates_again: bool = True
    validates_commits: bool = True
    validates_requested: bool = True
    abort_takes_slot: bool = True
    abort_doubts: bool = True
    """Whether a write whose slot may have been created is settled like any other before it is undone."""
    unique_staged_names: bool = True
    hudi_rolls_back: bool = False
    """Whether a writer that knows no slots rolls pending writes back, under the lock."""
    hudi_dies: bool = False
    """Whether a writer that knows no slots dies between the metadata table's commit and its completed instant."""
    hudi_takes_back: bool = True
    """Whether it keeps the metadata table; if not, the next writer puts that right."""
    tells_before_completed: bool = True
    finisher_tells: bool = True
    rollback_takes_back: bool = True
    takes_back_while_pending: bool = True
    void_takes_back: bool = True
    sees_what_hudi_rolled_back: bool = True
    keeps: int = field(default=1)
    """How many slots stay behind the newest; the fewer, the sooner numbers come again."""


def code(kind: int, instant: int) -> int:
    return 1 + instant * 2 + kind


def kind_of(decision: int) -> int:
    return (decision - 1) & 1


def bit_of(decision: int) -> int:
    return 1 << ((decision - 1) >> 1)


def highest(slots: tuple[int, ...]) -> int:
    return len(slots)


def with_slot(slots: tuple[int, ...], number: int, decision: int) -> tuple[int, ...]:
    padded = slots + (0,) * (number - len(slots))
    return (*padded[: number - 1], decision, *padded[number:])


def complete(shared: Shared, instant_bit: int, base: int) -> Shared:
    """Create the completed file, if it is absent: the moment at which a commit becomes visible."""
    if shared.completed & instant_bit:
        return shared
    if shared.completed != base:
        raise Violation("lost update: a commit became visible that had not seen another one")
    return shared._replace(completed=shared.completed | instant_bit)


def permuted(mask: int, order: list[int]) -> int:
    """The mask when the writer at `order[i]` is called i."""
    return sum(1 << new for new, old in enumerate(order) if mask >> old & 1)


class Protocol:
    """The steps of all actors; `actors[i]` writes instant i, unless it is one of the last `rollbacks`."""

    def __init__(self, variant: Variant, writers: int, rollbacks: int = 0) -> None:
        self.variant, self.writers, self.rollbacks = variant, writers, rollbacks

    def first(self) -> tuple[Shared, tuple[Actor, ...]]:
        begun = [Actor() for _ in range(self.writers)]
        return Shared(), (*begun, *(Actor("choose") for _ in range(self.rollbacks)))

    def successors(
        self, shared: Shared, me: int, actors: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        """Every state after one step of actor `me`."""
        actor = actors[me]
        method = getattr(self, "_" + actor.step, None)
        if method is not None:
            yield from method(shared, me, actor, actors)

    def alike(self, shared: Shared, actors: tuple[Actor, ...]) -> tuple[Shared, tuple[Actor, ...]]:
        """The same state with the writers called in another order, alike for many states that differ in that only."""
        masks = shared[1:-1]

        def looks(me: int) -> tuple[object, ...]:
            actor = actors[me]
            return (actor.step, actor.number, actor.answer, tuple(mask >> me & 1 for mask in masks))

        order = sorted(range(self.writers), key=looks)
        if order == list(range(self.writers)):
            return shared, actors
        called = {old: new for new, old in enumerate(order)}

        def decision(found: int) -> int:
            return code(kind_of(found), called[(found - 1) >> 1]) if found else 0

        def actor(a: Actor) -> Actor:
            target = called.get(a.target, a.target)
            return Actor(a.step, a.number, permuted(a.base, order), target, decision(a.decision), a.answer)

        lock = called[shared.lock - 1] + 1 if 0 < shared.lock <= self.writers else shared.lock
        moved = (*(actors[old] for old in order), *actors[self.writers :])
        slots = tuple(map(decision, shared.slots))
        return Shared(slots, *(permuted(mask, order) for mask in masks), lock), tuple(map(actor, moved))

    def surroundings(
        self, s: Shared, actors: tuple[Actor, ...]
    ) -> list[tuple[str, tuple[Shared, tuple[Actor, ...]]]]:
        """What happens without any actor: attempts of tasks that outlive their write, and Apache Hudi."""
        found = []
        if not self.variant.unique_staged_names:
            for me in range(self.writers):
                if actors[me].step not in ("begin", "inflight") and not s.straggled & 1 << me:
                    late = s._replace(staged=s.staged | 1 << me, straggled=s.straggled | 1 << me)
                    found.append((f"straggler of {me}", (late, actors)))
        for me in range(self.writers if self.variant.hudi_dies else 0):
            if actors[me].step == "begin" and not s.requested & 1 << me:
                begun = s._replace(
                    requested=s.requested | 1 << me, inflight=s.inflight | 1 << me, told=s.told | 1 << me
                )
                dead = actors[me]._replace(step="crashed")
                found.append((f"Hudi dies as {me}", (begun, (*actors[:me], dead, *actors[me + 1 :]))))
        if self.variant.hudi_rolls_back and self._may_lock(s, actors, -1):
            for me in range(self.writers):
                if s.requested & ~s.completed & 1 << me:
                    rolled = self._gone(self._deleted(s, 1 << me), 1 << me)
                    found.append((f"Hudi rolls {me} back", (self._as_hudi(rolled, 1 << me), actors)))
        return found

    def _as_hudi(self, s: Shared, bit: int) -> Shared:
        without = s._replace(final=s.final & ~bit, lock=0)
        if self.variant.hudi_takes_back:
            return self._untold(without, bit)
        return without._replace(abandoned=without.abandoned | (bit & without.told))

    # Writing

    def _begin(self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]) -> Iterator[tuple[Shared, Actor]]:
        yield s._replace(requested=s.requested | 1 << me), a._replace(step="inflight", base=s.completed)

    def _inflight(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        # Staged files matter to nobody before the commit, so they need no step of their own.
        step = "lock" if self.variant.renames_after_slot else "early_rename"
        announced = s._replace(inflight=s.inflight | 1 << me, staged=s.staged | 1 << me)
        yield announced, a._replace(step=step)

    def _early_rename(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        if s.staged & 1 << me:
            yield self._renamed(s, 1 << me), a._replace(step="lock")
        else:
            yield s, self._aborted(me, a)

    def _may_lock(self, s: Shared, actors: tuple[Actor, ...], me: int) -> bool:
        free = self.variant.lock_lapses or s.lock in (0, me + 1)
        return free or actors[s.lock - 1].step == "crashed"

    def _lock(
        self, s: Shared, me: int, a: Actor, actors: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        if not self._may_lock(s, actors, me):
            if not self.variant.release_checks_owner:
                # It gives up, and its clean-up releases what it never had.
                yield s._replace(lock=0), a
            return
        locked = s if self._lock_is_idle else s._replace(lock=me + 1)
        if not self.variant.slots:
            yield locked, a._replace(step="validate" if a.answer != "rolling" else "validate_rollback")
            return
        number = highest(s.slots)
        yield locked, a._replace(step="read" if number else self._after_finishing(a), number=number)

    @property
    def _lock_is_idle(self) -> bool:
        """Whether nobody ever looks at the lock: one that may lapse at any moment keeps nobody out."""
        return self.variant.lock_lapses and not self.variant.owner_check

    def _after_finishing(self, a: Actor) -> str:
        return "validate" if a.answer != "rolling" else "validate_rollback"

    def _read(self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]) -> Iterator[tuple[Shared, Actor]]:
        """Read the highest slot and look whether it was carried out."""
        found = self._to_finish(s, a)
        rolling = a.answer == "rolling" and not self.variant.rollback_finishes
        void = self._void_decision(s, a)
        if void and self.variant.void_takes_back:
            yield self._untold(s, bit_of(void)), a._replace(step=self._after_finishing(a), decision=0)
        elif not found or rolling or self.variant.voids_unfinished:
            yield s, a._replace(step=self._after_finishing(a), decision=0)
        elif self.variant.waits_for_others_to_finish:
            yield s, a._replace(step="lock")
        elif not self.variant.finishes:
            yield s, a._replace(step=self._after_finishing(a), decision=0)
        else:
            yield s, a._replace(step="confirm" if self.variant.confirms else "finish", decision=found)

    def _confirm(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        """Look again: a number that was deleted and created anew has higher ones, and says nothing."""
        yield (
            s,
            a._replace(step="finish")
            if highest(s.slots) == a.number
            else a._replace(step="lock", decision=0),
        )

    def _to_finish(self, s: Shared, a: Actor) -> int:
        places = range(len(s.slots)) if self.variant.finishes_any_slot else [a.number - 1]
        for place in places:
            found = s.slots[place] if place < len(s.slots) else 0
            if found and not self._is_done(s, found) and not self._is_void(s, found):
                return found
        return 0

    def _void_decision(self, s: Shared, a: Actor) -> int:
        """The newest decision, if its instant is gone and it was not carried out."""
        found = s.slots[a.number - 1] if a.number <= len(s.slots) else 0
        return found if found and not self._is_done(s, found) and self._is_void(s, found) else 0

    def _is_done(self, s: Shared, decision: int) -> bool:
        if kind_of(decision) == COMMIT:
            return bool(s.completed & bit_of(decision))
        return not s.requested & bit_of(decision)

    def _is_void(self, s: Shared, decision: int) -> bool:
        """A writer that knows no slots has rolled the instant back."""
        gone = kind_of(decision) == COMMIT and not s.inflight & bit_of(decision)
        return gone and self.variant.sees_what_hudi_rolled_back

    def _finish(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        bit = bit_of(a.decision)
        if kind_of(a.decision) == ROLLBACK:
            yield self._taken_back(s, bit), a._replace(step="finish_delete")
        elif not (s.staged | s.final) & bit and self.variant.renames_before_completed:
            yield s, a._replace(step="failed")
        elif self.variant.renames_before_completed:
            yield self._renamed(s, bit), a._replace(step="finish_tell")
        else:
            yield s, a._replace(step="finish_tell")

    def _finish_delete(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        yield self._deleted(s, bit_of(a.decision)), a._replace(step="finish_last")

    def _finish_tell(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        bit = bit_of(a.decision) if self.variant.finisher_tells else 0
        yield s._replace(told=s.told | bit), a._replace(step="finish_last")

    def _finish_last(
        self, s: Shared, me: int, a: Actor, actors: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        bit, after = bit_of(a.decision), a._replace(step=self._after_finishing(a), decision=0)
        if kind_of(a.decision) == ROLLBACK:
            yield self._gone(s, bit), after
            return
        finished = complete(s, bit, actors[(a.decision - 1) >> 1].base)
        yield finished if self.variant.renames_before_completed else self._renamed(finished, bit), after

    def _renamed(self, s: Shared, bit: int) -> Shared:
        if not s.staged & bit:
            return s
        torn = s.torn | (bit & s.straggled & s.final)
        return s._replace(staged=s.staged & ~bit, final=s.final | bit, torn=torn)

    def _untold(self, s: Shared, bit: int) -> Shared:
        return s._replace(told=s.told & ~bit, abandoned=s.abandoned & ~bit)

    def _taken_back(self, s: Shared, bit: int) -> Shared:
        at_once = self.variant.rollback_takes_back and self.variant.takes_back_while_pending
        return self._untold(s, bit) if at_once else s

    def _deleted(self, s: Shared, bit: int) -> Shared:
        # Nothing has a final name before it was decided, so a rollback need not look for any.
        return s._replace(staged=s.staged & ~bit, inflight=s.inflight & ~bit)

    def _gone(self, s: Shared, bit: int) -> Shared:
        return s._replace(requested=s.requested & ~bit, rolled_back=s.rolled_back | bit)

    def _validate(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        announced = s.inflight & (s.requested if self.variant.validates_requested else -1)
        ours = bool(announced & 1 << me)
        fits = s.completed == a.base or not self.variant.validates_commits
        if not ours or not fits:
            yield s, self._aborted(me, a)
        elif not self.variant.slots:
            yield s, a._replace(step="owner_check" if self.variant.owner_check else "rename")
        else:
            number = a.number if self.variant.number_before_validation else highest(s.slots)
            step = "take" if self.variant.atomic_creation else "look_before_taking"
            yield s, a._replace(step=step, number=number + 1)

    def _owner_check(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        yield s, a._replace(step="rename") if s.lock == me + 1 else self._aborted(me, a)

    def _look_before_taking(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        taken = len(s.slots) >= a.number and s.slots[a.number - 1]
        yield s, a._replace(step="lock" if taken else "take")

    def _take(self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]) -> Iterator[tuple[Shared, Actor]]:
        taken = len(s.slots) >= a.number and s.slots[a.number - 1]
        if taken and self.variant.atomic_creation:
            again = a._replace(number=a.number + 1)
            yield s, a._replace(step="lock") if self.variant.validates_again else again
            return
        created = s._replace(slots=with_slot(s.slots, a.number, code(COMMIT, me)))
        yield created, a._replace(step="look_again" if self.variant.post_check else "rename")
        # Storage may do the work and report an error.
        yield created, self._aborted(me, a, decided=True)

    def _look_again(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        step = "rename" if highest(s.slots) == a.number else "look_for_completed"
        yield s, a._replace(step=step)

    def _look_for_completed(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        if s.completed & 1 << me:
            yield self._end(s, me, a._replace(answer="committed"))
        else:
            yield s, self._aborted(me, a)

    def _rename(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        after = "tell" if self.variant.tells_before_completed else "complete"
        if not self.variant.renames_before_completed:
            yield s, a._replace(step=after)
        elif not (s.staged | s.final) & 1 << me:
            yield s, a._replace(step="failed")
        else:
            yield self._renamed(s, 1 << me), a._replace(step=after)

    def _tell(self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]) -> Iterator[tuple[Shared, Actor]]:
        told = s._replace(told=s.told | 1 << me)
        if self.variant.tells_before_completed:
            yield told, a._replace(step="complete")
        else:
            yield from self._forget(told, me, a)

    def _complete(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        done = complete(s, 1 << me, a.base)
        if not self.variant.tells_before_completed:
            yield done, a._replace(step="tell", answer="committed")
        elif self.variant.renames_before_completed:
            yield from self._forget(done, me, a._replace(answer="committed"))
        else:
            yield done, a._replace(step="late_rename", answer="committed")

    def _late_rename(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        yield from self._forget(self._renamed(s, 1 << me), me, a)

    def _forget(self, s: Shared, me: int, a: Actor) -> Iterator[tuple[Shared, Actor]]:
        """Delete old slots, or crash before that."""
        yield self._end(s, me, a)
        old = min(max(0, a.number - self.variant.keeps), len(s.slots))
        if any(s.slots[:old]):
            slots = (0,) * old + s.slots[old:]
            yield self._end(s._replace(slots=slots if any(slots) else ()), me, a)

    def _end(self, s: Shared, me: int, a: Actor) -> tuple[Shared, Actor]:
        ended = Actor("done", base=a.base, answer=a.answer)
        if self._lock_is_idle or not self.variant.release_checks_owner:
            return s._replace(lock=0), ended
        return s._replace(lock=0 if s.lock == me + 1 else s.lock), ended

    # Rolling back: one's own write, or that of another that may be dead

    def _choose(
        self, s: Shared, me: int, a: Actor, actors: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        """Roll any write back, at any moment; it may be at work."""
        for target in range(self.writers):
            if s.requested & 1 << target and not s.completed & 1 << target:
                rolling = a._replace(step="lock", target=target, answer="rolling")
                if self.variant.rollback_takes_slot:
                    yield from self._lock(s, me, rolling, actors)
                else:
                    yield s, rolling._replace(step="take_back")

    def _aborted(self, me: int, a: Actor, *, decided: bool = False) -> Actor:
        """Roll back one's own write. What cannot have been decided may be deleted without a slot."""
        slotted = self.variant.slots and (
            self.variant.abort_takes_slot or (decided and self.variant.abort_doubts)
        )
        return Actor("lock" if slotted else "delete", base=a.base, target=me, answer="rolling")

    def _validate_rollback(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        bit = 1 << a.target
        if s.completed & bit:
            committed = "committed" if self.variant.abort_sees_completed else "not committed"
            yield self._end(s, me, a._replace(answer=committed if a.target == me else "refused"))
        elif not s.requested & bit:
            yield self._end(s, me, a._replace(answer="not committed" if a.target == me else "refused"))
        else:
            number = a.number if self.variant.number_before_validation else highest(s.slots)
            yield s, a._replace(step="take_rollback", number=number + 1)

    def _take_rollback(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        if len(s.slots) >= a.number and s.slots[a.number - 1] and self.variant.atomic_creation:
            yield s, a._replace(step="lock")
            return
        created = s._replace(slots=with_slot(s.slots, a.number, code(ROLLBACK, a.target)))
        yield created, a._replace(step="look_again_rollback" if self.variant.post_check else "take_back")

    def _look_again_rollback(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        yield s, a._replace(step="take_back" if highest(s.slots) == a.number else "lock")

    def _take_back(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        yield self._taken_back(s, 1 << a.target), a._replace(step="delete")

    def _delete(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        if not self.variant.slots and s.completed & 1 << a.target:
            yield self._end(s, me, a._replace(answer="committed" if a.target == me else "refused"))
            return
        yield self._deleted(s, 1 << a.target), a._replace(step="delete_last")

    def _delete_last(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        ended = a._replace(answer="not committed" if a.target == me else "rolled back")
        gone = self._gone(s, 1 << a.target)
        if self.variant.takes_back_while_pending:
            yield from self._forget(gone, me, ended)
        else:
            yield gone, ended._replace(step="take_back_late")

    def _take_back_late(
        self, s: Shared, me: int, a: Actor, _all: tuple[Actor, ...]
    ) -> Iterator[tuple[Shared, Actor]]:
        yield from self._forget(self._untold(s, 1 << a.target), me, a)


def check(shared: Shared, actors: tuple[Actor, ...]) -> None:
    """The invariants of every state."""
    s = shared
    if s.final & ~(s.completed | s.inflight | s.requested):
        raise Violation("a reader sees a file of no instant: it takes it for committed")
    if s.completed & ~s.final:
        raise Violation("a committed file is missing")
    if s.completed & s.rolled_back:
        raise Violation("a rolled-back write is visible")
    if s.completed & ~s.told:
        raise Violation("the metadata table lacks a committed write")
    if s.told & ~(s.completed | s.inflight | s.requested | s.abandoned):
        raise Violation("the metadata table tells of a write that is not there")
    if s.torn & s.completed:
        raise Violation("a committed file was replaced")
    for me, actor in enumerate(actors):
        bit = 1 << me
        if actor.answer == "committed" and not s.completed & bit:
            raise Violation("an acknowledged commit is not visible")
        if actor.answer == "not committed" and s.completed & bit:
            raise Violation("a write that was reported as failed is visible")
