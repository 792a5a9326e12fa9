"""Options of log files, which merge-on-read tables have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.config.option import Option, boolean, one_of, positive

AVRO, PARQUET = "avro", "parquet"


def _ratio(value: str) -> float:
    number = float(value)
    if not number > 0:
        raise ValueError("a number above 0")
    return number


BLOCK_FORMAT = Option(
    "hoodie.logfile.data.block.format",
    one_of(AVRO, PARQUET),
    AVRO,
    "Format of the records in log files. Every Hudi reads avro.",
    allowed=(AVRO, PARQUET),
)
MAX_BLOCK_SIZE = Option(
    "hoodie.logfile.data.block.max.size", positive, 256 << 20, "Bytes of a block of records at most."
)
MAX_FILE_SIZE = Option(
    "hoodie.logfile.max.size", positive, 1 << 30, "Bytes after which a further log file is begun."
)
PARQUET_RATIO = Option(
    "hoodie.logfile.to.parquet.compression.ratio",
    _ratio,
    0.35,
    "How large records of a log are in a base file, for telling which file groups are small.",
)
RECORD_POSITIONS = Option(
    "hoodie.write.record.positions",
    boolean,
    True,
    "Write the positions of updated and deleted rows in their base file into log blocks.",
    allowed=("true", "false"),
)
SMALL_GROUPS = Option(
    "hoodie.merge.small.file.group.candidates.limit",
    positive,
    1,
    "File groups of a partition whose small base files one write to a merge-on-read table adds new keys to.",
)
ALL: tuple[Option[Any], ...] = (
    BLOCK_FORMAT,
    MAX_BLOCK_SIZE,
    MAX_FILE_SIZE,
    PARQUET_RATIO,
    RECORD_POSITIONS,
    SMALL_GROUPS,
)


@dataclass(frozen=True)
class LogOptions:
    """How log files are made; travels to executors."""

    block_format: str = AVRO
    max_block_size: int = MAX_BLOCK_SIZE.default
    max_file_size: int = MAX_FILE_SIZE.default
    parquet_ratio: float = PARQUET_RATIO.default
    record_positions: bool = True
    small_groups: int = SMALL_GROUPS.default

    @classmethod
    def of(cls, *layers: Mapping[str, Any]) -> LogOptions:
        """Resolve the options."""
        return cls(
            block_format=BLOCK_FORMAT.find(*layers),
            max_block_size=MAX_BLOCK_SIZE.find(*layers),
            max_file_size=MAX_FILE_SIZE.find(*layers),
            parquet_ratio=PARQUET_RATIO.find(*layers),
            record_positions=RECORD_POSITIONS.find(*layers),
            small_groups=SMALL_GROUPS.find(*layers),
        )
