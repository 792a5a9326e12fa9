"""Runs the table services that are due after a write: clean, archive, compact, by Hudi's options and in Hudi's order.

The write is committed when they begin. In Hudi an error of a service fails the job although its rows are committed, and
running the job again may write them twice. Here a failed service appears in the log and in the result of the write, and
the next write tries it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from drawstring.config.file_options import FileOptions
from drawstring.config.service_options import ServiceOptions
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write.clock import Clock, system_clock
from drawstring.write.compaction import compact_slices
from drawstring.write.services import archive_input, cleaning
from drawstring.write.services.archiving import archive
from drawstring.write.services.compacting import LOGS, RunTasks, compact
from drawstring.write.services.results import ArchiveResult, CleanResult, CompactResult, ServiceOutcome
from drawstring.write.services.support import ARCHIVE, CLEAN, COMPACT, LOG_COMPACT
from drawstring.write.steps import step
from drawstring.write.table_facts import load_state

logger = logging.getLogger(__name__)
Service = Callable[[], CleanResult | ArchiveResult | CompactResult | None]


def services_after_write(
    storage: Storage,
    options: ServiceOptions,
    *,
    files: FileOptions | None = None,
    run_tasks: RunTasks = compact_slices,
    clock: Clock = system_clock,
) -> tuple[ServiceOutcome, ...]:
    """Run the services that are due after a write; returns what each that did something did, or failed with."""
    outcomes = []
    for name, act in _services(storage, options, files, run_tasks, clock):
        try:
            with step(name):
                result = act()
        except Exception as error:
            logger.warning(
                "The write to %s is committed, but the %s after it failed: %s", storage.root, name, error
            )
            outcomes.append(ServiceOutcome(name, error=error))
            continue
        if result is not None:
            outcomes.append(ServiceOutcome(name, result))
    return tuple(outcomes)


def _services(
    storage: Storage,
    options: ServiceOptions,
    files: FileOptions | None,
    run_tasks: RunTasks,
    clock: Clock,
) -> Iterator[tuple[str, Service]]:
    if not options.enabled:
        return
    if options.clean.automatic:
        yield CLEAN, lambda: _clean(storage, options, clock)
    if options.archive.automatic:
        yield ARCHIVE, lambda: _archive(storage, options, clock)
    if options.compact.logs_inline:
        yield LOG_COMPACT, lambda: _compact_logs(storage, options, files, clock)
    if options.compact.inline or options.compact.schedule:
        yield COMPACT, lambda: _compact(storage, options, files, run_tasks, clock)


def _clean(storage: Storage, options: ServiceOptions, clock: Clock) -> CleanResult | None:
    # Looking without the lock costs little, and mostly there is nothing to do.
    if not cleaning.is_wanted(load_state(storage), options, clock=clock):
        return None
    return cleaning.clean(storage, options, only_if_due=True, clock=clock)


def _archive(storage: Storage, options: ServiceOptions, clock: Clock) -> ArchiveResult | None:
    state = load_state(storage)
    if len(state.timeline.completed_writes) <= options.archive.max_commits:
        return None
    if not archive_input.planned(state, options, clock=clock):
        return None
    return archive(storage, options, clock=clock)


def _compact(
    storage: Storage, options: ServiceOptions, files: FileOptions | None, run_tasks: RunTasks, clock: Clock
) -> CompactResult | None:
    state = load_state(storage)
    if not state.config.is_merge_on_read or _is_scheduled(state, options):
        return None
    result = compact(
        storage,
        options,
        only_if_due=True,
        runs=options.compact.inline,
        files=files,
        run_tasks=run_tasks,
        clock=clock,
    )
    return result if result.compactions else None


def _compact_logs(
    storage: Storage, options: ServiceOptions, files: FileOptions | None, clock: Clock
) -> CompactResult | None:
    if not load_state(storage).config.is_merge_on_read:
        return None
    result = compact(storage, options, only_if_due=True, files=files, kind=LOGS, clock=clock)
    return result if result.compactions else None


def _is_scheduled(state: TableState, options: ServiceOptions) -> bool:
    """Where plans are only made, one that waits to be run is enough, as in Hudi."""
    return options.compact.schedule and bool(state.timeline.pending_compactions)
