"""Undoing an instant that never completed."""

from __future__ import annotations

from contextlib import suppress

from drawstring.errors import InvalidInput
from drawstring.model.instant import Action, Instant
from drawstring.storage.base import Storage
from drawstring.view.listing import METAFILE
from drawstring.write.clock import Clock, newest_time, next_time, system_clock
from drawstring.write.commit_encoding import encode_rollback, encode_rollback_plan
from drawstring.write.heartbeat import DIRECTORY as HEARTBEATS
from drawstring.write.locks import table_lock
from drawstring.write.markers import Markers
from drawstring.write.table_state import TableState


def rollback_pending(storage: Storage, requested_time: str, *, clock: Clock = system_clock) -> None:
    """Roll back the pending instant requested at a time, under the table's lock.

    Call it for an instant whose writer is known to be dead: a writer that is alive would go on to commit
    files that are gone. Raises `InvalidInput` when there is no such pending write.
    """
    with table_lock(storage):
        state = TableState.load(storage)
        for instant in state.timeline.pending:
            if instant.requested_time == requested_time and instant.action in _ROLLED_BACK:
                roll_back(state, instant, clock=clock)
                return
    raise InvalidInput(
        f"There is no pending write {requested_time} in {storage.root}; nothing was rolled back.",
        condition="NO_PENDING_INSTANT",
        instant=requested_time,
    )


_ROLLED_BACK = frozenset({Action.COMMIT, Action.REPLACECOMMIT, Action.DELTACOMMIT})


def roll_back(state: TableState, instant: Instant, *, clock: Clock) -> None:
    """Roll an instant back the way Hudi does, leaving a rollback instant; the lock must be held.

    Marked files are deleted first, the instant's own files last: a crash in between leaves an instant that
    is still pending, and the next writer repeats the rollback.
    """
    storage, directory = state.storage, state.config.timeline_directory
    started_ms = clock()
    time_of_rollback = next_time(
        newest_time(TableState.load(storage).timeline.ascending_instants),
        clock=clock,
        timezone=state.config.timezone,
    )
    markers = Markers(storage, instant.requested_time)
    files = _by_partition(markers.data_files())
    absolute = {path: [f"{storage.root}/{name}" for name in names] for path, names in files.items()}
    plan = encode_rollback_plan(instant.requested_time, instant.action.value, absolute)
    storage.create_if_absent(f"{directory}/{time_of_rollback}.rollback.requested", plan)
    storage.create_if_absent(f"{directory}/{time_of_rollback}.rollback.inflight", b"")
    delete_files(storage, [name for names in files.values() for name in names], instant.requested_time)
    done = encode_rollback(
        time_of_rollback,
        instant.requested_time,
        instant.action.value,
        files=absolute,
        millis=clock() - started_ms,
    )
    completed = next_time(time_of_rollback, clock=clock, timezone=state.config.timezone)
    storage.create_if_absent(f"{directory}/{time_of_rollback}_{completed}.rollback", done)
    markers.drop()
    drop_instant(storage, directory, instant.requested_time, instant.action)
    storage.delete(f"{HEARTBEATS}/{instant.requested_time}")


def drop_instant(storage: Storage, directory: str, requested_time: str, action: Action) -> None:
    """Delete the pending files of an instant, the inflight one first."""
    inflight = "inflight" if action is Action.COMMIT else f"{action.value}.inflight"
    storage.delete(f"{directory}/{requested_time}.{inflight}")
    storage.delete(f"{directory}/{requested_time}.{action.value}.requested")


def delete_files(storage: Storage, paths: list[str], requested_time: str) -> None:
    """Delete data files of one instant, and the partition directories that only they had filled."""
    for path in paths:
        storage.delete(path)
    for partition_path in {path.rpartition("/")[0] for path in paths}:
        _drop_partition_made_by(storage, partition_path, requested_time)


def _drop_partition_made_by(storage: Storage, partition_path: str, requested_time: str) -> None:
    metafile = f"{partition_path}/{METAFILE}" if partition_path else METAFILE
    with suppress(FileNotFoundError):
        if f"commitTime={requested_time}\n".encode() in storage.read(metafile) + b"\n":
            storage.delete(metafile)
    while partition_path:
        try:
            if any(True for _ in storage.list(partition_path)):
                return
        except FileNotFoundError:
            pass
        storage.delete(partition_path, recursive=True)
        partition_path = partition_path.rpartition("/")[0]


def _by_partition(paths: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(path.rpartition("/")[0], []).append(path)
    return found
