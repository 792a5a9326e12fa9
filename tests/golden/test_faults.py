"""Damage to golden tables: an error that names the file, never another answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import drawstring
from drawstring.errors import CorruptTable

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


def _visible_file(path: str, kind: str) -> str:
    for task in drawstring.open_table(path).snapshot().scan().plan().tasks:
        if kind == "base" and task.slice.base_file:
            return task.slice.base_file.path
        if kind == "log" and task.slice.log_files:
            return task.slice.log_files[-1].path
    raise AssertionError(f"{path} has no {kind} file")
