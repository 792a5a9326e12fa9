"""Options of the bloom filters in base files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.config.option import Option, boolean, one_of, positive

SIMPLE, DYNAMIC = "SIMPLE", "DYNAMIC_V0"
HUDIS_RATE = 1e-9
OUR_RATE = 0.01
"""Without a bloom index only other writers' look-ups read the filters: a tenth of the size, a third of the time."""


def _rate(value: str) -> float:
    number = float(value)
    if not 0 < number < 1:
        raise ValueError("a number between 0 and 1")
    return number


ENABLED = Option(
    "hoodie.parquet.bloom.filter.enabled",
    boolean,
    True,
    "Write bloom filter and key range into the footers of base files, as Hudi does whatever its index is.",
    allowed=("true", "false"),
)
FILTER_TYPE = Option(
    "hoodie.bloom.index.filter.type",
    one_of(SIMPLE, DYNAMIC),
    DYNAMIC,
    "Whether bloom filters grow with their keys.",
    allowed=(SIMPLE, DYNAMIC),
)
ENTRIES = Option("hoodie.index.bloom.num_entries", positive, 60_000, "Keys that a bloom filter is made for.")
MOST_ENTRIES = Option(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    positive,
    100_000,
    "Keys that a growing bloom filter is made for at most; more keys raise its rate of false positives.",
)
RATE: Option[float | None] = Option(
    "hoodie.index.bloom.fpp",
    _rate,
    None,
    "Rate of false positives of a bloom filter. 0.000000001 with the BLOOM index, else 0.01: Hudi reads either.",
)
ALL: tuple[Option[Any], ...] = (ENABLED, FILTER_TYPE, ENTRIES, MOST_ENTRIES, RATE)


@dataclass(frozen=True)
class BloomOptions:
    """How filters are made: `entries` keys to a row of bits at a false positive rate of `rate`.

    Dynamic filters grow by rows until they are made for `most_entries` keys; more keys raise the rate.
    """

    enabled: bool = True
    kind: str = DYNAMIC
    entries: int = ENTRIES.default
    rate: float = OUR_RATE
    most_entries: int = MOST_ENTRIES.default

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None, index_type: str) -> BloomOptions:
        """Resolve the options of a write."""
        rate = RATE.find(*layers) or (HUDIS_RATE if "BLOOM" in index_type else OUR_RATE)
        return cls(
            ENABLED.find(*layers),
            FILTER_TYPE.find(*layers),
            ENTRIES.find(*layers),
            rate,
            MOST_ENTRIES.find(*layers),
        )
