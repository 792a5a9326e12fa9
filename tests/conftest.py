"""What every test may use."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with something else is no defect of what is tested.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Spark's Python side turns timestamps into local time: the suite reads the same everywhere.
os.environ["TZ"] = "UTC"
time.tzset()

_MEMORY, _PLENTY = "/dev/shm", 8 << 30


def _is_plenty() -> bool:
    """Whether the machine has a folder in memory, and much more memory to spare than the suite fills (about 2 GB)."""
    try:
        folder = os.statvfs(_MEMORY)
        (line,) = [x for x in Path("/proc/meminfo").read_text().splitlines() if x.startswith("MemAvailable:")]
    except (OSError, ValueError):
        return False
    return (
        os.access(_MEMORY, os.W_OK)
        and min(folder.f_bavail * folder.f_frsize, int(line.split()[1]) << 10) > _PLENTY
    )


# Writes sync every file and folder: on a disk, tests of writes wait for it most of their time.
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _is_plenty():
    os.environ["PYTEST_DEBUG_TEMPROOT"] = _MEMORY


def pytest_collection_modifyitems(items):
    """A test that takes the session, by whatever fixture, is a Spark test: nobody has to say so twice."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("interop") is None:
            item.add_marker(pytest.mark.spark)


def pytest_terminal_summary(terminalreporter):
    """Say at the end what a fresh clone cannot test: a skip among thousands of tests is not seen."""
    absent = [r for r in terminalreporter.stats.get("skipped", ()) if "test_other_tables" in r.nodeid]
    if absent:
        terminalreporter.write_line(
            "NOT TESTED: tables that are not in this repository (tests/golden/test_other_tables.py). Set "
            "DRAWSTRING_TABLES to a folder of FOLDER/TABLE.zip.",
            yellow=True,
        )


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for the whole run, small and quiet, with drawstring in it."""
    import drawstring

    folder = tmp_path_factory.mktemp("spark")
    session = drawstring.session("drawstring-tests", master="local[2]", conf=_spark_settings(folder))
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _spark_settings(folder) -> dict[str, str]:
    return {
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        # Thousands of small queries never pay for the second compiler of the Java machine.
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dderby.system.home={folder / 'derby'}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
