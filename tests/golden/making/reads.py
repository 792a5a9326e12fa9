"""Read a table in every way with the running Apache Hudi, in the form of the golden JSON files."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
_WRITES = ("commit", "deltacommit", "replacecommit")


@dataclass(frozen=True)
class WriteInstant:
    """A completed write on the table's active timeline."""

    requested_time: str
    completion_time: str


@dataclass
class RowStore:
    """Distinct rows, each kept once and spoken of by number."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, row: dict[str, Any]) -> int:
        """Return the row's number, giving it one if it is new."""
        text = json.dumps(row, sort_keys=True)
        if text not in self._numbers:
            self._numbers[text] = len(self.rows)
            self.rows.append(row)
        return self._numbers[text]


def write_instants(table: Path) -> list[WriteInstant]:
    """Completed writes of the active timeline, oldest first; on layout 1 one time stands for both."""
    layout_two = table / ".hoodie" / "timeline"
    folder = layout_two if layout_two.is_dir() else table / ".hoodie"
    found = []
    for path in folder.iterdir():
        stem, _, action = path.name.partition(".")
        if action in _WRITES:
            requested, _, completed = stem.partition("_")
            found.append(WriteInstant(requested, completed or requested))
    return sorted(found, key=lambda instant: instant.requested_time)


def read_all(
    spark: SparkSession,
    table: Path,
    *,
    merge_on_read: bool,
    read_options: dict[str, str],
    store: RowStore,
    asked: dict[str, Any],
) -> dict[str, Any]:
    """Answer the questions of `asked` (`as_of`, `incremental`); what Hudi cannot read is noted."""
    reader = _Reader(spark, table, read_options, store)
    notes: list[str] = []
    answer: dict[str, Any] = {"schema": reader.frame().schema.simpleString()}
    answer["snapshot"] = reader.each([{}], lambda _: {}, notes)[0]["rows"]
    if merge_on_read:
        answer["read_optimized"] = reader.each([{}], lambda _: _READ_OPTIMIZED, notes)[0]["rows"]
    answer["as_of"] = reader.each(asked["as_of"], _as_of_options, notes)
    answer["incremental"] = reader.each(asked["incremental"], _incremental_options, notes)
    if _captures_changes(table):
        changes = [question for question in asked["incremental"] if question["begin"]]
        answer["cdc"] = reader.each(changes, _cdc_options, notes)
    if notes:
        answer["notes"] = notes
    return answer


def _captures_changes(table: Path) -> bool:
    properties = (table / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8")
    return "hoodie.table.cdc.enabled=true" in properties


def default_questions(instants: list[WriteInstant]) -> dict[str, Any]:
    """As of at most four writes; incrementally from the beginning, and over parts of the timeline."""
    if not instants:
        return {"as_of": [], "incremental": []}
    shown = sorted({0, 1, len(instants) // 2, len(instants) - 1})
    picked = [instants[i] for i in shown if i < len(instants)]
    ranges = [{"begin": "000", "end": None}]
    if len(instants) > 1:
        ranges.append({"begin": instants[-2].completion_time, "end": None})
    if len(instants) > 2:
        ranges.append({"begin": instants[0].completion_time, "end": instants[-2].completion_time})
    return {"as_of": [{"instant": each.requested_time} for each in picked], "incremental": ranges}


def _as_of_options(question: dict[str, Any]) -> dict[str, str]:
    return {"as.of.instant": question["instant"]}


def _incremental_options(question: dict[str, Any]) -> dict[str, str]:
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": question["begin"],
    }
    if question["end"] is not None:
        options["hoodie.datasource.read.end.instanttime"] = question["end"]
    return options


def _cdc_options(question: dict[str, Any]) -> dict[str, str]:
    return {**_incremental_options(question), "hoodie.datasource.query.incremental.format": "cdc"}


@dataclass(frozen=True)
class _Reader:
    spark: SparkSession
    table: Path
    read_options: dict[str, str]
    store: RowStore

    def frame(self, options: dict[str, str] | None = None) -> DataFrame:
        reader = self.spark.read.format("hudi").options(**self.read_options, **(options or {}))
        return reader.load(str(self.table))

    def rows(self, options: dict[str, str] | None = None) -> list[int]:
        return [self.store.number(normalise_row(row)) for row in self.frame(options).collect()]

    def each(
        self,
        questions: list[dict[str, Any]],
        to_options: Callable[[dict[str, Any]], dict[str, str]],
        notes: list[str],
    ) -> list[dict[str, Any]]:
        answers = []
        for question in questions:
            try:
                answers.append({**question, "rows": self.rows(to_options(question))})
            except Exception as error:  # whatever Hudi throws, the table stays of use
                answers.append({**question, "rows": None})
                notes.append(f"Hudi cannot read {to_options(question)}: {_reason(error)}")
        return answers


def _reason(error: Exception) -> str:
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return (causes or str(error).splitlines())[-1][:200]


def without_unanswered(expected: dict[str, Any]) -> dict[str, Any]:
    """Leave out the questions that no Hudi answered."""
    kept = {key: value for key, value in expected.items() if value is not None}
    for key in ("as_of", "incremental", "cdc"):
        if key in expected:
            kept[key] = [each for each in expected[key] if each["rows"] is not None]
    return kept


def normalise_row(row: Any) -> dict[str, Any]:
    """A collected Spark row as plain JSON values."""
    return {name: _normalise(row[name]) for name in row.__fields__}


def _normalise(value: Any) -> Any:
    if hasattr(value, "__fields__"):
        return normalise_row(value)
    if isinstance(value, dict):
        return {str(_normalise(key)): _normalise(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_normalise(each) for each in value]
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, decimal.Decimal):
        return _decimal_text(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return value


def _decimal_text(value: decimal.Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
