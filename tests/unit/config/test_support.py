from __future__ import annotations

import re
from pathlib import Path

import pytest

import drawstring
from drawstring.config.support import FOUND_IN_FILES, REFUSALS, found_in_files
from drawstring.errors import UnsupportedTable

SOURCES = Path(drawstring.__file__).parent


@pytest.mark.parametrize("condition", FOUND_IN_FILES)
def test_what_files_show_is_told_with_every_fact_of_the_message(condition):
    facts = dict.fromkeys(re.findall(r"{(\w+)", FOUND_IN_FILES[condition]), "a-fact")
    error = found_in_files(condition, **facts)
    assert isinstance(error, UnsupportedTable)
    assert error.condition == condition
    assert str(error).count("a-fact") == len(re.findall(r"{\w+", FOUND_IN_FILES[condition]))
    assert error.fields == {"operation": "read", **facts}


def test_every_row_is_used_and_every_use_has_a_row():
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    used = set(re.findall(r"found_in_files\(\s*\"(\w+)\"", code))
    assert used == set(FOUND_IN_FILES)
    assert len({refusal.condition for refusal in REFUSALS}) == len(REFUSALS)
