"""What a stream is of: rows as commits wrote them, changes with their kind, or Hudi's change data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from drawstring.config.read_options import ReadOptions
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.model.read_task import ChangeSpec, ImageSpec, ReadTask
from drawstring.planning.changes.change_data import ChangeData
from drawstring.planning.changes.changelog import Changelog, changelog_schema, commit_of
from drawstring.planning.changes.groups import touched_groups
from drawstring.planning.incremental import IncrementalRead
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.table_state import TableState
from drawstring.schema.change_images import CHANGE_DATA, KEYS_ONLY


@dataclass(frozen=True)
class StreamContent:
    """What the options of a read ask a stream for; `rows` is the table's schema when the query began."""

    options: ReadOptions
    rows: pa.Schema
    schema_at: str | None = None
    skips_lost: bool = False

    @property
    def is_changes(self) -> bool:
        """Whether changes are returned, which replaced and deleted rows are among."""
        return self.options.changelog or self.options.is_change_data

    @property
    def schema(self) -> pa.Schema:
        """The schema of batches."""
        if self.options.is_change_data:
            return CHANGE_DATA
        if not self.options.changelog:
            return self.rows
        return changelog_schema(self.rows, commits=self.options.changelog_commits)

    def groups(self, metadata: CommitMetadata) -> list[FileGroupId]:
        """The file groups of a commit that hold something of the stream."""
        if self.is_changes:
            return touched_groups(metadata)
        return [FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats]

    @property
    def reads_newest_for_lost(self) -> bool:
        """Whether the newest files are read where files of a range are gone; changes of these are left out."""
        return self.skips_lost and not self.is_changes

    def range(
        self,
        state: TableState,
        read: ReadFunction,
        begin: str,
        end: str,
        only: frozenset[FileGroupId] | None = None,
    ) -> IncrementalRead | Changelog | ChangeData:
        """What a range of commits holds, or with `only` one commit in some file groups, of which no file may be gone.

        Net changes of a commit that is divided are its changes. Whether the newest files are read is decided for all
        of a commit: rows that were moved come once.
        """
        if not self.is_changes:
            options = replace(self.options, full_scan_fallback=self.skips_lost)
            only = None if self.reads_newest_for_lost else only
            return IncrementalRead(state, read, begin, end, options, self.schema_at, only)
        # Statistics tell of rows after a commit only.
        bare = replace(state, data_skipping=False)
        if self.options.is_change_data:
            return ChangeData(bare, read, begin, end, self.schema_at, self.skips_lost, only)
        net = self.options.net_changes and only is None
        commits = self.options.changelog_commits
        return Changelog(bare, read, begin, end, net, self.schema_at, self.skips_lost, commits, only)

    def of_snapshot(self, task: ReadTask, state: TableState, instant: str) -> ReadTask:
        """A task of a snapshot: its rows, or the insertion of each."""
        if not self.is_changes:
            return task
        images, commit = None, commit_of(instant, state) if self.options.changelog_commits else None
        if self.options.is_change_data:
            images = ImageSpec(KEYS_ONLY, instant, (), bytes(self.rows.serialize().to_pybytes()))
        return ReadTask(task.slice, change=ChangeSpec(after=(task,), images=images, commit=commit))
