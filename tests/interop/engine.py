"""What the engines are asked to do, and what every named action saw or raised.

drawstring and Apache Hudi answer to the same class names, so they never share a session: each has a process.
"""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.conversation import Action, Engine, EngineError

_running: dict[str, Engine] = {}


def shared(name: str) -> Engine:
    """Return the one process of an engine that all tests of a run use; its start takes longer than most of them."""
    engine = _running.get(name)
    if engine is None or not engine.is_alive:
        engine = _running[name] = Engine(name, Path(tempfile.mkdtemp(prefix=f"interop-{name}-")))
        atexit.register(engine.close)
    return engine


def run(engine: str, actions: list[Action]) -> dict[str, Any]:
    """Run the actions with one engine and return the results by action name; one that fails is a result too."""
    found: dict[str, Any] = {}
    for number, action in enumerate(actions):
        try:
            result = shared(engine).ask(**action)
        except EngineError as error:
            result = {"error": str(error)}
        found[action.get("name", f"action {number}")] = result
    return found


def write(path: Path, rows: list[Any], schema: str, options: dict[str, str], **more: Any) -> Action:
    """An action that writes rows through `df.write.format("hudi")`, `select` expressions of them if given."""
    return {"do": "write", "path": str(path), "rows": rows, "schema": schema, "options": options, **more}


def sql(name: str, statement: str) -> Action:
    """An action that runs a statement."""
    return {"do": "sql", "name": name, "statement": statement}


def read(name: str, path: Path, *, where: str | None = None, options: dict[str, str] | None = None) -> Action:
    """An action that collects a table's rows under `name`."""
    return {"do": "read", "name": name, "path": str(path), "where": where, "options": options or {}}


def stream(name: str, path: Path, folder: Path, options: dict[str, str] | None = None) -> Action:
    """An action that streams what is new of a table into `folder` and tells under `name` all that is there then."""
    return {"do": "stream", "name": name, "path": str(path), "folder": str(folder), "options": options or {}}


def sink(source: Path, path: Path, checkpoint: Path, schema: str, options: dict[str, str]) -> Action:
    """An action that streams new files of JSON into a table, each as a batch."""
    places = {"source": str(source), "path": str(path), "checkpoint": str(checkpoint)}
    return {"do": "sink", **places, "schema": schema, "options": options}
