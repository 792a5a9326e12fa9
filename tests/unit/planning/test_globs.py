from __future__ import annotations

import pytest

from drawstring.errors import InvalidOption
from drawstring.planning.globs import compile_glob

A, AB, B = "/t/a/1.parquet", "/t/ab/2.parquet", "/t/b/3.parquet"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/a/*", {A}),
        ("a/*", {A}),
        ("/a*/*", {A, AB}),
        ("/*", {A, AB, B}),
        ("*", {A, AB, B}),
        ("**/*.parquet", {A, AB, B}),
        ("/*/*.log*", set()),
        ("/a", set()),
        ("{a,b}/*", {A, AB, B}),
        ("/{a,b}/*", {A, B}),
        ("/{a,{x,ab}}/*", {A, AB}),
        ("/[ab]/*", {A, B}),
        ("/[!at]/*", {B}),
        ("/[a-c]/?.parquet", {A, B}),
        ("/a\\*/*", set()),
        ("/a.*", set()),
        ("/a,b/*", set()),
    ],
)
def test_a_pattern_is_compared_with_the_end_of_paths(pattern, found):
    expression = compile_glob(f"*{pattern}", key="k")
    assert {path for path in (A, AB, B) if expression.fullmatch(path)} == found


@pytest.mark.parametrize("pattern", ["[bad", "{a,b", "a}", "x\\", "[z-a]"])
def test_brackets_that_are_not_closed_are_refused(pattern):
    with pytest.raises(InvalidOption) as caught:
        compile_glob(pattern, key="hoodie.datasource.read.incr.path.glob")
    assert caught.value.fields["key"] == "hoodie.datasource.read.incr.path.glob"


@pytest.mark.parametrize("character", list("().+^$|\\#&~-"))
def test_what_is_no_wildcard_is_taken_literally(character):
    escaped = "\\\\" if character == "\\" else character
    assert compile_glob(escaped, key="k").fullmatch(character)
    assert not compile_glob(escaped, key="k").fullmatch("x")
