"""Options of how files are made; tasks load them without those of the write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drawstring.config.bloom_options import BloomOptions
from drawstring.config.log_options import LogOptions
from drawstring.config.option import Option, integer, one_of, positive

CODECS = ("zstd", "snappy", "gzip", "uncompressed", "lz4_raw", "brotli")
MAX_FILE_SIZE = Option(
    "hoodie.parquet.max.file.size", positive, 120 << 20, "Target size of a base file in bytes."
)
SMALL_FILE_LIMIT = Option(
    "hoodie.parquet.small.file.limit",
    integer,
    100 << 20,
    "Base files below this many bytes take further inserts; 0 or less for none.",
)
RECORD_SIZE_ESTIMATE = Option(
    "hoodie.copyonwrite.record.size.estimate",
    positive,
    1024,
    "Bytes of a record in a file, until commits tell better.",
)
CODEC = Option(
    "hoodie.parquet.compression.codec",
    one_of(*CODECS),
    "zstd",
    "Compression of base files. Hudi's default is gzip: zstd makes files as small in a fraction of the time.",
    allowed=CODECS,
)
ALL: tuple[Option[Any], ...] = (MAX_FILE_SIZE, SMALL_FILE_LIMIT, RECORD_SIZE_ESTIMATE, CODEC)


@dataclass(frozen=True)
class FileOptions:
    """How files are made; travels to executors."""

    codec: str = CODEC.default
    max_file_size: int = MAX_FILE_SIZE.default
    small_file_limit: int = SMALL_FILE_LIMIT.default
    record_size_estimate: int = RECORD_SIZE_ESTIMATE.default
    bloom: BloomOptions = field(default_factory=BloomOptions)
    logs: LogOptions = field(default_factory=LogOptions)

    @classmethod
    def of(cls, *layers: Mapping[str, str], index_type: str) -> FileOptions:
        """Resolve the options."""
        return cls(
            codec=CODEC.find(*layers),
            max_file_size=MAX_FILE_SIZE.find(*layers),
            small_file_limit=SMALL_FILE_LIMIT.find(*layers),
            record_size_estimate=RECORD_SIZE_ESTIMATE.find(*layers),
            bloom=BloomOptions.of(*layers, index_type=index_type),
            logs=LogOptions.of(*layers),
        )
