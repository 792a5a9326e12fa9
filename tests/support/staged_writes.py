"""Writes by hand: a data file staged as a task does it, and what the commit says of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.instant import Action
from drawstring.storage.base import Storage
from drawstring.write.heartbeat import DIRECTORY as HEARTBEATS
from drawstring.write.locks import Owner
from drawstring.write.markers import staged_path
from drawstring.write.rollback import inflight_name
from drawstring.write.table_facts import load_state
from drawstring.write.transaction import Transaction
from tests.small_writes import arrow

_TIMELINE = ".hoodie/timeline"


def staged_rows(
    transaction: Transaction, rows: list[tuple[str, str, int, str]], file_id: str = "late-0"
) -> WriteStat:
    """Write a data file of rows the way a task does; returns its statistics."""
    partition = rows[0][1]
    name = f"{file_id}_0-1-0_{transaction.requested_time}.parquet"
    place = staged_path(transaction.requested_time, f"{partition}/{name}")
    data = arrow(rows)
    meta = {
        "_hoodie_commit_time": [transaction.requested_time] * len(rows),
        "_hoodie_commit_seqno": [f"{transaction.requested_time}_0_{n}" for n in range(len(rows))],
        "_hoodie_record_key": [row[0] for row in rows],
        "_hoodie_partition_path": [partition] * len(rows),
        "_hoodie_file_name": [name] * len(rows),
    }
    for position, (column, values) in enumerate(meta.items()):
        data = data.add_column(position, column, [values])
    with transaction.state.storage.open_output(place) as file:
        pq.write_table(data, file)
    size = transaction.state.storage.stat(place).size
    return WriteStat(
        file_id, f"{partition}/{name}", partition, len(rows), num_inserts=len(rows), file_size=size
    )


def described(
    transaction: Transaction, *stats: WriteStat, operation: str = "INSERT", like: Storage | None = None
) -> CommitMetadata:
    """What a commit of these files says, with the schema of the table, or of another one."""
    state = load_state(like or transaction.state.storage)
    newest = state.metadata(state.timeline.completed_writes[-1]).schema
    return CommitMetadata(operation, stats, extra={"schema": newest})


def dead_heartbeat(storage: Storage, instant: str) -> None:
    """Let the writer of an instant be a process that is not there."""
    storage.write(f"{HEARTBEATS}/{instant}", replace(Owner.me(), pid=2**22 + 1).to_bytes())


def roll_back_as_another_engine(
    path: Path, instant: str, action: Action = Action.COMMIT, *, files: Iterable[str] = ()
) -> None:
    """What Apache Hudi does: data files by markers, the inflight and requested files, then the markers."""
    for name in files:
        (path / name).unlink(missing_ok=True)
    (path / _TIMELINE / inflight_name(instant, action)).unlink()
    (path / _TIMELINE / f"{instant}.{action.value}.requested").unlink()
    shutil.rmtree(path / ".hoodie/.temp" / instant, ignore_errors=True)
