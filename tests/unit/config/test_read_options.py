from __future__ import annotations

import pytest

from drawstring.config.read_options import ReadOptions
from drawstring.errors import InvalidOption


def test_call_wins_over_session_over_table_over_default():
    key = "hoodie.datasource.read.use.dsv2"
    assert ReadOptions.of({key: "false"}, session={key: "true"}).use_dsv2 is False
    assert ReadOptions.of({}, session={key: "true"}, table={key: "false"}).use_dsv2 is True
    assert ReadOptions.of(table={"hoodie.datasource.read.use.v2": "true"}).use_dsv2 is True
    assert ReadOptions.of().use_dsv2 is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"hoodie.datasource.query.type": "fast"},
            ["hoodie.datasource.query.type", "fast", "read_optimized"],
        ),
        ({"hoodie.metadata.enable": "maybe"}, ["hoodie.metadata.enable", "maybe", "true, false"]),
        ({"hoodie.datasource.query.type": "incremental"}, ["begin.instanttime"]),
    ],
)
def test_what_makes_no_sense_is_named(options, words):
    with pytest.raises(InvalidOption) as caught:
        ReadOptions.of(options)
    assert all(word in str(caught.value) for word in words)
