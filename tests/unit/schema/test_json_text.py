"""Rows as JSON text, in both spellings of change data."""

from __future__ import annotations

import json
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.schema.json_text import AVRO, PLAIN, json_rows

TYPE = pa.struct(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("l", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.string())),
        ("r", pa.struct([("x", pa.bool_()), ("y", pa.list_(pa.string()))])),
    ]
)
texts = st.text(st.sampled_from('ab,:{"\\\n\t\x00\x01\x7f\x85é\u2028😀'), max_size=6)
rows = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | texts,
        "l": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3),
        "m": st.none() | st.dictionaries(texts, st.none() | texts, max_size=3),
        "r": st.none()
        | st.fixed_dictionaries(
            {"x": st.none() | st.booleans(), "y": st.none() | st.lists(st.none() | texts, max_size=2)}
        ),
    }
)


def without_nulls(value):
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def array(found):
    entries = [
        r if r is None else {**r, "m": None if r["m"] is None else list(r["m"].items())} for r in found
    ]
    return pa.array(entries, TYPE)


@settings(deadline=None)
@given(st.lists(st.none() | rows, max_size=5), st.integers(0, 2))
def test_the_text_says_what_the_rows_say(found, skipped):
    rows_of = array(found).slice(skipped)
    for style, expected in ((AVRO, found), (PLAIN, [without_nulls(row) for row in found])):
        read = [None if text is None else json.loads(text) for text in json_rows(rows_of, style).to_pylist()]
        assert read == expected[skipped:]


@pytest.mark.parametrize(
    ("value", "kind", "avro", "plain"),
    [
        (1.5, pa.float64(), "1.5", "1.5"),
        (1e10, pa.float64(), "1.0E10", "1.0E10"),
        (float("nan"), pa.float32(), '"NaN"', '"NaN"'),
        (float("-inf"), pa.float64(), '"-Infinity"', '"-Infinity"'),
        (b"\x00\xff", pa.binary(), '"\\u0000ÿ"', '"AP8="'),
        (Decimal("-1.50"), pa.decimal128(10, 2), "[-1, -1, -1, -1, 106]", "-1.50"),
        (
            Decimal(2**120 + 1).scaleb(-2, Context(prec=50)),
            pa.decimal128(38, 2),
            f"[{', '.join(['1', *['0'] * 14, '1'])}]",
            f"{(2**120 + 1) // 100}.77",
        ),
        (19723, pa.date32(), "19723", "19723"),
        (7, pa.timestamp("us", tz="UTC"), "7", "7"),
        ('a"\\\n\x01', pa.string(), '"a\\"\\\\\\n\\u0001"', '"a\\"\\\\\\n\\u0001"'),
    ],
)
def test_values_are_spelled_as_in_hudi(value, kind, avro, plain):
    whole = pa.types.is_temporal(kind)
    values = (
        pa.array([value], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind) if whole else None
    )
    rows_of = pa.StructArray.from_arrays([pa.array([value], kind) if values is None else values], names=["v"])
    assert json_rows(rows_of, AVRO).to_pylist() == [f'{{"v": {avro}}}']
    assert json_rows(rows_of, PLAIN).to_pylist() == [f'{{"v":{plain}}}']


def test_rows_of_nothing_but_nulls_keep_their_number():
    rows_of = pa.array([{"x": None}, {"x": None}, None], pa.struct([("x", pa.int32())]))
    assert json_rows(rows_of, PLAIN).to_pylist() == ["{}", "{}", None]
    assert json_rows(rows_of, AVRO).to_pylist() == ['{"x": null}', '{"x": null}', None]
