"""A Hudi table from nothing: created, written, upserted and read through DataSource V2, with what happened shown.

make demo                        rows and partitions as they come
make demo ARGS='--rows 4000000'  larger
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

import drawstring

console = Console(width=118)
CITIES = ("amsterdam", "basel", "bern", "dublin", "lisbon", "oslo", "porto", "turin")
USE_V2 = "hoodie.datasource.read.use.dsv2"
QUESTION = """SELECT city, count(*) AS trips, round(avg(fare), 2) AS fare
FROM trips WHERE city = 'bern' AND fare > 30 GROUP BY city"""


def main() -> None:
    """Run the demonstration in a folder of its own, which is removed afterwards."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=400_000)
    rows = parser.parse_args().rows
    folder = Path(tempfile.mkdtemp(prefix="drawstring-demo-"))
    try:
        spark = start(folder)
        path = create(spark)
        insert(spark, rows)
        upsert(spark, path, rows)
        read_by_sql(spark)
        read_by_path(spark, path, rows)
        show_v2_read(spark, path)
        race(spark)
        look_without_spark(path)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start(folder: Path) -> Any:
    """Start a session with drawstring in it."""
    _quieten(folder)
    step("A session", "drawstring.session() sets catalog and extension, and reads through DataSource V2")
    conf = {
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    seconds, spark = timed(lambda: drawstring.session("drawstring-demo", master="local[2]", conf=conf))
    done(f"Spark {spark.version} with the bridge", seconds)
    return spark


def _quieten(folder: Path) -> None:
    # Spark logs before the session's own settings count: only its configuration folder is early enough.
    lines = ["rootLogger.level = error", "rootLogger.appenderRef.stdout.ref = console"]
    lines += ["appender.console.type = Console", "appender.console.name = console"]
    lines += ["appender.console.target = SYSTEM_ERR", "appender.console.layout.type = PatternLayout"]
    (folder / "log4j2.properties").write_text("\n".join(lines))
    os.environ.update(SPARK_CONF_DIR=str(folder), SPARK_LOCAL_IP="127.0.0.1")


def create(spark: Any) -> str:
    """Create a partitioned copy-on-write table by SQL."""
    step("A table", "copy-on-write, partitioned by city, keyed by id, newest ts wins")
    run_sql(
        spark,
        """CREATE TABLE trips (id BIGINT, rider STRING, fare DOUBLE, ts BIGINT, city STRING) USING hudi
PARTITIONED BY (city) TBLPROPERTIES (type = 'cow', primaryKey = 'id', orderingFields = 'ts')""",
    )
    described = spark.sql("DESCRIBE TABLE EXTENDED trips").where("col_name = 'Location'").first()
    return str(described["data_type"]).removeprefix("file:")


def insert(spark: Any, rows: int) -> None:
    """Insert generated rows by SQL."""
    step("Insert", f"{rows:,} rows into {len(CITIES)} partitions")
    cities = ", ".join(f"'{city}'" for city in CITIES)
    spark.range(rows).createOrReplaceTempView("numbers")
    run_sql(
        spark,
        f"""INSERT INTO trips
SELECT id, concat('rider ', id % 1000), round(5 + rand(7) * 45, 2), 100,
  element_at(array({cities}),
    CAST(id % {len(CITIES)} AS INT) + 1)
FROM numbers""",
    )


def upsert(spark: Any, path: str, rows: int) -> None:
    """Upsert through the DataFrame API: some rows change, some are new."""
    changed = max(1, rows // 100)
    step("Upsert", f"{changed:,} fares of bern doubled, {changed:,} new trips, by DataFrame")
    bern = spark.table("trips").where("city = 'bern'").limit(changed)
    columns = ("id", "rider", "fare * 2 AS fare", "ts + 1 AS ts", "city")
    new = ("id", "'new rider' AS rider", "10.0D AS fare", "CAST(101 AS BIGINT) AS ts", "'oslo' AS city")
    changes = bern.selectExpr(*columns).union(spark.range(rows, rows + changed).selectExpr(*new))
    seconds, _ = timed(lambda: changes.write.format("hudi").mode("append").save(path))
    done("df.write.format('hudi').mode('append').save(path)", seconds)


def read_by_sql(spark: Any) -> None:
    """Ask the table by SQL."""
    step("Read by SQL", "through the catalog")
    run_sql(spark, QUESTION, show=True)


def read_by_path(spark: Any, path: str, rows: int) -> None:
    """Read the table by its path."""
    step("Read by path", "spark.read.format('hudi').load(path)")
    frame = spark.read.format("hudi").load(path)
    seconds, count = timed(frame.count)
    expected = rows + max(1, rows // 100)
    assert count == expected, f"{count} rows, expected {expected}"
    done(f"{count:,} rows, as many as were written", seconds)


def show_v2_read(spark: Any, path: str) -> None:
    """Show the plan of the V2 read and what it skipped."""
    step("What the V2 read did", "one question, its plan, and the files it never opened")
    frame = spark.sql(QUESTION)
    frame.collect()
    console.print(
        Panel(Syntax(_plan_text(frame), "text", word_wrap=True), title="physical plan", title_align="left")
    )
    report = drawstring.open_table(path).explain(where="city = 'bern' AND fare > 30", select=["city", "fare"])
    reasons = {f"skipped by {group.reason}": f"{group.slices} file slices" for group in report.skipped}
    _facts("what drawstring planned", {**report.facts(), **reasons})
    _facts("what Spark measured (also in its UI)", scan_metrics(frame))


def _facts(title: str, facts: dict[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        table.add_row(f"[bold]{name}[/]", value)
    console.print(Panel(table, title=title, title_align="left"))


def race(spark: Any) -> None:
    """Time the same questions through V1 and V2."""
    step("V2 against V1", "the same questions in the same session, median of five")
    questions = {
        "one partition, filtered": QUESTION,
        "two columns of all rows": "SELECT max(fare), max(ts) FROM trips",
        "count": "SELECT count(*) FROM trips",
    }
    table = Table("question", "V1", "V2", "V2 / V1", box=None, pad_edge=False)
    for name, question in questions.items():
        v1, v2 = (_median(spark, question, use_v2) for use_v2 in ("false", "true"))
        colour = "green" if v2 <= v1 * 1.05 else "yellow"
        table.add_row(name, f"{v1 * 1000:.0f} ms", f"{v2 * 1000:.0f} ms", f"[{colour}]{v2 / v1:.2f} ×[/]")
    console.print(table)


def look_without_spark(path: str) -> None:
    """Read the table without Spark, and say where to go on."""
    step("Without Spark", "drawstring.open_table(path)… .to_arrow()")
    scan = drawstring.open_table(path).snapshot().scan().select("id", "fare").where("city = 'bern'")
    seconds, arrow = timed(scan.to_arrow)
    done(f"{arrow.num_rows:,} rows of bern as Arrow", seconds)
    console.print("\n[dim]Next: drawstring inspect PATH, drawstring plan PATH --where …, README.md[/]")


def scan_metrics(frame: Any) -> dict[str, str]:
    """The metrics of the V2 scan that ran, by their names in the Spark UI."""
    node = _scan_node(frame._jdf.queryExecution().executedPlan())
    if node is None:
        return {}
    found, names = {}, node.metrics().keysIterator()
    while names.hasNext():
        metric = node.metrics().apply(names.next())
        label = metric.name().get() if metric.name().isDefined() else ""
        # The instant is a time in digits, which is no amount.
        if label and label != "pinned instant" and metric.value() > 0:
            found[label] = f"{metric.value():,}"
    return found


def _scan_node(plan: Any) -> Any:
    if plan.getClass().getSimpleName() == "BatchScanExec":
        return plan
    children = plan.children()
    inner = [plan.executedPlan()] if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec" else []
    inner += [plan.plan()] if plan.getClass().getSimpleName().endswith("QueryStageExec") else []
    inner += [children.apply(index) for index in range(children.size())]
    return next((found for child in inner if (found := _scan_node(child)) is not None), None)


def _plan_text(frame: Any) -> str:
    text = frame._jdf.queryExecution().executedPlan().toString().split("+- == Initial Plan")[0]
    return re.sub(r"#\d+L?|, \[plan_id=\d+\]|RuntimeFilters: \[\]", "", text).rstrip()


def _median(spark: Any, question: str, use_v2: str) -> float:
    spark.conf.set(USE_V2, use_v2)
    try:
        spark.sql(question).collect()
        return statistics.median(timed(lambda: spark.sql(question).collect())[0] for _ in range(5))
    finally:
        spark.conf.set(USE_V2, "true")


def run_sql(spark: Any, statement: str, *, show: bool = False) -> None:
    """Print a statement, run it, print how long it took and, if asked, its rows."""
    console.print(Syntax(statement, "sql", background_color="default", word_wrap=True))
    seconds, rows = timed(lambda: spark.sql(statement).collect())
    if show and rows:
        table = Table(*rows[0].asDict(), box=None, pad_edge=False)
        for row in rows:
            table.add_row(*map(str, row))
        console.print(table)
    done("done", seconds)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Run something and tell how long it took."""
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def step(title: str, detail: str) -> None:
    """Announce a step."""
    console.print()
    console.rule(f"[bold cyan]{title}[/]  [dim]{detail}[/]", align="left")


def done(what: str, seconds: float) -> None:
    """Tell that something is done."""
    console.print(f"[green]✓[/] {what} [dim]({seconds:.2f} s)[/]")


if __name__ == "__main__":
    main()
