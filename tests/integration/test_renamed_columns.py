"""Columns renamed, swapped, dropped, added again, moved and widened by column id, in every file and reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from benchmarks.tables import FIRST, SECOND
from drawstring.schema.meta_columns import META_COLUMNS
from tests.golden import harness
from tests.integration.plans import USE_V2
from tests.integration.promotions import ROWS, PromotedTable
from tests.integration.test_promotions import answers, differences

_SPELLED = {pa.int32(): "int", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double"}
OLD_IDS = {"a": 8, "b": 9, "c": 10, "d": 11, "st": 12, "st.x": 13, "st.y": 14, "st.gone": 15} | {
    "arr": 16,
    "arr.element": 17,
    "arr.element.u": 18,
    "m": 19,
    "m.key": 20,
    "m.value": 21,
    "m.value.w": 22,
}
NEW_IDS = {"b": 8, "a": 9, "c": 23, "d": 11, "e": 26, "st": 12, "st.x": 13, "st.y2": 14, "st.late": 24} | {
    "arr": 16,
    "arr.element": 17,
    "arr.element.v": 18,
    "m": 19,
    "m.key": 20,
    "m.value": 21,
    "m.value.w": 22,
    "m.value.n": 25,
}
"""`a` and `b` change names with each other; the new `c` is another column than the old one."""


class Renames:
    """The columns before and after."""

    def schema(self, *, new: bool) -> pa.Schema:
        """The older types, or the newer ones in another order."""
        if not new:
            inner = pa.struct([("x", pa.int32()), ("y", pa.string()), ("gone", pa.int32())])
            fields = [
                ("a", pa.int32()),
                ("b", pa.int32()),
                ("c", pa.string()),
                ("d", pa.int32()),
                ("st", inner),
            ]
            return pa.schema([*fields, *_repeated("u", pa.float32(), [("w", pa.int32())])])
        inner = pa.struct([("late", pa.string()), ("y2", pa.string()), ("x", pa.int64())])
        fields = [("st", inner), ("e", pa.string()), ("d", pa.string()), ("c", pa.string())]
        more = _repeated("v", pa.float64(), [("n", pa.int32()), ("w", pa.string())])
        return pa.schema([*fields, ("b", pa.int64()), *more, ("a", pa.int32())])

    def row(self, number: int, *, new: bool) -> dict[str, Any]:
        """One row; the last has nothing."""
        names = self.schema(new=new).names
        if number >= ROWS - 1:
            return dict.fromkeys(names)
        if not new:
            inner = {"x": number, "y": f"y{number}", "gone": 9}
            plain = {"a": number, "b": 10 * number, "c": "c", "d": -number, "st": inner}
            return {**plain, "arr": [{"u": 0.1}, None], "m": {"k": {"w": number}}}
        inner = {"x": number, "y2": f"y{number}", "late": None}
        plain = {"b": number, "a": 10 * number, "c": None, "e": None, "d": str(-number), "st": inner}
        return {**plain, "arr": [{"v": 0.1}, None], "m": {"k": {"w": str(number), "n": None}}}


def _repeated(element: str, kind: pa.DataType, value: list[tuple[str, pa.DataType]]) -> list[Any]:
    array = pa.list_(pa.field("element", pa.struct([(element, kind)])))
    return [("arr", array), ("m", pa.map_(pa.string(), pa.field("value", pa.struct(value))))]


def internal_schema(schema: pa.Schema, ids: dict[str, int], version: int) -> dict[str, Any]:
    """A schema with column ids, as Hudi stores it."""
    first = [*META_COLUMNS, "id", "ts", "p"]
    kinds = {"id": "long", "ts": "long"}
    fields = [
        {"id": n, "name": name, "optional": True, "type": kinds.get(name, "string")}
        for n, name in enumerate(first)
    ]
    fields += [_field(field, ids, field.name) for field in schema]
    return {"max_column_id": 26, "version_id": version, "type": "record", "fields": fields}


def _field(field: pa.Field, ids: dict[str, int], path: str) -> dict[str, Any]:
    return {"id": ids[path], "name": field.name, "optional": True, "type": _type(field.type, ids, path)}


def _type(kind: pa.DataType, ids: dict[str, int], path: str) -> Any:
    if pa.types.is_struct(kind):
        fields = [_field(field, ids, f"{path}.{field.name}") for field in kind]
        return {"type": "record", "fields": fields}
    if pa.types.is_map(kind):
        inner = _type(kind.item_type, ids, f"{path}.value")
        places = {"key-id": ids[f"{path}.key"], "value-id": ids[f"{path}.value"]}
        return {"type": "map", "key": "string", "value": inner, "value_optional": True, **places}
    if pa.types.is_list(kind):
        inner = _type(kind.value_type, ids, f"{path}.element")
        return {
            "type": "array",
            "element-id": ids[f"{path}.element"],
            "element": inner,
            "element_optional": True,
        }
    return _SPELLED.get(kind, "string")


@pytest.fixture(scope="module")
def renamed(tmp_path_factory) -> PromotedTable:
    """The table; its history of schemas lies beside the timeline."""
    columns = Renames()
    older = internal_schema(columns.schema(new=False), OLD_IDS, 0)
    newer = internal_schema(columns.schema(new=True), NEW_IDS, int(SECOND))
    table = PromotedTable(tmp_path_factory.mktemp("renamed") / "t", columns)
    table.write({"latest_schema": json.dumps(newer)})
    folder = Path(table.path) / ".hoodie" / ".schema"
    folder.mkdir()
    history = json.dumps({"schemas": [newer, older]})
    (folder / f"{SECOND}_{int(SECOND) + 4000}.schemacommit").write_text(history)
    assert int(FIRST) < int(SECOND)
    return table


CONDITIONS = (
    "b = 2",
    "a = 20",
    "a < 30",
    "b >= 5 OR a = 10",
    "NOT b IN (1, 2)",
    "b <=> 2",
    "c IS NULL",
    "c = 'c'",
    "c IS NOT NULL OR d = '-2'",
    "d < '-3'",
    "e IS NULL AND b > 3",
    "st.y2 = 'y2' OR st.x >= 7",
    "st.late IS NOT NULL",
    "NOT st.x = 3",
    "st.x IS NULL",
)


def test_arrow_follows_column_ids(renamed):
    found = harness.arrow_rows(drawstring.open_table(renamed.path).snapshot().scan().to_arrow())
    assert differences(found, renamed) == []


@pytest.mark.spark
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_spark_follows_column_ids(spark, renamed, use_v2):
    frame = spark.read.format("hudi").option(USE_V2, use_v2).load(renamed.path)
    assert differences(harness.spark_rows(frame.collect()), renamed) == []


@pytest.fixture(scope="module")
def kept(spark, renamed) -> dict[str, list[int]]:
    """What each condition keeps of the expected rows, by Spark, without any file."""
    types = (
        "id bigint, a int, b bigint, c string, d string, e string, st struct<x:bigint,y2:string,late:string>"
    )
    names = ("a", "b", "c", "d", "e")
    rows = [
        (key, *(row[name] for name in names), row["st"] and (row["st"]["x"], row["st"]["y2"], None))
        for key, row in renamed.expected().items()
    ]
    return answers(spark.createDataFrame(rows, types), list(CONDITIONS))


@pytest.mark.spark
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_filters_follow_column_ids_in_spark(spark, renamed, kept, use_v2):
    frame = spark.read.format("hudi").option(USE_V2, use_v2).load(renamed.path)
    assert answers(frame, list(CONDITIONS)) == kept


@pytest.mark.spark
def test_filters_follow_column_ids_in_arrow(renamed, kept):
    snapshot = drawstring.open_table(renamed.path).snapshot()
    for condition, ids in kept.items():
        found = snapshot.scan().select("id").where(condition).to_arrow().column("id").to_pylist()
        assert sorted(found) == ids, condition
