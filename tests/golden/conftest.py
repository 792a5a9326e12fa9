"""Golden tables, unpacked once per run."""

from __future__ import annotations

import pytest

from tests.golden import harness


@pytest.fixture(scope="session")
def golden_path(tmp_path_factory):
    """Unpack a golden table by name and return its base path as text."""
    folder = tmp_path_factory.mktemp("golden")
    return lambda name: str(harness.extract(name, folder))
