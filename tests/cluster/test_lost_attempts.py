"""Attempts of tasks that are slow, copied or killed with their executor leave no row twice and none out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.lost_attempts_job import ROWS
from tests.cluster.standalone import cluster

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lost")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    with cluster(folder, hosts=("127.0.0.2", "127.0.0.3")) as master:
        command = [
            sys.executable,
            str(Path(__file__).with_name("lost_attempts_job.py")),
            master,
            str(folder),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=900
        )
    printed = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert printed, done.stdout[-2000:] + done.stderr[-6000:]
    return json.loads(printed[0].removeprefix("ANSWER "))


@pytest.mark.parametrize("trouble", ["slow", "killed"])
@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_every_row_is_there_once(answer, trouble, operation):
    found = answer[f"{trouble} {operation}"]
    assert found["disturbed"] >= 1
    assert (found["rows"], found["distinct"], found["commits"]) == (ROWS, ROWS, 1)
