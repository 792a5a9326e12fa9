"""Run workloads and print one table of figures: `make bench`, `make bench ARGS='scan merge'`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Figure
from benchmarks.workloads import WORKLOADS, Bench

RESULTS = Path("bench-results")


def main() -> int:
    """Measure; 1 when a workload failed, promises that are not kept are shown in the table."""
    arguments = parsed(sys.argv[1:])
    bench = Bench((RESULTS / "tables").resolve(), arguments.scale)
    bench.folder.mkdir(parents=True, exist_ok=True)
    console, figures, failed = Console(width=140), [], []
    for name in arguments.workloads:
        try:
            for figure in WORKLOADS[name](bench):
                figures.append(figure)
                console.print(f"[dim]{figure.workload}: {figure.what}: {_value(figure)}[/]")
        except Exception as error:
            failed.append(name)
            first = (str(error).strip().splitlines() or [""])[0]
            console.print(f"[red]{name} failed:[/] {type(error).__name__}: {first[:300]}")
    console.print(_table(figures, arguments.scale))
    (RESULTS / "latest.json").write_text(json.dumps([asdict(figure) for figure in figures], indent=1))
    return 1 if failed else 0


def parsed(arguments: list[str]) -> argparse.Namespace:
    """What the command line asks for: all workloads when it names none."""
    parser = argparse.ArgumentParser(description=__doc__)
    # An empty list is a choice because Python 3.11 checks it like one.
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []])
    parser.add_argument("--scale", type=float, default=float(os.environ.get("BENCH_SCALE", "1")))
    found = parser.parse_args(arguments)
    found.workloads = found.workloads or list(WORKLOADS)
    return found


def _table(figures: list[Figure], scale: float) -> Table:
    title = f"drawstring at scale {scale:g}, one run; ratios matter, not seconds"
    table = Table(
        "workload", "what", "measured", "promised", "", "seconds", title=title, title_justify="left"
    )
    for figure in figures:
        mark = {True: "[green]kept[/]", False: "[red]not kept[/]", None: ""}[figure.kept]
        promised = (
            ""
            if figure.limit is None
            else f"{'≥' if figure.at_least else '≤'} {_number(figure.limit)} {figure.unit}"
        )
        table.add_row(figure.workload, figure.what, _value(figure), promised, mark, figure.detail)
    return table


def _value(figure: Figure) -> str:
    return f"{_number(figure.value)} {figure.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
