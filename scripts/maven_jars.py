"""Fetch jars by Maven coordinates into a local cache, with the ordinary clients.

The peers' jars (Apache Hudi, Iceberg, Delta, Paimon) are needed by the interop tests, the golden-table
generator and the peer benchmarks only; nothing that a user runs calls this. Maven is used when it is
installed, because it knows the mirrors and proxies of the machine; otherwise the Ivy that PySpark ships
resolves the same coordinates.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HUDI_COORDINATES = "org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}"


@dataclass(frozen=True)
class Coordinates:
    """The group, artifact and version of one jar."""

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        """Read `group:artifact:version`."""
        parts = text.split(":")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{text!r} is not of the form group:artifact:version")
        return cls(*parts)

    @property
    def file_name(self) -> str:
        """The jar's name, alike in every Maven client."""
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def cache_directory() -> Path:
    """Where jars are kept: `DRAWSTRING_JARS`, or the user's cache directory."""
    chosen = os.environ.get("DRAWSTRING_JARS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "drawstring" / "jars"


def jar(coordinates: str) -> Path:
    """Return the local path of a jar, fetching it the first time."""
    wanted = Coordinates.parse(coordinates)
    target = cache_directory() / wanted.file_name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                _fetch_whole(wanted, target)
    return target


def hudi_bundle(version: str) -> Path:
    """Return Apache Hudi's bundle for Spark 3.5 in the given version."""
    return jar(HUDI_COORDINATES.format(version=version))


def _fetch_whole(wanted: Coordinates, target: Path) -> None:
    """Clients copy jars bit by bit: another process sees this one whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        _fetch(wanted, Path(folder))
        found = Path(folder, wanted.file_name)
        if not found.exists():
            raise FileNotFoundError(f"{wanted} was resolved, but {target} did not appear")
        os.replace(found, target)


def _fetch(wanted: Coordinates, directory: Path) -> None:
    command = _maven_command(wanted, directory) if shutil.which("mvn") else _ivy_command(wanted, directory)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Cannot fetch {wanted}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def _maven_command(wanted: Coordinates, directory: Path) -> list[str]:
    return ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={wanted}", f"-DoutputDirectory={directory}"]


def _ivy_command(wanted: Coordinates, directory: Path) -> list[str]:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars" / "*"
    retrieve = str(directory / "[artifact]-[revision].[ext]")
    return [
        *("java", "-cp", str(jars), "org.apache.ivy.Main"),
        *("-dependency", wanted.group, wanted.artifact, wanted.version),
        *("-notransitive", "-retrieve", retrieve),
    ]


def main() -> int:
    """Fetch the coordinates given on the command line and print where they lie."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("coordinates", nargs="+", help="group:artifact:version")
    for text in parser.parse_args().coordinates:
        print(jar(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
