"""Themes about change data capture: the three logging modes, and every way in which rows change."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from making.catalogue import COW, MOR, theme
from making.merging import by_event_time
from making.workbench import Workbench

SCHEMA = (
    "id int, p string, v bigint, s string, ts bigint, d double, f float, b boolean, dt date, t timestamp, "
    "dec decimal(10,2), bin binary, arr array<int>, st struct<x:int,y:string>, m map<string,int>"
)
_START = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000)


def changed_rows(ids: list[int], *, ts: int, s: str) -> list[tuple[Any, ...]]:
    """Rows of every kind of value; each third has nulls instead."""
    return [_row(i, ts, s) for i in ids]


def _row(i: int, ts: int, s: str) -> tuple[Any, ...]:
    head = (i, "abc"[i % 3], i * 100 + ts, f"{s}{i}", ts)
    if i % 3 == 2:
        return (*head, *[None] * 10)
    return (
        *head,
        i / 4 + 1e10 * (i % 2),
        0.1 + i,
        i % 2 == 0,
        dt.date(2024, 1, 1) + dt.timedelta(days=i),
        _START + dt.timedelta(hours=i),
        Decimal(f"{i}.50"),
        bytes([i, 0, 255, 34]),
        [i, None] if i % 2 else [],
        (i, f'ü "{i}"\\'),
        {"k": i, "z": None} if i % 2 else {},
    )


def _capture(bench: Workbench, mode: str) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": mode,
            "hoodie.parquet.small.file.limit": "104857600",
        }
    )
    bench.write(changed_rows(list(range(9)), ts=10, s="s"), SCHEMA)
    bench.write(changed_rows([0, 1, 2, 20, 21], ts=20, s="u"), SCHEMA)
    bench.delete(changed_rows([3, 5], ts=1, s="x"), SCHEMA)
    bench.write([*changed_rows([4], ts=5, s="late"), *changed_rows([3, 6], ts=30, s="v")], SCHEMA)


def _replacements(bench: Workbench) -> None:
    bench.write(changed_rows([1, 30, 31, 34], ts=40, s="o")[0:1], SCHEMA, operation="insert_overwrite")
    bench.delete(changed_rows([1], ts=1, s="x"), SCHEMA)
    bench.write(changed_rows([40, 41, 42], ts=50, s="n"), SCHEMA, operation="insert")


@theme(
    "cdc_before_after",
    "change capture with both images; overwrite of a partition, all rows of a group deleted",
)
def cdc_before_after(bench: Workbench) -> None:
    _capture(bench, "data_before_after")
    _replacements(bench)


@theme(
    "cdc_before", "change capture with images before; overwrite of a partition, all rows of a group deleted"
)
def cdc_before(bench: Workbench) -> None:
    _capture(bench, "data_before")
    _replacements(bench)


@theme("cdc_keys", "change capture with keys only; overwrite of a partition, all rows of a group deleted")
def cdc_keys(bench: Workbench) -> None:
    _capture(bench, "op_key_only")
    _replacements(bench)


@theme("cdc_compacted", "change capture over a compaction and a clustering", types=(COW, MOR), versions=(9,))
def cdc_compacted(bench: Workbench) -> None:
    _capture(bench, "data_before_after")
    bench.register()
    if bench.merge_on_read:
        bench.sql("call run_compaction(op => 'scheduleAndExecute', table => '{table}')")
    else:
        bench.sql("call run_clustering(table => '{table}')")
    bench.write(changed_rows([0, 7, 50], ts=60, s="w"), SCHEMA)
    bench.delete(changed_rows([8], ts=1, s="x"), SCHEMA)
