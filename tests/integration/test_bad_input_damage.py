"""Damaged files through Spark, V2 and V1: an error that names the file, or the same rows; never a crash or a hang."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

import drawstring
from drawstring.errors import CorruptTable, DrawstringError
from tests.golden import harness
from tests.integration.plans import USE_V2

pytestmark = pytest.mark.spark

TABLE = "v9_mor_column_stats"
SLOWEST_SECONDS = 120
FLIPS = 8


class Victim:
    """A table of which damaged copies are read."""

    def __init__(self, spark, root: Path) -> None:
        self.spark, self.root, self.copies = spark, root, 0
        tasks = drawstring.open_table(str(root)).snapshot().scan().plan().tasks
        slices = [task.slice for task in tasks]
        self.files = {
            "base": [s.base_file.path for s in slices if s.base_file],
            "log": [log.path for s in slices for log in s.log_files],
            "commit": self._found(".hoodie/timeline/*_*.*commit"),
            "metadata": self._found(".hoodie/metadata/files/*0_*"),
        }
        self.expected = self.rows("true")

    def _found(self, pattern: str) -> list[str]:
        found = (path for path in sorted(self.root.glob(pattern)) if not path.name.endswith(".crc"))
        return [str(path.relative_to(self.root)) for path in found]

    def read(self, flag: str, root: Path | None = None):
        return self.spark.read.format("hudi").option(USE_V2, flag).load(str(root or self.root))

    def rows(self, flag: str, root: Path | None = None) -> list[str]:
        return sorted(map(str, self.read(flag, root).collect()))

    def damaged(self, file: str, content: bytes) -> Path:
        """A copy with other bytes in place of a file's; nothing that was read before is remembered of it."""
        self.copies += 1
        copy = Path(shutil.copytree(self.root, self.root.with_name(f"copy{self.copies}")))
        (copy / file).write_bytes(content)
        return copy

    def outcome(self, file: str, content: bytes, flag: str) -> DrawstringError | list[str]:
        """What reading a damaged copy comes to."""
        copy = self.damaged(file, content)
        started = time.monotonic()
        try:
            return self.rows(flag, copy)
        except DrawstringError as error:
            return error
        finally:
            assert time.monotonic() - started < SLOWEST_SECONDS
            shutil.rmtree(copy)


@pytest.fixture(scope="module")
def victim(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    return Victim(spark, Path(shutil.copytree(harness.extract(TABLE, folder / "golden"), folder / "t")))


@pytest.fixture(scope="module")
def written(spark, tmp_path_factory):
    """A table that drawstring wrote."""
    root = tmp_path_factory.mktemp("written") / "t"
    rows = spark.range(4000).selectExpr("id", "id * 7 as v", "concat('text ', id % 50) as s", "id % 2 as p")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
    }
    rows.write.format("hudi").options(**options).save(str(root))
    return Victim(spark, root)


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("kind", ["base", "log"])
@pytest.mark.parametrize("cut", [0, 4, -8, -1, 0.5])
def test_a_cut_file_is_named_with_partition_and_instant(victim, kind, cut, flag):
    file = victim.files[kind][0]
    content = (victim.root / file).read_bytes()
    end = int(len(content) * cut) if isinstance(cut, float) else cut
    error = victim.outcome(file, content[:end], flag)
    assert isinstance(error, CorruptTable)
    assert_named(error, file)


