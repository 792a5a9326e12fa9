"""A Spark session with Apache Hudi's own bundle, for tests and generators that need the original.

Only on PySpark 3.5, and never in a process that uses drawstring's bridge: both answer to the same
class names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import maven_jars  # scripts/ is no package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEWEST = "1.2.0"
WRITER_OF_TABLE_VERSION = {6: "0.15.0", 8: "1.0.2", 9: NEWEST}

_CONF = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


def hudi_session(
    app: str,
    *,
    version: str = NEWEST,
    master: str = "local[2]",
    memory: str = "2g",
    workspace: Path | None = None,
    java_options: str = "",
    conf: dict[str, str] | None = None,
) -> SparkSession:
    """Start a session whose `hudi` format is Apache Hudi's.

    The bundle goes on the driver's class path, not into `spark.jars`: rewriting files with Hudi 1.2
    needs it in the class loader that holds Parquet.
    """
    os.environ["TZ"] = "UTC"
    from pyspark.sql import SparkSession

    home = workspace or Path.cwd()
    builder = SparkSession.builder.appName(app).master(master)
    settings = {
        **_CONF,
        "spark.driver.memory": memory,
        "spark.driver.extraClassPath": str(maven_jars.hudi_bundle(version)),
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dderby.system.home={home} {java_options}",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        **(conf or {}),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
