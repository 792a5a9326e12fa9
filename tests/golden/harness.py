"""Golden tables: what was expected of each read, and whether an answer is one of the accepted ones.

A table is `NAME.zip` (one member, `table.tar`) and `NAME.json` (rows and, per read, their numbers), in `tables`
or, where `generate.py` made it, in `extra`.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

TABLES = Path(__file__).parent / "tables"
EXTRA = Path(__file__).parent / "extra"
Row = dict[str, Any]


@dataclass(frozen=True)
class Read:
    """One read of one golden table; `label` is the name it has in the expectation file (`as_of 0`)."""

    table: str
    label: str
    kind: str  # snapshot | read_optimized | as_of | incremental
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    options: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """The test id."""
        return f"{self.table}-{self.label.replace(' ', '')}"

    def spark_options(self) -> dict[str, str]:
        """The options of this read as a Hudi user writes them."""
        options = dict(self.options)
        if self.kind == "read_optimized":
            options["hoodie.datasource.query.type"] = "read_optimized"
        if self.kind == "as_of":
            options["as.of.instant"] = str(self.as_of)
        if self.kind == "incremental":
            options["hoodie.datasource.query.type"] = "incremental"
            options["hoodie.datasource.read.begin.instanttime"] = str(self.begin)
            if self.end is not None:
                options["hoodie.datasource.read.end.instanttime"] = self.end
        return options


@cache
def expectation(name: str) -> dict[str, Any]:
    """The parsed expectation file of a table."""
    parsed: dict[str, Any] = json.loads(_file(f"{name}.json").read_text())
    return parsed


def table_names() -> list[str]:
    """Every golden table."""
    return sorted(path.stem for folder in (TABLES, EXTRA) for path in folder.glob("*.zip"))


def all_reads() -> list[Read]:
    """Every read of every table."""
    return [read for name in table_names() for read in reads_of(name)]


def reads_of(name: str) -> list[Read]:
    """The reads of one table."""
    expected = expectation(name)
    options = expected["read_options"]
    reads = [
        Read(name, kind, kind, options=options) for kind in ("snapshot", "read_optimized") if kind in expected
    ]
    for number, entry in enumerate(expected.get("as_of", ())):
        reads.append(Read(name, f"as_of {number}", "as_of", as_of=entry["instant"], options=options))
    for number, entry in enumerate(expected.get("incremental", ())):
        bounds = {"begin": entry["begin"], "end": entry["end"]}
        reads.append(Read(name, f"incremental {number}", "incremental", **bounds, options=options))
    return reads


def extract(name: str, folder: Path) -> Path:
    """Unpack a table below `folder`, file times kept, and return its base path."""
    target = folder / name
    if not target.exists():
        with zipfile.ZipFile(_file(f"{name}.zip")) as archive:
            content = archive.read("table.tar")
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            _extract_all(tar, target)
    return _base_path(target)


def assert_rows(read: Read, rows: list[Row]) -> None:
    """Fail, showing the difference, unless the rows are one of the accepted answers."""
    answers = accepted_answers(read)
    if not any(_same(rows, answer) for answer in answers):
        raise AssertionError(f"{read.id}: {_difference(rows, answers[0])}")


def accepted_answers(read: Read) -> list[list[Row]]:
    """What Hudi answered; for suspect reads also the model's rows and a newer Hudi's answer."""
    expected = expectation(read.table)
    numbers = [_expected_numbers(expected, read)]
    numbers += [
        expected.get(kind, {})[read.label]
        for kind in ("believed", "newer")
        if read.label in expected.get(kind, {})
    ]
    return [[expected["rows"][number] for number in answer] for answer in numbers]


def accepted_schemas(name: str) -> set[str]:
    """The accepted schemas of the snapshot read, as Spark spells them."""
    expected = expectation(name)
    return {expected[key] for key in ("schema", "believed_schema", "newer_schema") if key in expected}


def fields_of(schema: str) -> set[str]:
    """The top-level fields of a schema as Spark spells it; Hudi 0.15 moves partition columns to the end."""
    fields, depth = [""], 0
    for char in schema.removeprefix("struct<").removesuffix(">"):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            fields.append("")
        else:
            fields[-1] += char
    return set(fields)


def arrow_rows(table: pa.Table) -> list[Row]:
    """An Arrow table as normalised rows."""
    columns = {
        field.name: [_from_arrow(value, field.type) for value in table.column(index).to_pylist()]
        for index, field in enumerate(table.schema)
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def spark_rows(rows: list[Any]) -> list[Row]:
    """Collected Spark rows as normalised rows."""
    return [{name: normalise(value) for name, value in row.asDict(recursive=True).items()} for row in rows]


def normalise(value: Any) -> Any:
    """One value as the expectation files write it."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return (value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(normalise(key)): normalise(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [normalise(item) for item in value]
    return value


def spark_schema(schema: pa.Schema) -> str:
    """An Arrow schema in Spark's simple spelling."""
    return f"struct<{','.join(f'{field.name}:{_spark_type(field.type)}' for field in schema)}>"


def _file(name: str) -> Path:
    return next(path for path in (TABLES / name, EXTRA / name) if path.exists())


def _decimal_text(value: Decimal) -> str:
    # Decimal.normalize would round to the context's 28 digits.
    text = format(value, "f") if value else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _from_arrow(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(normalise(key)): _from_arrow(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_from_arrow(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _from_arrow(value[field.name], field.type) for field in kind}
    return normalise(value)


_SPARK_NAMES = {
    "int32": "int",
    "int64": "bigint",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp",
    "timestamp[us]": "timestamp_ntz",
}


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{_spark_type(kind.key_type)},{_spark_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{_spark_type(field.type)}' for field in kind)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK_NAMES.get(str(kind), str(kind))


def _expected_numbers(expected: dict[str, Any], read: Read) -> list[int]:
    if read.kind in ("snapshot", "read_optimized"):
        numbers: list[int] = expected[read.kind]
    else:
        numbers = expected[read.kind][int(read.label.split()[1])]["rows"]
    return numbers


def _same(rows: list[Row], answer: list[Row]) -> bool:
    return _bag(rows, answer) == _bag(answer, answer)


def _bag(rows: list[Row], answer: list[Row]) -> Counter[str]:
    # A model's rows have data columns only: then those alone are compared.
    data_only = bool(answer) and not any(name.startswith("_hoodie_") for name in answer[0])
    return Counter(_text(row, data_only=data_only) for row in rows)


def _text(row: Row, *, data_only: bool) -> str:
    kept = {name: value for name, value in row.items() if not (data_only and name.startswith("_hoodie_"))}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False)


def _difference(rows: list[Row], answer: list[Row]) -> str:
    got, expected = _bag(rows, answer), _bag(answer, answer)
    missing, extra = list((expected - got).elements()), list((got - expected).elements())
    lines = [f"{len(rows)} rows for {len(answer)}; {len(missing)} missing, {len(extra)} too many"]
    lines += [f"  missing {text[:1000]}" for text in sorted(missing)[:3]]
    lines += [f"  extra   {text[:1000]}" for text in sorted(extra)[:3]]
    return "\n".join(lines)


def _extract_all(tar: tarfile.TarFile, target: Path) -> None:
    if hasattr(tarfile, "data_filter"):
        tar.extractall(target, filter="fully_trusted")
    else:
        tar.extractall(target)


def _base_path(folder: Path) -> Path:
    if (folder / ".hoodie").is_dir():
        return folder
    return next(child for child in folder.iterdir() if (child / ".hoodie").is_dir())
