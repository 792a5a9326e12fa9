"""Clean a table: a plan on the timeline, files deleted, then the completed clean.

1. Under the lock a slot puts the plan on the timeline. From here on the files count as deleted: the next writer,
   drawstring or Apache Hudi, finishes the clean.
2. Files are deleted without the lock. Deleting one twice does no harm.
3. Under the lock a slot takes them out of the metadata table and completes the clean, unless somebody else has.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from drawstring.config.service_options import ServiceOptions
from drawstring.errors import CommitConflict
from drawstring.model.commit_metadata import PlannedClean
from drawstring.model.file_names import join_path
from drawstring.model.instant import Action, Instant, State
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write.clock import Clock, system_clock
from drawstring.write.services.clean import CleanPlan, CleanPolicy, encode_clean, encode_clean_plan
from drawstring.write.services.clean_input import is_due, oldest_time, planned
from drawstring.write.services.metadata_steps import steps_for_deletion
from drawstring.write.services.results import CleanResult
from drawstring.write.services.support import CLEAN, check_serviceable, check_storage
from drawstring.write.services.turn import Turn, turn
from drawstring.write.slots import Decision, Step
from drawstring.write.staging import drop_folder
from drawstring.write.steps import advancing, step
from drawstring.write.table_facts import load_state

logger = logging.getLogger(__name__)
_THREADS = 8
Failed = Mapping[str, tuple[str, ...]]


def clean(
    storage: Storage,
    options: ServiceOptions | None = None,
    *,
    only_if_due: bool = False,
    clock: Clock = system_clock,
) -> CleanResult:
    """Delete file versions that the retention does not keep; returns what was deleted.

    Cleans that were begun and never finished are finished first. With `only_if_due` the trigger of cleans after a
    write decides whether there is a new one.
    """
    options, began = options or ServiceOptions(), time.perf_counter()
    check_storage(storage)
    finished = _finish_pending(storage, options, clock)
    result = _clean(storage, options, only_if_due, clock)
    return replace(result, finished=tuple(finished), seconds=time.perf_counter() - began)


def plan_of_clean(
    storage: Storage, options: ServiceOptions | None = None, *, clock: Clock = system_clock
) -> CleanResult:
    """Return what `clean` would do now; nothing is changed."""
    options, state = options or ServiceOptions(), load_state(storage)
    check_serviceable(state, CLEAN)
    plan = planned(state, options.clean, clock=clock)
    pending = tuple(instant.requested_time for instant in _pending(state))
    return replace(_result(storage, plan), finished=pending, is_dry_run=True)


def is_wanted(state: TableState, options: ServiceOptions, *, clock: Clock) -> bool:
    """Whether a clean after a write has anything to do, as far as can be told without the lock."""
    if _pending(state):
        return True
    if not is_due(state, options.clean):
        return False
    plan = planned(state, options.clean, clock=clock)
    return not plan.is_empty or _records_nothing(state, plan, options, clock)


def _finish_pending(storage: Storage, options: ServiceOptions, clock: Clock) -> list[str]:
    finished = []
    for instant in _pending(load_state(storage)):
        state = load_state(storage)
        plan = _plan_of(state.reader.clean_plan(instant))
        if _run(storage, instant, plan, options, clock) is not None:
            finished.append(instant.requested_time)
    return finished


def _pending(state: TableState) -> list[Instant]:
    return [instant for instant in state.timeline.pending if instant.action is Action.CLEAN]


def _plan_of(found: PlannedClean) -> CleanPlan:
    retained = found.earliest_retained
    instant = Instant(retained[0], Action(retained[1]), State.COMPLETED, retained[0]) if retained else None
    policy = CleanPolicy(found.policy or CleanPolicy.KEEP_LATEST_COMMITS.value)
    return CleanPlan(policy, instant, found.last_completed, found.files, found.extra)


def _clean(storage: Storage, options: ServiceOptions, only_if_due: bool, clock: Clock) -> CleanResult:
    with turn(storage, options.concurrency, clock=clock, action=CLEAN, rolls_back=True) as held:
        if only_if_due and not is_due(held.state, options.clean):
            return CleanResult(storage.root)
        plan = planned(held.state, options.clean, clock=clock)
        if plan.is_empty and not _records_nothing(held.state, plan, options, clock):
            return _result(storage, plan)
        instant = held.request(Action.CLEAN, encode_clean_plan(plan, storage.root))
    ran = _run(storage, instant, plan, options, clock)
    return replace(_result(storage, plan), **vars(ran)) if ran else _result(storage, plan)


def _records_nothing(state: TableState, plan: CleanPlan, options: ServiceOptions, clock: Clock) -> bool:
    """Whether a clean that deletes nothing is wanted, so that the next one begins later."""
    hours, cleans = options.clean.empty_hours, state.timeline.completed_cleans
    if hours is None or plan.earliest_retained is None:
        return False
    newest = cleans[-1].requested_time if cleans else ""
    limit = replace(options.clean, hours=hours)
    return newest < oldest_time(limit, clock, state.config.timezone)


def _result(storage: Storage, plan: CleanPlan) -> CleanResult:
    retained = plan.earliest_retained
    return CleanResult(
        storage.root,
        policy=plan.policy.value,
        earliest_retained=retained.requested_time if retained else None,
        files=plan.files,
    )


@dataclass(frozen=True)
class _FinishedClean:
    instant: str
    completion_time: str
    failed: Failed


def _run(
    storage: Storage, instant: Instant, plan: CleanPlan, options: ServiceOptions, clock: Clock
) -> _FinishedClean | None:
    """Delete what a requested clean names, and complete it; None when somebody else completed it meanwhile."""
    began = time.perf_counter()
    inflight = f"{load_state(storage).config.timeline_directory}/{instant.requested_time}.clean.inflight"
    storage.create_if_absent(inflight, b"", durable=False)
    failed = _delete(storage, plan)
    with turn(storage, options.concurrency, clock=clock, action=CLEAN) as held:
        found = held.find(instant)
        if found is None:
            raise _gone(storage, instant)
        if found.is_completed:
            return None
        millis = int((time.perf_counter() - began) * 1000)
        completed = _complete(held, instant, plan, failed, millis)
    drop_folder(storage, instant.requested_time)
    return _FinishedClean(instant.requested_time, completed, failed)


def _gone(storage: Storage, instant: Instant) -> CommitConflict:
    return CommitConflict(
        f"The clean {instant.requested_time} of {storage.root} was taken back while it ran. Its files are deleted.",
        condition="ROLLED_BACK",
        path=storage.root,
        instant=instant.requested_time,
    )


def _delete(storage: Storage, plan: CleanPlan) -> dict[str, tuple[str, ...]]:
    """Delete the files of a plan; returns those that could not be deleted."""
    files = [(path, name) for path, names in plan.files.items() for name in names]

    def delete(file: tuple[str, str]) -> OSError | None:
        try:
            storage.delete(join_path(*file))
        except OSError as error:
            return error
        return None

    with step("deleting files", len(files)), ThreadPoolExecutor(_THREADS) as pool:
        outcomes = list(advancing(pool.map(delete, files)))
    failed: dict[str, tuple[str, ...]] = {}
    for (path, name), error in zip(files, outcomes, strict=True):
        if error is not None:
            logger.warning("Could not delete %s of %s: %s", join_path(path, name), storage.root, error)
            failed[path] = (*failed.get(path, ()), name)
    return failed


def _complete(held: Turn, instant: Instant, plan: CleanPlan, failed: Failed, millis: int) -> str:
    time_ = instant.requested_time
    deleted = {
        path: [name for name in names if name not in failed.get(path, ())]
        for path, names in plan.files.items()
    }
    steps, newest = steps_for_deletion(held, time_, deleted)
    completed = held.next_time(newest)
    path = f"{held.directory}/{time_}_{completed}.clean"
    content = encode_clean(plan, time_, millis=millis, failed=failed)
    held.decide(Decision(time_, (*steps, Step.create(path, content)), creates=path))
    return completed
