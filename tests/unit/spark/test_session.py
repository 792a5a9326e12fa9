"""What a session is told, without starting one."""

from __future__ import annotations

import pytest

from drawstring.errors import BridgeError
from drawstring.spark.session import builder as session_builder
from drawstring.spark.session.builder import _use_v2, configure

USUAL, RFC = "hoodie.datasource.read.use.dsv2", "hoodie.datasource.read.use.v2"


@pytest.mark.parametrize("key", [USUAL, RFC, f"spark.{USUAL}", f"spark.{RFC}"])
def test_the_switch_for_v2_reads_counts_under_all_its_names(key):
    assert _use_v2({key: False, "spark.master": "local"}) == "false"


def test_the_usual_name_wins_and_silence_stays_silence():
    assert _use_v2({RFC: "false", USUAL: "TRUE"}) == "true"
    assert _use_v2({"spark.master": "local"}) is None


class Builder:
    """A builder whose session does not start."""

    def __init__(self) -> None:
        self._options: dict[str, str] = {}

    def config(self, key: str, value: str) -> None:
        self._options[key] = value

    def getOrCreate(self) -> None:
        raise RuntimeError("Java gateway process exited before sending its port number.")


def test_a_session_without_java_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(session_builder, "_bridge_jar", lambda: "/jars/bridge.jar")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BridgeError, match=r"JAVA_NOT_FOUND.*Install Java 17"):
        configure(Builder()).getOrCreate()


def test_a_session_that_fails_although_java_is_there_keeps_its_error(tmp_path, monkeypatch):
    monkeypatch.setattr(session_builder, "_bridge_jar", lambda: "/jars/bridge.jar")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match="gateway process exited"):
        configure(Builder()).getOrCreate()
