"""Attach drawstring to a plain session, and note who listens before and after: `listeners_script.py FOLDER`."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import os
import socket
import sys
from pathlib import Path

LISTEN = "0A"


def children(pid: int) -> list[int]:
    """This process and everything below it; threads and processes may end while they are looked at."""
    found = [pid]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for child in (task / "children").read_text().split():
                    found += children(int(child))
    return found


def listeners() -> list[tuple[str, str, int]]:
    """Owner, address and port of each TCP socket that listens in this process or below it."""
    found: set[tuple[str, str, int]] = set()
    for pid in children(os.getpid()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found |= listeners_of(pid)
    return sorted(found)


def listeners_of(pid: int) -> set[tuple[str, str, int]]:
    """The same for one process."""
    command = Path(f"/proc/{pid}/cmdline").read_text()
    owner = "java" if "java" in command.split("\0")[0] else "python"
    # PySpark's own: it starts with the first task that runs Python, whoever asks for it.
    owner = "pyspark.daemon" if "pyspark.daemon" in command else owner
    sockets, found = sockets_of(pid), set()
    # A kernel without IPv6 has no table for it.
    for table in filter(Path.exists, map(Path, (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"))):
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and fields[9] in sockets:
                address, _, port = fields[1].partition(":")
                found.add((owner, readable(address), int(port, 16)))
    return found


def sockets_of(pid: int) -> set[str]:
    """The inodes of a process's sockets."""
    targets = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            targets.append(os.readlink(entry))
    return {target[8:-1] for target in targets if target.startswith("socket:[")}


def readable(address: str) -> str:
    """The kernel writes addresses as words in the machine's byte order."""
    raw = bytes.fromhex(address)
    words = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    found = ipaddress.ip_address(words)
    return str(getattr(found, "ipv4_mapped", None) or found)


def call(port: int, target: str, secret: str | None) -> str:
    """Call a Python object as the JVM would, and return the answer's first line."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        stream = caller.makefile("rw", encoding="utf-8", newline="\n")
        if secret is not None:
            stream.write(f"A\n{secret}\ne\n")
            stream.flush()
            answer = stream.readline()
            if not answer.startswith("!yv"):
                return answer
        stream.write(f"c\n{target}\nrequest\nsnonsense\ns{{}}\ne\n")
        stream.flush()
        return stream.readline()


def attempt(port: int, target: str, secret: str | None) -> str:
    try:
        return call(port, target, secret)
    except OSError as error:
        return f"closed: {type(error).__name__}"


def main(folder: Path) -> None:
    """Run everything once."""
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("drawstring").setLevel(logging.DEBUG)
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("INFO")
    spark.range(3).count()
    seen: dict[str, object] = {"before": listeners()}
    import drawstring
    from drawstring.spark import planner

    drawstring.attach(spark)
    logging.getLogger("drawstring").info("attached")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    spark.range(3).write.format("hudi").options(**options).save(str(folder / "t"))
    seen["rows"] = spark.read.format("hudi").load(str(folder / "t")).count()
    gateway = spark.sparkContext._gateway
    secret = gateway.gateway_parameters.auth_token
    port = gateway._callback_server.server_socket.getsockname()[1]
    known = gateway.gateway_property.pool.dict
    target = next(key for key, value in known.items() if isinstance(value, planner.SparkPlanner))
    calls: list[str] = []
    request = planner.SparkPlanner.request
    planner.SparkPlanner.request = lambda self, kind, text: (calls.append(kind), request(self, kind, text))[1]
    seen["answers"] = {
        "none": attempt(port, target, None),
        "wrong": attempt(port, target, "x" * len(secret)),
        "empty": attempt(port, target, ""),
    }
    seen["refused_calls_reached_the_planner"] = len(calls)
    seen["answers"] |= {"right": attempt(port, target, secret)}
    seen |= {"after": listeners(), "callback_port": port, "secret": secret}
    (folder / "seen.json").write_text(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
