"""The pages for people: what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring

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
def test_make_targets_that_pages_name_are_in_the_makefile(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8")))
    assert targets
    assert sorted(target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)) == []


TRIPS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def trips(tmp_path):
    """The table that pages read, with a log file."""
    fields = {"id": pa.int64(), "fare": pa.float64(), "ts": pa.int64(), "city": pa.string()}
    table = drawstring.create_table(tmp_path / "trips", pa.schema(fields.items()), options=TRIPS)
    for ts in (100, 101):
        table.write(pa.table({"id": [1, 2], "fare": [19.5, 7.0], "ts": [ts, ts], "city": ["basel", "bern"]}))
    return tmp_path / "trips"


def snippets() -> list[str]:
    """The blocks of Python that need no Spark session."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [
        block for page in pages for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    return [block for block in blocks if not re.search(r"\bspark\.|\.format\(", block)]


@pytest.mark.parametrize("snippet", snippets(), ids=lambda snippet: snippet.split("\n\n")[-1].split("\n")[0])
def test_snippets_that_need_no_spark_run_as_printed(snippet, trips):
    place = trips.with_name("new") if "create_table" in snippet else trips
    exec(compile(snippet.replace("/data/trips", str(place)), "snippet", "exec"), {})


def test_some_snippets_need_no_spark():
    assert len(snippets()) > 5
