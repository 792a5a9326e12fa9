"""The options of streaming reads, typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drawstring.config.option import Option, boolean, text
from drawstring.errors import InvalidOption

EARLIEST, LATEST, SNAPSHOT_FIRST = "earliest", "latest", "snapshot"
PREFIX = "read.stream."


def positive(value: str) -> int | None:
    """Parse a whole number above zero."""
    stripped = value.strip()
    if not stripped.isascii() or not stripped.isdigit() or int(stripped) == 0:
        raise ValueError("a whole number above 0")
    return int(stripped)


START_OFFSET = Option(
    "hoodie.datasource.streaming.startOffset",
    text,
    EARLIEST,
    "Where a streaming read without a checkpoint begins: earliest, latest, snapshot (the whole table first, then "
    "changes), or an instant, after which commits are read.",
)
MAX_FILES = Option(
    "read.stream.maxFilesPerTrigger",
    positive,
    None,
    "The most files that one batch of a streaming read takes.",
    aliases=("maxFilesPerTrigger",),
)
MAX_BYTES = Option(
    "read.stream.maxBytesPerTrigger",
    positive,
    None,
    "The most bytes of files that one batch of a streaming read takes.",
    aliases=("maxBytesPerTrigger",),
)
MAX_ROWS = Option(
    "read.stream.maxRowsPerTrigger",
    positive,
    None,
    "The most rows that one batch of a streaming read takes, as commits count them.",
    aliases=("maxRowsPerTrigger",),
)
MIN_ROWS = Option(
    "read.stream.minRowsPerTrigger",
    positive,
    None,
    "A streaming read waits until so many rows are there; needs read.stream.maxTriggerDelayMs.",
    aliases=("minRowsPerTrigger",),
)
MAX_DELAY = Option(
    "read.stream.maxTriggerDelayMs",
    positive,
    None,
    "How many milliseconds a streaming read waits for read.stream.minRowsPerTrigger.",
    aliases=("maxTriggerDelayMs",),
)
FAIL_ON_DATA_LOSS = Option(
    "failOnDataLoss",
    boolean,
    True,
    "Whether a streaming read ends with an error when a cleaner took files before they were read. With false it goes "
    "on with what the newest files still hold of them, and counts the files that are gone.",
    aliases=("read.stream.failOnDataLoss",),
    allowed=("true", "false"),
)
KEEP_SCHEMA = Option(
    "read.stream.keepSchema",
    boolean,
    False,
    "Whether a streaming read goes on with the columns it began with when the table gets others; by default it ends "
    "with an error, and goes on with the new ones when it is started again.",
    allowed=("true", "false"),
)

_LIMITS: tuple[Option[int | None], ...] = (MAX_FILES, MAX_BYTES, MAX_ROWS, MIN_ROWS, MAX_DELAY)
ALL: tuple[Option[Any], ...] = (START_OFFSET, *_LIMITS, FAIL_ON_DATA_LOSS, KEEP_SCHEMA)


@dataclass(frozen=True)
class StreamLimits:
    """How much one batch takes; None for no limit."""

    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    min_rows: int | None = None
    max_delay_ms: int | None = None

    @property
    def unlimited(self) -> StreamLimits:
        """The same without the upper limits."""
        return StreamLimits(min_rows=self.min_rows, max_delay_ms=self.max_delay_ms)


@dataclass(frozen=True)
class StreamOptions:
    """The options of one streaming read.

    Example:
        >>> StreamOptions.of({"maxFilesPerTrigger": "10"}).limits.max_files
        10
    """

    start: str = EARLIEST
    limits: StreamLimits = field(default_factory=StreamLimits)
    fail_on_data_loss: bool = True
    keep_schema: bool = False

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> StreamOptions:
        """Resolve the options, the strongest layer first; raises `InvalidOption`."""
        _check_known(layers)
        limits = StreamLimits(*(option.find(*layers) for option in _LIMITS))
        if (limits.min_rows is None) != (limits.max_delay_ms is None):
            given, missing = MIN_ROWS.key, MAX_DELAY.key
            if limits.min_rows is None:
                given, missing = missing, given
            raise InvalidOption(
                f"Option {given} is given without {missing}; expected both or neither: a batch waits for rows, but "
                "not for ever.",
                condition="CONTRADICTING_OPTIONS",
                key=given,
                missing=missing,
            )
        return cls(
            start=START_OFFSET.find(*layers).strip(),
            limits=limits,
            fail_on_data_loss=FAIL_ON_DATA_LOSS.find(*layers),
            keep_schema=KEEP_SCHEMA.find(*layers),
        )


def _check_known(layers: Sequence[Mapping[str, Any] | None]) -> None:
    """A misspelt limit would be no limit: nobody else has options of this prefix."""
    names = [name for option in ALL for name in (option.key, *option.aliases) if name.startswith(PREFIX)]
    known = {name.lower() for name in names}
    given = (key for layer in layers for key in layer or {})
    unknown = next((k for k in given if k.lower().startswith(PREFIX) and k.lower() not in known), None)
    if unknown is not None:
        raise InvalidOption(
            f"There is no option {unknown}; expected one of {', '.join(sorted(names))}.",
            condition="UNKNOWN_OPTION",
            key=unknown,
        )
