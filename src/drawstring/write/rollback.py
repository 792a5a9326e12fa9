"""Rolls back an instant that never completed: decided by a slot like every other change, then carried out."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.errors import CommitConflict, InvalidInput
from drawstring.model.file_names import join_path, parse_base_file, parse_log_file
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.view.listing import METAFILE
from drawstring.write import slots
from drawstring.write.clock import Clock, newest_time, next_time, system_clock
from drawstring.write.commit_encoding import encode_rollback, encode_rollback_plan
from drawstring.write.heartbeat import DIRECTORY as HEARTBEATS
from drawstring.write.heartbeat import is_dead, stand_in
from drawstring.write.landing import is_completed
from drawstring.write.locks import configured_lock
from drawstring.write.markers import Markers
from drawstring.write.metadata_table import keeping
from drawstring.write.services.support import ROLLBACK, check_serviceable
from drawstring.write.slots import Decision, Step
from drawstring.write.table_facts import load_state

logger = logging.getLogger(__name__)


def rollback_pending(
    storage: Storage,
    requested_time: str,
    *,
    options: ConcurrencyOptions | None = None,
    clock: Clock = system_clock,
) -> str:
    """Roll back the pending write requested at a time, under the table's lock; returns the rollback's instant.

    Call it for a write whose writer is known to be dead; one of drawstring's that is alive finds out and fails.
    Raises `InvalidInput` when there is no such pending write.
    """
    check_serviceable(load_state(storage), ROLLBACK)
    with configured_lock(storage, options or ConcurrencyOptions()):
        number = slots.settle(storage)
        state = load_state(storage)
        for instant in pending_writes(state):
            if instant.requested_time == requested_time:
                return roll_back(state, instant, slot=number + 1, clock=clock)
    raise _not_pending(storage, requested_time)


def _not_pending(storage: Storage, requested_time: str) -> InvalidInput:
    return InvalidInput(
        f"There is no pending write {requested_time} in {storage.root}; nothing was rolled back. `drawstring inspect` "
        "lists the instants of a table.",
        condition="NO_PENDING_INSTANT",
        instant=requested_time,
    )


def rollback_dead(
    storage: Storage, *, options: ConcurrencyOptions | None = None, clock: Clock = system_clock
) -> list[str]:
    """Roll back every pending write whose writer counts as dead, and return their instants."""
    options = options or ConcurrencyOptions()
    check_serviceable(load_state(storage), ROLLBACK)
    with configured_lock(storage, options):
        number = slots.settle(storage)
        before = load_state(storage)
        _, after = roll_back_dead_writers(before, number, options, clock=clock)
        return sorted({i.requested_time for i in pending_writes(before)} - _pending_times(after))


def writes_to_roll_back(
    storage: Storage,
    requested_time: str | None = None,
    *,
    options: ConcurrencyOptions | None = None,
    clock: Clock = system_clock,
) -> list[str]:
    """Return the pending writes that a rollback would undo: the named one, or all whose writers are dead."""
    state = load_state(storage)
    check_serviceable(state, ROLLBACK)
    pending = pending_writes(state)
    if requested_time is not None:
        found = [i.requested_time for i in pending if i.requested_time == requested_time]
        if not found:
            raise _not_pending(storage, requested_time)
        return found
    options = options or ConcurrencyOptions()
    return [i.requested_time for i in pending if is_dead(state, i, options, clock=clock)]


def roll_back_dead_writers(
    state: TableState, number: int, options: ConcurrencyOptions, *, clock: Clock
) -> tuple[int, TableState]:
    """Roll back writes whose writers are dead; the lock must be held, and slot `number` be the newest, finished.

    Returns the newest slot and the state after that.
    """
    state = found = _without_unrequested(state)
    for instant in pending_writes(state):
        if is_dead(found, instant, options, clock=clock):
            logger.warning(
                "Rolling back %s of %s, whose writer died.", instant.requested_time, state.storage.root
            )
            number += 1
            roll_back(found, instant, slot=number, clock=clock)
            found = load_state(state.storage)
        else:
            stand_in(found, instant)
    return number, found


def _without_unrequested(state: TableState) -> TableState:
    """Delete inflight files without a requested one, which are no pending writes.

    A writer that was rolled back while it announced its instant may make one after that, and die: no heartbeat would
    ever tell that it did.
    """
    directory, alone = state.config.timeline_directory, []
    for instant in pending_writes(state):
        requested = f"{directory}/{instant.requested_time}.{instant.action.value}.requested"
        if instant.state is State.INFLIGHT and not state.storage.exists(requested):
            alone.append(f"{directory}/{inflight_name(instant.requested_time, instant.action)}")
    for path in alone:
        state.storage.delete(path)
    return load_state(state.storage) if alone else state


def pending_writes(state: TableState) -> list[Instant]:
    """Return the writes that have not completed."""
    return [instant for instant in state.timeline.pending if instant.action in WRITE_ACTIONS]


def _pending_times(state: TableState) -> set[str]:
    return {instant.requested_time for instant in pending_writes(state)}


def roll_back(state: TableState, instant: Instant, *, slot: int, clock: Clock) -> str:
    """Roll an instant back the way Hudi does, leaving a rollback instant; the lock must be held."""
    storage = state.storage
    if is_completed(load_state(storage), instant.requested_time):
        raise _landed(storage, instant)
    rollback_time = next_time(
        newest_time(state.timeline.ascending_instants), clock=clock, timezone=state.config.timezone
    )
    decision = _decision(state, instant, rollback_time, clock)
    if not slots.take(storage, slot, decision):
        raise CommitConflict(
            f"The write {instant.requested_time} of {storage.root} was not rolled back: another writer changed the "
            "table at the same moment. Try again.",
            condition="OVERTAKEN",
            instant=instant.requested_time,
        )
    slots.carry_out(storage, decision)
    return rollback_time


def _landed(storage: Storage, instant: Instant) -> CommitConflict:
    return CommitConflict(
        f"The write {instant.requested_time} of {storage.root} has completed meanwhile; it was not rolled back.",
        condition="ALREADY_COMMITTED",
        instant=instant.requested_time,
    )


def _decision(state: TableState, instant: Instant, rollback_time: str, clock: Clock) -> Decision:
    """Data files go first, the instant's own files last: whoever repeats the steps finds what is left to do.

    As long as the instant is pending, nobody counts what the metadata table says of it: that must be gone before.
    """
    storage, directory = state.storage, state.config.timeline_directory
    files = _by_partition(files_of(state, instant))
    absolute = {path: [f"{storage.root}/{name}" for name in names] for path, names in files.items()}
    target = (instant.requested_time, instant.action.value)
    kept, newest = keeping.steps_for_rollback(
        state, instant.requested_time, rollback_time, newest=rollback_time, clock=clock
    )
    completed = next_time(newest, clock=clock, timezone=state.config.timezone)
    plan = encode_rollback_plan(*target, absolute)
    done = encode_rollback(rollback_time, *target, files=absolute, millis=0)
    requested = f"{directory}/{instant.requested_time}.{instant.action.value}.requested"
    rolled_back = f"{directory}/{rollback_time}_{completed}.rollback"
    return Decision(
        instant=instant.requested_time,
        steps=(
            Step.create(f"{directory}/{rollback_time}.rollback.requested", plan),
            Step.create(f"{directory}/{rollback_time}.rollback.inflight", b""),
            *kept,
            *(Step.delete(name) for names in files.values() for name in names),
            *_metafile_steps(storage, files, instant.requested_time),
            Step.create(rolled_back, done),
            Step.delete_tree(Markers(storage, instant.requested_time).directory),
            *drop_instant_steps(directory, instant.requested_time, instant.action),
            Step.delete(f"{HEARTBEATS}/{instant.requested_time}"),
        ),
        creates=rolled_back,
        removes=requested,
    )


def _metafile_steps(storage: Storage, files: dict[str, list[str]], requested_time: str) -> Iterator[Step]:
    """A partition that only this instant had begun to fill is no partition: Hudi would list it as an empty one."""
    for path in files:
        metafile = join_path(path, METAFILE)
        others = [e for e in storage.list(path) if e.name != METAFILE and e.path not in files[path]]
        content = storage.read(metafile) if not others and storage.exists(metafile) else b""
        if f"commitTime={requested_time}\n".encode() in content + b"\n":
            # Whoever fills the partition next makes another one, which a rollback that is repeated late must leave.
            yield Step.delete_if(metafile, content)


def drop_instant_steps(directory: str, requested_time: str, action: Action) -> tuple[Step, Step]:
    """Return the steps that delete the pending files of an instant, the inflight one first."""
    return (
        Step.delete(f"{directory}/{inflight_name(requested_time, action)}"),
        Step.delete(f"{directory}/{requested_time}.{action.value}.requested"),
    )


def inflight_name(requested_time: str, action: Action) -> str:
    """Return the name of an inflight instant; a commit's does not say what it is."""
    return f"{requested_time}.{'inflight' if action is Action.COMMIT else f'{action.value}.inflight'}"


def files_of(state: TableState, instant: Instant) -> list[str]:
    """Return the data files of a pending instant: those that its markers name, or all that carry its time."""
    markers = Markers(state.storage, instant.requested_time)
    if markers.exist():
        return [path for path in markers.data_files() if state.storage.exists(path)]
    found = []
    for partition in state.view(None).partitions():
        for name, size in state.listing.files(partition):
            file = parse_base_file(partition, name, size) or parse_log_file(partition, name, size)
            if file is not None and file.instant == instant.requested_time:
                found.append(file.path)
    return found


def _by_partition(paths: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(path.rpartition("/")[0], []).append(path)
    return found
