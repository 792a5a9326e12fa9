"""docs/errors.md: the error tree, and under each class its conditions with their messages as the sources have them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from drawstring import errors
from drawstring.config import support
from drawstring.write import support as write_support

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / "src" / "drawstring"
SCALA = ROOT / "bridge" / "src" / "main"
_INTRODUCTION = (
    "Each error has `condition` (a stable code) and `fields` (the facts of the message as values). Below each "
    "condition stand its messages; what is in braces is filled in."
)
_PIECE = r's?"(?:\\.|\$\{[^{}]*\}|[^"\\])*"'
_PIECES = rf"({_PIECE}(?:\s*\+\s*{_PIECE})*)"
_SCALA_CALLS = (
    re.compile(rf'make\(\s*"(\w+)",\s*"([A-Z_]+)",\s*{_PIECES}'),
    re.compile(
        rf'put\("class", "(\w+)"\)\s*\.put\("condition", "([A-Z_]+)"\)\s*(?:error)?\.put\(\s*"message",\s*{_PIECES}'
    ),
)
_SHOWN_WORDS = re.compile(r"[a-z]\w*")
_ASKED_OF_VALUES = ("identifier", "unquotedString", "describe", "getClass", "getSimpleName", "getMessage")


class Raised(NamedTuple):
    """A place that raises: class, condition, and the message where it stands in the call."""

    error_class: str
    condition: str
    message: str


def errors_page(note: str) -> str:
    """The whole page."""
    drawing = inspect.cleandoc("\n" + (errors.__doc__ or "").split("\n\n")[1]).splitlines()
    lines = ["# Errors", note, "```", *drawing, "```", "", _INTRODUCTION, ""]
    raised = sorted({*_refusals(), *_of_python(), *_of_scala()})
    for cls in _error_classes():
        lines += [f"## {cls.__name__}", "", (inspect.getdoc(cls) or "") + _builtin_base(cls), ""]
        lines += [*_conditions(cls, raised), ""]
    return "\n".join(lines)


def _conditions(cls: type[errors.DrawstringError], raised: list[Raised]) -> Iterator[str]:
    own = [one for one in raised if one.error_class == cls.__name__]
    for condition in sorted({one.condition for one in own} | {cls.default_condition}):
        yield f"- `{condition}`"
        yield from (
            f"  - {' '.join(one.message.split())}"
            for one in own
            if one.condition == condition and one.message
        )


def _error_classes() -> list[type[errors.DrawstringError]]:
    members = (value for value in vars(errors).values() if inspect.isclass(value))
    return [cls for cls in members if issubclass(cls, errors.DrawstringError)]


def _builtin_base(cls: type[errors.DrawstringError]) -> str:
    names = [
        base.__name__ for base in cls.__bases__ if base.__module__ == "builtins" and base is not Exception
    ]
    return f" Also a `{names[0]}`." if names else ""


def _refusals() -> Iterator[Raised]:
    for refusal in support.REFUSALS:
        yield Raised("UnsupportedTable", refusal.condition, f"Cannot read {{path}}: {refusal.message}.")
    for write_refusal in write_support.REFUSALS:
        message = f"Cannot write to {{path}}: {write_refusal.message}."
        yield Raised("UnsupportedTable", write_refusal.condition, message)
    for condition, message in support.FOUND_IN_FILES.items():
        yield Raised("UnsupportedTable", condition, message.replace("!r}", "}"))


def _of_python() -> Iterator[Raised]:
    # A condition stands as a literal in the call that raises: the sources are the only complete list.
    for path in sorted(PYTHON.rglob("*.py")):
        tree = ast.parse(path.read_text())
        constants = _constants(tree)
        made = {
            node.name: ast.unparse(node.returns)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.returns is not None
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            for condition in _literal_conditions(call):
                message = _text(call.args[0], constants) if call.args else ""
                yield Raised(made.get(name, name), condition, message if " " in message else "")


def _literal_conditions(call: ast.Call) -> Iterator[str]:
    """The text of a literal, or of both branches of a conditional expression."""
    for value in (keyword.value for keyword in call.keywords if keyword.arg == "condition"):
        branches = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
        yield from (
            one.value for one in branches if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )


def _constants(tree: ast.Module) -> dict[str, str]:
    return {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def _text(value: ast.expr, constants: dict[str, str]) -> str:
    """The text of a literal or an f-string; what is filled in stands in braces, by its name if it has one."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(_text(part, constants) for part in value.values)
    if isinstance(value, ast.FormattedValue):
        return _filled_in(value.value, constants)
    if isinstance(value, ast.BinOp):
        return _text(value.left, constants) + _text(value.right, constants)
    return _filled_in(value, constants)


def _filled_in(value: ast.expr, constants: dict[str, str]) -> str:
    name = getattr(value, "attr", getattr(value, "id", ""))
    if name in constants:
        return constants[name]
    return f"{{{name}}}" if _SHOWN_WORDS.fullmatch(name) else "{…}"


def _of_scala() -> Iterator[Raised]:
    for path in sorted(SCALA.rglob("*.scala")):
        source = path.read_text()
        for pattern in _SCALA_CALLS:
            for name, condition, pieces in pattern.findall(source):
                yield Raised(name, condition, _scala_text(pieces))


def _scala_text(pieces: str) -> str:
    text = "".join(re.sub(r'^s?"|"$', "", piece) for piece in re.findall(_PIECE, pieces))
    text = re.sub(r"\$(\w+)", r"{\1}", text.replace('\\"', '"'))
    return re.sub(r"\$\{([^{}]*)\}", lambda found: _named(found[1]), text)


def _named(expression: str) -> str:
    words = [word for word in expression.split(".") if word not in _ASKED_OF_VALUES]
    return f"{{{words[-1]}}}" if words and _SHOWN_WORDS.fullmatch(words[-1]) else "{…}"
