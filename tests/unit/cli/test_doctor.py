"""The doctor and the error codes of the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from drawstring import __version__, errors
from drawstring.cli import app as cli
from drawstring.cli import doctor


def test_doctor_without_java_says_what_to_install(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    found = {finding.name: finding for finding in doctor.examine()}
    assert found["java"].status == "missing"
    assert "openjdk-17-jre-headless" in found["java"].advice
    assert found["callback"].found == "not tried"


def test_doctor_answers_programs_in_json():
    result = CliRunner().invoke(cli.app, ["doctor", "--json"])
    assert {"python", "java", "pyspark", "bridge"} <= {
        finding["name"] for finding in json.loads(result.stdout)
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.TableNotFound("x"), 3),
        (errors.InvalidOption("x"), 2),
        (errors.UnsupportedTable("x"), 4),
        (errors.CorruptTable("x"), 5),
        (errors.BridgeError("x"), 1),
    ],
)
def test_exit_codes_tell_errors_apart(error, code):
    assert cli.exit_code(error) == code


def test_version_is_that_of_the_package():
    done = CliRunner().invoke(cli.app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"drawstring {__version__}\n")
