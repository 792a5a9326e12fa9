"""Writers of the file of one bucket: create, rewrite or append, behind one protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from drawstring.model.commit_metadata import WriteStat
from drawstring.write.assignment import Bucket, Way
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.change_files import with_changes
from drawstring.write.log_files import append_log
from drawstring.write.merge_by_reading import merge_by_reading
from drawstring.write.merge_group import (
    MergeRules,
    combined,
    create_base_file,
    in_input_order,
    rewrite_base_file,
)


class GroupWriter(Protocol):
    """Writes the rows of one file group, and yields what the commit says of each file: any number of them.

    Rows have these columns: record key, partition path, whether the row deletes, its position in the input unless
    the rows come in that order, then the table's own (any subset when all rows delete).
    """

    def __call__(
        self, context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table, rules: MergeRules, /
    ) -> Iterator[WriteStat]:
        """Write the rows."""
        ...


_WRITERS: Mapping[Way, GroupWriter] = {
    Way.CREATE: create_base_file,
    Way.REWRITE: rewrite_base_file,
    Way.APPEND: append_log,
}


def write_bucket(
    context: WriteContext, task: TaskContext, bucket: Bucket, incoming: pa.Table, rules: MergeRules
) -> list[WriteStat]:
    """Write one bucket, and return what the commit says of its files; nothing when there was nothing to write."""
    stats = _written(context, task, bucket, incoming, rules)
    if context.change_capture:
        stats = [with_changes(context, task, bucket, stat) for stat in stats]
    return stats


def _written(
    context: WriteContext, task: TaskContext, bucket: Bucket, incoming: pa.Table, rules: MergeRules
) -> list[WriteStat]:
    if rules.merge is not None and rules.by_key:
        writer = append_log if bucket.way is Way.APPEND else merge_by_reading
        return list(writer(context, task, bucket, in_input_order(incoming), rules))
    rows = combined(incoming, rules) if rules.combine else incoming
    return list(_WRITERS[bucket.way](context, task, bucket, rows, rules))
