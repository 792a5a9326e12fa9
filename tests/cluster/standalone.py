"""A standalone Spark cluster on loopback, from what PySpark ships: a master and two workers as processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_START_SECONDS = 180


@contextlib.contextmanager
def cluster(folder: Path, *, hosts: tuple[str, ...] = ("127.0.0.1", "127.0.0.1")) -> Iterator[str]:
    """Run a cluster with a worker on each host until the block ends; yields the master's URL.

    Spark starts a speculative copy of a task on another host only; all of 127.0.0.0/8 is this machine.
    """
    port = _free_port()
    processes = [
        _start(folder, "master", _MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    ]
    try:
        _wait_for(folder / "master.log", "I have been elected leader", processes)
        url = f"spark://127.0.0.1:{port}"
        for number, host in enumerate(hosts):
            options = ("--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0")
            processes.append(_start(folder, f"worker-{number}", _WORKER, *options, url))
        for number in range(len(hosts)):
            _wait_for(folder / f"worker-{number}.log", "Successfully registered with master", processes)
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=60)


def _start(folder: Path, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_DAEMON_MEMORY": "512m", "SPARK_WORKER_DIR": str(folder / name)}
    command = [str(SPARK_HOME / "bin" / "spark-class"), main, *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder)


def _wait_for(log: Path, text: str, processes: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if text in log.read_text(errors="replace"):
            return
        if any(process.poll() is not None for process in processes):
            break
        time.sleep(0.5)
    raise AssertionError(f"{log.name} never said {text!r}:\n{log.read_text(errors='replace')[-3000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
