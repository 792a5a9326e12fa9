"""ORDER BY with LIMIT: slices whose best row comes after enough rows of others are left out.

Take the first sort column alone. If `n` rows are known whose values do not come after some value, then rows whose
value comes after it are not among the first `n`, whatever the other columns say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from drawstring.planning.scan_request import SortKey
from drawstring.predicates.evaluate import orders_alike
from drawstring.predicates.facts import ColumnFacts

BY_TOP_N = "top n"
_NULLS_FIRST, _VALUE, _NULLS_LAST = -1, 0, 1
_TEXTS = frozenset({pa.string().id})
_ORDERED = frozenset(
    arrow.id
    for arrow in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(), pa.timestamp("us")),
        *(pa.decimal128(1), pa.decimal256(1)),
    )
)


@dataclass(frozen=True)
class SortedSlice:
    """A slice as sorting sees it: `rows` that certainly match (None: unknown) and the sort column's facts."""

    rows: int | None
    facts: ColumnFacts | None


@dataclass(frozen=True)
class _Place:
    """A place in the order: among the nulls, or at a value (None: a value that is not known)."""

    group: int
    value: Any = None

    @property
    def is_known(self) -> bool:
        return self.group != _VALUE or self.value is not None


@dataclass(frozen=True)
class TopN:
    """The first `needed` rows by a sort key."""

    key: SortKey
    needed: int

    def left_out(self, slices: Sequence[SortedSlice]) -> list[bool]:
        """Which slices cannot hold a row of the first `needed`."""
        last = self._last_place(slices)
        if last is None:
            return [False] * len(slices)
        return [self._is_after(self._best(each.facts), last) for each in slices]

    def _last_place(self, slices: Sequence[SortedSlice]) -> _Place | None:
        """A place before which, or at which, enough rows stand; None when that cannot be told."""
        total = 0
        for place, count in self._sorted(bundle for each in slices for bundle in self._bundles(each)):
            total += count
            if total >= self.needed:
                return place
        return None

    def _sorted(self, bundles: Iterator[tuple[_Place, int]]) -> list[tuple[_Place, int]]:
        found = list(bundles)
        values = [each for each in found if each[0].group == _VALUE]
        values.sort(key=lambda each: each[0].value, reverse=self.key.descending)
        first = [each for each in found if each[0].group == _NULLS_FIRST]
        return first + values + [each for each in found if each[0].group == _NULLS_LAST]

    def _bundles(self, each: SortedSlice) -> Iterator[tuple[_Place, int]]:
        """Rows of a slice, each bundle with a place that none of its rows comes after."""
        facts, nulls = each.facts, _nulls(each)
        if each.rows is None or facts is None or nulls is None:
            return
        if nulls:
            yield _Place(self._nulls_group), nulls
        worst = _Place(_VALUE, facts.lower if self.key.descending else facts.upper)
        if each.rows > nulls and worst.is_known and _is_comparable(facts):
            yield worst, each.rows - nulls

    def _best(self, facts: ColumnFacts | None) -> _Place:
        """A place that no row of the slice comes before."""
        if facts is None or not _is_comparable(facts):
            return _Place(_VALUE)
        if facts.all_null or (facts.may_be_null and self.key.nulls_first):
            return _Place(self._nulls_group)
        return _Place(_VALUE, facts.upper if self.key.descending else facts.lower)

    def _is_after(self, best: _Place, last: _Place) -> bool:
        if best.group != last.group:
            # A slice without bounds may have nulls, which come first or last.
            return best.is_known and best.group > last.group
        if best.group != _VALUE or not best.is_known:
            return False
        return bool(best.value < last.value if self.key.descending else best.value > last.value)

    @property
    def _nulls_group(self) -> int:
        return _NULLS_FIRST if self.key.nulls_first else _NULLS_LAST


def _nulls(each: SortedSlice) -> int | None:
    facts = each.facts
    if facts is None:
        return None
    if facts.all_null:
        return each.rows
    return facts.nulls if facts.may_be_null else 0


def _is_comparable(facts: ColumnFacts) -> bool:
    """Whether Python orders the bounds as Spark orders the values."""
    kind = facts.type.id
    if kind in _TEXTS:
        return all(bound is None or orders_alike(bound) for bound in (facts.lower, facts.upper))
    return kind in _ORDERED
