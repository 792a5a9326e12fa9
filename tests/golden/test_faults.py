"""Damage to golden tables: an error that names the file, never another answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import drawstring
from drawstring.errors import CorruptTable, UnsupportedTable

FILES = (
    ("v6_mor_compacted", "base"),
    ("v6_mor_compacted", "log"),
    ("v8_mor_pending_compaction", "base"),
    ("v8_mor_pending_compaction", "log"),
    ("v9_cow_two_level", "base"),
    ("v9_mor_log_only", "base"),
    ("v9_mor_log_only", "log"),
)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lose(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [cut, empty, lose], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize(("name", "kind"), FILES)
def test_a_damaged_file_is_named(name, kind, damage, golden_path, tmp_path):
    copy = tmp_path / name
    shutil.copytree(golden_path(name), copy)
    victim = _visible_file(str(copy), kind)
    damage(copy / victim)
    with pytest.raises(CorruptTable) as caught:
        drawstring.open_table(str(copy)).snapshot().scan().to_arrow()
    assert victim in str(caught.value)


@pytest.mark.parametrize("name", ["v6_mor_event_time", "v6_mor_died", "v8_mor_rolled_back"])
def test_a_flipped_bit_in_the_header_of_a_block_changes_no_answer(name, golden_path, tmp_path):
    """The instant of an Avro block stands in its records too, and Hudi's columns have their names."""
    copy = Path(shutil.copytree(golden_path(name), tmp_path / name))
    log = min(copy.glob("[!.]*/.*.log.1_*"))
    content, expected = log.read_bytes(), _outcome(copy)
    instant = content.index(b"\x00\x00\x00\x11202") + 4
    column = content.index(b"_hoodie_partition_path")
    for position in (*range(instant, instant + 17), *range(column, column + 22, 3)):
        for bit in (0, 2, 4):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            log.write_bytes(damaged)
            outcome = _outcome(copy)
            assert outcome == expected or f"{log.name} (partition" in outcome, (position, bit, outcome[:200])


def _outcome(path: Path) -> str:
    try:
        rows = drawstring.open_table(str(path)).snapshot().scan().to_arrow().to_pylist()
    except (CorruptTable, UnsupportedTable) as error:
        return str(error)
    return "\n".join(sorted(map(str, rows)))


def _visible_file(path: str, kind: str) -> str:
    for task in drawstring.open_table(path).snapshot().scan().plan().tasks:
        if kind == "base" and task.slice.base_file:
            return task.slice.base_file.path
        if kind == "log" and task.slice.log_files:
            return task.slice.log_files[-1].path
    raise AssertionError(f"{path} has no {kind} file")
