"""What a streaming query needs is all that its batches read; the rows are those of the plain read."""

from __future__ import annotations

import pytest

from tests.integration.test_streams import Query, write

pytestmark = pytest.mark.spark

SWITCH = "hoodie.datasource.read.pushdown.filters"


class Explained(Query):
    """A query that keeps the plan of its last batch."""

    plan = ""

    def run(self, frame=None, **trigger):
        writer = frame.writeStream.foreachBatch(self._take)
        query = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(600)
            self.plan = query._jsq.explainInternal(False)
            self.inputs = sum(progress["numInputRows"] for progress in query.recentProgress)
        finally:
            query.stop()
        return self

    def _take(self, batch, number):
        self.batches[number] = sorted(str(row.asDict()) for row in batch.collect())


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def path(request, spark, tmp_path):
    """Twelve rows in three partitions, two of them updated."""
    found = str(tmp_path / "t")
    kind = {"hoodie.datasource.write.table.type": request.param}
    write(spark, found, [(i, "abc"[i % 3], f"s{i}") for i in range(12)], **kind)
    write(spark, found, [(0, "a", "new"), (1, "b", "new")], ts=2, **kind)
    return found


def asked(spark, folder, path, change, **options) -> Explained:
    found = Explained(spark, folder, path, **options)
    return found.run(change(found.frame()))


def plain_rows(spark, folder, path, change, **options) -> list[str]:
    """The same of a stream that is read whole, for the query looks at every column before."""
    found = Explained(spark, folder / "plain", path, **{**options, SWITCH: "false"})
    frame = found.frame()
    found.run(frame)
    rows = spark.createDataFrame([eval(row) for row in found.rows], frame.schema)
    return sorted(str(row.asDict()) for row in change(rows).collect())


@pytest.mark.parametrize("options", [{}, {"read.changelog": "true"}], ids=["rows", "changes"])
@pytest.mark.parametrize(
    ("change", "columns", "filters"),
    [
        (lambda f: f.select("s", "id"), "ReadSchema: struct<id:int,s:string>", ""),
        (lambda f: f.where("id < 4").select("s"), "ReadSchema: struct<id:int,s:string>", "id < 4"),
        (
            lambda f: f.where("p = 'b' AND s != 'new'").select("id"),
            "struct<id:int,p:string,s:string>",
            "p = 'b'",
        ),
        (lambda f: f.where("id + 1 > 3").selectExpr("upper(s) AS u"), "struct<id:int,s:string>", ""),
    ],
    ids=["columns", "filter", "partition", "computed"],
)
def test_a_batch_reads_what_its_query_needs(spark, tmp_path, path, change, columns, filters, options):
    found = asked(spark, tmp_path, path, change, **options)
    assert columns in found.plan
    assert filters in found.plan[found.plan.index("PushedFilters") :]
    assert found.rows == plain_rows(spark, tmp_path, path, change, **options)


def test_files_that_hold_no_row_of_the_query_are_not_read(spark, tmp_path, path):
    found = asked(spark, tmp_path, path, lambda f: f.where("p = 'b'").select("id"))
    assert sorted(eval(row)["id"] for row in found.rows) == [1, 4, 7, 10]
    assert found.inputs == 4


def test_a_query_without_columns_counts_rows(spark, tmp_path, path):
    found = Query(spark, tmp_path, path)
    frame = found.frame().groupBy().count()
    query = (
        frame.writeStream.outputMode("complete")
        .foreachBatch(lambda batch, number: found.batches.update({number: [str(batch.first()[0])]}))
        .option("checkpointLocation", str(found.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(600)
    assert found.rows == ["12"]


def test_a_stream_that_is_read_in_two_places_stays_whole(spark, tmp_path, path):
    found = Explained(spark, tmp_path, path)
    frame = found.frame()
    found.run(frame.selectExpr("s AS v").union(frame.selectExpr("p AS v")))
    values = sorted(eval(row)["v"] for row in found.rows)
    assert values == sorted([*"abc" * 4, "new", "new", *(f"s{i}" for i in range(2, 12))])
