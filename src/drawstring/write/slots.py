"""Commit slots: numbered decisions that order all changes of a table, even if a lock has lapsed.

Two completed instants of Hudi have different names, so creating one does not order two commits. A lock does, until its
holder is wrongly taken for dead. Therefore a change is decided by creating the next slot, which only one writer can do:

1. A slot holds every step that carries the change out; each step may be repeated. Whoever finds the newest slot
   unfinished finishes it, so a crash between decision and completed instant loses nothing and blocks nobody.
2. A slot is taken only when the one before it is finished. So at most the newest slot is unfinished.
3. Nothing is deleted, and no data file gets a name that readers list, before the slot is taken.
4. Old slots are deleted. A writer that was paused for so long that it creates such a number again then finds newer
   slots, and its own change not carried out: its slot is void, and nobody reads it.
"""

from __future__ import annotations

import base64
import json
import logging
from contextlib import suppress
from dataclasses import dataclass

from drawstring.errors import CommitConflict, CorruptTable
from drawstring.storage.base import Storage
from drawstring.view.metadata_table import FOLDER
from drawstring.write.landing import is_completed
from drawstring.write.table_facts import load_state

logger = logging.getLogger(__name__)
DIRECTORY = ".hoodie/.slots"
KEPT = 32
"""How many finished slots are kept, for people who investigate what happened."""
_DIGITS = 12
CREATE, RENAME, DELETE, DELETE_TREE, DELETE_IF = "create", "rename", "delete", "delete_tree", "delete_if"
REPLACE_IF = "replace_if"


@dataclass(frozen=True)
class Step:
    """One file change that may be repeated, even late: create if absent, rename, replace, delete a file or directory.

    A process that was paused in the middle of a decision takes its steps long after others have gone on. So a file is
    deleted whatever it holds only if its name is unique and never used again.
    """

    kind: str
    path: str
    target: str = ""
    content: str = ""

    @classmethod
    def create(cls, path: str, content: bytes) -> Step:
        """Create a file with its content, unless it is there."""
        return cls(CREATE, path, content=base64.b64encode(content).decode())

    @classmethod
    def rename(cls, path: str, target: str) -> Step:
        """Give a staged file its final name."""
        return cls(RENAME, path, target)

    @classmethod
    def delete(cls, path: str) -> Step:
        """Delete a file that may be gone already."""
        return cls(DELETE, path)

    @classmethod
    def delete_if(cls, path: str, content: bytes) -> Step:
        """Delete a file if it still has exactly this content: others may make one of the same name."""
        return cls(DELETE_IF, path, content=base64.b64encode(content).decode())

    @classmethod
    def replace_if(cls, path: str, expected: bytes, content: bytes) -> Step:
        """Replace a file if it still has exactly the `expected` content."""
        return cls(REPLACE_IF, path, base64.b64encode(expected).decode(), base64.b64encode(content).decode())

    @classmethod
    def delete_tree(cls, path: str) -> Step:
        """Delete a directory that may be gone already."""
        return cls(DELETE_TREE, path)


