"""A small subset of SQL's conditions, parsed to the expression tree.

condition  := condition OR condition | condition AND condition | NOT condition | ( condition ) | TRUE | FALSE
            | column = | == | != | <> | < | <= | > | >= | <=> literal     (or literal first)
            | column [NOT] IN (literal, ...) | column [NOT] BETWEEN literal AND literal
            | column [NOT] LIKE 'prefix%' | '%suffix' | '%part%' | column IS [NOT] NULL | column
column     := name | `any name` | column.column
literal    := 12 | -1.5 | 1e3 | 'text' | "text" | TRUE | FALSE | NULL | DATE '...' | TIMESTAMP '...' | X'...'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, NoReturn

from drawstring.errors import InvalidInput
from drawstring.predicates.ast import (
    Always,
    And,
    Column,
    Comparison,
    Contains,
    EndsWith,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
)

_TOKENS = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<number>\d+\.?\d*(?:[eE][+-]?\d+)? | \.\d+(?:[eE][+-]?\d+)?)
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<symbol><=>|<=|>=|<>|!=|==|[=<>(),.+-])
    )""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset(["AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "FALSE"])
_OPERATORS = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MAX_DEPTH = 100


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def parse(condition: str) -> Predicate:
    """Parse a condition such as `a > 3 and b in ('x', 'y') or c is null`.

    Raises `InvalidInput` that points at what was not understood.
    """
    return _Parser(condition).parse()


class _Parser:
    def __init__(self, condition: str) -> None:
        self._condition = condition
        self._tokens = self._tokenise()
        self._next = 0
        self._depth = 0

    def parse(self) -> Predicate:
        predicate = self._either()
        if self._peek().kind != "end":
            self._fail("expected AND, OR or the end")
        return predicate

    def _tokenise(self) -> list[_Token]:
        tokens, position = [], 0
        while self._condition[position:].strip():
            match = _TOKENS.match(self._condition, position)
            if match is None:
                self._fail("cannot read this", position=position)
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match.group(kind), match.start(kind)))
            position = match.end()
        return [*tokens, _Token("end", "", len(self._condition))]

    def _either(self) -> Predicate:
        parts = self._separated(self._both, "OR")
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Predicate:
        parts = self._separated(self._negated, "AND")
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _separated(self, part: Callable[[], Predicate], keyword: str) -> list[Predicate]:
        parts = [part()]
        while self._accept(keyword):
            parts.append(part())
        return parts

    def _negated(self) -> Predicate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._fail(f"nested deeper than {_MAX_DEPTH} levels")
        try:
            return Not(self._negated()) if self._accept("NOT") else self._primary()
        finally:
            self._depth -= 1

    def _primary(self) -> Predicate:
        if self._accept("("):
            inner = self._either()
            self._expect(")")
            return inner
        if not self._at_column():
            return self._literal_first()
        column = self._column()
        if self._peek().text in _OPERATORS:
            return Comparison(_OPERATORS[self._take().text], column, Literal(self._literal()))
        return self._test_of(column)

    def _test_of(self, column: Column) -> Predicate:
        if self._accept("IS"):
            negated = self._accept("NOT")
            self._expect("NULL")
            return _negate(IsNull(column), negated)
        negated = self._accept("NOT")
        if self._accept("IN"):
            return _negate(In(column, self._values()), negated)
        if self._accept("BETWEEN"):
            return _negate(self._between(column), negated)
        if self._accept("LIKE"):
            return _negate(self._like(column), negated)
        if negated:
            self._fail("expected IN, BETWEEN or LIKE after NOT")
        return Comparison("=", column, Literal(True))

    def _literal_first(self) -> Predicate:
        value = self._literal()
        token = self._peek()
        if token.text not in _OPERATORS:
            if isinstance(value, bool):
                return Always(value)
            self._fail("expected a comparison")
        op = _OPERATORS[self._take().text]
        return Comparison(_FLIPPED.get(op, op), self._column(), Literal(value))

    def _values(self) -> tuple[Any, ...]:
        self._expect("(")
        values = [self._literal()]
        while self._accept(","):
            values.append(self._literal())
        self._expect(")")
        return tuple(values)

    def _between(self, column: Column) -> Predicate:
        low = Literal(self._literal())
        self._expect("AND")
        return And((Comparison(">=", column, low), Comparison("<=", column, Literal(self._literal()))))

    def _like(self, column: Column) -> Predicate:
        pattern = self._literal()
        if not isinstance(pattern, str):
            self._fail("LIKE wants a text")
        opens, closes = pattern.startswith("%") and pattern != "%", pattern.endswith("%")
        body = pattern[opens : len(pattern) - closes]
        if any(wildcard in body for wildcard in "%_\\"):
            self._fail(f"only LIKE 'prefix%', '%suffix' and '%part%' are supported, found {pattern!r}")
        if opens:
            return Contains(column, body) if closes else EndsWith(column, body)
        return StartsWith(column, body) if closes else Comparison("=", column, Literal(pattern))

    def _at_column(self) -> bool:
        token = self._peek()
        if token.kind == "word" and self._tokens[self._next + 1].kind == "text":
            return False
        return token.kind == "quoted" or (token.kind == "word" and token.keyword not in _KEYWORDS)

    def _column(self) -> Column:
        if not self._at_column():
            self._fail("expected a column")
        path = [_name(self._take())]
        while self._accept("."):
            path.append(_name(self._take()))
        return Column(tuple(path))

    def _literal(self) -> Any:
        token = self._take()
        if token.kind == "text":
            return _unquoted(token.text)
        if token.kind == "number":
            return _number(token.text)
        if token.text in ("-", "+"):
            value = self._literal()
            if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
                self._fail(f"expected a number after {token.text}", position=token.position)
            return -value if token.text == "-" else value
        if token.keyword in ("TRUE", "FALSE", "NULL"):
            return {"TRUE": True, "FALSE": False, "NULL": None}[token.keyword]
        if token.kind == "word" and self._peek().kind == "text":
            return self._typed_literal(token)
        self._fail("expected a literal", position=token.position)

    def _typed_literal(self, token: _Token) -> Any:
        text = _unquoted(self._take().text)
        readers: dict[str, Callable[[str], Any]] = {
            "DATE": date.fromisoformat,
            "TIMESTAMP": _instant,
            "TIMESTAMP_NTZ": datetime.fromisoformat,
            "X": bytes.fromhex,
        }
        try:
            return readers[token.keyword](text)
        except (KeyError, ValueError):
            self._fail(f"cannot read {token.text} {text!r}", position=token.position)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _accept(self, text: str) -> bool:
        token = self._peek()
        found = token.keyword == text or (token.kind == "symbol" and token.text == text)
        if found:
            self._take()
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._fail(f"expected {text}")

    def _fail(self, why: str, *, position: int | None = None) -> NoReturn:
        at = self._peek().position if position is None else position
        found = self._condition[at : at + 20] or "the end"
        raise InvalidInput(
            f"Cannot parse the condition {self._condition!r}: {why} at character {at + 1}, found {found!r}.",
            condition="INVALID_CONDITION",
            position=at,
        )


def _negate(predicate: Predicate, negated: bool) -> Predicate:
    return Not(predicate) if negated else predicate


def _name(token: _Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def _unquoted(text: str) -> str:
    quote = text[0]
    return re.sub(r"\\(.)", r"\1", text[1:-1].replace(quote * 2, quote), flags=re.DOTALL)


def _number(text: str) -> int | float | Decimal:
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
