"""Random queries in SQL over the columns of a random table; `{}` stands for the table."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.random_tables import RandomTable
from tests.support.row_evaluator import value_of

BAG, SORTED, COUNTED = "bag", "sorted", "counted"
"""How answers are compared: as bags, in their order, by the number of rows alone."""
_FUNCTIONS = {
    "int": ["CAST({} AS DOUBLE) < 12.5D", "CAST({} AS STRING) = '12'", "CAST({} AS DECIMAL(30,3)) <= 21.125"],
    "float": ["CAST({} AS DOUBLE) > 3.25D", "CAST({} AS STRING) = '1.5'"],
    "decimal": ["CAST({} AS DOUBLE) > 0.15D", "CAST({} AS DECIMAL(38,10)) <= 0.25"],
    "string": [
        "upper({}) = 'A'",
        "substring({}, 1, 3) = 's01'",
        "concat({}, 'x') = 's011x'",
        "trim({}) = 'pad'",
        "length({}) > 2",
        "lower({}) LIKE 's02%'",
    ],
    "date": [
        "year({}) = 2024",
        "month({}) = 2",
        "day({}) > 15",
        "trunc({}, 'MM') = DATE '2024-02-01'",
        "quarter({}) = 1",
    ],
    "time": ["CAST({} AS DATE) > DATE '2024-01-04'", "year({}) < 2024", "month({}) = 1"],
    "bool": ["CAST({} AS INT) = 1", "{} IN (TRUE, FALSE)", "NOT {}"],
}


class Queries:
    """Draws queries about a table."""

    def __init__(self, table: RandomTable, chance: random.Random) -> None:
        self.table, self.chance = table, chance
        self.paths = [found for field in table.schema for found in _paths(field, ())]
        self.partitions = [name for name in ("p", "p2") if name in table.schema.names]

    def query(self) -> tuple[str, str]:
        """How to compare, and the query."""
        chance = self.chance
        where = f"WHERE {self.condition()}" if chance.random() < 0.9 else ""
        return chance.choice([self._rows, self._rows, self._aggregate, self._top, self._limited])(where)

    def condition(self, depth: int = 0) -> str:
        chance = self.chance.random()
        if depth > 1 or chance < 0.5:
            return self._leaf()
        if chance < 0.6:
            return f"NOT ({self.condition(depth + 1)})"
        both = (self.condition(depth + 1), self.condition(depth + 1))
        return f"({both[0]}) {self.chance.choice(['AND', 'OR'])} ({both[1]})"

    def _rows(self, where: str) -> tuple[str, str]:
        names = self.table.schema.names
        chosen = self.chance.sample(names, self.chance.choice([1, 3, len(names)]))
        return BAG, f"SELECT {', '.join(chosen)} FROM {{}} {where}"

    def _aggregate(self, where: str) -> tuple[str, str]:
        path, other = (".".join(self._path()[0]) for _ in range(2))
        functions = [
            "count(*)",
            f"count({path})",
            f"min({path})",
            f"max({path})",
            f"max({other})",
            f"count({other})",
        ]
        groups = self.chance.sample(self.partitions, self.chance.randrange(len(self.partitions) + 1))
        columns = ", ".join(groups + self.chance.sample(functions, self.chance.randrange(1, 4)))
        return BAG, f"SELECT {columns} FROM {{}} {where}" + (
            f" GROUP BY {', '.join(groups)}" if groups else ""
        )

    def _top(self, where: str) -> tuple[str, str]:
        path = ".".join(self._path()[0])
        order = (
            f"{path} {self.chance.choice(['ASC', 'DESC'])} NULLS {self.chance.choice(['FIRST', 'LAST'])}, id"
        )
        return (
            SORTED,
            f"SELECT id, {path} FROM {{}} {where} ORDER BY {order} LIMIT {self.chance.randrange(12)}",
        )

    def _limited(self, where: str) -> tuple[str, str]:
        return COUNTED, f"SELECT id FROM {{}} {where} LIMIT {self.chance.randrange(15)}"

    def _path(self) -> tuple[tuple[str, ...], pa.DataType]:
        own = [found for found in self.paths if found[0][0] in self.partitions]
        return self.chance.choice(own if own and self.chance.random() < 0.25 else self.paths)

    def _leaf(self) -> str:
        path, kind = self._path()
        name = ".".join(path)
        functions = next((texts for word, texts in _FUNCTIONS.items() if word in str(kind)), None)
        draw = self.chance.random()
        if draw < 0.1:
            return f"{name} IS {self.chance.choice(['', 'NOT '])}NULL"
        if draw < 0.35 and functions:
            return self.chance.choice(functions).format(name)
        values = [value_of(row, path) for row in self.table.rows]
        picked = [literal(self.chance.choice(values), kind) for _ in range(self.chance.choice([1, 2, 3, 14]))]
        if draw < 0.55:
            return f"{name} {self.chance.choice(['', 'NOT '])}IN ({', '.join(picked)})"
        if draw < 0.65:
            return f"{name} BETWEEN {picked[0]} AND {picked[-1]}"
        return f"{name} {self.chance.choice(['=', '<=>', '<>', '<', '<=', '>', '>='])} {picked[0]}"


def _paths(field: pa.Field, above: tuple[str, ...]) -> list[tuple[tuple[str, ...], pa.DataType]]:
    if pa.types.is_struct(field.type):
        return [found for inner in field.type for found in _paths(inner, (*above, field.name))]
    return [] if pa.types.is_nested(field.type) else [((*above, field.name), field.type)]


def literal(value: Any, kind: pa.DataType) -> str:
    """A value as SQL spells it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
        return f"CAST('{text}' AS {'FLOAT' if pa.types.is_float32(kind) else 'DOUBLE'})"
    if isinstance(value, int):
        return f"CAST('{value}' AS {'INT' if kind == pa.int32() else 'BIGINT'})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({kind.precision},{kind.scale}))"
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ")
        return f"TIMESTAMP{'' if kind.tz else '_NTZ'} '{text}'"
    return f"DATE '{value}'" if isinstance(value, dt.date) else "'" + value.replace("'", "\\'") + "'"
