"""Every write option of Apache Hudi is honoured, harmless or refused; what nobody knows is warned about."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

import drawstring
from drawstring.config import unknown_keys
from drawstring.config.hudi_key_rule import Status
from drawstring.config.hudi_key_rules import RULES
from drawstring.config.write_options import ALL, WriteOptions, hudi_keys
from drawstring.errors import InvalidOption
from drawstring.spark.write.statements import WriteData, plan_write

KEYS = hudi_keys()
REFUSED = [key for key in KEYS.all if key.status is Status.REFUSED]
HARMLESS = [key for key in KEYS.all if key.status is Status.HARMLESS]


@pytest.fixture(autouse=True)
def nothing_warned_yet(monkeypatch):
    monkeypatch.setattr(unknown_keys, "_warned", set())


def test_every_key_has_a_status_and_a_reason_where_it_is_not_honoured():
    assert len(KEYS.all) == len({key.key for key in KEYS.all}) > 600
    assert [key.key for key in KEYS.all if key.status is not Status.HONOURED and not key.reason] == []


def test_a_key_that_is_honoured_stands_in_no_rule():
    honoured = {name for option in ALL for name in (option.key, *option.aliases)}
    assert [key for rule in RULES for key in rule.keys if key in honoured] == []


def test_a_rule_names_keys_that_hudi_has():
    known = {key.key for key in KEYS.all}
    exact = [key for rule in RULES if not rule.open for key in rule.keys if not key.endswith("*")]
    assert [key for key in exact if key not in known] == []
    prefixes = [key[:-1] for rule in RULES if not rule.open for key in rule.keys if key.endswith("*")]
    assert [prefix for prefix in prefixes if not any(key.startswith(prefix) for key in known)] == []
    assert len(exact) == len(set(exact))


def test_the_older_names_of_honoured_keys_are_honoured_as_well():
    every = {name for option in ALL for name in (option.key, *option.aliases)}
    honoured = [key for key in KEYS.all if key.key in every]
    assert [(key.key, old) for key in honoured for old in key.alternatives if old not in every] == []


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: key.key)
def test_a_refused_key_names_itself_its_value_and_the_reason(key):
    for name in (key.key, *key.alternatives, key.key.upper()):
        with pytest.raises(InvalidOption) as caught:
            WriteOptions.of({name: "Something.Else"})
        fields = caught.value.fields
        assert caught.value.condition == "OPTION_NOT_SUPPORTED"
        assert (fields["key"].lower(), fields["value"]) == (name.lower(), "Something.Else")
        assert key.reason in str(caught.value)
        assert name.lower() in str(caught.value).lower()


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: key.key)
def test_a_refused_key_is_taken_with_a_value_that_is_satisfied(key):
    for value in ("", *key.accepts):
        WriteOptions.of({key.key: value})
        WriteOptions.of({key.key: value.upper()})


@pytest.mark.parametrize("key", HARMLESS, ids=lambda key: key.key)
def test_a_harmless_key_changes_nothing(key, caplog):
    for name in (key.key, *key.alternatives):
        given = WriteOptions.of({name: key.default or "1"})
        settings = dict(given.concurrency.lock_settings)
        assert settings in ({}, {name.lower(): key.default or "1"})
        assert given.files == WriteOptions.of({}).files
        assert given.table == WriteOptions.of({}).table
    assert caplog.records == []


SAFETY = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
    "hoodie.datasource.hive_sync.enable": "true",
    "hoodie.datasource.meta.sync.enable": "true",
    "hoodie.write.commit.callback.on": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.datasource.clustering.inline.enable": "true",
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQueryEqualityPreCommitValidator",
    "hoodie.index.type": "FLINK_STATE",
    "hoodie.metrics.on": "true",
    "hoodie.payload.update.on.same.ordering.field": "op",
}


@pytest.mark.parametrize(("key", "value"), SAFETY.items(), ids=list(SAFETY))
@pytest.mark.parametrize(
    "road", ["call", "session", "dataframe", "create table as select", "create_table", "Table.write"]
)
def test_what_promises_something_is_refused_on_every_road(key, value, road, tmp_path):
    rows, name = pa.table({"id": [1]}), {"hoodie.table.name": "t"}

    def attempt():
        if road == "create_table":
            return drawstring.create_table(tmp_path / "t", rows.schema, options={**name, key: value})
        if road == "Table.write":
            table = drawstring.create_table(tmp_path / "t", rows.schema, options=name)
            return table.write(rows, options={key: value})
        if road == "session":
            return WriteOptions.of({}, session={key: value})
        if road == "call":
            return WriteOptions.of({key: value})
        from_session = road == "create table as select"
        message = WriteData(
            path="/t",
            origin="ctas" if from_session else "dataframe",
            mode="append",
            table="t",
            database="",
            options={} if from_session else {key: value},
            properties={},
            session={key: value} if from_session else {},
            partition_columns=[],
        )
        return WriteOptions.of(plan_write(message).options)

    with pytest.raises(InvalidOption, match=key):
        attempt()


def test_the_call_outranks_the_session_and_a_key_its_older_names():
    on, off = {"hoodie.metrics.on": "true"}, {"hoodie.metrics.on": "false"}
    WriteOptions.of(off, session=on)
    with pytest.raises(InvalidOption):
        WriteOptions.of(on, session=off)
    new, old = "hoodie.clustering.inline", "hoodie.datasource.clustering.inline.enable"
    WriteOptions.of({old: "true", new: "false"})
    with pytest.raises(InvalidOption, match=old):
        WriteOptions.of({old: "true"}, session={new: "false"})


def test_keys_in_any_letter_case_are_taken_as_spark_takes_them():
    found = WriteOptions.of({"HOODIE.TABLE.NAME": "t", "Hoodie.Datasource.Write.RecordKey.Field": "id"})
    assert (found.table.name, found.table.record_key_fields) == ("t", ("id",))


def test_ordering_columns_may_be_repeated_for_the_payload():
    key = "hoodie.payload.ordering.field"
    for name in ("hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields"):
        WriteOptions.of({name: "ts", key: "ts"})
        with pytest.raises(InvalidOption, match=key):
            WriteOptions.of({name: "ts", key: "seq"})


def test_a_key_that_nobody_knows_is_warned_about_once_with_the_nearest(caplog):
    with caplog.at_level(logging.WARNING, logger="drawstring"):
        for _ in range(3):
            WriteOptions.of({"hoodie.datasource.write.recordkey.fields": "id"})
    (record,) = caplog.records
    assert "hoodie.datasource.write.recordkey.fields" in record.getMessage()
    assert "Did you mean hoodie.datasource.write.recordkey.field?" in record.getMessage()


def test_a_typing_error_inside_a_family_of_harmless_keys_is_noticed(caplog):
    WriteOptions.of({"hoodie.clean.automatc": "true"})
    assert "Did you mean hoodie.clean.automatic?" in caplog.text


def test_options_for_the_commit_are_recorded_in_it_and_not_warned_about(tmp_path, caplog):
    rows = pa.table({"id": [1]})
    table = drawstring.create_table(tmp_path / "t", rows.schema, options={"hoodie.table.name": "t"})
    table.write(rows, options={"_Offset": 7})
    table.write(
        rows, options={"hoodie.datasource.write.commitmeta.key.prefix": "Job.", "Job.Run": "b", "_c": "d"}
    )
    first, second = (
        {key: value for key, value in metadata.extra.items() if key != "schema"}
        for metadata in commits(tmp_path / "t")
    )
    assert (first, second) == ({"_offset": "7"}, {"job.run": "b"})
    assert [record.getMessage().split()[2] for record in caplog.records] == ["_c:"]
    with pytest.raises(InvalidOption, match=r"commitmeta\.key\.prefix"):
        WriteOptions.of({"hoodie.datasource.write.commitmeta.key.prefix": " "})


def commits(path):
    state = drawstring.open_table(path).state()
    return [metadata for _, metadata in reversed(list(state.writes_descending(None)))]


def test_the_end_of_a_key_finds_the_key(caplog):
    WriteOptions.of({"operation": "insert", "recordkey.field": "id"})
    assert "operation: it has no effect. Did you mean hoodie.datasource.write.operation?" in caplog.text
    assert "Did you mean hoodie.datasource.write.recordkey.field?" in caplog.text


def test_a_table_property_that_is_nearly_a_known_one_is_warned_about(caplog):
    given = ("primaryKeys", "orderingField", "PRIMARYKEY", "owner", "option.primaryKeys", "team")
    unknown_keys.warn_of_misspelt(given, ("primaryKey", "orderingFields", "type"))
    assert [record.getMessage() for record in caplog.records] == [
        "The table property primaryKeys has no effect. Did you mean primaryKey?",
        "The table property orderingField has no effect. Did you mean orderingFields?",
    ]


def test_a_key_like_no_other_is_warned_about_without_a_guess(caplog):
    WriteOptions.of({"colour": "blue"})
    assert "colour" in caplog.text
    assert "Did you mean" not in caplog.text


@pytest.mark.parametrize(
    "name",
    [
        *("path", "header", "mergeSchema", "fs.s3a.endpoint", "spark.app.name"),
        *("hoodie.datasource.read.use.dsv2", "timestampAsOf", "hoodie.streamer.checkpoint.key"),
        *("hoodie.write.lock.dynamodb.table", "hoodie.aws.access.key", "hoodie.metrics.graphite.host"),
    ],
)
def test_options_of_others_are_passed_over_in_silence(name, caplog):
    WriteOptions.of({name: "1"})
    assert caplog.records == []


@pytest.mark.parametrize("kind", ["hbase", "RECORD_LEVEL_INDEX", "FLINK_STATE"])
def test_an_index_that_is_not_kept_is_refused_with_the_reason(kind):
    with pytest.raises(InvalidOption, match=r"hoodie\.index\.type") as caught:
        WriteOptions.of({"hoodie.index.type": kind})
    assert (caught.value.condition, caught.value.fields["value"]) == ("OPTION_NOT_SUPPORTED", kind.upper())
    assert caught.value.fields["reason"]
