"""Settings of stores as Spark users write them."""

from __future__ import annotations

import pytest

from drawstring.errors import InvalidOption
from drawstring.storage.settings import s3_arguments, store_settings

KEYS = {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b"}


def test_settings_of_stores_are_found_with_and_without_sparks_prefix():
    given = {"spark.hadoop.fs.s3a.endpoint": "h", "fs.s3a.access.key": "a", "hoodie.metadata.enable": "true"}
    assert store_settings(given) == {"fs.s3a.endpoint": "h", "fs.s3a.access.key": "a"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        (KEYS, {"access_key": "a", "secret_key": "b"}),
        ({**KEYS, "fs.s3a.session.token": "t"}, {"access_key": "a", "secret_key": "b", "session_token": "t"}),
        ({"fs.s3a.endpoint": "h:1"}, {"endpoint_override": "h:1"}),
        ({"fs.s3a.endpoint": "http://h:1/"}, {"endpoint_override": "h:1", "scheme": "http"}),
        ({"fs.s3a.endpoint": "https://h"}, {"endpoint_override": "h"}),
        (
            {"fs.s3a.endpoint": "h", "fs.s3a.connection.ssl.enabled": "FALSE"},
            {"endpoint_override": "h", "scheme": "http"},
        ),
        ({"fs.s3a.endpoint.region": "eu-1"}, {"region": "eu-1"}),
        (
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"anonymous": True},
        ),
    ],
)
def test_hadoops_names_become_those_of_pyarrow(given, expected):
    assert s3_arguments(given, "b") == expected


def test_a_buckets_own_settings_count_before_general_ones():
    given = {"fs.s3a.endpoint": "general", "fs.s3a.bucket.mine.endpoint": "own"}
    assert s3_arguments(given, "mine") == {"endpoint_override": "own"}
    assert s3_arguments(given, "other") == {"endpoint_override": "general"}


def test_half_of_the_credentials_are_refused():
    with pytest.raises(InvalidOption, match=r"fs\.s3a\.secret\.key"):
        s3_arguments({"fs.s3a.access.key": "a"}, "b")
