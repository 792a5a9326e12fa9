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
    ],
)
def test_what_makes_no_sense_is_named(options, words):
    with pytest.raises(InvalidOption) as caught:
        ReadOptions.of(options)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.read.paths", "/data/t/a"),
        ("hoodie.datasource.read.partition.value.extractor.enabled", "true"),
        ("hoodie.datasource.read.create.filesystem.relation", "true"),
        ("hoodie.datasource.read.table.valued.function.timeline.relation", "true"),
        ("hoodie.read.timeline.holes.resolution.policy", "USE_TRANSITION_TIME"),
        ("hoodie.datasource.read.incr.filters", "id > 3"),
        ("hoodie.datasource.read.incr.table.version", "6"),
        ("hoodie.read.blob.inline.mode", "DESCRIPTOR"),
    ],
)
@pytest.mark.parametrize("layer", ["call", "session"])
def test_options_that_would_change_the_answer_are_refused_by_name(key, value, layer):
    given = {key: value}
    with pytest.raises(InvalidOption, match=key) as caught:
        ReadOptions.of(given) if layer == "call" else ReadOptions.of(session=given)
    assert caught.value.condition == "READ_OPTION_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.read.create.filesystem.relation", "false"),
        ("hoodie.read.timeline.holes.resolution.policy", "FAIL"),
        ("hoodie.file.index.enable", "false"),
        ("hoodie.datasource.read.file.index.listing.mode", "eager"),
        ("hoodie.datasource.read.extract.partition.values.from.path", "true"),
    ],
)
def test_options_that_do_not_change_the_answer_are_accepted(key, value):
    assert ReadOptions.of({key: value}) == ReadOptions()


def test_the_older_name_of_the_query_type_counts():
    assert ReadOptions.of({"hoodie.datasource.view.type": "read_optimized"}).query_type == "read_optimized"
