from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from drawstring.cli.app import app
from drawstring.errors import InvalidOption
from tests.unit.write.services import test_archiving, test_cleaning, test_compacting

RETAIN = ("-o", "hoodie.cleaner.commits.retained=2")
KEEP = ("-o", "hoodie.keep.min.commits=4", "-o", "hoodie.keep.max.commits=5", *RETAIN)


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dry_run_shows_what_a_clean_deletes(tmp_path):
    path = str(tmp_path / "t")
    test_cleaning.table_of(path)
    shown = _run("clean", path, "--dry-run", *RETAIN)
    assert "Would delete 3 files" in shown
    assert ".parquet" in shown
    told = json.loads(_run("clean", path, "--dry-run", "--json", *RETAIN))
    done = json.loads(_run("clean", path, "--json", *RETAIN))
    assert told["files"] == done["files"]
    assert told["instant"] is None
    assert done["instant"]
    assert "There is nothing to clean." in _run("clean", path, *RETAIN)


def test_a_dry_run_shows_what_is_archived(tmp_path):
    path = str(tmp_path / "t")
    test_archiving.table_of(path)
    assert "Would archive 3 instants." in _run("archive", path, "--dry-run", *KEEP)
    assert len(json.loads(_run("archive", path, "--json", *KEEP))["instants"]) == 3
    assert "There is nothing to archive." in _run("archive", path, *KEEP)


def test_a_dry_run_shows_what_is_compacted(tmp_path):
    test_compacting.table_of(tmp_path)
    assert "Would compact 1 file groups." in _run("compact", str(tmp_path), "--dry-run")
    assert "nothing to compact" in _run("compact", str(tmp_path), "--if-due")
    assert "Scheduled a compaction of 1 file groups." in _run("compact", str(tmp_path), "--no-run")
    assert "Compacted 1 file groups: 4 rows" in _run("compact", str(tmp_path))
    assert "nothing to compact" in _run("compact", str(tmp_path))


def test_an_option_that_is_none_is_refused(tmp_path):
    path = str(tmp_path / "t")
    test_cleaning.table_of(path, updates=0)
    with pytest.raises(InvalidOption):
        CliRunner().invoke(app, ["clean", path, "-o", "nonsense"], catch_exceptions=False)
