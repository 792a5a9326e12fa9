"""The bridge jar: found in the package or the user's cache, else compiled with PySpark's Scala compiler."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drawstring.errors import BridgeError
from drawstring.spark.session.cache import cache_directory

_PACKAGE = Path(__file__).resolve().parents[2]
_SHIM = re.compile(r"^spark-(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?$")


@dataclass(frozen=True)
class SparkHome:
    """The Spark that PySpark ships: its version and the folder of its jars."""

    version: str
    jars: Path

    @property
    def minor(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


def bridge_jar(*, quiet: bool = False) -> Path:
    """Return the bridge jar for the installed PySpark, compiling it when no copy fits."""
    home = spark_home()
    name = jar_name(home)
    shipped = _PACKAGE / "_jars" / name
    if shipped.is_file():
        return shipped
    cached = cache_directory() / name
    if cached.is_file():
        return cached
    with _locked(cached.with_suffix(".lock")):
        if not cached.is_file():
            build_jar(home, cached, quiet=quiet)
    return cached


def build_jar(home: SparkHome, target: Path, *, quiet: bool = False) -> None:
    """Compile the bridge for `home` into `target`; the jar appears whole or not at all."""
    if not quiet:
        print(
            f"drawstring: compiling the bridge for Spark {home.version} (once) ...",
            file=sys.stderr,
            flush=True,
        )
    sources, resources = scala_sources(home), source_root() / "resources"
    with tempfile.TemporaryDirectory(prefix="drawstring-build-") as scratch:
        classes = Path(scratch) / "classes"
        classes.mkdir()
        _compile(home, sources, classes)
        packed = Path(scratch) / "bridge.jar"
        _pack(packed, [classes, resources])
        target.parent.mkdir(parents=True, exist_ok=True)
        staged = target.with_suffix(f".{os.getpid()}.tmp")
        shutil.copyfile(packed, staged)
        os.replace(staged, target)


def spark_home() -> SparkHome:
    """Locate the Spark that the importable PySpark brings along."""
    import pyspark

    home = os.environ.get("SPARK_HOME")
    jars = Path(home) / "jars" if home else Path(pyspark.__file__).parent / "jars"
    if not any(jars.glob("scala-compiler*.jar")):
        raise BridgeError(
            f"No Scala compiler among the jars of PySpark {pyspark.__version__} in {jars}. Install the full "
            "pyspark package (pyspark-client has no JVM side), or unset SPARK_HOME.",
            condition="SPARK_JARS_NOT_FOUND",
            jars=str(jars),
        )
    return SparkHome(pyspark.__version__, jars)


def jar_name(home: SparkHome) -> str:
    """Name the jar after the Spark version and the sources it is made from."""
    return f"drawstring-bridge-spark-{home.version}-{source_hash(home)}.jar"


def source_root() -> Path:
    """The folder that holds `scala`, `shims` and `resources`: in the wheel, or beside `src` in a checkout."""
    candidates = [_PACKAGE / "_bridge", _PACKAGE.parents[1] / "bridge" / "src" / "main"]
    for candidate in candidates:
        if (candidate / "scala").is_dir():
            return candidate
    raise BridgeError(
        f"The bridge's sources are missing: looked in "
        f"{', '.join(map(str, candidates))}. Install drawstring again.",
        condition="BRIDGE_SOURCES_NOT_FOUND",
    )


def scala_sources(home: SparkHome) -> list[Path]:
    """The Scala files for `home`: the common ones, and those of the shim folders for its version."""
    root = source_root()
    shims = [
        folder for folder in sorted((root / "shims").glob("spark-*")) if _shim_applies(folder.name, home)
    ]
    folders = [root / "scala", *shims]
    return [file for folder in folders for file in sorted(folder.rglob("*.scala"))]


def source_hash(home: SparkHome) -> str:
    """A short digest over everything that goes into the jar."""
    root, digest = source_root(), hashlib.sha256()
    resources = sorted(p for p in (root / "resources").rglob("*") if p.is_file())
    for file in [*scala_sources(home), *resources]:
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def java_executable() -> str:
    """The Java that Spark itself would start."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        raise BridgeError(
            "No Java runtime found: JAVA_HOME is "
            + (f"{home}, which holds no bin/java" if home else "unset and no java is on the PATH")
            + ". Install Java 17 or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless).",
            condition="JAVA_NOT_FOUND",
        )
    return found


def _shim_applies(name: str, home: SparkHome) -> bool:
    """`spark-4` fits every 4.x, `spark-3.5` that one, `spark-4.0-4.1` both ends included."""
    match = _SHIM.match(name)
    if match is None:
        return False
    low, high = _bound(match.group(1), 0), _bound(match.group(2) or match.group(1), 999)
    return low <= home.minor <= high


def _bound(text: str, missing_minor: int) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor) if minor else missing_minor


def _compile(home: SparkHome, sources: list[Path], classes: Path) -> None:
    command = [java_executable(), "-Xss8m", "-cp", f"{home.jars}/*", "scala.tools.nsc.Main", "-usejavacp"]
    command += ["-deprecation:false", "-nowarn", "-d", str(classes), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BridgeError(
            f"The bridge does not compile for Spark {home.version}:\n{done.stdout}{done.stderr}",
            condition="BRIDGE_BUILD_FAILED",
            spark_version=home.version,
        )


def _pack(jar: Path, folders: list[Path]) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in folders:
            for file in sorted(p for p in folder.rglob("*") if p.is_file()):
                archive.write(file, file.relative_to(folder).as_posix())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, so that processes that start together compile once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(bridge_jar())
