"""What the source must not do, whatever data says: run it, unpickle it, or build SQL from it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src/drawstring").rglob("*.py"))
SCALA = sorted((ROOT / "bridge/src/main").rglob("*.scala"))
UNPICKLERS = {"pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "yaml"}
EVALUATORS = {"eval", "exec", "__import__"}
SQL = {"sql", "expr", "selectExpr"}


def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_is_unpickled_evaluated_or_spelled_as_sql(path):
    for node in nodes(path):
        assert not {name.split(".")[0] for name in imported(node)} & UNPICKLERS
        if isinstance(node, ast.Call):
            assert not (isinstance(node.func, ast.Name) and node.func.id in EVALUATORS)
            assert called(node) not in SQL or all(isinstance(arg, ast.Constant) for arg in node.args)
            assert not any(keyword.arg == "shell" for keyword in node.keywords)
            assert called(node) not in ("PyExtensionType", "ExtensionType", "register_extension_type")


@pytest.mark.parametrize("path", SCALA, ids=name_of)
def test_the_bridge_loads_no_class_by_name_and_deserialises_nothing(path):
    assert not re.search(r"Class\.forName|ObjectInputStream|ReflectionUtils|ScriptEngine", path.read_text())


def test_modules_are_found():
    assert len(MODULES) > 100
    assert SCALA