@dataclass(frozen=True)
class Decision:
    """A change of the table: its steps in order, and how to tell whether they were carried out.

    - Carried out is the change when `creates` exists and `removes` does not. A rollback has both: its own instant may
      be completed while its target is still pending, and the writer that it takes for dead may take its instant away
      itself. Where a step replaces the file that `creates` names, that must not be as it was any more.
    - `needs` names the pending instant's file: when it is gone and the change was not carried out, a writer that
      knows no slots has rolled the instant back, and the decision is void. So it is when a staged file is lost, for
      instance in a power cut: the change can never be carried out, and nobody was told that it was.
    """

    instant: str
    steps: tuple[Step, ...]
    creates: str = ""
    removes: str = ""
    needs: str = ""

    def to_bytes(self) -> bytes:
        """Return the decision as the content of its slot."""
        values = {name: getattr(self, name) for name in ("instant", "creates", "removes", "needs")}
        # There may be tens of thousands of steps, so empty fields are left out.
        steps = [{name: value for name, value in vars(step).items() if value} for step in self.steps]
        return json.dumps({"version": 1, **values, "steps": steps}).encode()

    @classmethod
    def parse(cls, content: bytes, path: str) -> Decision:
        """Parse the content of a slot; raises `CorruptTable` for anything else."""
        try:
            values = json.loads(content)
            if values.pop("version") != 1:
                raise ValueError(f"version {values}")
            steps = tuple(Step(**step) for step in values.pop("steps"))
            return cls(steps=steps, **values)
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptTable(
                f"The commit slot {path} cannot be read: {error}. It may hold a commit that was decided and is not "
                "visible yet; restore the file, or upgrade drawstring if a newer release wrote it.",
                condition="COMMIT_SLOT_UNREADABLE",
                path=path,
            ) from error

    def is_carried_out(self, storage: Storage) -> bool:
        """Whether all steps that matter were taken."""
        if self.removes and storage.exists(self.removes):
            return False
        replaced = [step for step in self.steps if step.kind == REPLACE_IF and step.path == self.creates]
        if any(_content(storage, step.path) == _decoded(step.target) for step in replaced):
            return False
        return not self.creates or storage.exists(self.creates) or self._is_completed_by_others(storage)

    def _is_completed_by_others(self, storage: Storage) -> bool:
        """Whether Apache Hudi, which finishes other engines' services, completed the instant at another time."""
        folder, _, name = self.creates.rpartition("/")
        requested, completed, rest = name.partition("_")
        if not completed:
            return False
        end = f".{rest.partition('.')[2]}"
        try:
            found = storage.list_names(folder)
        except FileNotFoundError:
            return False
        return any(other.startswith(f"{requested}_") and other.endswith(end) for other in found)

    def is_void(self, storage: Storage) -> bool:
        """Whether the instant or one of its files is gone, so that the change can never be carried out."""
        if self.needs and not storage.exists(self.needs):
            return True
        # In this order: a process that renames the file meanwhile creates the second name as it removes the first.
        return any(
            not storage.exists(step.path) and not storage.exists(step.target)
            for step in self.steps
            if step.kind == RENAME
        )


def slot_path(number: int) -> str:
    """Return where a slot lies."""
    return f"{DIRECTORY}/{number:0{_DIGITS}d}"


def numbers(storage: Storage) -> list[int]:
    """Return the numbers of all slots, ascending."""
    try:
        entries = list(storage.list(DIRECTORY))
    except FileNotFoundError:
        return []
    return sorted(int(entry.name) for entry in entries if entry.name.isdigit())


def newest(storage: Storage) -> int:
    """Return the newest slot's number, 0 when there is none."""
    return max(numbers(storage), default=0)


def read_slot(storage: Storage, number: int) -> Decision | None:
    """Return what was decided in a slot; None when there is no such slot."""
    path = slot_path(number)
    with suppress(FileNotFoundError):
        return Decision.parse(storage.read(path), path)
    return None


def settle(storage: Storage) -> int:
    """Finish what the newest slot decided, and return its number; the lock must be held."""
    while True:
        number = newest(storage)
        decision = read_slot(storage, number) if number else None
        if number and (decision is None or newest(storage) != number):
            # Between the two looks the number may have been deleted, and taken again by a writer that was paused: what
            # it holds then was never decided. It is the newest only if it was not.
            continue
        if decision is not None and not decision.is_carried_out(storage):
            _finish(storage, decision)
        return number


def _finish(storage: Storage, decision: Decision) -> None:
    if decision.is_void(storage):
        undo(storage, decision)
        return
    logger.warning("Finishing the change %s of %s for its writer.", decision.instant, storage.root)
    carry_out(storage, decision)


