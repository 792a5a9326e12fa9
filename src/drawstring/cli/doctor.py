"""Checks of everything that drawstring needs from the machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

from drawstring.errors import DrawstringError

_LIBRARIES = ("pyarrow", "datafusion", "fastavro", "pyroaring", "xxhash", "pandas")
_SPARK_LINES = ("3.5", "4.0", "4.1", "4.2", "4.3")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `status` is ok, note or missing, `advice` says what to do."""

    name: str
    status: str
    found: str
    advice: str = ""

    def as_dict(self) -> dict[str, str]:
        """The finding as plain values."""
        return asdict(self)


def examine(*, session: bool = False) -> list[Finding]:
    """Look at everything; with `session` also start Spark and let the JVM call Python."""
    checks: list[Callable[[], Finding]] = [
        _python,
        *map(_library_check, _LIBRARIES),
        _java,
        _pyspark,
        _bridge,
    ]
    findings = [check() for check in checks]
    if any(finding.status == "missing" for finding in findings):
        return [*findings, Finding("callback", "note", "not tried", "Install what is missing first.")]
    return [
        *findings,
        _callback() if session else Finding("callback", "note", "not tried", "drawstring doctor --session"),
    ]


def _python() -> Finding:
    return Finding("python", "ok", f"{platform.python_version()} ({sys.executable})")


def _library_check(name: str) -> Callable[[], Finding]:
    return lambda: _library(name)


def _library(name: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, "missing", "not installed", f"pip install {name}")


def _java() -> Finding:
    from drawstring.spark.session.build import java_executable

    advice = "Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless; or set JAVA_HOME to a Java 17+."
    try:
        java = java_executable()
    except DrawstringError:
        where = f"JAVA_HOME={os.environ['JAVA_HOME']}" if "JAVA_HOME" in os.environ else "not on PATH"
        return Finding("java", "missing", where, advice)
    major = _java_major(java)
    status = "ok" if major is not None and major >= 17 else "missing"
    return Finding("java", status, f"{major or 'version unknown'} ({java})", "" if status == "ok" else advice)


def _java_major(java: str) -> int | None:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match else None


def _pyspark() -> Finding:
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Finding("pyspark", "missing", "not installed", "pip install 'pyspark>=3.5,<5'")
    if ".".join(found.split(".")[:2]) in _SPARK_LINES:
        return Finding("pyspark", "ok", found)
    return Finding("pyspark", "missing", found, f"Tested lines: {', '.join(_SPARK_LINES)}.")


def _bridge() -> Finding:
    from drawstring.spark.session import build
    from drawstring.spark.session.cache import cache_directory

    try:
        name = build.jar_name(build.spark_home())
    except (DrawstringError, ImportError) as error:
        return Finding("bridge", "missing", "cannot be named", str(error))
    # The folders of bridge_jar, looked at without compiling.
    shipped = build.source_root().parent / "_jars" / name
    for jar in (shipped, cache_directory() / name):
        if jar.is_file():
            return Finding("bridge", "ok", str(jar))
    return Finding(
        "bridge",
        "note",
        "not built yet",
        "Compiled by the first session, or now: python -m drawstring.spark.session.build",
    )


def _callback() -> Finding:
    from drawstring.spark import session

    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    try:
        spark = session("drawstring-doctor", master="local[1]", conf=conf)
        spark.stop()
    except Exception as error:  # whatever it is, the doctor reports it
        return Finding("callback", "missing", type(error).__name__, str(error).strip().splitlines()[0])
    return Finding("callback", "ok", f"Spark {spark.version} started and attached")
