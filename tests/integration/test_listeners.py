"""Who listens because of drawstring: PySpark's callback server alone, on loopback, behind the gateway's secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SCRIPT = Path(__file__).with_name("listeners_script.py")
LOOPBACK = ("127.0.0.1", "::1")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a process of its own saw before and after it attached drawstring to a plain session."""
    folder = tmp_path_factory.mktemp("listeners")
    paths = [str(SCRIPT.parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, str(SCRIPT), str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert (folder / "seen.json").exists(), done.stderr[-4000:]
    found = json.loads((folder / "seen.json").read_text())
    return {**found, "log": done.stdout + done.stderr}


def test_attaching_opens_the_callback_server_and_nothing_else(seen):
    opened = [new for new in seen["after"] if new not in seen["before"] and new[0] != "pyspark.daemon"]
    assert [(owner, port) for owner, _, port in opened] == [("python", seen["callback_port"])]


def test_everything_listens_on_loopback_only(seen):
    assert {address for _, address, _ in seen["after"]} <= set(LOOPBACK)


def test_callers_without_the_secret_are_refused(seen):
    assert "UNKNOWN_REQUEST" in seen["answers"]["right"]
    for caller in ("none", "wrong", "empty"):
        assert "UNKNOWN_REQUEST" not in seen["answers"][caller]
        assert not seen["answers"][caller].startswith("!y")
    assert seen["refused_calls_reached_the_planner"] == 0


def test_tables_are_written_and_read_behind_the_secret(seen):
    assert seen["rows"] == 3


def test_the_secret_is_not_logged(seen):
    assert len(seen["secret"]) > 20
    assert seen["secret"] not in seen["log"]
    assert "drawstring" in seen["log"]
