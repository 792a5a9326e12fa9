"""Sessions that users set up themselves: plain ones, by Hudi's guide, with the jar but without a planner.

Answers do not depend on the session extension, nor on the catalog: they change the plan, or are asked for.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

START = """
import sys
import drawstring
from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.warehouse.dir", folder + "/warehouse").config("spark.sql.shuffle.partitions", "1")
builder = builder.config("spark.driver.memory", "1g").config("spark.driver.host", "127.0.0.1")
"""

NO_EXTENSION = """
from drawstring.spark.session.build import bridge_jar
from drawstring.spark.session.builder import CATALOG

builder = builder.config("spark.jars", str(bridge_jar())).config("spark.sql.catalog.spark_catalog", CATALOG)
spark = drawstring.attach(builder.getOrCreate())
spark.conf.set("hoodie.datasource.read.use.dsv2", "false")
spark.sql("CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
spark.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
spark.sql("INSERT OVERWRITE t SELECT id + 1, v FROM (VALUES (5, 'e')) AS x (id, v)")
assert [tuple(row) for row in spark.sql("SELECT id, v FROM t").collect()] == [(6, "e")]
assert spark.table("t").count() == 1
"""

ATTACHED = """
spark = drawstring.attach(builder.getOrCreate())
path = folder + "/table"
options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
frame = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, v STRING")
frame.write.format("hudi").options(**options).save(path)
frame.limit(1).selectExpr("id", "'new' AS v").write.format("hudi").options(**options).mode("append").save(path)
for flag in ("true", "false"):
    read = spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", flag).load(path)
    assert sorted(tuple(row) for row in read.select("id", "v").collect()) == [(1, "new"), (2, "b")], flag
    plan = read._jdf.queryExecution().executedPlan().toString()
    assert ("BatchScan" if flag == "true" else "FileScan") in plan, plan
    assert read.where("id = 2").count() == 1
spark.sql(f"CREATE TABLE t USING hudi LOCATION '{path}'")
assert spark.table("t").count() == 2
for statement in ("INSERT INTO t SELECT * FROM t", "INSERT OVERWRITE t VALUES ('', '', '', '', '', 9, 'z')"):
    try:
        spark.sql(statement)
    except Exception as error:
        print("refused as it should be:", type(error).__name__)
    else:
        raise AssertionError(f"written past the planner: {statement}")
assert spark.read.format("hudi").load(path).count() == 2
"""

BY_THE_GUIDE = """
guide = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
for key, value in guide.items():
    builder = builder.config(key, value)
spark = drawstring.configure(builder).getOrCreate()
assert all(spark.conf.get(key) == value for key, value in guide.items())
spark.sql("CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
spark.sql("INSERT INTO t SELECT id, 'a' FROM range(100)")
changed = spark.createDataFrame([(1, "new")], "id INT, v STRING")
upsert = {"hoodie.datasource.write.operation": "upsert"}
changed.write.format("org.apache.hudi").options(**upsert).mode("append").saveAsTable("t")
assert spark.sql("SELECT v, count(*) FROM t GROUP BY v").count() == 2
assert [row.v for row in spark.table("t").where("id = 1").collect()] == ["new"]
"""

NOT_ATTACHED = """
from drawstring.spark.session.build import bridge_jar

spark = builder.config("spark.jars", str(bridge_jar())).getOrCreate()
try:
    spark.read.format("hudi").load(folder)
except Exception as error:
    assert "drawstring.attach(spark)" in str(error), error
else:
    raise AssertionError("read without a planner")
"""


@pytest.mark.parametrize(
    "script",
    [NO_EXTENSION, ATTACHED, BY_THE_GUIDE, NOT_ATTACHED],
    ids=["catalog-only", "attached-only", "by-the-guide", "not-attached"],
)
def test_session_that_lacks_something(script, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(START + script)
    command = [sys.executable, str(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
