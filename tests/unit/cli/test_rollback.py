from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import drawstring
from drawstring.cli.app import app
from drawstring.errors import InvalidInput
from drawstring.storage import LocalStorage
from drawstring.write.locks import Owner
from drawstring.write.transaction import Transaction

OPTIONS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "t")
    drawstring.create_table(path, pa.schema([("id", pa.int64())]), options=OPTIONS)
    return path


def _pending(path: str, *, dead: bool) -> str:
    transaction = Transaction.begin(LocalStorage(path), operation="UPSERT")
    if dead:
        owner = replace(Owner.me(), pid=2**22 + 1)
        LocalStorage(path).write(f".hoodie/.heartbeat/{transaction.requested_time}", owner.to_bytes())
    return transaction.requested_time


def _run(*arguments: str) -> dict:
    result = CliRunner().invoke(app, ["rollback", *arguments, "--json"], catch_exceptions=False)
    return json.loads(result.stdout)


def test_only_writes_of_dead_writers_are_rolled_back_unless_one_is_named(path):
    alive, dead = _pending(path, dead=False), _pending(path, dead=True)
    assert _run(path, "--dry-run") == {"dry_run": True, "instants": [dead]}
    assert _run(path)["instants"] == [dead]
    assert _run(path)["instants"] == []
    assert _run(path, alive)["instants"] == [alive]
    timeline = drawstring.open_table(path).timeline
    assert not timeline.pending
    assert [instant.action.value for instant in timeline.ascending_instants] == ["rollback", "rollback"]


def test_instant_that_is_not_pending_is_told(path):
    for arguments in ([], ["--dry-run"]):
        with pytest.raises(InvalidInput, match="no pending write"):
            _run(path, "20200101000000000", *arguments)
