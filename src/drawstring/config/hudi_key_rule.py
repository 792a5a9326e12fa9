"""The form of the rules for Hudi's write options; `hudi_key_rules` and `refused_keys` have the rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CONCERNS_READS = "concerns reads"


class Status(Enum):
    """What becomes of a key."""

    HONOURED = "honoured"
    HARMLESS = "harmless"
    REFUSED = "refused"


@dataclass(frozen=True)
class Rule:
    """What happens to some keys of Hudi, and why; `*` at the end of a key stands for all that begin so.

    A refused key is refused when its value is none of `accepts` (Hudi's own default without it): those are what
    drawstring does in any case. `same_as` names an option whose value is accepted too. Of several rules for a key the
    most specific counts. An `open` rule covers keys that the list of Hudi's keys does not hold.
    """

    keys: tuple[str, ...]
    reason: str
    status: Status = Status.HARMLESS
    accepts: tuple[str, ...] | None = None
    same_as: str | None = None
    open: bool = False


def harmless(reason: str, *keys: str) -> Rule:
    """Make a rule for keys that a write may ignore, because its outcome is the same."""
    return Rule(keys, reason)


def refused(
    reason: str, *keys: str, accepts: tuple[str, ...] | None = None, same_as: str | None = None
) -> Rule:
    """Make a rule for keys that ask for something that drawstring does not do."""
    return Rule(keys, reason, Status.REFUSED, accepts=accepts, same_as=same_as)


def honoured(by: str, *keys: str) -> Rule:
    """Make a rule for keys that a part of drawstring reads by itself."""
    return Rule(keys, by, Status.HONOURED)


def elsewhere(reason: str, *prefixes: str) -> Rule:
    """Make a rule for keys of other programs of Hudi, which the list of keys need not hold."""
    return Rule(prefixes, reason, open=True)
