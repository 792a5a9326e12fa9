"""A JVM with Apache Hudi's classes and no Spark session, driven through Py4J: for asking single classes of Hudi."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import maven_jars  # scripts/ is no package


@contextmanager
def hudi_jvm(version: str = "1.2.0") -> Iterator[Any]:
    """Yield Py4J's view of a JVM that has Hudi's bundle and Spark's jars on its class path."""
    import pyspark
    from py4j.java_gateway import JavaGateway

    jars = Path(pyspark.__file__).parent / "jars"
    gateway = JavaGateway.launch_gateway(
        classpath=f"{maven_jars.hudi_bundle(version)}:{jars}/*",
        javaopts=["-Xmx512m", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"],
        die_on_exit=True,
    )
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
