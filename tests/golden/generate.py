"""Make golden tables by running Apache Hudi on PySpark 3.5.

    python tests/golden/generate.py --into FOLDER v9_mor_log_compaction v6_mor_compacted …
    python tests/golden/generate.py --list

One Spark session runs at a time, in a process of its own per Hudi version: 0.15.0 makes tables of
version 6, 1.0.2 of version 8 and 1.2.0 (or, with `--nine-by`, 1.1.1) of version 9. The newest Hudi reads
the older writers' tables again, and what it answers differently goes under `newer`. Names are
`v<version>_<cow|mor>_<theme>`; shell patterns work. `make test` does not need this.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]

import making.changes  # noqa: E402
import making.evolution  # noqa: E402
import making.history  # noqa: E402
import making.keys  # noqa: E402
import making.layouts  # noqa: E402
import making.merging  # noqa: E402
import making.partitions  # noqa: E402
import making.services  # noqa: E402, F401
from hudi_session import NEWEST, WRITER_OF_TABLE_VERSION, hudi_session  # noqa: E402
from making.catalogue import TABLE_TYPES, split_name, table_names  # noqa: E402
from making.packing import pack  # noqa: E402
from making.reads import RowStore, default_questions, read_all, without_unanswered  # noqa: E402
from making.workbench import Workbench  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_CONF = {
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
# Tables are small and sessions short: compiling code well costs more than it gives.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main() -> int:
    """Parse the command line and run one stage per Hudi version."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="tables to make; shell patterns")
    parser.add_argument("--into", type=Path, default=HERE / "extra", help="where NAME.zip and NAME.json go")
    parser.add_argument(
        "--work", type=Path, default=Path("/tmp/drawstring-golden"), help="where tables are built"
    )
    parser.add_argument("--list", action="store_true", help="print the names that can be made")
    parser.add_argument("--again", action="store_true", help="also make tables that are there already")
    parser.add_argument(
        "--no-metadata",
        action="store_true",
        help="without metadata tables, which is quicker, where the theme allows",
    )
    parser.add_argument("--nine-by", choices=("1.1.1", NEWEST), default=NEWEST, help="who writes version 9")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(table_names()))
        return 0
    if arguments.stage:
        return _run_stage(arguments)
    return _run_all(arguments)


def _chosen(arguments: argparse.Namespace) -> list[str]:
    wanted = [name for name in table_names() if any(fnmatch.fnmatch(name, each) for each in arguments.names)]
    return [name for name in wanted if arguments.again or not (arguments.into / f"{name}.json").exists()]


def _run_all(arguments: argparse.Namespace) -> int:
    chosen = _chosen(arguments)
    needed = {split_name(name)[0] for name in chosen} | {split_name(name)[2].begun_by for name in chosen}
    hudis = {_writer(arguments, version) for version in needed if version}
    for stage in sorted(hudis | ({NEWEST} if hudis else set())):
        command = [sys.executable, __file__, *sys.argv[1:], "--stage", stage]
        subprocess.run(command, check=True, env={**os.environ, "TZ": "UTC"})
    return 0


def _writer(arguments: argparse.Namespace, table_version: int) -> str:
    nine_by: str = arguments.nine_by
    return nine_by if table_version == 9 else WRITER_OF_TABLE_VERSION[table_version]


def _run_stage(arguments: argparse.Namespace) -> int:
    arguments.work.mkdir(parents=True, exist_ok=True)
    os.chdir(arguments.work)
    hudi = arguments.stage
    names = _chosen(arguments)
    spark = hudi_session(
        "golden", version=hudi, workspace=arguments.work, conf=SESSION_CONF, java_options=JAVA_OPTIONS
    )
    for name in names:
        table_version, _, theme = split_name(name)
        if theme.begun_by and _writer(arguments, theme.begun_by) == hudi:
            _attempt(f"begin {name}", partial(_begin, spark, arguments, name))
        if _writer(arguments, table_version) == hudi:
            _attempt(name, partial(_make, spark, arguments, name))
        elif hudi == NEWEST:
            _attempt(f"read again {name}", partial(_read_again, spark, arguments, name))
    spark.stop()
    return 0


