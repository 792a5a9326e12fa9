"""The pages for people: what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOMES = (ROOT, ROOT / "src" / "drawstring", ROOT / "bridge" / "src" / "main" / "scala")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "adr").glob("*.md")])


def text_of(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def exists(name: str) -> bool:
    return any(list(home.glob(name.rstrip("/") + suffix)) for home in HOMES for suffix in ("", ".scala"))


def test_the_files_that_the_map_names_are_there():
    named = re.findall(r"`([\w/.*-]+)`", text_of(ROOT / "ARCHITECTURE.md"))
    paths = [name for name in named if "/" in name or name.endswith((".py", ".md"))]
    assert len(paths) > 20
    assert [path for path in paths if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(page))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_decision_is_in_the_index_in_order():
    folder = ROOT / "docs" / "adr"
    listed = re.findall(r"^(\d+)\. \[[^\]]*\]\(([^)]+)\)", (folder / "README.md").read_text(), re.MULTILINE)
    assert [name for _, name in listed] == sorted(page.name for page in folder.glob("0*.md"))
    assert [f"{int(number):04d}" for number, _ in listed] == [name[:4] for _, name in listed]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_doors_that_pages_name_are_in_the_makefile(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    doors = set(re.findall(r"`make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8")))
    assert doors
    assert sorted(door for door in doors if not re.search(rf"^{door}:", makefile, re.MULTILINE)) == []
