"""Partitions of the metadata table: their file groups, and what their files are called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from drawstring.errors import UnsupportedTable
from drawstring.storage.base import Storage
from drawstring.view.metadata_table import FOLDER
from drawstring.write.staging import is_unpublished

FILES = "files"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
WRITE_TOKEN = "0-0-0"


@dataclass(frozen=True)
class IndexPartition:
    """A partition of the metadata table that drawstring keeps.

    `groups` is the number of file groups of a new one, as Hudi 1.2 makes it; a table's own files tell its number.
    """

    name: str
    prefix: str
    groups: int
    record_type: int

    def file_id(self, group: int) -> str:
        """Return the id of one of its file groups."""
        return f"{self.prefix}-{group:04d}-0"


INDEX_PARTITIONS = {
    partition.name: partition
    for partition in (
        IndexPartition(FILES, "files", 1, 2),
        IndexPartition(COLUMN_STATS, "col-stats", 2, 3),
        IndexPartition(BLOOM_FILTERS, "bloom-filters", 4, 4),
        IndexPartition(RECORD_INDEX, "record-index", 10, 5),
        IndexPartition(PARTITION_STATS, "partition-stats", 1, 6),
    )
}
PARTITION_RECORD = 1
"""The type of the record of `files` that lists the partitions."""
_FILE_ID = re.compile(r"^\.?([a-z-]+-(\d{4})-0)_")


def check_supported(names: Iterable[str], *, source: str) -> None:
    """Raise `UnsupportedTable` when the metadata table has a partition that drawstring cannot keep right."""
    unknown = sorted(set(names) - set(INDEX_PARTITIONS))
    if unknown:
        raise UnsupportedTable(
            f"Cannot write to {source}: its metadata table has {', '.join(unknown)}, which drawstring does not keep "
            f"up to date; it keeps {', '.join(sorted(INDEX_PARTITIONS))}. Drop the index with Apache Hudi, or write "
            "with Apache Hudi.",
            condition="METADATA_PARTITION_NOT_SUPPORTED",
            operation="write",
            partitions=unknown,
        )


def group_count(storage: Storage, name: str) -> int:
    """Return how many file groups a partition of the metadata table has, told from its files' names.

    Raises `UnsupportedTable` when they are not numbered from 0 on, as in a record index by data partitions.
    """
    numbers, other = set(), ""
    for entry in storage.list(f"{FOLDER}/{name}"):
        if (
            entry.is_directory
            or entry.name.startswith(".hoodie_partition_metadata")
            or entry.name.endswith(".crc")
            or is_unpublished(entry.name)
        ):
            continue
        match = _FILE_ID.match(entry.name)
        if match is None or not match.group(1).startswith(INDEX_PARTITIONS[name].prefix + "-"):
            other = entry.name
            continue
        numbers.add(int(match.group(2)))
    if other or numbers != set(range(len(numbers))) or not numbers:
        raise UnsupportedTable(
            f"Cannot write to {storage.root}: the file groups of its metadata table's {name} are not numbered as "
            f"expected, from 0 on ({other or sorted(numbers)}). Write with Apache Hudi, or drop the index there.",
            condition="METADATA_FILE_GROUPS",
            operation="write",
            partition=name,
        )
    return len(numbers)