def _attempt(label: str, step: Callable[[], None]) -> None:
    started = time.monotonic()
    try:
        step()
        print(f"{label}: {time.monotonic() - started:.1f} s", flush=True)
    except Exception as error:
        print(f"{label}: FAILED: {str(error)[:600]}", flush=True)


def _bench(spark: SparkSession, arguments: argparse.Namespace, name: str) -> Workbench:
    version, table_type, _ = split_name(name)
    bench = Workbench(spark, name, version, TABLE_TYPES[table_type], arguments.work / name)
    if arguments.no_metadata:
        bench.set({"hoodie.metadata.enable": "false"})
        spark.sql("set hoodie.metadata.enable=false")
    return bench


def _begin(spark: SparkSession, arguments: argparse.Namespace, name: str) -> None:
    bench = _bench(spark, arguments, name)
    bench.clear()
    theme = split_name(name)[2]
    assert theme.begin is not None
    assert theme.begun_by is not None
    bench.version = theme.begun_by
    theme.begin(bench)


def _make(spark: SparkSession, arguments: argparse.Namespace, name: str) -> None:
    bench = _bench(spark, arguments, name)
    version, _, theme = split_name(name)
    if theme.begun_by is None:
        bench.clear()
    theme.make(bench)
    store = RowStore()
    asked = {**default_questions(bench.instants), **bench.questions}
    answer = read_all(
        spark,
        bench.path,
        merge_on_read=bench.merge_on_read,
        read_options=bench.read_options,
        store=store,
        asked=asked,
    )
    head = {
        "name": name,
        "hudi": _writer(arguments, version),
        "table_version": version,
        "table_type": bench.table_type,
        "exercises": theme.exercises,
        "read_options": bench.read_options,
        "checked": [],
    }
    into = arguments.work
    if head["hudi"] == NEWEST:
        into, answer = arguments.into, without_unanswered(answer)
    pack(bench.path, into=into, name=name, expected={**head, **answer, "rows": store.rows})


def _read_again(spark: SparkSession, arguments: argparse.Namespace, name: str) -> None:
    """Let the newest Hudi read a table that an older one wrote, and keep what differs."""
    expected = json.loads((arguments.work / f"{name}.json").read_text(encoding="utf-8"))
    store = RowStore()
    for row in expected["rows"]:
        store.number(row)
    bench = _bench(spark, arguments, name)
    asked = {
        key: [{k: v for k, v in each.items() if k != "rows"} for each in expected[key]]
        for key in ("as_of", "incremental")
    }
    answer = read_all(
        spark,
        bench.path,
        merge_on_read=bench.merge_on_read,
        read_options=expected["read_options"],
        store=store,
        asked=asked,
    )
    expected["newer"] = _differences(expected, answer)
    if answer["schema"] != expected["schema"]:
        expected["newer_schema"] = answer["schema"]
    expected = without_unanswered(_answered(expected, answer))
    pack(bench.path, into=arguments.into, name=name, expected={**expected, "rows": store.rows})


def _answered(expected: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Take the newest Hudi's answer where the writing one had none."""
    whole = {**expected, **{key: answer[key] for key in answer if expected.get(key) is None}}
    for key in ("as_of", "incremental"):
        whole[key] = [
            mine if mine["rows"] is not None else newest
            for mine, newest in zip(expected[key], answer[key], strict=True)
        ]
    return whole


def _differences(expected: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("snapshot", "read_optimized"):
        if _differ(expected.get(key), answer.get(key)):
            found[key] = answer[key]
    for key in ("as_of", "incremental"):
        for number, (mine, newest) in enumerate(zip(expected[key], answer[key], strict=True)):
            if _differ(mine["rows"], newest["rows"]):
                found[f"{key} {number}"] = newest["rows"]
    return found


def _differ(mine: list[int] | None, newest: list[int] | None) -> bool:
    return mine is not None and newest is not None and sorted(mine) != sorted(newest)


if __name__ == "__main__":
    sys.exit(main())
