"""Change data of golden tables: what Hudi 1.2 answered to the same queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drawstring.errors import UnsupportedTable
from drawstring.table import open_table
from tests.golden.harness import expectation, extract, table_names

ASKED = [(name, number) for name in table_names() for number in range(len(expectation(name).get("cdc", ())))]


def asked_rows(name: str, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    expected = expectation(name)
    question = expected["cdc"][number]
    return question, [expected["rows"][row] for row in question["rows"]]


def meaning(row: dict[str, Any]) -> str:
    """What a row says, whatever the order of a map's entries; decimals of data files are lost in Hudi's answer."""
    images = [json.loads(row[name]) if row[name] else row[name] for name in ("before", "after")]
    for image in images:
        if isinstance(image, dict) and not isinstance(image.get("dec"), list):
            image.pop("dec", None)
    return json.dumps([row["op"], row["ts_ms"], *images], sort_keys=True)


def comparable_texts(rows: list[dict[str, Any]]) -> list[str]:
    """The rows without maps of several entries, letter by letter; decimals of data files are cut out."""
    found = []
    for row in rows:
        text = json.dumps([row["op"], row["ts_ms"], row["before"], row["after"]])
        for image in (row["before"], row["after"]):
            plain = json.loads(image) if image else None
            if isinstance(plain, dict) and (
                len(plain.get("m") or {}) or '"dec":' in text.replace('\\"', '"')
            ):
                break
        else:
            found.append(text)
    return sorted(found)


@pytest.mark.parametrize(("name", "number"), ASKED)
def test_change_data_is_what_hudi_answers(name: str, number: int, tmp_path: Path) -> None:
    question, expected = asked_rows(name, number)
    found = open_table(extract(name, tmp_path)).change_data(question["begin"], question["end"]).to_arrow()
    rows = found.to_pylist()
    assert sorted(map(meaning, rows)) == sorted(map(meaning, expected))
    assert comparable_texts(rows) == comparable_texts(expected)


def test_there_are_answers_of_each_mode_and_type() -> None:
    assert {name for name, _ in ASKED} >= {
        f"v9_{kind}_cdc_{mode}"
        for kind in ("cow", "mor")
        for mode in ("before_after", "before", "keys", "compacted")
    }


def test_a_table_that_does_not_capture_changes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTable, match=r"Table\.changes") as caught:
        open_table(extract("v9_cow_clustered", tmp_path)).change_data("000")
    assert caught.value.condition == "CDC_NOT_ENABLED"
