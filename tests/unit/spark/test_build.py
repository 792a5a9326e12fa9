"""Which sources make the bridge of which Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.errors import BridgeError
from drawstring.spark.session import build
from drawstring.spark.session.build import SparkHome


@pytest.mark.parametrize(
    ("folder", "version", "applies"),
    [
        ("spark-3.5", "3.5.9", True),
        ("spark-3.5", "4.0.1", False),
        ("spark-4", "4.0.1", True),
        ("spark-4", "4.3.0", True),
        ("spark-4", "3.5.9", False),
        ("spark-4.0-4.1", "4.1.2", True),
        ("spark-4.0-4.1", "4.2.0", False),
        ("spark-4.2-4", "4.1.2", False),
        ("spark-4.2-4", "4.2.0", True),
        ("spark-4.2-4", "4.3.0", True),
        ("notes", "4.2.0", False),
    ],
)
def test_a_shim_folder_names_the_versions_it_is_for(folder, version, applies):
    assert build._shim_applies(folder, SparkHome(version, Path())) is applies


def test_the_jar_is_named_after_version_and_sources():
    old, new = SparkHome("3.5.9", Path()), SparkHome("4.3.0", Path())
    assert "3.5.9" in build.jar_name(old)
    assert build.jar_name(old) == build.jar_name(old)
    assert build.source_hash(old) != build.source_hash(new)


def test_a_shipped_jar_is_preferred(monkeypatch, tmp_path):
    home = SparkHome("4.3.0", tmp_path)
    shipped = tmp_path / "_jars" / build.jar_name(home)
    shipped.parent.mkdir()
    shipped.touch()
    monkeypatch.setattr(build, "spark_home", lambda: home)
    monkeypatch.setattr(build, "jar_name", lambda _: shipped.name)
    monkeypatch.setattr(build, "_PACKAGE", tmp_path)
    assert build.bridge_jar() == shipped


def test_a_spark_without_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(BridgeError, match="SPARK_JARS_NOT_FOUND"):
        build.spark_home()


def test_a_missing_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BridgeError, match="JAVA_NOT_FOUND"):
        build.java_executable()
