"""Random tables, and the rows that they must show: every type, null, NaN, long texts, logs, evolved schemas.

A seed decides all of it: table type, partition columns, which indexes are kept, the commits and the rows of each.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import drawstring

Row = dict[str, Any]
UTC = dt.timezone.utc
_ZONED = pa.timestamp("us", tz="UTC")
_INNER = pa.struct([("q", pa.date32()), ("w", pa.string())])
_STRUCT = pa.struct([("x", pa.int32()), ("y", pa.float64()), ("z", pa.string()), ("n", _INNER)])
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "b": pa.bool_(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "s": pa.string(),
    "bin": pa.binary(),
    "dec": pa.decimal128(9, 2),
    "big": pa.decimal128(38, 10),
    "dt": pa.date32(),
    "t": _ZONED,
    "tn": pa.timestamp("us"),
    "st": _STRUCT,
    "arr": pa.list_(pa.int32()),
}
PARTITIONS: dict[str, dict[str, pa.DataType]] = {
    "none": {},
    "text": {"p": pa.string()},
    "int": {"p": pa.int32()},
    "long": {"p": pa.int64()},
    "date": {"p": pa.date32()},
    "boolean": {"p": pa.bool_()},
    "time": {"p": _ZONED},
    "decimal": {"p": pa.decimal128(9, 2)},
    "two": {"p": pa.string(), "p2": pa.int32()},
}
_PARTITION_VALUES: dict[str, list[Any]] = {
    "string": ["a", "b", "c d", "x/y", "e=f", "%41", "ü", "1", None],
    "bool": [True, False, None],
    "date32[day]": [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(1960, 5, 5), None],
    "timestamp[us, tz=UTC]": [
        dt.datetime(2024, 1, 1, tzinfo=UTC),
        dt.datetime(2024, 1, 1, 5, 6, 7, 8, tzinfo=UTC),
        None,
    ],
    "decimal128(9, 2)": [Decimal("1.50"), Decimal("-2.25"), Decimal("0.00"), None],
    "int32": [1, 2, -3, 40, None],
    "int64": [1, 2, -3, 2**40, None],
}
_ODD: dict[str, list[Any]] = {
    "int32": [0, -1, 2**31 - 1, -(2**31)],
    "int64": [2**53 + 1, 2**53, 2**63 - 1, -(2**63)],
    "float": [
        math.nan,
        math.inf,
        -math.inf,
        0.0,
        -0.0,
        1.5,
        3.4028234663852886e38,
        -2.25,
    ],
    "double": [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 1.7976931348623157e308, 5e-324, -2.25, 0.1],
    "string": ["", "a", "A", "ü€", "\U0001f600z", "\uffee", "x" * 1200, "x" * 1200 + "y", "zz", " pad ", "1"],
    "binary": [b"", b"\x00", b"\xff\xfe", b"abc", b"\x80" * 70],
    "decimal128(38, 10)": [Decimal(n).scaleb(-10) for n in (0, 1, -1, 10**37, 3 - 10**37)],
    "date32[day]": [dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 4)],
    "timestamp[us]": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1900, 1, 1)],
}


@dataclass
class RandomTable:
    """A table that was written, and the rows that it must show."""

    path: str
    schema: pa.Schema
    about: str
    rows: list[Row] = field(default_factory=list)


def make(path: str, seed: int) -> RandomTable:
    """Write the table of a seed."""
    return _Maker(path, random.Random(seed)).make()


class _Maker:
    def __init__(self, path: str, chance: random.Random) -> None:
        self.path, self.chance = path, chance
        self.merge_on_read = chance.random() < 0.6
        self.partitioning = chance.choice(sorted(PARTITIONS))
        self.index = chance.choice(["none", "files", "columns"])
        self.evolves = chance.random() < 0.4
        self.columns = COLUMNS | PARTITIONS[self.partitioning]
        self.model: dict[int, Row] = {}
        self.places: dict[tuple[int, str], Any] = {}
        self.next_key = 0

    def make(self) -> RandomTable:
        self._create()
        commits = self.chance.randrange(3, 7)
        for commit in range(commits):
            self._commit(commit, self._schema(is_old=commit < commits // 2))
        schema = self._schema(is_old=False)
        rows = [{name: row.get(name) for name in schema.names} for row in self.model.values()]
        kind = "merge-on-read" if self.merge_on_read else "copy-on-write"
        about = f"{kind}, by {self.partitioning}, index {self.index}{', evolved' if self.evolves else ''}"
        return RandomTable(self.path, schema, about, rows)

    def _create(self) -> None:
        hive, encoded = self.chance.random() < 0.5, self.chance.random() < 0.5
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": str(
                encoded or ("p" in self.columns and self.columns["p"] == pa.string())
            ).lower(),
        }
        if fields := ",".join(PARTITIONS[self.partitioning]):
            options["hoodie.datasource.write.partitionpath.field"] = fields
        drawstring.create_table(self.path, self._schema(is_old=True), options=options)

    def _schema(self, *, is_old: bool) -> pa.Schema:
        """Evolved tables begin without some columns, and with others narrower."""
        narrow = {"l": pa.int32(), "d": pa.float32()} if self.evolves and is_old else {}
        absent = {"s", "big"} if self.evolves and is_old else set()
        return pa.schema(
            [(name, narrow.get(name, kind)) for name, kind in self.columns.items() if name not in absent]
        )

    def _commit(self, commit: int, schema: pa.Schema) -> None:
        fresh = range(self.next_key, self.next_key + self.chance.randrange(1, 14))
        self.next_key = fresh.stop
        self._write("insert", fresh, commit, schema)
        if commit and self.chance.random() < 0.6:
            known = sorted(self.model)
            self._write("upsert", self.chance.sample(known, min(len(known), 4)), commit, schema)
        if commit and self.chance.random() < 0.3 and len(self.model) > 3:
            self._write("delete", self.chance.sample(sorted(self.model), 2), commit, schema)
        if self.merge_on_read and self.chance.random() < 0.25:
            drawstring.open_table(self.path).compact()

    def _write(self, operation: str, keys: Any, commit: int, schema: pa.Schema) -> None:
        rows = [self._row(key, commit, schema) for key in keys]
        options = {
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.metadata.enable": str(self.index != "none").lower(),
            "hoodie.metadata.index.column.stats.enable": str(self.index == "columns").lower(),
            "hoodie.write.set.null.for.missing.columns": "true",
        }
        table = pa.Table.from_pylist(rows, schema)
        drawstring.open_table(self.path).write(table, operation=operation, options=options)
        for row in rows:
            if operation == "delete":
                del self.model[row["id"]]
            else:
                self.model[row["id"]] = self._shown(row, schema)

    def _row(self, key: int, commit: int, schema: pa.Schema) -> Row:
        row: Row = {}
        for name, kind in zip(schema.names, schema.types, strict=True):
            if name in PARTITIONS[self.partitioning]:
                values = _PARTITION_VALUES[str(kind)]
                row[name] = self.places.setdefault((key, name), self.chance.choice(values))
            else:
                row[name] = key if name == "id" else self._value(kind, commit)
        return row

    def _shown(self, row: Row, schema: pa.Schema) -> Row:
        """A float that became a double has the digits that Java prints of it."""
        value = row["d"]
        if value is None or schema.field("d").type == pa.float64():
            return row
        return row | {"d": float(str(np.float32(value)))}

    def _value(self, kind: pa.DataType, commit: int) -> Any:
        """Values of a commit lie near each other, so that bounds rule files out; some are odd, some null."""
        if pa.types.is_struct(kind):
            return None if self.chance.random() < 0.1 else {f.name: self._value(f.type, commit) for f in kind}
        if self.chance.random() < 0.15:
            return None
        odd = _ODD.get(str(kind).replace(", tz=UTC", ""), ())
        if odd and self.chance.random() < 0.3:
            value = self.chance.choice(odd)
            return value.replace(tzinfo=UTC) if isinstance(value, dt.datetime) and kind.tz else value
        return self._near(kind, 10 * commit + self.chance.randrange(10))

    def _near(self, kind: pa.DataType, number: int) -> Any:
        if pa.types.is_boolean(kind):
            return number % 20 < 10
        if pa.types.is_integer(kind):
            return number
        if pa.types.is_floating(kind):
            return number / 4
        if pa.types.is_string(kind):
            return f"s{number:03}"
        if pa.types.is_binary(kind):
            return bytes([number])
        if pa.types.is_decimal(kind):
            return Decimal(number).scaleb(-2)
        if pa.types.is_date(kind):
            return dt.date(2024, 1, 1) + dt.timedelta(days=2 * number)
        if pa.types.is_timestamp(kind):
            moment = dt.datetime(2024, 1, 1) + dt.timedelta(hours=3 * number, microseconds=number % 2)
            return moment.replace(tzinfo=UTC) if kind.tz else moment
        return [number, number + 1][: number % 3]
