from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.config.table_options import TableOptions
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.storage import LocalStorage, MemoryStorage
from drawstring.write.create import create_table
from drawstring.write.markers import staged_path
from drawstring.write.transaction import Transaction

_numbers = itertools.count()
OPTIONS = TableOptions(
    name="trips", record_key_fields=("id",), partition_fields=("city",), ordering_fields=("ts",)
)


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path):
    if request.param == "local":
        return LocalStorage(str(tmp_path / "table"))
    return MemoryStorage(f"memory://write-{next(_numbers)}")


@pytest.fixture
def table(storage):
    create_table(storage, OPTIONS)
    return storage


def stage_file(transaction: Transaction, *, file_id: str = "f1-0", partition: str = "oslo") -> WriteStat:
    """Write one small data file the way an executor does."""
    name = f"{file_id}_0-0-0_{transaction.requested_time}.parquet"
    staged = staged_path(transaction.requested_time, f"{partition}/{name}")
    with transaction.state.storage.open_output(staged) as file:
        pq.write_table(pa.table({"_hoodie_record_key": ["1"], "id": ["1"]}), file)
    size = transaction.state.storage.stat(staged).size
    return WriteStat(file_id, f"{partition}/{name}", partition, 1, num_inserts=1, file_size=size)


def metadata_of(*stats: WriteStat, operation: str = "INSERT") -> CommitMetadata:
    return CommitMetadata(operation, stats, extra={"schema": '{"type":"record","name":"r","fields":[]}'})


def paths_of(storage) -> set[str]:
    return {entry.path for entry in storage.list(recursive=True) if not entry.is_directory}
