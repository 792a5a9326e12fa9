"""Archive a table's timeline: completed instants move into its history, decided by a slot like every change.

The file of instants is written first, where it does not count. The slot holds the manifest that names it, and the
files of the active timeline that go then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from drawstring.config.service_options import ServiceOptions
from drawstring.model.instant import Instant
from drawstring.storage.base import Storage
from drawstring.write.clock import Clock, system_clock
from drawstring.write.publication import Publication
from drawstring.write.services.archive import archive as steps_of
from drawstring.write.services.archive import merge_level, point_at_newest
from drawstring.write.services.archive_input import planned
from drawstring.write.services.results import ArchiveResult
from drawstring.write.services.support import ARCHIVE, check_serviceable, check_storage
from drawstring.write.services.turn import Turn, turn
from drawstring.write.slots import Decision, Step
from drawstring.write.table_facts import load_state

_MOST_INSTANTS = 2_500
"""Instants that one slot moves: a slot names each of their files."""


def archive(
    storage: Storage, options: ServiceOptions | None = None, *, clock: Clock = system_clock
) -> ArchiveResult:
    """Move instants that nobody needs on the active timeline into the history; returns which."""
    options, began = options or ServiceOptions(), time.perf_counter()
    check_storage(storage)
    with turn(storage, options.concurrency, clock=clock, action=ARCHIVE) as held:
        chosen = planned(held.state, options, clock=clock)
        segments = []
        left = chosen
        while left:
            moved, segment = _move(held, left[:_MOST_INSTANTS])
            left = left[moved:]
            segments.append(segment)
        merged = list(_merge(held, options)) if chosen else []
    return ArchiveResult(
        storage.root, _told(chosen), tuple(segments), tuple(merged), seconds=time.perf_counter() - began
    )


def plan_of_archive(
    storage: Storage, options: ServiceOptions | None = None, *, clock: Clock = system_clock
) -> ArchiveResult:
    """Return what `archive` would do now; nothing is changed."""
    state = load_state(storage)
    check_serviceable(state, ARCHIVE)
    chosen = planned(state, options or ServiceOptions(), clock=clock)
    return ArchiveResult(storage.root, _told(chosen), is_dry_run=True)


def _told(chosen: Sequence[Instant]) -> tuple[tuple[str, str], ...]:
    return tuple((instant.requested_time, instant.action.value) for instant in chosen)


def _move(held: Turn, instants: Sequence[Instant]) -> tuple[int, str]:
    """Archive instants, or all but the last few; returns how many, and the new file of the history."""
    for count in range(len(instants), 0, -1):
        steps = steps_of(held.storage, held.state.config, instants[:count])
        if _is_written(held.storage, steps):
            break
    else:
        raise AssertionError("two instants of one time")
    *others, last = steps.removes
    held.decide(
        Decision(
            f"archive_{instants[0].requested_time}",
            (
                Step.create(steps.creates[1].path, steps.creates[1].content),
                *map(Step.delete, others),
                Step.delete(last),
            ),
            removes=last,
        )
    )
    point_at_newest(held.storage, held.state.config)
    return count, steps.creates[0].path.rpartition("/")[2]


def _is_written(storage: Storage, steps: Publication) -> bool:
    """Write the file of instants; False when there is another one of that name.

    That is left of somebody who was killed, or belongs to somebody who lost the lock and does not know it yet: who
    deleted it might delete what the history names a moment later.
    """
    file = steps.creates[0]
    return storage.create_if_absent(file.path, file.content) or storage.read(file.path) == file.content


def _merge(held: Turn, options: ServiceOptions) -> list[str]:
    merged: list[str] = []
    while True:
        steps = merge_level(held.storage, held.state.config, files=options.archive.merged_files)
        if not steps.creates or not _is_written(held.storage, steps):
            return merged
        manifest = steps.creates[1]
        removed = tuple(map(Step.delete, steps.removes))
        created = Step.create(manifest.path, manifest.content)
        name = steps.creates[0].path.rpartition("/")[2]
        held.decide(Decision(f"history_{name}", (created, *removed), creates=manifest.path))
        point_at_newest(held.storage, held.state.config)
        merged.append(name)
