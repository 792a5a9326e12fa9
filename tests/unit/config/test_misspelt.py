"""Misspelt options of reads are named."""

from __future__ import annotations

import logging

import pytest

from drawstring.config import misspelt


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch):
    monkeypatch.setattr(misspelt, "_seen", set())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("as.of.instnt", "as.of.instant"),
        ("hoodie.datasource.query.typ", "hoodie.datasource.query.type"),
        ("maxFilesPerTriger", "maxFilesPerTrigger"),
    ],
)
def test_a_misspelt_option_is_named_once_with_the_one_that_is_meant(name, meant, caplog):
    with caplog.at_level(logging.WARNING):
        misspelt.warn_of_misspelt_options([name])
        misspelt.warn_of_misspelt_options([name])
    assert caplog.messages == [f"The option {name} has no effect. Did you mean {meant}?"]


@pytest.mark.parametrize(
    "name",
    [
        "AS.OF.INSTANT",  # any letter case is known
        "path",  # Spark's
        "fs.s3a.endpoint",  # a file system's
        "primaryKey",  # a table property
        "hoodie.datasource.write.operation",  # one dictionary for reads and writes
        "hoodie.datasource.read.begin.instanttime",
        "recursiveFileLookup",  # another reader's
    ],
)
def test_other_options_are_left_alone(name, caplog):
    with caplog.at_level(logging.WARNING):
        misspelt.warn_of_misspelt_options([name])
    assert caplog.messages == []
