"""Options of indexes: how a write finds the records that are there already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.config.option import Option, boolean, names, not_supported, one_of, positive

SIMPLE, GLOBAL_SIMPLE = "SIMPLE", "GLOBAL_SIMPLE"
BLOOM, GLOBAL_BLOOM = "BLOOM", "GLOBAL_BLOOM"
IN_MEMORY, BUCKET = "INMEMORY", "BUCKET"
RECORD_INDEX, GLOBAL_RECORD_INDEX = "RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"
INDEX_TYPES = (
    SIMPLE,
    GLOBAL_SIMPLE,
    BLOOM,
    GLOBAL_BLOOM,
    BUCKET,
    RECORD_INDEX,
    GLOBAL_RECORD_INDEX,
    IN_MEMORY,
)
OTHER_INDEX_TYPES = {
    "RECORD_LEVEL_INDEX": "it does not keep a record index whose keys are unique by partition only",
    "HBASE": "it has no HBase client",
    "FLINK_STATE": "the index is kept in the state of a Flink job",
}
"""Kinds of index that are refused, and why."""
_OF_RECORDS = (RECORD_INDEX, GLOBAL_RECORD_INDEX)
_GLOBAL = (GLOBAL_SIMPLE, GLOBAL_BLOOM, *_OF_RECORDS)
_MOVES = (
    "Whether a row whose key lies in another partition moves to its new one; otherwise it stays in the old one. "
    "For the index {}."
)

INDEX_TYPE = Option(
    "hoodie.index.type",
    one_of(*INDEX_TYPES, *OTHER_INDEX_TYPES),
    SIMPLE,
    "How existing records are found: by the keys in base files of the row's partition (SIMPLE, BLOOM) or of all "
    "partitions (GLOBAL_SIMPLE, GLOBAL_BLOOM), by a hash of the key (BUCKET), or by the metadata table (RECORD_INDEX). "
    "Key ranges and bloom filters in footers are asked before keys are read, whatever the type; BLOOM makes filters "
    "as precise as Hudi's bloom index has them.",
    allowed=INDEX_TYPES,
)
SIMPLE_MOVES = Option(
    "hoodie.simple.index.update.partition.path",
    boolean,
    True,
    _MOVES.format(GLOBAL_SIMPLE),
    allowed=("true", "false"),
)
BLOOM_MOVES = Option(
    "hoodie.bloom.index.update.partition.path",
    boolean,
    True,
    _MOVES.format(GLOBAL_BLOOM),
    allowed=("true", "false"),
)
RECORDS_MOVE = Option(
    "hoodie.record.index.update.partition.path",
    boolean,
    False,
    _MOVES.format(RECORD_INDEX),
    allowed=("true", "false"),
)
BUCKETS = Option(
    "hoodie.bucket.index.num.buckets",
    positive,
    256,
    "File groups of each partition of a table with the BUCKET index. No table records it: every writer must say the "
    "same.",
)
HASH_FIELDS: Option[tuple[str, ...]] = Option(
    "hoodie.bucket.index.hash.field",
    names,
    (),
    "Columns of the record key whose hash is the bucket; all of them by default.",
)
BUCKET_ENGINE = Option(
    "hoodie.index.bucket.engine",
    one_of("SIMPLE", "CONSISTENT_HASHING"),
    "SIMPLE",
    "How buckets are laid out: as many as there are, for good.",
    allowed=("SIMPLE",),
)
ALL: tuple[Option[Any], ...] = (
    INDEX_TYPE,
    SIMPLE_MOVES,
    BLOOM_MOVES,
    RECORDS_MOVE,
    BUCKETS,
    HASH_FIELDS,
    BUCKET_ENGINE,
)


@dataclass(frozen=True)
class IndexOptions:
    """How keys are found, and for a global index whether rows move to the partition that they name now."""

    kind: str = SIMPLE
    moves_rows: bool = True
    buckets: int = BUCKETS.default
    hash_fields: tuple[str, ...] = ()

    @property
    def is_global(self) -> bool:
        """Whether a key exists once in the whole table, not once in each partition."""
        return self.kind in _GLOBAL

    @property
    def uses_record_index(self) -> bool:
        """Whether the metadata table is asked."""
        return self.kind in _OF_RECORDS

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> IndexOptions:
        """Resolve the options of a write; raises `InvalidOption` for kinds that are not supported."""
        kind = INDEX_TYPE.find(*layers)
        if kind in OTHER_INDEX_TYPES:
            raise not_supported(INDEX_TYPE.key, kind, OTHER_INDEX_TYPES[kind], allowed=INDEX_TYPES)
        engine = BUCKET_ENGINE.find(*layers)
        if kind == BUCKET and engine != "SIMPLE":
            raise not_supported(
                BUCKET_ENGINE.key, engine, "buckets are neither split nor merged", allowed=("SIMPLE",)
            )
        return cls(kind, moving_option(kind).find(*layers), BUCKETS.find(*layers), HASH_FIELDS.find(*layers))


def moving_option(kind: str) -> Option[bool]:
    """Return the option that says whether rows move to the partition that they name, for an index."""
    return {GLOBAL_SIMPLE: SIMPLE_MOVES, GLOBAL_BLOOM: BLOOM_MOVES}.get(kind, RECORDS_MOVE)
