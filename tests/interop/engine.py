"""One engine at work in a process of its own: `python engine.py hudi|drawstring ACTIONS.json RESULTS.json`.

drawstring and Apache Hudi answer to the same class names, so they never share a session. A test hands each
process a list of actions and gets back what every named one of them saw or raised.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Action = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]


def run(engine: str, actions: list[Action], folder: Path) -> dict[str, Any]:
    """Run the actions with one engine and return the results by action name."""
    folder.mkdir(parents=True, exist_ok=True)
    given, results = folder / "actions.json", folder / "results.json"
    given.write_text(json.dumps(actions), encoding="utf-8")
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "TZ": "UTC", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, __file__, engine, str(given), str(results)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if not results.exists():
        raise RuntimeError(
            f"{engine} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        )
    found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    return found


def write(path: Path, rows: list[Any], schema: str, options: dict[str, str], **more: Any) -> Action:
    """An action that writes rows through `df.write.format("hudi")`, `select` expressions of them if given."""
    return {"do": "write", "path": str(path), "rows": rows, "schema": schema, "options": options, **more}


def read(name: str, path: Path, *, where: str | None = None, options: dict[str, str] | None = None) -> Action:
    """An action that collects a table's rows under `name`."""
    return {"do": "read", "name": name, "path": str(path), "where": where, "options": options or {}}


def stream(name: str, path: Path, folder: Path, options: dict[str, str] | None = None) -> Action:
    """An action that streams what is new of a table into `folder` and tells under `name` all that is there then."""
    return {"do": "stream", "name": name, "path": str(path), "folder": str(folder), "options": options or {}}


def sink(source: Path, path: Path, checkpoint: Path, schema: str, options: dict[str, str]) -> Action:
    """An action that streams new files of JSON into a table, each as a batch."""
    places = {"source": str(source), "path": str(path), "checkpoint": str(checkpoint)}
    return {"do": "sink", **places, "schema": schema, "options": options}


def _session(engine: str) -> SparkSession:
    if engine == "hudi":
        from hudi_session import hudi_session

        return hudi_session("interop", java_options="-XX:TieredStopAtLevel=1")
    import drawstring

    conf = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dderby.system.home={Path.cwd()}",
    }
    return drawstring.session("interop", master="local[2]", conf=conf)


def _act(spark: SparkSession, action: Action) -> Any:
    if action["do"] == "write":
        frame = spark.createDataFrame([tuple(row) for row in action["rows"]], action["schema"])
        frame = frame.selectExpr(*action["select"]) if action.get("select") else frame
        frame.write.format("hudi").options(**action["options"]).mode(action.get("mode", "append")).save(
            action["path"]
        )
        return "written"
    if action["do"] == "stream":
        return _streamed(spark, action)
    if action["do"] == "sink":
        return _sunk(spark, action)
    frame = spark.read.format("hudi").options(**action["options"]).load(action["path"])
    if action["where"]:
        frame = frame.where(action["where"])
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return {"schema": frame.schema.simpleString(), "rows": json.loads(json.dumps(rows, default=str))}


def _streamed(spark: SparkSession, action: Action) -> Any:
    target, checkpoint = f"{action['folder']}/rows", f"{action['folder']}/checkpoint"
    frame = spark.readStream.format("hudi").options(**action["options"]).load(action["path"])
    writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(once=True).start(target).awaitTermination()
    offsets = sorted(Path(checkpoint, "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    rows = [row.asDict(recursive=True) for row in spark.read.parquet(target).collect()]
    return {
        "rows": json.loads(json.dumps(rows, default=str)),
        "offset": offsets[-1].read_text(encoding="utf-8").splitlines()[-1],
    }


def _sunk(spark: SparkSession, action: Action) -> str:
    reader = spark.readStream.schema(action["schema"]).option("maxFilesPerTrigger", 1)
    writer = reader.json(action["source"]).writeStream.format("hudi").options(**action["options"])
    writer = writer.option("checkpointLocation", action["checkpoint"]).trigger(availableNow=True)
    writer.start(action["path"]).awaitTermination()
    return "written"


def told(error: Exception) -> str:
    """What an engine raised, short, with the causes that stand at the end of a long Java stack."""
    text = f"{type(error).__name__}: {error}"
    causes = [line for line in text.splitlines() if line.startswith("Caused by")]
    return "\n".join([text[:2000], *dict.fromkeys(causes)])[:4000]


def main() -> int:
    """Run the actions of the command line; an action that fails is a result too."""
    engine, given, results = sys.argv[1:4]
    spark = _session(engine)
    found: dict[str, Any] = {}
    for number, action in enumerate(json.loads(Path(given).read_text(encoding="utf-8"))):
        try:
            found[action.get("name", f"action {number}")] = _act(spark, action)
        except Exception as error:
            found[action.get("name", f"action {number}")] = {"error": told(error)}
    Path(results).write_text(json.dumps(found), encoding="utf-8")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
