from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.config.properties import SIZE_LIMIT, format_properties, parse_properties, table_checksum
from drawstring.errors import CorruptTable


def parse(text: str) -> dict[str, str]:
    return parse_properties(text.encode("latin-1"), source="hoodie.properties")


def test_comments_escapes_separators_and_continuations():
    text = "#c\n! c\n\na=1\nb : 2\nc d\ne\\:f=g\\=h\nlong=one\\\n   two\nu=\\u00e9\\t\nempty=\n"
    assert parse(text) == {
        "a": "1",
        "b": "2",
        "c": "d",
        "e:f": "g=h",
        "long": "onetwo",
        "u": "é\t",
        "empty": "",
    }


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        max_size=5,
    )
)
def test_what_is_formatted_parses_back(properties):
    assert parse_properties(format_properties(properties, comment="x"), source="s") == properties


@pytest.mark.parametrize(
    ("text", "line"),
    [("a=1\nb=\0", 2), ("a=1\n\nx=\\u12g4", 3), ("a=1\n=2", 2), ("a=1\nb=2\na=3", 3), ("a=1\\", 1)],
)
def test_malformed_lines_are_named(text, line):
    with pytest.raises(CorruptTable) as caught:
        parse(text)
    assert caught.value.fields["line"] == line


def test_files_beyond_the_limit_are_refused():
    with pytest.raises(CorruptTable, match="limit"):
        parse_properties(b"a=" + b"x" * SIZE_LIMIT, source="s")


def test_checksum_covers_database_and_name():
    assert table_checksum({"hoodie.table.name": "v6_mor_event_time"}) == 976121135
    assert (
        table_checksum({"hoodie.table.name": "v9_mor_on_read", "hoodie.database.name": "default"})
        == 2476070964
    )
