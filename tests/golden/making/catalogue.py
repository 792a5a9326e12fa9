"""The register of themes: what each exercises, and for which table versions and types it can be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from making.workbench import Workbench

Make = Callable[[Workbench], None]
COW, MOR = "cow", "mor"
TABLE_TYPES = {COW: "COPY_ON_WRITE", MOR: "MERGE_ON_READ"}


@dataclass(frozen=True)
class Theme:
    """One way of making a table."""

    name: str
    exercises: str
    versions: tuple[int, ...]
    types: tuple[str, ...]
    make: Make
    begun_by: int | None = None
    begin: Make | None = None


THEMES: dict[str, Theme] = {}


def theme(
    name: str,
    exercises: str,
    *,
    versions: tuple[int, ...] = (6, 8, 9),
    types: tuple[str, ...] = (COW, MOR),
    begun_by: int | None = None,
    begin: Make | None = None,
) -> Callable[[Make], Make]:
    """Register the decorated function under `name`; with `begun_by` an older Hudi runs `begin` first."""

    def register(make: Make) -> Make:
        THEMES[name] = Theme(name, exercises, versions, types, make, begun_by, begin)
        return make

    return register


def table_names() -> list[str]:
    """Every table that can be made, as `v<version>_<type>_<theme>`."""
    return [f"v{v}_{t}_{each.name}" for each in THEMES.values() for v in each.versions for t in each.types]


def split_name(name: str) -> tuple[int, str, Theme]:
    """The version, type and theme of a table's name."""
    version, table_type, theme_name = name.split("_", 2)
    return int(version[1:]), table_type, THEMES[theme_name]
