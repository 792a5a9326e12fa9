"""A standalone cluster on loopback: executors are other processes, without drawstring on their path."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.golden import harness

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

PROGRAM = """
import json, sys
import drawstring
master, tables, target = sys.argv[1:]
spark = drawstring.session("cluster", master=master, conf={
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC", "spark.sql.warehouse.dir": target + "/warehouse",
})
counts = {}
for name, path in json.loads(tables).items():
    for v2 in ("true", "false"):
        frame = spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", v2).load(path)
        counts[f"{name} {v2}"] = len(frame.collect())
rows = spark.range(100).selectExpr("id", "id % 3 as part", "cast(id as string) as text")
rows.write.format("hudi").options(**{
    "hoodie.table.name": "written", "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
}).save(target + "/written")
counts["written"] = spark.read.format("hudi").load(target + "/written").count()
counts["executors"] = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("RESULT " + json.dumps(counts))
spark.stop()
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The URL of a master with two workers, all of them gone afterwards."""
    from drawstring.spark.build import spark_home

    folder = tmp_path_factory.mktemp("cluster")
    starter = str(spark_home().jars.parent / "bin" / "spark-class")
    port, ui = free_port(), free_port()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder)}
    deploy = "org.apache.spark.deploy"
    commands = [
        [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui)]
    ]
    worker = [f"{deploy}.worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1"]
    commands += [[*worker, "--webui-port", str(free_port()), f"spark://127.0.0.1:{port}"] for _ in range(2)]
    logs = [(folder / f"{index}.log").open("w") for index in range(3)]
    processes = []
    for command, log in zip(commands, logs, strict=True):
        processes.append(subprocess.Popen([starter, *command], env=environment, stdout=log, stderr=log))
        wait_for(port)
    yield f"spark://127.0.0.1:{port}"
    for process in reversed(processes):
        process.terminate()
        process.wait(30)
    for log in logs:
        log.close()


def test_executors_read_merge_and_write_with_what_the_driver_sends_them(master, tmp_path):
    names = ["v9_cow_two_level", "v9_mor_commit_time", "v9_mor_log_only"]
    tables = {name: str(harness.extract(name, tmp_path / "golden")) for name in names}
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", PROGRAM, master, json.dumps(tables), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert found, done.stdout[-2000:] + done.stderr[-6000:]
    counts = json.loads(found[0].removeprefix("RESULT "))
    for name in names:
        expected = len(harness.expectation(name)["snapshot"])
        assert (counts[f"{name} true"], counts[f"{name} false"]) == (expected, expected)
    assert counts["written"] == 100
    assert counts["executors"] == 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(120):
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise TimeoutError(f"nothing listens on port {port}")
