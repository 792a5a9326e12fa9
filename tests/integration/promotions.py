"""Every promotion of a column's type, value by value, and tables that hold them in every kind of file.

What a value becomes is written out by hand, as Apache Hudi 1.2 answers it; nothing here asks drawstring.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal as D
from pathlib import Path
from typing import Any, Protocol

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import FIRST, SECOND, _framed, _Writer
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.meta_columns import META_COLUMNS

NAN, INFINITE = float("nan"), float("inf")
_AVRO_DATA, _PARQUET_DATA = 3, 5


@dataclass(frozen=True)
class Promotion:
    """A change of type: what files hold, what the table has, and what becomes of some values."""

    old: pa.DataType
    new: pa.DataType
    cases: tuple[tuple[Any, Any], ...]
    in_spark: bool = True  # whether the bridge converts it; workers convert all of them


def _promotion(old: pa.DataType, new: pa.DataType, *cases: Any, in_spark: bool = True) -> Promotion:
    """A promotion from pairs, or from values that stay what they are."""
    pairs = tuple(case if isinstance(case, tuple) else (case, case) for case in cases)
    return Promotion(old, new, pairs, in_spark)


_FLOAT_MAX, _FLOAT_MIN = 3.4028234663852886e38, 1.401298464324817e-45
_DOUBLE_MAX = 1.7976931348623157e308

PROMOTIONS: dict[str, Promotion] = {
    "int_long": _promotion(pa.int32(), pa.int64(), 0, -1, 2**31 - 1, -(2**31)),
    "int_float": _promotion(
        pa.int32(),
        pa.float32(),
        (0, 0.0),
        (16777217, 16777216.0),
        (33554435, 33554436.0),
        (2**31 - 1, 2.0**31),
    ),
    "int_double": _promotion(
        pa.int32(), pa.float64(), (0, 0.0), (2**31 - 1, 2147483647.0), (-(2**31), -(2.0**31))
    ),
    "int_text": _promotion(pa.int32(), pa.string(), (0, "0"), (-(2**31), "-2147483648"), (7, "7")),
    "int_decimal": _promotion(
        pa.int32(), pa.decimal128(12, 2), (0, D(0)), (2**31 - 1, D(2147483647)), (-(2**31), D(-2147483648))
    ),
    "long_float": _promotion(
        pa.int64(),
        pa.float32(),
        (2**63 - 1, 2.0**63),
        (-(2**63), -(2.0**63)),
        (16777217, 16777216.0),
        (-1, -1.0),
    ),
    "long_double": _promotion(
        pa.int64(), pa.float64(), (2**63 - 1, 2.0**63), (-(2**63), -(2.0**63)), (2**53 + 1, 2.0**53), (0, 0.0)
    ),
    "long_text": _promotion(
        pa.int64(),
        pa.string(),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
        (0, "0"),
    ),
    "long_decimal": _promotion(
        pa.int64(), pa.decimal128(38, 10), (2**63 - 1, D(2**63 - 1)), (-(2**63), D(-(2**63))), (0, D(0))
    ),
    "float_double": _promotion(
        pa.float32(),
        pa.float64(),
        (0.1, 0.1),
        -0.0,
        NAN,
        INFINITE,
        -INFINITE,
        (_FLOAT_MAX, 3.4028235e38),
        (_FLOAT_MIN, 1.4e-45),
        (1.1754943508222875e-38, 1.17549435e-38),
        (123456.79, 123456.79),
        1e10,
    ),
    "float_text": _promotion(
        pa.float32(),
        pa.string(),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (NAN, "NaN"),
        (INFINITE, "Infinity"),
        (-INFINITE, "-Infinity"),
        (_FLOAT_MAX, "3.4028235E38"),
        (_FLOAT_MIN, "1.4E-45"),
        (1e10, "1.0E10"),
        (16777216.0, "1.6777216E7"),
        (0.001, "0.001"),
    ),
    "float_decimal": _promotion(
        pa.float32(),
        pa.decimal128(20, 5),
        (0.1, D("0.1")),
        (-2.5, D("-2.5")),
        (1e10, D(10**10)),
        in_spark=False,
    ),
    "double_text": _promotion(
        pa.float64(),
        pa.string(),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (NAN, "NaN"),
        (-INFINITE, "-Infinity"),
        (_DOUBLE_MAX, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (1e7, "1.0E7"),
        (1e-3, "0.001"),
        (2.0**63, "9.223372036854776E18"),
        (123456789.12345679, "1.2345678912345679E8"),
    ),
    "double_decimal": _promotion(
        pa.float64(),
        pa.decimal128(20, 5),
        (0.1, D("0.1")),
        (-0.0, D(0)),
        (123.456789, D("123.45679")),
        in_spark=False,
    ),
    "decimal_wider": _promotion(
        pa.decimal128(10, 2), pa.decimal128(20, 4), D("0.00"), D("99999999.99"), D("-99999999.99"), D("-0.01")
    ),
    "decimal_widest": _promotion(
        pa.decimal128(20, 4), pa.decimal128(38, 18), D("9999999999999999.9999"), D("-0.0001"), D("1.5000")
    ),
    "decimal_text": _promotion(
        pa.decimal128(10, 2),
        pa.string(),
        (D("0.00"), "0.00"),
        (D("-99999999.99"), "-99999999.99"),
        (D("1.50"), "1.50"),
    ),
    "text_date": _promotion(
        pa.string(),
        pa.date32(),
        ("2024-02-29", date(2024, 2, 29)),
        ("1582-10-04", date(1582, 10, 4)),
        ("0001-01-01", date(1, 1, 1)),
        ("9999-12-31", date(9999, 12, 31)),
        in_spark=False,
    ),
    "text_decimal": _promotion(
        pa.string(),
        pa.decimal128(10, 2),
        ("1.50", D("1.50")),
        ("-99999999.99", D("-99999999.99")),
        ("1e3", D(1000)),
        in_spark=False,
    ),
    "date_text": _promotion(
        pa.date32(),
        pa.string(),
        (date(2024, 2, 29), "2024-02-29"),
        (date(1582, 10, 4), "1582-10-04"),
        (date(1582, 10, 15), "1582-10-15"),
        (date(1, 1, 1), "0001-01-01"),
        (date(9999, 12, 31), "9999-12-31"),
    ),
    "text_bytes": _promotion(pa.string(), pa.binary(), ("é日", "é日".encode()), ("", b"")),
    "bytes_text": _promotion(pa.binary(), pa.string(), ("é日".encode(), "é日"), (b"", "")),
    "added": _promotion(pa.null(), pa.string(), None),
}
PLACES = ("top", "struct", "list", "map")
ROWS = 2 + max(len(promotion.cases) for promotion in PROMOTIONS.values())
"""Rows per file: every case, and two rows without any."""
FILES = ("base", "merged", "avro", "parquet")
"""Where the rows lie: in a base file, in one that has logs, in Avro log blocks, in Parquet log blocks."""


def at(place: str, kind: pa.DataType) -> pa.DataType:
    """The type of a column that holds values of `kind` at a place."""
    if place == "struct":
        return pa.struct([("y", pa.int32()), ("x", kind)])
    if place == "list":
        return pa.list_(pa.field("element", kind))
    return pa.map_(pa.string(), pa.field("value", kind)) if place == "map" else kind


def placed(place: str, value: Any, row: int) -> Any:
    """A value of the column that holds `value` at a place; nested ones also come without it, in some rows."""
    if place == "struct":
        return None if row == ROWS - 1 else {"y": row, "x": value}
    if place == "list":
        return {ROWS - 1: None, ROWS - 2: []}.get(row, [value, None])
    if place == "map":
        return None if row == ROWS - 1 else {"k": value, "n": None}
    return value


@dataclass(frozen=True)
class Columns:
    """The columns of one table: each promotion at each place."""

    promotions: Mapping[str, Promotion]
    places: tuple[str, ...] = PLACES

    def names(self) -> list[tuple[str, str, Promotion]]:
        """Each column's name, place and promotion."""
        return [(f"{place}_{name}", place, p) for name, p in self.promotions.items() for place in self.places]

    def schema(self, *, new: bool) -> pa.Schema:
        """The columns' types, in files or in the table; a column that was added is in no file."""
        kinds = [(name, place, p.new if new else p.old) for name, place, p in self.names()]
        return pa.schema([(name, at(place, kind)) for name, place, kind in kinds if kind != pa.null()])

    def row(self, number: int, *, new: bool) -> dict[str, Any]:
        """One row, as files hold it or as it must be read."""
        found = {}
        for name, place, promotion in self.names():
            case = promotion.cases[number] if number < len(promotion.cases) else (None, None)
            if promotion.old == pa.null():
                found |= {name: None} if new else {}
            else:
                found[name] = placed(place, case[int(new)], number)
        return found


