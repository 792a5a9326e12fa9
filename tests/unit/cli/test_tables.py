"""`inspect` and `plan` on tables that Hudi wrote."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from drawstring.cli import app as cli
from drawstring.errors import TableNotFound
from tests.golden import harness


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(harness.extract("v9_cow_two_level", tmp_path_factory.mktemp("golden")))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_inspect_shows_timeline_slices_and_schema(path):
    shown = run("inspect", path)
    for part in ("Timeline", "File slices", "Schema history", "copy-on-write, version 9"):
        assert part in shown


def test_inspect_as_json_counts_the_files(path):
    report = json.loads(run("inspect", path, "--json"))
    assert report["totals"]["files"] == len(report["slices"]) > 0


def test_every_golden_table_can_be_inspected(tmp_path):
    for name in harness.table_names():
        run("inspect", str(harness.extract(name, tmp_path)), "--json")


def test_plan_reads_only_the_partitions_that_match(path):
    everything = json.loads(run("plan", path, "--json"))
    partition = everything["tasks"][0]["partition"].split("/")[0]
    name, value = partition.split("=")
    some = json.loads(run("plan", path, "--json", "--where", f"{name} = '{value}'", "--select", "id"))
    assert some["columns"] == ["id"]
    assert 0 < some["totals"]["tasks"] < everything["totals"]["tasks"]
    assert some["totals"]["slices_skipped"] == everything["totals"]["tasks"] - some["totals"]["tasks"]
    assert "Skipped" in run("plan", path, "--where", f"{name} = '{value}'")


def test_a_path_without_a_table_is_an_error_of_its_own(tmp_path):
    with pytest.raises(TableNotFound):
        CliRunner().invoke(cli.app, ["inspect", str(tmp_path)], catch_exceptions=False)


@pytest.fixture
def whole(tmp_path):
    """A table whose files are found by listing."""
    return harness.extract("v9_cow_no_metadata", tmp_path)


@pytest.fixture
def damaged(whole, tmp_path):
    """A copy of it to damage, and how to inspect that."""
    copy = shutil.copytree(whole, tmp_path / "damaged")

    def inspect(*options: str):
        return CliRunner().invoke(cli.app, ["inspect", str(copy), *options], catch_exceptions=False)

    return copy, inspect


def test_a_lost_file_is_told_beside_the_timeline_and_the_other_files(whole, damaged):
    copy, inspect = damaged
    before = json.loads(run("inspect", str(whole), "--json"))
    lost = max(copy.glob("*/*.parquet"), key=lambda file: file.name.rsplit("_", 1)[1])
    lost.unlink()
    result = inspect("--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 5
    assert [problem["condition"] for problem in report["problems"]] == ["FILE_MISSING"]
    assert lost.name in report["problems"][0]["message"]
    assert report["instants"] == before["instants"]
    assert report["schema_history"] == before["schema_history"]
    assert 0 < len(report["slices"]) <= len(before["slices"])


def test_a_damaged_commit_is_named_and_the_others_are_shown(damaged):
    copy, inspect = damaged
    commit = max((copy / ".hoodie" / "timeline").glob("*.commit"))
    commit.write_bytes(commit.read_bytes()[:40])
    result = inspect()
    assert result.exit_code == 5
    assert "CORRUPT_INSTANT" in result.stdout
    assert commit.name in result.stderr.replace("\n", "").replace("│", "").replace(" ", "")
    for part in ("Timeline", "Schema history", commit.name.split("_")[0]):
        assert part in result.stdout


def test_a_whole_table_has_no_problems(path):
    assert json.loads(run("inspect", path, "--json"))["problems"] == []