def undo(storage: Storage, decision: Decision) -> None:
    """Remove the files that a void decision published, and its instants from both timelines; the lock must be held.

    Readers would see these files once the timeline moves on. A commit that only repeats the schema is removed too,
    because its entry in the metadata table is.
    """
    state = load_state(storage)
    if is_completed(state, decision.instant):
        # Carried out long ago, and archived since.
        return
    timeline = state.config.timeline_directory
    for step in reversed(decision.steps):
        if step.kind == RENAME:
            storage.delete(step.target)
        elif step.kind == CREATE and step.path.startswith((FOLDER + "/", timeline + "/")):
            storage.delete(step.path)


def take(storage: Storage, number: int, decision: Decision) -> bool:
    """Decide a change by taking the slot. False when another writer has it; then nothing was decided.

    `number` must be the one after that which `settle` returned, and the change validated in between.
    """
    path, content = slot_path(number), decision.to_bytes()
    # A store that repeats a request may answer that the file exists, although this process has just created it.
    if not storage.create_if_absent(path, content) and _content(storage, path) != content:
        return False
    return newest(storage) == number or decision.is_carried_out(storage)


def _content(storage: Storage, path: str) -> bytes | None:
    with suppress(FileNotFoundError):
        return storage.read(path)
    return None


def carry_out(storage: Storage, decision: Decision) -> None:
    """Take all steps of a decision, in order; each may have been taken already.

    Raises `CommitConflict` when a writer that knows no slots has rolled the instant back meanwhile.
    """
    named: set[str] = set()
    for step in decision.steps:
        if step.path == decision.creates:
            _require_needed(storage, decision)
        if step.kind == RENAME:
            _rename(storage, step)
            named.add(step.target.rpartition("/")[0])
            continue
        if named:
            # The files that the completed instant names must be durable before it is.
            storage.sync_directories(named)
            named = set()
        _take_step(storage, step)


def _require_needed(storage: Storage, decision: Decision) -> None:
    """Check again, right before the change becomes visible, that its instant is still pending."""
    if decision.needs and not storage.exists(decision.needs) and not storage.exists(decision.creates):
        raise CommitConflict(
            f"The write {decision.instant} to {storage.root} was not committed: another engine rolled its instant "
            "back while it was being published. Nothing of this write is visible; run it again.",
            condition="ROLLED_BACK",
            path=storage.root,
            instant=decision.instant,
        )


def _decoded(text: str) -> bytes:
    return base64.b64decode(text)


def _take_step(storage: Storage, step: Step) -> None:
    if step.kind == CREATE:
        storage.create_if_absent(step.path, _decoded(step.content))
    elif step.kind == DELETE:
        storage.delete(step.path)
    elif step.kind == DELETE_IF:
        storage.replace_if(step.path, _decoded(step.content), None)
    elif step.kind == REPLACE_IF:
        storage.replace_if(step.path, _decoded(step.target), _decoded(step.content), durable=True)
    elif step.kind == DELETE_TREE:
        storage.delete(step.path, recursive=True)
    else:
        raise CorruptTable(
            f"A commit slot asks for {step.kind!r}, which this release does not know. Upgrade drawstring.",
            condition="COMMIT_SLOT_UNREADABLE",
            path=step.path,
        )


def _rename(storage: Storage, step: Step) -> None:
    try:
        storage.rename(step.path, step.target)
    except FileNotFoundError:
        if not storage.exists(step.target):
            raise


def forget_old(storage: Storage, number: int) -> None:
    """Delete slots that are long finished."""
    for old in numbers(storage):
        if old <= number - KEPT:
            storage.delete(slot_path(old))


def holds(storage: Storage, instant: str, *, since: int) -> bool:
    """Whether a slot after `since` decides a change of this instant."""
    return any(
        decision is not None and decision.instant == instant
        for decision in (read_slot(storage, n) for n in numbers(storage) if n > since)
    )


def has_landed(storage: Storage, requested_time: str) -> bool | None:
    """Whether an instant is committed or decided; None when that cannot be found out now.

    False is a proof only for a process that knows that nobody can still decide the instant: its own writer, or one that
    holds the lock and takes the next slot.
    """
    try:
        return holds(storage, requested_time, since=0) or is_completed(load_state(storage), requested_time)
    except (OSError, CorruptTable):
        return None
