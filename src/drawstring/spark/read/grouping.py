"""What the rows of a file group have in common: the bucket of their key, or the values of partition columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from drawstring.config.read_options import BUCKET_ENGINE, BUCKET_FIELD, BUCKETS, INDEX_TYPE, ReadOptions
from drawstring.config.table_config import TableConfig
from drawstring.model.file_names import bucket_of_file_id
from drawstring.model.read_task import ReadTask
from drawstring.planning.slice_statistics import SliceFacts
from drawstring.predicates.ast import Column
from drawstring.view.partitions import is_shown
from drawstring.write.bucket_index import BucketRule, bucket_numbers

FactsOf = Callable[[Sequence[ReadTask], dict[str, pa.DataType], int], Sequence[SliceFacts]]

_KEY = "_hoodie_record_key"
_SMALL_BUCKET = re.compile(r"^0000\d{4}-")
_PROVING_FILES = 32
"""How many files are checked, by their least and greatest key, before a bucket rule is trusted."""


@dataclass(frozen=True)
class Grouping:
    """Rows of a file group are equal in `columns`, or, with a `rule`, in the bucket of the one column."""

    columns: tuple[str, ...]
    rule: BucketRule | None = None

    def is_kept(self, tasks: Sequence[ReadTask], facts_of: FactsOf) -> bool:
        """Whether all slices of a table have a key, and files do not contradict the rule."""
        if self.rule is None:
            return all(task.partition_values.keys() >= set(self.columns) for task in tasks)
        buckets = [bucket_of_file_id(task.slice.group.file_id) for task in tasks]
        return _fill(buckets, self.rule.buckets) and _is_proved(self.rule, tasks, facts_of)

    def key(self, task: ReadTask) -> tuple[Any, ...]:
        """What the rows of a task have in common."""
        if self.rule is None:
            return tuple(map(task.partition_values.get, self.columns))
        return (bucket_of_file_id(task.slice.group.file_id),)


def grouping_of(config: TableConfig, options: ReadOptions, schema: pa.Schema) -> Grouping | None:
    """What rows of a file group have in common: the bucket if options say so, else the partition columns."""
    rule = _bucket_rule(config, options)
    if rule is not None and (column := _hashed_column(rule, schema)) is not None:
        return Grouping((column,), rule)
    names = tuple(field.name for field in config.partitioning if not field.derived)
    known = all(name in schema.names and is_shown(schema.field(name).type) for name in names)
    return Grouping(names) if names and known else None


def shown_buckets(tasks: Sequence[ReadTask], grouping: Grouping | None) -> list[int | None]:
    """The bucket of each task, None where file ids name none: other ids hardly ever all begin with such numbers."""
    ids = [task.slice.group.file_id for task in tasks]
    is_declared = grouping is not None and grouping.rule is not None
    if not is_declared and not all(map(_SMALL_BUCKET.match, ids)):
        return [None] * len(ids)
    return [bucket_of_file_id(file_id) for file_id in ids]


def _bucket_rule(config: TableConfig, options: ReadOptions) -> BucketRule | None:
    given = options.bucket_index
    if given.get(INDEX_TYPE.key, "").upper() != "BUCKET":
        return None
    count = given.get(BUCKETS.key, "")
    if given.get(BUCKET_ENGINE.key, "SIMPLE").upper() != "SIMPLE" or not count.isdigit() or int(count) < 1:
        return None
    fields = tuple(name.strip() for name in given.get(BUCKET_FIELD.key, "").split(",") if name.strip())
    keys = config.record_key_fields
    return BucketRule(int(count), keys, fields) if keys and set(fields) <= set(keys) else None


def _hashed_column(rule: BucketRule, schema: pa.Schema) -> str | None:
    """The one column whose text is hashed, if Spark's value tells the text."""
    names = rule.hash_fields or rule.key_fields
    if len(names) != 1 or names[0] not in schema.names:
        return None
    kind = schema.field(names[0]).type
    return names[0] if pa.types.is_string(kind) or kind in (pa.int32(), pa.int64()) else None


def _fill(buckets: Sequence[int | None], count: int) -> bool:
    """Whether the buckets are those of so many: none beyond, and not all below the half, as with fewer."""
    known = [bucket for bucket in buckets if bucket is not None]
    return len(known) == len(buckets) and max(known, default=count) < count <= 2 * max(known, default=0) + 1


def _is_proved(rule: BucketRule, tasks: Sequence[ReadTask], facts_of: FactsOf) -> bool:
    """Whether the least and the greatest key of base files lie in their buckets; of logs, where there are only those.

    The keys of logs are those that column statistics tell, if the table keeps them.
    """
    based = [
        replace(task, slice=replace(task.slice, log_files=()))
        for task in tasks
        if task.slice.base_file is not None
    ]
    told = based or list(tasks)
    asked = told[:: max(1, len(told) // _PROVING_FILES)]
    pairs = []
    for facts in facts_of(asked, {_KEY: pa.string()}, 2 * _PROVING_FILES):
        known = facts.column(Column((_KEY,)), pa.string())
        bucket = bucket_of_file_id(facts.task.slice.group.file_id)
        pairs += [(key, bucket) for key in (known.lower, known.upper) if key] if known else []
    keys = pa.array([key for key, _ in pairs], pa.string())
    return bool(pairs) and bucket_numbers(keys, rule).tolist() == [bucket for _, bucket in pairs]
