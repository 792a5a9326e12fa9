"""Tables of Apache Hudi taken into the catalog by their location, read by SQL now and as of older instants.

A sample of them: the format path reads them all, and the catalog adds names, properties and time travel.
"""

from __future__ import annotations

import datetime as dt

import pytest

from tests.golden import harness

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def golden_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden-catalog")
    return lambda name: str(harness.extract(name, folder))


@pytest.fixture
def golden_table(spark, golden_path):
    """Enter a golden table into the catalog; dropping an external table keeps its files."""
    made = []

    def enter(name: str) -> str:
        options = {"x": "y", **harness.expectation(name)["read_options"]}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        spark.sql(f"CREATE TABLE {name} USING hudi TBLPROPERTIES ({listed}) LOCATION '{golden_path(name)}'")
        made.append(name)
        return name

    yield enter
    for name in made:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("name", harness.table_names()[::5])
def test_snapshot_and_time_travel(name, spark, read_path, golden_table):
    table = golden_table(name)
    for read in harness.reads_of(name):
        if read.kind not in ("snapshot", "as_of"):
            continue
        version = f"VERSION AS OF '{read.as_of}'" if read.kind == "as_of" else ""
        harness.assert_rows(read, harness.spark_rows(spark.sql(f"SELECT * FROM {table} {version}").collect()))


def test_timestamp_as_of_takes_instants_and_times(spark, read_path, golden_table):
    name = next(name for name in harness.table_names() if len(harness.expectation(name).get("as_of", ())) > 1)
    table = golden_table(name)
    read = next(read for read in harness.reads_of(name) if read.kind == "as_of")
    digits = str(read.as_of).ljust(17, "9")
    time = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:17]}"
    for moment in (digits[: len(str(read.as_of))], time):
        rows = spark.sql(f"SELECT * FROM {table} TIMESTAMP AS OF '{moment}'").collect()
        harness.assert_rows(read, harness.spark_rows(rows))


TRAVELLED = "v8_mor_rolled_back"


def _travelled_read():
    return next(read for read in harness.reads_of(TRAVELLED) if read.kind == "as_of")


@pytest.mark.parametrize(
    "clause",
    [
        "TIMESTAMP AS OF '{date} {time}'",
        "TIMESTAMP AS OF '{date} {time}.{millis}'",
        "TIMESTAMP AS OF timestamp '{date} {time}'",
        "TIMESTAMP AS OF to_timestamp('{date} {time}.{millis}') + interval 1 second",
        "FOR SYSTEM_TIME AS OF '{digits}'",
        "VERSION AS OF {digits}",
    ],
)
def test_time_travel_in_sql(clause, spark, read_path, golden_table):
    read = _travelled_read()
    text = clause.format(**_spellings(str(read.as_of)))
    rows = spark.sql(f"SELECT * FROM {golden_table(TRAVELLED)} {text}").collect()
    harness.assert_rows(read, harness.spark_rows(rows))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_text_names_the_digits_of_the_timeline_in_any_zone(zone, spark, read_path, golden_table):
    read = _travelled_read()
    given = _spellings(str(read.as_of))
    table, before = golden_table(TRAVELLED), spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        text = f"SELECT * FROM {table} TIMESTAMP AS OF '{given['date']} {given['time']}'"
        assert len(spark.sql(text).collect()) == len(harness.accepted_answers(read)[0])
        earlier = f"SELECT * FROM {table} TIMESTAMP AS OF '{given['date']}'"
        assert spark.sql(earlier).collect() == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize(
    "clause",
    [
        "TIMESTAMP AS OF timestamp_millis({epoch_millis})",
        "TIMESTAMP AS OF timestamp_seconds({epoch_seconds})",
        "TIMESTAMP AS OF '{date}T{time}.{millis}Z'",
        "TIMESTAMP AS OF timestamp_millis({epoch_millis}) + interval 1 millisecond",
    ],
)
def test_a_computed_time_is_a_moment_in_any_zone_of_the_session(clause, zone, spark, read_path, golden_table):
    """The timeline is in this machine's zone, UTC; Hudi 1.2 takes no computed times, and no zones."""
    read, table = _travelled_read(), golden_table(TRAVELLED)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        text = f"SELECT * FROM {table} {clause.format(**_spellings(str(read.as_of)))}"
        assert len(spark.sql(text).collect()) == len(harness.accepted_answers(read)[0])
        newest = spark.sql(f"SELECT * FROM {table}").collect()
        now = f"SELECT * FROM {table} TIMESTAMP AS OF current_timestamp()"
        assert sorted(spark.sql(now).collect()) == sorted(newest)
        hour_before = clause.format(**_spellings(str(read.as_of), seconds=-3600))
        assert spark.sql(f"SELECT * FROM {table} {hour_before}").collect() == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_options_that_change_the_columns_of_a_loaded_table_are_refused_or_heeded(spark, golden_table):
    name = "v9_mor_on_read"
    table = golden_table(name)
    read = next(read for read in harness.reads_of(name) if read.kind == "as_of")
    frame = spark.read.option("versionAsOf", str(read.as_of)).table(table)
    if frame.columns == spark.table(table).columns:
        # Spark 3.5 hands the option over after it has looked the columns up.
        with pytest.raises(Exception, match="OPTION_CHANGES_COLUMNS"):
            frame.collect()
    else:
        harness.assert_rows(read, harness.spark_rows(frame.collect()))


@pytest.mark.parametrize("option", ["as.of.instant", "timestampAsOf", "versionAsOf"])
def test_time_travel_by_option(option, spark, read_path, golden_path):
    read = _travelled_read()
    given = _spellings(str(read.as_of))
    for moment in (
        given["digits"],
        f"{given['date']} {given['time']}",
        f"{given['date']} {given['time']}.{given['millis']}",
    ):
        frame = spark.read.format("hudi").option(option, moment).load(golden_path(TRAVELLED))
        harness.assert_rows(read, harness.spark_rows(frame.collect()))
    frame = spark.read.format("hudi").option(option, given["date"]).load(golden_path(TRAVELLED))
    assert frame.collect() == []
    assert frame.count() == 0


def _spellings(digits: str, *, seconds: int = 0) -> dict[str, str]:
    moment = dt.datetime.strptime(digits + "000", "%Y%m%d%H%M%S%f") + dt.timedelta(seconds=seconds)
    digits = moment.strftime("%Y%m%d%H%M%S%f")[:17]
    epoch = moment.replace(tzinfo=dt.timezone.utc).timestamp()
    return {
        "epoch_millis": str(round(epoch * 1000)),
        "epoch_seconds": str(int(epoch)),
        "digits": digits,
        "date": f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}",
        "time": f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}",
        "millis": digits[14:17],
    }
