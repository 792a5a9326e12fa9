"""Visit every state of a protocol, breadth first; a violation comes with the shortest way to it.

States that were seen are remembered by their hash of 64 bits, so that millions fit into memory.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .commit_protocol import Actor, Protocol, Shared, Violation, check

_TRIES = 3
"""Whoever had looked before a decided commit was finished meets a conflict; the next try comes through."""
_STEPS_ALONE = 80

State = tuple[Shared, tuple[Actor, ...]]


@dataclass(frozen=True)
class Explored:
    """What was seen: how many states, and the first violation with the steps that led to it."""

    states: int
    violation: str | None = None
    trace: tuple[str, ...] = ()


def explore(protocol: Protocol, *, limit: int = 10_000_000) -> Explored:
    """Visit every state; stop at the first that breaks an invariant or from which nobody can commit any more."""
    first = protocol.first()
    came_from: dict[int, tuple[int, str] | None] = {hash(first): None}
    frontier = [first]
    rescued: set[int] = set()
    while frontier:
        following: list[State] = []
        for state in frontier:
            shared, actors = state
            try:
                check(shared, actors)
                _check_live(protocol, shared, actors, rescued)
                nexts = list(_next(protocol, shared, actors))
            except Violation as violation:
                return Explored(len(came_from), str(violation), _trace(came_from, hash(state)))
            for label, found in nexts:
                after = protocol.alike(*found)
                if hash(after) not in came_from:
                    came_from[hash(after)] = (hash(state), label)
                    following.append(after)
        if len(came_from) > limit:
            raise AssertionError(f"more than {limit} states")
        frontier = following
    return Explored(len(came_from))


def wander(protocol: Protocol, *, seed: int, steps: int) -> None:
    """Take one random way; raises `Violation` when a state on it breaks an invariant."""
    choose = random.Random(seed)
    shared, actors = protocol.first()
    for _ in range(steps):
        check(shared, actors)
        _check_live(protocol, shared, actors, set())
        nexts = _next(protocol, shared, actors)
        if not nexts:
            return
        _, (shared, actors) = choose.choice(nexts)


def _next(protocol: Protocol, shared: Shared, actors: tuple[Actor, ...]) -> list[tuple[str, State]]:
    found = []
    for me, actor in enumerate(actors):
        for after, moved in protocol.successors(shared, me, actors):
            label = f"{me}: {actor.step}"
            found.append((label, (after, (*actors[:me], moved, *actors[me + 1 :]))))
        if not protocol.variant.lock_lapses and shared.lock == me + 1:
            crashed = actor._replace(step="crashed")
            found.append((f"{me}: crash", (shared, (*actors[:me], crashed, *actors[me + 1 :]))))
    found += protocol.surroundings(shared, actors)
    return found


def _check_live(protocol: Protocol, shared: Shared, actors: tuple[Actor, ...], rescued: set[int]) -> None:
    """A writer that comes now, all others being dead, must be able to commit."""
    if hash(shared) in rescued:
        return
    dead = tuple(actor._replace(step="crashed") for actor in actors)
    after, stopped_at = shared, ""
    for _ in range(_TRIES):
        after, dead, stopped_at = _run_alone(protocol, after, (*dead, Actor()))
        if dead[-1].answer == "committed":
            check(after, dead)
            if after.abandoned:
                raise Violation(
                    "the metadata table tells of a write that is not there, and nobody takes it back"
                )
            rescued.add(hash(shared))
            return
    raise Violation(f"wedged: nobody can commit any more (a new writer ends at {stopped_at!r})")


def _run_alone(
    protocol: Protocol, shared: Shared, actors: tuple[Actor, ...]
) -> tuple[Shared, tuple[Actor, ...], str]:
    """Let the last actor go on alone until it stops."""
    me = len(actors) - 1
    for _ in range(_STEPS_ALONE):
        moves = list(protocol.successors(shared, me, actors))
        if not moves:
            break
        shared, moved = moves[0]
        actors = (*actors[:me], moved)
    return shared, actors, actors[me].step


def _trace(came_from: dict[int, tuple[int, str] | None], state: int) -> tuple[str, ...]:
    labels: list[str] = []
    step = came_from[state]
    while step is not None:
        state, label = step
        labels.append(label)
        step = came_from[state]
    return tuple(reversed(labels))
