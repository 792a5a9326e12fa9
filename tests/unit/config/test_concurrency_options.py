from __future__ import annotations

import pytest

from drawstring.config.concurrency_options import EAGER, LAZY, NEVER, OPTIMISTIC, SINGLE_WRITER
from drawstring.config.write_options import WriteOptions
from drawstring.errors import InvalidOption

MODE = "hoodie.write.concurrency.mode"
PROVIDER = "hoodie.write.lock.provider"
FAILED_WRITES = "hoodie.clean.failed.writes.policy"


def test_defaults_are_those_of_hudi_but_for_the_retries():
    found = WriteOptions.of({}).concurrency
    assert (found.mode, found.failed_writes, found.lock_provider) == (SINGLE_WRITER, EAGER, None)
    assert (found.heartbeat_interval_seconds, found.heartbeat_tolerable_misses) == (60, 2)
    assert (found.resolve_schema_conflicts, found.schema_strategy) == (True, "simple")
    assert (found.conflict_retries, found.lock_wait_seconds, dict(found.lock_settings)) == (4, 60, {})
    assert found.heartbeat_expiry_seconds == 120


def test_several_writers_leave_dead_ones_to_their_heartbeat_unless_told_otherwise():
    several = {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}
    assert WriteOptions.of(several).concurrency.mode == OPTIMISTIC
    assert WriteOptions.of(several).concurrency.failed_writes == LAZY
    assert WriteOptions.of({**several, FAILED_WRITES: "never"}).concurrency.failed_writes == NEVER


def test_the_old_name_of_the_policy_for_failed_writes_counts():
    assert WriteOptions.of({"hoodie.cleaner.policy.failed.writes": "LAZY"}).concurrency.failed_writes == LAZY


def test_lock_settings_are_handed_on_the_call_before_the_session():
    wait, retries = "hoodie.write.lock.wait_time_ms", "hoodie.write.lock.num_retries"
    found = WriteOptions.of({wait: "1"}, session={wait: "2", retries: 3, "hoodie.table.name": "t"})
    assert dict(found.concurrency.lock_settings) == {wait: "1", retries: "3"}


def test_lock_providers_are_known_by_class_and_by_simple_name():
    full = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    for name in (full, "FileSystemBasedLockProvider"):
        assert WriteOptions.of({PROVIDER: name}).concurrency.lock_provider == "FileSystemBasedLockProvider"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (PROVIDER, "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"),
        (PROVIDER, "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"),
        (PROVIDER, "com.example.FileSystemBasedLockProvider"),
    ],
)
def test_safety_that_cannot_be_given_is_refused_with_the_reason(key, value):
    with pytest.raises(InvalidOption) as caught:
        WriteOptions.of({key: value})
    assert caught.value.condition == "OPTION_NOT_SUPPORTED"
    assert (caught.value.fields["key"], caught.value.fields["value"]) == (key, value)
    assert caught.value.fields["reason"] in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (MODE, "many"),
        ("hoodie.write.lock.wait_time_ms", "x"),
        ("hoodie.write.num.retries.on.conflict.failures", "-1"),
        ("hoodie.client.heartbeat.interval_in_ms", "0"),
        ("hoodie.write.concurrency.schema.conflict.resolution.strategy", "newest"),
        (FAILED_WRITES, "sometimes"),
    ],
)
def test_malformed_values_are_refused(key, value):
    with pytest.raises(InvalidOption, match=key):
        WriteOptions.of({key: value})


def test_waiting_time_is_that_of_hudis_lock_manager():
    settings = {
        "hoodie.write.lock.wait_time_ms": "2000",
        "hoodie.write.lock.client.num_retries": "3",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
        "hoodie.write.lock.num_retries": "15",
    }
    assert WriteOptions.of(settings).concurrency.lock_wait_seconds == pytest.approx(4 * 2 + 3 * 0.1)
