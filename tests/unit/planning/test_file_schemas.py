"""Schemas of base files: how many footers are read, and what a file that cannot be read means."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.model.file_group import BaseFile
from drawstring.model.instant import Action
from drawstring.planning.file_schemas import FileSchemas
from drawstring.storage import open_storage

WRITE, CLUSTERING, ARCHIVED = "20260101000000000", "20260102000000000", "20250101000000000"


class Counting:
    """A storage that notes what is opened."""

    def __init__(self, root):
        self.root, self.opened = open_storage(str(root)), []

    def open(self, path):
        self.opened.append(path)
        return self.root.open(path)


@pytest.fixture
def schemas(tmp_path):
    actions = {WRITE: Action.COMMIT, CLUSTERING: Action.REPLACECOMMIT}
    timeline = SimpleNamespace(by_requested_time={t: SimpleNamespace(action=a) for t, a in actions.items()})
    return FileSchemas(SimpleNamespace(storage=Counting(tmp_path), timeline=timeline, known_file_schemas={}))


def base(tmp_path, number: int, instant: str, kind: str = "int32") -> BaseFile:
    name = f"f{number}-0_0-1-1_{instant}.parquet"
    pq.write_table(pa.table({"a": pa.array([1], kind)}), tmp_path / name)
    return BaseFile(name, 10, f"f{number}-0", instant)


def test_one_footer_tells_the_schema_of_all_files_of_a_write(schemas, tmp_path):
    files = [base(tmp_path, number, WRITE) for number in range(3)]
    schemas.look_up(files)
    assert [schemas.of(file) for file in files] == [pa.schema([("a", pa.int32())])] * 3
    assert len(schemas.state.storage.opened) == 1


@pytest.mark.parametrize("instant", [CLUSTERING, ARCHIVED])
def test_files_that_may_have_been_copied_are_looked_at_one_by_one(schemas, tmp_path, instant):
    files = [base(tmp_path, 0, instant), base(tmp_path, 1, instant, "int64")]
    schemas.look_up(files)
    assert [schemas.of(file).field("a").type for file in files] == [pa.int32(), pa.int64()]
    assert len(schemas.state.storage.opened) == 2


def test_a_file_that_cannot_be_read_has_no_schema_here(schemas, tmp_path):
    gone = BaseFile(f"gone-0_0-1-1_{WRITE}.parquet", 10, "gone-0", WRITE)
    assert schemas.of(gone) is None
    (tmp_path / f"torn-0_0-1-1_{CLUSTERING}.parquet").write_bytes(b"PAR1")
    assert schemas.of(BaseFile(f"torn-0_0-1-1_{CLUSTERING}.parquet", 4, "torn-0", CLUSTERING)) is None
