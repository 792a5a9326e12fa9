"""Options of the metadata table: whether there is one, and which indexes it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.config.option import Option, boolean, names, positive

_SWITCH = ("true", "false")
ENABLED = Option(
    "hoodie.metadata.enable",
    boolean,
    True,
    "Keep a metadata table: it is made where there is none. `false` removes it, as in Hudi.",
    allowed=_SWITCH,
)
COLUMN_STATS = Option(
    "hoodie.metadata.index.column.stats.enable",
    boolean,
    True,
    "Make statistics of columns in the metadata table.",
    allowed=_SWITCH,
)
PARTITION_STATS = Option(
    "hoodie.metadata.index.partition.stats.enable",
    boolean,
    True,
    "Make statistics of whole partitions too, where there are those of columns.",
    allowed=_SWITCH,
)
COLUMN_LIST: Option[tuple[str, ...]] = Option(
    "hoodie.metadata.index.column.stats.column.list",
    names,
    (),
    "Columns that get statistics; else the first ones of the table.",
)
MOST_COLUMNS = Option(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    positive,
    32,
    "How many columns get statistics without a list.",
)
RECORD_INDEX = Option(
    "hoodie.metadata.global.record.level.index.enable",
    boolean,
    False,
    "Make an index of all record keys in the metadata table.",
    aliases=("hoodie.metadata.record.index.enable",),
    allowed=_SWITCH,
)
BLOOM_FILTERS = Option(
    "hoodie.metadata.index.bloom.filter.enable",
    boolean,
    False,
    "Keep the bloom filters of base files in the metadata table too.",
    allowed=_SWITCH,
)
COMPACT_AFTER = Option(
    "hoodie.metadata.compact.max.delta.commits",
    positive,
    10,
    "Compact the metadata table after so many commits.",
)
ALL: tuple[Option[Any], ...] = (
    ENABLED,
    COLUMN_STATS,
    PARTITION_STATS,
    COLUMN_LIST,
    MOST_COLUMNS,
    RECORD_INDEX,
    BLOOM_FILTERS,
    COMPACT_AFTER,
)


@dataclass(frozen=True)
class MetadataTableOptions:
    """What a write wants of the metadata table; indexes that are there already stay."""

    enabled: bool = True
    column_stats: bool = True
    partition_stats: bool = True
    columns: tuple[str, ...] = ()
    most_columns: int = 32
    record_index: bool = False
    bloom_filters: bool = False
    compact_after: int = 10

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> MetadataTableOptions:
        """Resolve the options, layers from the strongest."""
        return cls(*(option.find(*layers) for option in ALL))