class EvolvedColumns(Protocol):
    """Columns as files hold them and as the table has them."""

    def schema(self, *, new: bool) -> pa.Schema:
        """Their types."""

    def row(self, number: int, *, new: bool) -> dict[str, Any]:
        """One row of them."""


class PromotedTable:
    """A merge-on-read table written with the old types, and then declared to have the new ones."""

    def __init__(self, path: Path, columns: EvolvedColumns) -> None:
        self._columns = columns
        self._writer = _Writer(path, path.name, merge_on_read=True)
        self._schema = pa.schema(
            [
                *((name, pa.string()) for name in META_COLUMNS),
                *(("id", pa.int64()), ("ts", pa.int64()), ("p", pa.string())),
                *columns.schema(new=False),
            ]
        )

    def write(self, extra: Mapping[str, str] | None = None) -> PromotedTable:
        """Write the files and both commits, the second with more to say perhaps."""
        self._writer.path.mkdir(parents=True)
        self._writer.properties()
        self._base_file("base", self._rows("base"))
        self._base_file("merged", self._rows("merged"))
        self._writer.commit(FIRST, self._avro(self._data_schema(new=False)))
        self._log_file("merged", [self._row("merged", ROWS, ts=5)], _AVRO_DATA)
        self._log_file("avro", self._rows("avro"), _AVRO_DATA)
        self._log_file("parquet", self._rows("parquet"), _PARQUET_DATA)
        self._writer.commit(SECOND, self._avro(self._data_schema(new=True)), extra=extra)
        return self

    @property
    def path(self) -> str:
        """The table's folder."""
        return str(self._writer.path)

    def expected(self) -> dict[int, dict[str, Any]]:
        """What must be read, by id."""
        rows = {}
        for file in FILES:
            for number in range(ROWS + (file == "merged")):
                rows[_id(file, number)] = {"p": file, **self._columns.row(number, new=True)}
        return rows

    def _data_schema(self, *, new: bool) -> pa.Schema:
        base = [("id", pa.int64()), ("ts", pa.int64()), ("p", pa.string())]
        return pa.schema([*base, *self._columns.schema(new=new)])

    def _avro(self, schema: pa.Schema) -> str:
        return json.dumps(avro_schema_from_arrow(schema, name="t", namespace="hoodie"))

    def _rows(self, file: str) -> list[dict[str, Any]]:
        return [self._row(file, number, ts=1) for number in range(ROWS)]

    def _row(self, file: str, number: int, *, ts: int) -> dict[str, Any]:
        meta = dict.fromkeys(META_COLUMNS, "m") | {"_hoodie_record_key": str(_id(file, number))}
        return {**meta, "id": _id(file, number), "ts": ts, "p": file, **self._columns.row(number, new=False)}

    def _table(self, rows: list[dict[str, Any]]) -> pa.Table:
        arrays = [pa.array([_pairs(row[f.name], f.type) for row in rows], f.type) for f in self._schema]
        return pa.table(arrays, schema=self._schema)

    def _base_file(self, file: str, rows: list[dict[str, Any]]) -> None:
        name = f"{_file_id(file)}_0-1-0_{FIRST}.parquet"
        path = self._writer.partition(f"p={file}") / name
        pq.write_table(self._table(rows), path)
        self._writer.note(f"p={file}", _file_id(file), name, len(rows), path.stat().st_size)

    def _log_file(self, file: str, rows: list[dict[str, Any]], kind: int) -> None:
        schema = avro_schema_from_arrow(self._schema, name="t", namespace="hoodie")
        content = self._parquet(rows) if kind == _PARQUET_DATA else _avro_records(schema, rows)
        block = _framed(kind, {0: FIRST, 2: json.dumps(schema)}, content)
        name = f".{_file_id(file)}_{FIRST}.log.1_0-2-0"
        (self._writer.partition(f"p={file}") / name).write_bytes(block)
        self._writer.note(f"p={file}", _file_id(file), name, len(rows), len(block))

    def _parquet(self, rows: list[dict[str, Any]]) -> bytes:
        sink = io.BytesIO()
        pq.write_table(self._table(rows), sink)
        return sink.getvalue()


def _id(file: str, number: int) -> int:
    return 100 * FILES.index(file) + number


def _file_id(file: str) -> str:
    return f"{FILES.index(file):08x}-0000-4000-8000-000000000000-0"


def _pairs(value: Any, kind: pa.DataType) -> Any:
    """Maps as pairs, as Arrow wants them."""
    return list(value.items()) if pa.types.is_map(kind) and value is not None else value


def _avro_records(schema: dict[str, Any], rows: list[dict[str, Any]]) -> bytes:
    parsed, content = fastavro.parse_schema(schema), io.BytesIO()
    content.write(struct.pack(">ii", 3, len(rows)))
    for row in rows:
        single = io.BytesIO()
        fastavro.schemaless_writer(single, parsed, row)
        content.write(struct.pack(">i", single.tell()) + single.getvalue())
    return content.getvalue()
