"""The merge-on-read benchmark against the peers: `make bench-peers`.

All engines read the same rows (4 M in 16 file groups, a tenth updated) on one machine in one run; read the
ratios, not the seconds. Hudi and drawstring read one table, which Apache Hudi wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers import pushdowns, streams, writes
from benchmarks.peers.engines import ENGINES, QUESTIONS
from benchmarks.peers.write_steps import KINDS

HUDI_ENGINES = ("hudi read-optimised", "hudi", "drawstring read-optimised", "drawstring")
ROWS = 4_000_000
PEERS = ("iceberg", "delta", "paimon")
Figures = dict[str, dict[str, dict[str, float]]]


def main() -> int:
    """Make the tables that are missing, measure every engine and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("bench-results/peers"), help="where tables are kept"
    )
    parser.add_argument("--table", type=Path, help="an existing table of Apache Hudi's to read instead")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--engines", nargs="*", default=[*HUDI_ENGINES, *PEERS])
    parser.add_argument("--writes", action="store_true", help="measure writes instead of reads")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="… to which kinds of tables")
    parser.add_argument("--pushdowns", action="store_true", help="measure push-downs on many files instead")
    parser.add_argument(
        "--files", type=int, default=800, help="… on so many, of 30 M rows unless --rows says"
    )
    parser.add_argument("--streams", action="store_true", help="measure a backlog read as a stream instead")
    parser.add_argument("--commits", type=int, default=streams.COMMITS, help="… of so many commits")
    parser.add_argument("--turns", type=int, default=3, help="processes per engine and question")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.pushdowns:
        chosen = [name for name in ("drawstring", "hudi", *PEERS) if name in arguments.engines]
        size = pushdowns.Size(arguments.rows or pushdowns.ROWS, arguments.files)
        print(pushdowns.report(arguments.folder, size, chosen))
        return 0
    arguments.rows = arguments.rows or ROWS
    if arguments.streams:
        print(streams.report(arguments.folder, arguments.commits))
        return 0
    if arguments.writes:
        for kind in arguments.kinds:
            chosen = [name for name in KINDS[kind] if name in (*arguments.engines, "parquet")]
            print(writes.report(arguments.folder, arguments.rows, chosen, kind))
        return 0
    places = {name: _place(arguments, name) for name in arguments.engines}
    figures = _medians([_turn(places, arguments.rows) for _ in range(arguments.turns)])
    print(_report(figures))
    (arguments.folder / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def _turn(places: dict[str, Path], rows: int) -> Figures:
    """Ask every engine every question once: while the machine is slow it is slow for all of them."""
    turn: Figures = {name: {} for name in places}
    for question in QUESTIONS:
        for name, place in places.items():
            turn[name][question] = _run(name, question, place, rows)
            print(f"{name}, {question}: {turn[name][question]}", flush=True)
    return turn


def _medians(turns: list[Figures]) -> Figures:
    return {
        name: {
            question: {
                when: median(turn[name][question][when] for turn in turns)
                for when, seconds in answers.items()
                if isinstance(seconds, float)
            }
            for question, answers in questions.items()
        }
        for name, questions in turns[0].items()
    }


def _place(arguments: argparse.Namespace, name: str) -> Path:
    shared = not ENGINES[name].create
    if shared and arguments.table:
        return Path(arguments.table).resolve()
    place: Path = (arguments.folder / ("hudi" if shared else name)).resolve()
    done = place.parent / f"{place.name}.done"
    if not done.exists():
        writer = "hudi" if shared else name
        print(f"filling {writer}: {_run(writer, 'fill', place, arguments.rows)}", flush=True)
        done.touch()
    return place


def _run(name: str, question: str, place: Path, rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.peers.measure", name, question, str(place), str(result)]
        environment = {**os.environ, "TZ": "UTC"}
        done = subprocess.run(
            [*command, str(rows)], capture_output=True, text=True, check=False, env=environment
        )
        if not result.exists():
            raise RuntimeError(f"{name}, {question}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        measured: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return measured


def _report(figures: Figures) -> str:
    return "\n".join([*_table(figures, ""), *_table(figures, " processor")])


def _table(figures: Figures, suffix: str) -> list[str]:
    """Seconds by the clock, or of the processor; then how they stand to Hudi and to base files alone."""
    heads = "".join(f"{question + ' 1st':>18}{'again':>9}" for question in QUESTIONS)
    lines = ["", f"{'seconds' + suffix:28}{heads}"]
    for name, answers in figures.items():
        pairs = [(answers[q]["first" + suffix], answers[q]["repeated" + suffix]) for q in QUESTIONS]
        lines.append(f"{name:28}" + "".join(f"{first:18.2f}{again:9.2f}" for first, again in pairs))
    if {"hudi", "drawstring", "drawstring read-optimised"} <= figures.keys():
        lines += _ratios(figures, suffix)
    return lines


def _ratios(figures: Figures, suffix: str) -> list[str]:
    ours, hudi, plain = figures["drawstring"], figures["hudi"], figures["drawstring read-optimised"]
    rows = [("x Hudi 1.2, as fast", hudi, True), ("x its own read-optimised scan", plain, False)]
    lines = []
    for label, other, faster in rows:
        cells = ""
        for question in QUESTIONS:
            for when in ("first", "repeated"):
                ratio = other[question][when + suffix] / ours[question][when + suffix]
                cells += f"{ratio if faster else 1 / ratio:{18 if when == 'first' else 9}.2f}"
        lines.append(f"{label:28}{cells}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
