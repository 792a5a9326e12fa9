"""Path patterns as Hadoop understands them."""

from __future__ import annotations

import re

from drawstring.errors import InvalidOption

_TOKEN = re.compile(
    r"\\(?P<literal>.) | \[(?P<negated>[!^]?)(?P<members>[^\]]+)\] | (?P<open>\{) | (?P<close>\}) | (?P<other>.)",
    re.DOTALL | re.VERBOSE,
)


def compile_glob(pattern: str, *, key: str) -> re.Pattern[str]:
    """Return the expression for a pattern; it is to be matched with whole paths.

    `*` takes any text, slashes too, and `?` any character; `{a,b}` stands for either text, `[ab]` for either
    character; a backslash takes the next character literally. Raises `InvalidOption`, naming `key`, for a
    bracket that is not closed.
    """
    out, depth = "", 0
    for token in _TOKEN.finditer(pattern):
        depth += bool(token["open"]) - bool(token["close"])
        if depth < 0 or token["other"] in ("[", "\\"):
            raise _malformed(pattern, key)
        out += _expression(token, in_braces=depth > 0)
    if depth:
        raise _malformed(pattern, key)
    try:
        return re.compile(out, re.DOTALL)
    except re.error as error:
        raise _malformed(pattern, key) from error


def _expression(token: re.Match[str], *, in_braces: bool) -> str:
    if token["literal"]:
        return re.escape(token["literal"])
    if token["members"]:
        members = re.sub(r"[^-\w]", lambda found: "\\" + found.group(), token["members"])
        return f"[{'^' if token['negated'] else ''}{members}]"
    if token["open"] or token["close"]:
        return "(?:" if token["open"] else ")"
    plain = {"*": ".*", "?": ".", **({",": "|"} if in_braces else {})}
    return plain.get(token["other"]) or re.escape(token["other"])


def _malformed(pattern: str, key: str) -> InvalidOption:
    return InvalidOption(
        f"Option {key} makes the pattern {pattern!r}, which cannot be used: expected brackets that are closed, and "
        "a character after a backslash.",
        condition="INVALID_OPTION_VALUE",
        key=key,
        value=pattern,
    )
