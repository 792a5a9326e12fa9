"""Reports in a terminal: what a table holds is shown as it is, and steers nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

from drawstring.cli import render
from drawstring.errors import CorruptTable
from drawstring.inspection import (
    FieldChange,
    IndexReport,
    InstantReport,
    PlanReport,
    SchemaChange,
    SkippedGroup,
    SliceReport,
    TableReport,
    TaskReport,
)
from tests.golden import harness

HOSTILE = "[/b][red]<script>\x1b[7;5m\u202e"
SHOWN = r"[/b][red]<script>\x1b[7;5m\u202e"


def table_of(name: str, **more: object) -> TableReport:
    return TableReport(
        path=f"/data/{name}",
        name=name,
        table_type="MERGE_ON_READ",
        version=9,
        record_key=(name,),
        partition_fields=(name,),
        ordering_fields=(name,),
        merge_mode="COMMIT_TIME_ORDERING",
        **more,
    )


def text_of(renderable: object, **options: object) -> str:
    out = io.StringIO()
    Console(file=out, width=200, **options).print(renderable)
    return out.getvalue()


def test_hostile_names_of_a_table_are_escaped_everywhere():
    report = table_of(
        HOSTILE,
        instants=(InstantReport("1", "2", HOSTILE, HOSTILE, operation=HOSTILE),),
        slices=(SliceReport(HOSTILE, HOSTILE, "1", None, 0, 1, 5),),
        schema_history=(SchemaChange("1", (FieldChange("added", HOSTILE, after=HOSTILE),)),),
        indexes=(IndexReport(HOSTILE, HOSTILE, (HOSTILE,)),),
    )
    shown = text_of(render.table_report(report, files=20, instants=20), force_terminal=True)
    assert shown.count(SHOWN) == 15
    assert "\x1b[7;5m" not in shown
    assert "\u202e" not in shown
    html = report._repr_html_()
    assert "<script>" not in html
    assert "\x1b" not in html


def test_hostile_names_of_a_plan_are_escaped_everywhere():
    report = PlanReport(
        HOSTILE,
        "1",
        f"a = '{HOSTILE}'",
        (HOSTILE,),
        tasks=(TaskReport(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 0, 1, 1),),
        skipped=(SkippedGroup(HOSTILE, 1),),
    )
    shown = text_of(render.plan_report(report, files=20), force_terminal=True)
    assert shown.count(SHOWN) >= 6
    assert "\x1b[7;5m" not in shown
    assert "<script>" not in report._repr_html_()


def test_an_error_keeps_its_lines_and_shows_no_control_characters():
    shown = text_of(render.error(CorruptTable("first\nsecond [/b]\x07", path="\x1b]0;owned\x07")))
    assert "second [/b]\\x07" in shown
    assert "path = \\x1b]0;owned\\x07" in shown


def test_what_is_left_out_is_counted():
    many = tuple(InstantReport(f"{n:017d}", None, "commit", "requested") for n in range(30))
    wide = SchemaChange("1", tuple(FieldChange("added", f"c{n}", after="int32") for n in range(10_000)))
    shown = text_of(
        render.table_report(table_of("t", instants=many, schema_history=(wide,)), files=20, instants=20)
    )
    assert "30 active instants" in shown
    assert "… and 10 earlier" in shown
    assert "… and 9,950 more" in shown
    plan = PlanReport("/t", None, None, tuple(f"c{n}" for n in range(10_000)))
    assert "… and 9,960 more" in text_of(render.plan_report(plan, files=20))


def test_reports_of_nothing_say_so():
    shown = text_of(render.table_report(table_of("t"), files=20, instants=20))
    assert "no instant yet" in shown
    assert "File slices: none." in shown
    assert "Nothing is read." in text_of(render.plan_report(PlanReport("/t", None, None, ("a",)), files=20))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(harness.extract("v9_mor_on_read", tmp_path_factory.mktemp("golden")))


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = "from drawstring.cli import main; main()"
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env={**kept, **environment},
        check=False,
    )


def test_a_pipe_gets_no_colour_and_json_only_json(path):
    shown = command("inspect", path)
    assert "Timeline" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert json.loads(command("inspect", path, "--json", FORCE_COLOR="1").stdout)["name"]


def test_colour_is_left_out_of_a_terminal_when_asked(path):
    coloured = command("inspect", path, FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert "\x1b[32m" in coloured
    plain = command("inspect", path, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color").stdout
    assert "\x1b[32m" not in plain


def test_a_terminal_that_knows_ascii_only_gets_escapes(path):
    done = command("inspect", path, "--instants", "1", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "\\u2026 and 10 earlier" in done.stdout


def test_errors_go_to_stderr_with_an_exit_code_for_each_kind(path, tmp_path):
    missing = command("inspect", str(tmp_path), "--json")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "TABLE_NOT_FOUND" in missing.stderr
    assert command("plan", path, "--where", "nowhere = 1").returncode == 2
    assert command("plan", path, "--files", "-1").returncode == 2
