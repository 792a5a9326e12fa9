"""One engine in a process of its own, so that nothing that another left behind helps it or stands in its way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def measured(module: str, name: str, *arguments: object) -> Any:
    """Run `python -m MODULE NAME RESULT ARGUMENTS…` and return what it left in RESULT, or None if that is nothing.

    A process that fails half way is told of, and what it had measured before counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", module, name, str(result), *map(str, arguments)]
        environment = {**os.environ, "TZ": "UTC"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            print(f"{name} failed: {done.stdout[-2000:]}\n{done.stderr[-4000:]}", file=sys.stderr)
        return json.loads(result.read_text(encoding="utf-8")) if result.exists() else None
