"""The options of streaming writes beside those of every write, typed, under Hudi's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.config.option import Option, boolean, not_negative, text

IDENTIFIER = Option(
    "hoodie.datasource.write.streaming.checkpoint.identifier",
    text,
    "default_single_writer",
    "Names a streaming query in the commits that it writes; queries that write one table at the same time need names "
    "of their own.",
)
RETRY_COUNT = Option(
    "hoodie.datasource.write.streaming.retry.count",
    not_negative,
    3,
    "How many times a batch of a streaming write is tried, the first time included.",
)
RETRY_INTERVAL = Option(
    "hoodie.datasource.write.streaming.retry.interval.ms",
    not_negative,
    2000,
    "How many milliseconds pass before a batch is tried again; twice as many each time.",
)
IGNORE_FAILED = Option(
    "hoodie.datasource.write.streaming.ignore.failed.batch",
    boolean,
    False,
    "Whether a streaming query goes on without a batch that could not be written. Its rows are then missing.",
    allowed=("true", "false"),
)
ALL: tuple[Option[Any], ...] = (IDENTIFIER, RETRY_COUNT, RETRY_INTERVAL, IGNORE_FAILED)


@dataclass(frozen=True)
class SinkOptions:
    """The options of one streaming write.

    Example:
        >>> SinkOptions.of({"hoodie.datasource.write.streaming.retry.count": "1"}).tries
        1
    """

    identifier: str = IDENTIFIER.default
    tries: int = RETRY_COUNT.default
    pause_ms: int = RETRY_INTERVAL.default
    ignore_failed: bool = False

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> SinkOptions:
        """Resolve the options, the strongest layer first; raises `InvalidOption`."""
        identifier, tries, pause_ms, ignore_failed = (option.find(*layers) for option in ALL)
        return cls(identifier, max(1, tries), pause_ms, ignore_failed)
