"""The commit protocol holds in every state; every rule of it is needed."""

from __future__ import annotations

import pytest

from .commit_protocol import Protocol, Variant
from .explorer import explore, wander

BROKEN = [
    (Variant("lock without slot", slots=False), "lost update"),
    (Variant("owner check as a step of its own", slots=False, owner_check=True), "lost update"),
    (
        Variant("release without owner check", slots=False, lock_lapses=False, release_checks_owner=False),
        "",
    ),
    (Variant("decided slots are not finished", finishes=False), "lost update"),
    (Variant("decided slots are waited for", waits_for_others_to_finish=True), "wedged"),
    (Variant("unfinished slots of others are void", voids_unfinished=True), "lost update"),
    (Variant("any unfinished slot is finished", finishes_any_slot=True, confirms=False), ""),
    (Variant("the slot is read without looking again", confirms=False), ""),
    (Variant("look for the slot, then create it", atomic_creation=False), ""),
    (Variant("final names before the slot", renames_after_slot=False), "a reader sees a file of no instant"),
    (Variant("completed file before the final names", renames_before_completed=False), "missing"),
    (Variant("rollback without slot", rollback_takes_slot=False), ""),
    (Variant("rollback does not finish what was decided", rollback_finishes=False), ""),
    (Variant("old slots deleted without looking again", post_check=False), ""),
    (Variant("no slot is kept", keeps=0), ""),
    (Variant("abort does not look whether it has landed", abort_sees_completed=False), "reported as failed"),
    (Variant("slot number read after validation", number_before_validation=False), "lost update"),
    (Variant("lost slot: the next number, unvalidated", validates_again=False), "lost update"),
    (Variant("other commits are not looked for", validates_commits=False), "lost update"),
    (Variant("the requested file is not looked for", validates_requested=False), "rolled-back"),
    (
        Variant("undone although perhaps decided", abort_takes_slot=False, abort_doubts=False),
        "a reader sees a file of no instant",
    ),
    (
        Variant(
            "decisions that Hudi rolled back are finished",
            lock_lapses=False,
            hudi_rolls_back=True,
            sees_what_hudi_rolled_back=False,
        ),
        "",
    ),
    (Variant("Hudi rolls back under a lock that lapses", hudi_rolls_back=True), ""),
    (Variant("attempts of a task share a name", unique_staged_names=False), "replaced"),
    (
        Variant("metadata table told after the completed file", tells_before_completed=False),
        "lacks a committed",
    ),
    (Variant("who finishes a commit tells no metadata table", finisher_tells=False), "lacks a committed"),
    (
        Variant(
            "rollback leaves what the metadata table was told", hudi_dies=True, rollback_takes_back=False
        ),
        "tells of a write",
    ),
    (
        Variant("rollback takes it back after the instant", hudi_dies=True, takes_back_while_pending=False),
        "tells of a write",
    ),
    (
        Variant(
            "void decisions leave what the metadata table was told",
            lock_lapses=False,
            hudi_rolls_back=True,
            hudi_takes_back=False,
            void_takes_back=False,
        ),
        "nobody takes it back",
    ),
]


SAFE = [
    Variant(),
    Variant("two old slots are kept", keeps=2),
    Variant("Hudi rolls back under a lock that never lapses", lock_lapses=False, hudi_rolls_back=True),
    Variant(
        "Hudi rolls back and leaves what the metadata table was told",
        lock_lapses=False,
        hudi_rolls_back=True,
        hudi_takes_back=False,
    ),
    Variant("Hudi dies after it told the metadata table", hudi_dies=True),
    Variant("what was never decided is undone without slot", abort_takes_slot=False),
]


@pytest.mark.parametrize(("writers", "rollbacks"), [(1, 1), (2, 0), (2, 1), (3, 0)])
@pytest.mark.parametrize("variant", SAFE, ids=[variant.name for variant in SAFE])
def test_protocol_holds_in_every_state(variant, writers, rollbacks):
    explored = explore(Protocol(variant, writers, rollbacks))
    assert explored.violation is None, explored.trace


@pytest.mark.torture
def test_protocol_holds_in_every_state_of_three_writers_and_a_rollback():
    explored = explore(Protocol(Variant(), writers=3, rollbacks=1))
    assert explored.violation is None, explored.trace
    assert explored.states > 500_000


def test_protocol_holds_on_random_ways_through_more_writers_than_can_be_explored():
    for seed in range(100):
        wander(Protocol(Variant(), writers=4, rollbacks=2), seed=seed, steps=120)


def test_lock_that_never_lapses_is_enough_without_slots():
    """What Hudi relies on, and why a lease is not that."""
    perfect = Variant("perfect lock", slots=False, lock_lapses=False)
    assert explore(Protocol(perfect, writers=3)).violation is None


def test_at_least_twelve_rules_are_tried():
    assert len(BROKEN) >= 20


@pytest.mark.parametrize(("variant", "found"), BROKEN, ids=[variant.name for variant, _ in BROKEN])
def test_every_rule_is_needed(variant, found):
    for writers, rollbacks in ((2, 0), (2, 1)):
        explored = explore(Protocol(variant, writers, rollbacks))
        if explored.violation:
            break
    assert explored.violation, f"{explored.states} states, nothing found"
    assert found in explored.violation, explored.trace
