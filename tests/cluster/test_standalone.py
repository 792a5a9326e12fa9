"""Executors are other processes: the whole road through a real standalone cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.standalone import cluster
from tests.golden import harness

pytestmark = pytest.mark.cluster
TABLE = "v9_mor_event_time" if "v9_mor_event_time" in harness.table_names() else "v6_mor_event_time"


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What the job printed, run as a user runs it: another process, with no Spark settings around it."""
    folder = tmp_path_factory.mktemp("cluster")
    golden = harness.extract(TABLE, folder / "golden")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    with cluster(folder) as master:
        command = [sys.executable, str(Path(__file__).with_name("job.py")), master, str(folder), str(golden)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=900
        )
    printed = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert printed, done.stdout[-2000:] + done.stderr[-6000:]
    return json.loads(printed[0].removeprefix("ANSWER "))


def test_two_executors_did_the_work(answer):
    assert answer["executors"] == 2


@pytest.mark.parametrize("path", ["v2", "v1"])
def test_what_was_written_is_read(answer, path):
    assert (answer[path]["rows"], answer[path]["changed"]) == (1100, 200)


@pytest.mark.parametrize("path", ["v2", "v1"])
def test_merge_on_read_slices_are_merged_beside_executors(answer, path):
    snapshot = next(read for read in harness.reads_of(TABLE) if read.kind == "snapshot")
    expected = sorted(row["_hoodie_record_key"] for row in harness.accepted_answers(snapshot)[0])
    assert answer[path]["merged"] == expected
