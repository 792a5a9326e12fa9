"""Every option that Apache Hudi 1.2 knows, and what drawstring does with it in a write."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from drawstring.config.hudi_key_rule import CONCERNS_READS, Rule, Status
from drawstring.config.hudi_key_rules import RULES
from drawstring.config.option import Option, lowered, not_supported

_FACTS = "hudi_keys.csv"


@dataclass(frozen=True)
class HudiKey:
    """One option of Hudi: its names, Hudi's default (empty for none), and what drawstring does with it.

    `accepts` are the values of a refused key that are not refused, in lower case.
    """

    key: str
    status: Status
    reason: str
    default: str = ""
    alternatives: tuple[str, ...] = ()
    deprecated: bool = False
    accepts: tuple[str, ...] = ()
    same_as: str | None = None


class HudiKeys:
    """The keys by any of their names, in any letter case.

    Example:
        >>> from drawstring.config.write_options import hudi_keys
        >>> hudi_keys().find("HOODIE.metrics.on").status
        <Status.REFUSED: 'refused'>
    """

    def __init__(self, *, honoured: Iterable[Option[Any]], of_reads: Iterable[Option[Any]]) -> None:
        self._options = _by_names(honoured)
        self._of_reads = _by_names(of_reads)
        self._rules = {pattern.lower(): rule for rule in reversed(RULES) for pattern in rule.keys}
        self.all = tuple(self._declare(row) for row in _facts())
        older = {name.lower(): key for key in self.all for name in key.alternatives}
        self._by_name = {**older, **{key.key.lower(): key for key in self.all}}

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that somebody knows, Hudi's and drawstring's own."""
        return tuple(sorted({*self._by_name, *self._options, *self._of_reads}))

    def find(self, name: str) -> HudiKey | None:
        """Return the key called `name`, or None when nobody knows it."""
        name = name.lower()
        found = self._by_name.get(name)
        if found is not None:
            return found
        if name in self._options:
            return HudiKey(self._options[name].key, Status.HONOURED, "")
        if name in self._of_reads:
            return HudiKey(self._of_reads[name].key, Status.HARMLESS, CONCERNS_READS)
        rule = self._rule(name)
        return _ruled(name, rule, default="") if rule is not None and rule.open else None

    def check(self, *layers: Mapping[str, Any] | None) -> tuple[str, ...]:
        """Refuse, by name, what a write would have to do and drawstring does not; layers from the strongest.

        Returns the names that nobody knows. Raises `InvalidOption` with key, value and reason.
        """
        unknown: dict[str, None] = {}
        stated: dict[str, tuple[HudiKey, str, str]] = {}
        for layer in map(lowered, layers):
            for name in layer:
                key = self.find(name)
                if key is None:
                    unknown[name] = None
                else:
                    first = next((n for n in (key.key, *key.alternatives) if n.lower() in layer), name)
                    stated.setdefault(key.key, (key, first, layer[first.lower()]))
        for key, name, value in stated.values():
            if not self._is_satisfied(key, value, layers):
                raise not_supported(name, value, key.reason, allowed=tuple(filter(None, key.accepts)))
        return tuple(unknown)

    def _is_satisfied(self, key: HudiKey, value: str, layers: Iterable[Mapping[str, Any] | None]) -> bool:
        value = value.strip()
        if key.status is not Status.REFUSED or not value or value.lower() in key.accepts:
            return True
        same = self._options.get(key.same_as or "")
        return same is not None and any(same.raw(layer) == value for layer in map(lowered, layers))

    def _declare(self, row: Mapping[str, str]) -> HudiKey:
        name = row["key"]
        facts: dict[str, Any] = {
            "alternatives": tuple(row["alternatives"].split()),
            "deprecated": bool(row["deprecated"]),
        }
        option = self._options.get(name.lower())
        if option is not None:
            return HudiKey(name, Status.HONOURED, "", row["default"], **facts)
        rule = self._rule(name.lower())
        if rule is None:
            raise LookupError(f"{name} has no rule in hudi_key_rules and no typed declaration")
        return _ruled(name, rule, default=row["default"], **facts)

    def _rule(self, name: str) -> Rule | None:
        if name in self._rules:
            return self._rules[name]
        prefixes = (name[:size] + "*" for size in range(len(name), 0, -1))
        return next((self._rules[prefix] for prefix in prefixes if prefix in self._rules), None)


def _by_names(options: Iterable[Option[Any]]) -> dict[str, Option[Any]]:
    return {name.lower(): option for option in options for name in (option.key, *option.aliases)}


def _ruled(name: str, rule: Rule, *, default: str, **facts: Any) -> HudiKey:
    accepts = (default,) if rule.accepts is None else rule.accepts
    satisfied = tuple(value.lower() for value in accepts) if rule.status is Status.REFUSED else ()
    return HudiKey(name, rule.status, rule.reason, default, accepts=satisfied, same_as=rule.same_as, **facts)


@lru_cache(maxsize=1)
def _facts() -> tuple[dict[str, str], ...]:
    text = files(__package__).joinpath(_FACTS).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))
