"""What a session is told, without starting one."""

from __future__ import annotations

import pytest

from drawstring.spark.session.builder import _use_v2

USUAL, RFC = "hoodie.datasource.read.use.dsv2", "hoodie.datasource.read.use.v2"


@pytest.mark.parametrize("key", [USUAL, RFC, f"spark.{USUAL}", f"spark.{RFC}"])
def test_the_switch_for_v2_reads_counts_under_all_its_names(key):
    assert _use_v2({key: False, "spark.master": "local"}) == "false"


def test_the_usual_name_wins_and_silence_stays_silence():
    assert _use_v2({RFC: "false", USUAL: "TRUE"}) == "true"
    assert _use_v2({"spark.master": "local"}) is None
