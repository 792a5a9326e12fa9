"""Make tables of versions 2 to 5 with the Hudi of their day; `answer_older.py` then asks the newest one.

Old Hudi needs an old Spark, so this runs in an environment of its own (Python 3.9, and for Spark 3.1 and 3.2 on
Java 17 a `scala-library` of 2.12.18 in place of the shipped one):

    pip install pyspark==3.1.3
    PYSPARK_PYTHON=$(which python) python tests/golden/make_older.py BUNDLE.jar 2 FOLDER mor_event_time cow_types …

| table version | Hudi | bundle | PySpark |
|---|---|---|---|
| 2 | 0.9.0 | hudi-spark3-bundle_2.12 | 3.1 |
| 3 | 0.10.0 | hudi-spark3-bundle_2.12 | 3.1 |
| 5 | 0.12.2 | hudi-spark3.3-bundle_2.12 | 3.3 |
| 5 | 0.13.1 | hudi-spark3.2-bundle_2.12 | 3.2 |

Themes that call procedures need 0.11 or newer.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import making.changes  # noqa: E402
import making.evolution  # noqa: E402
import making.history  # noqa: E402
import making.keys  # noqa: E402
import making.layouts  # noqa: E402
import making.merging  # noqa: E402
import making.partitions  # noqa: E402
import making.services  # noqa: E402, F401
from making.catalogue import TABLE_TYPES, THEMES  # noqa: E402
from making.workbench import Workbench  # noqa: E402

_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
    "java.util.concurrent.atomic java.util.regex java.text java.time sun.nio.ch sun.nio.cs sun.security.action "
    "sun.util.calendar"
)
_HAS_CATALOG = 4


def main() -> None:
    """Make each table that is named, as `FOLDER/v<version>_<type>_<theme>`."""
    jar, version, folder, names = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    os.environ["TZ"] = "UTC"
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    spark = _session(jar, version, folder)
    for name in names:
        kind, _, theme = name.partition("_")
        label = f"v{version}_{name}"
        try:
            bench = Workbench(spark, label, version, TABLE_TYPES[kind], folder / label)
            bench.clear()
            THEMES[theme].make(bench)
            (folder / f"{label}.read_options.json").write_text(json.dumps(bench.read_options))
            print(label, "made", flush=True)
        except Exception as error:
            print(label, "FAILED:", str(error)[:600], flush=True)
    spark.stop()


def _session(jar: str, version: int, folder: Path):  # type: ignore[no-untyped-def]
    from pyspark.sql import SparkSession

    opens = " ".join(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split())
    options = f"-Duser.timezone=UTC -Dderby.system.home={folder} -XX:TieredStopAtLevel=1 {opens}"
    settings = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.extraClassPath": jar,
        "spark.driver.extraJavaOptions": options,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.adaptive.enabled": "false",
    }
    if version >= _HAS_CATALOG:
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
    builder = SparkSession.builder.master("local[2]").appName("older tables")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