@pytest.fixture(scope="module")
def copied_on_write(spark, tmp_path_factory):
    """A table of base files alone, which Spark's own reader reads."""
    folder = tmp_path_factory.mktemp("cow")
    golden = harness.extract("v9_cow_two_level", folder / "golden")
    return Victim(spark, Path(shutil.copytree(golden, folder / "t")))


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("column", ["_hoodie_record_key", "ts"])
def test_a_flipped_bit_in_a_column_name_does_not_turn_values_into_nulls(copied_on_write, column, flag):
    """Nothing checks the bytes of a footer; names stand in it as a length and their characters."""
    victim, file = copied_on_write, copied_on_write.files["base"][0]
    content = (victim.root / file).read_bytes()
    name = bytes([len(column)]) + column.encode()
    places = [at for at in range(len(content)) if content.startswith(name, at)]
    refused = 0
    for at in places:
        damaged = bytearray(content)
        damaged[at + 1] ^= 1
        copy = victim.damaged(file, bytes(damaged))
        for read in (victim.read(flag, copy), victim.read(flag, copy).where(f"{column} is not null")):
            try:
                assert sorted(map(str, read.collect())) == victim.expected
            except CorruptTable as error:
                assert_named(error, file)
                refused += 1
    assert refused > 0


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
def test_other_partitions_stay_readable(victim, flag):
    file = victim.files["base"][0]
    partition = file.partition("/")[0]
    copy = victim.damaged(file, (victim.root / file).read_bytes()[:9])
    others = victim.read(flag, copy).where(f"p != '{partition}'").collect()
    assert {row.p for row in others} == {row.split("p='")[1][0] for row in victim.expected} - {partition}


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("cut", [0, 0.5])
def test_a_cut_commit_is_named(victim, cut, flag):
    file = victim.files["commit"][-1]
    content = (victim.root / file).read_bytes()
    outcome = victim.outcome(file, content[: int(len(content) * cut)], flag)
    assert isinstance(outcome, CorruptTable) or outcome == victim.expected
    assert isinstance(outcome, list) or Path(file).name.split("_")[0] in str(outcome)


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("cut", [0, 4, 0.5])
def test_a_cut_metadata_table_is_named_or_not_needed(victim, cut, flag):
    """Storage can be listed instead: a damaged index is no reason to refuse the table."""
    for file in victim.files["metadata"][:3]:
        content = (victim.root / file).read_bytes()
        end = int(len(content) * cut) if isinstance(cut, float) else cut
        outcome = victim.outcome(file, content[:end], flag)
        assert outcome == victim.expected or Path(file).name in str(outcome)


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("kind", ["log", "commit", "metadata"])
def test_flipped_bits_end_in_rows_or_in_a_named_error(victim, kind, flag):
    dice = random.Random(f"{kind}{flag}")
    for _ in range(FLIPS):
        file = dice.choice(victim.files[kind])
        outcome = victim.outcome(file, flipped((victim.root / file).read_bytes(), dice), flag)
        assert isinstance(outcome, list) or Path(file).name.split("_")[0].lstrip(".") in str(outcome)


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("made_by", ["victim", "written"], ids=["hudi", "drawstring"])
def test_flipped_bits_of_pages_never_change_a_row(request, made_by, flag):
    """Pages carry checksums, and what their headers claim must fit the footer."""
    table = request.getfixturevalue(made_by)
    dice = random.Random(f"{made_by}{flag}")
    for _ in range(2 * FLIPS):
        file = dice.choice(table.files["base"])
        content = (table.root / file).read_bytes()
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        outcome = table.outcome(file, flipped(content, dice, before=footer), flag)
        if isinstance(outcome, list):
            assert outcome == table.expected
        else:
            assert_named(outcome, file)


@pytest.mark.parametrize("flag", ["true", "false"], ids=["v2", "v1"])
def test_a_page_that_claims_two_gigabytes_does_not_end_the_jvm(written, flag):
    file = written.files["base"][0]
    content = (written.root / file).read_bytes()
    # The first page of the first column: field 1 says which kind of page, field 2 how large it is.
    start = content.index(b"\x15", 4)
    size = next(i for i in range(start + 3, start + 9) if content[i] < 128)
    claimed = b"\xfe\xff\xff\xff\x0f"[: size - start - 2][:-1] + b"\x7f"
    outcome = written.outcome(file, content[: start + 3] + claimed + content[size + 1 :], flag)
    assert isinstance(outcome, CorruptTable)
    assert outcome.condition == "UNREADABLE_BASE_FILE"
    assert_named(outcome, file)
    assert written.rows(flag) == written.expected


def flipped(content: bytes, dice: random.Random, *, before: int | None = None) -> bytes:
    changed = bytearray(content)
    changed[dice.randrange(4, before or len(content))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def assert_named(error: DrawstringError, file: str) -> None:
    partition, _, name = file.rpartition("/")
    instant = next(part[:17] for part in reversed(name.split("_")) if part[:17].isdigit() and len(part) >= 17)
    assert name in str(error)
    assert f"partition '{partition}'" in str(error)
    assert instant in str(error)
