"""What `make bench` measures when it is told what, and when it is not."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import parsed
from benchmarks.workloads import WORKLOADS


def test_without_names_everything_is_measured():
    assert parsed([]).workloads == list(WORKLOADS)


def test_names_choose_workloads():
    assert parsed(["merge", "avro"]).workloads == ["merge", "avro"]


def test_an_unknown_workload_is_refused(capsys):
    with pytest.raises(SystemExit):
        parsed(["merges"])
    assert "merges" in capsys.readouterr().err
