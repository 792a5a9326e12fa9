"""A table that drawstring and Apache Hudi write in turn, and everybody who reads it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa

import drawstring
from tests.interop.conversation import Engine
from tests.support.histories import COLUMNS, SCHEMA, Row, Shape, Step

_WHERE = "n >= 50"
_SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
_LISTING = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}


class Table:
    """The table on disk, with everybody who reads it."""

    def __init__(self, path: Path, shape: Shape, engines: dict[str, Engine]) -> None:
        self.path, self.shape, self._engines = path, shape, engines

    def write(self, step: Step) -> None:
        """Let the step's engine write, then drawstring do the service."""
        options = {**self.shape.options(step.engine, step.operation), **step.options}
        self._engines[step.engine].ask(
            do="write", path=str(self.path), rows=step.rows, schema=SCHEMA, options=options
        )
        table = drawstring.open_table(self.path)
        if step.service == "clean":
            table.clean(options={"hoodie.clean.commits.retained": "4"})
        elif step.service == "compact" and self.shape.table_type == "MERGE_ON_READ":
            table.compact()

    def check(self, rows: Iterable[Row], before: tuple[str, list[Row]] | None) -> str:
        """Hold what every reader sees against the rows; `before` is an older instant and what it had.

        Returns the newest instant.
        """
        expected = sorted(rows)
        assert self._arrow() == expected, "drawstring, Arrow"
        if not self._hidden_from_hudi_rs():
            assert self._hudi_rs() == expected, "hudi-rs"
        changes = []
        for engine, asked in self._questions(expected, before).items():
            found = self._read(engine, [read for read, _ in asked])
            for (read, wanted), rows_found in zip(asked, found, strict=True):
                assert wanted is None or rows_found == wanted, f"{engine}, {read}"
            changes.append(found[-1])
        assert before is None or changes[0] == changes[1], f"changes since {before[0]}"
        return self._newest()

    def _questions(
        self, expected: list[Row], before: tuple[str, list[Row]] | None
    ) -> dict[str, list[tuple[dict[str, Any], list[Row] | None]]]:
        """What each engine is asked, and the answer; none where both must tell the same, which comes last."""
        some = [row for row in expected if row[3] >= 50]
        v1 = {"hoodie.datasource.read.use.dsv2": "false"}
        hudis = [{"conf": _SKIPPING}, {"conf": _LISTING}, {"conf": _SKIPPING, "where": _WHERE}]
        ours = [{}, {"where": _WHERE}, {"options": v1}, {"options": v1, "where": _WHERE}]
        found: dict[str, list[tuple[dict[str, Any], list[Row] | None]]] = {}
        for engine, reads in (("hudi", hudis), ("drawstring", ours)):
            found[engine] = [(read, some if "where" in read else expected) for read in reads]
            if before is not None:
                found[engine].append(({"options": {"as.of.instant": before[0]}}, sorted(before[1])))
                found[engine].append(({"options": self._since(before[0])}, None))
        return found

    def _since(self, instant: str) -> dict[str, str]:
        return {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": self._completion(instant),
        }

    def _read(self, engine: str, reads: list[dict[str, Any]]) -> list[list[Row]]:
        answers = self._engines[engine].ask(do="reads", path=str(self.path), reads=reads, columns=COLUMNS)
        return [sorted(tuple(row) for row in rows) for rows in answers]

    def _arrow(self) -> list[Row]:
        found = drawstring.open_table(str(self.path)).snapshot().scan().to_arrow().select(COLUMNS)
        return sorted(tuple(row.values()) for row in found.to_pylist())

    def _hudi_rs(self) -> list[Row]:
        batches = hudi.HudiTableBuilder.from_base_uri(str(self.path)).build().read()
        found = pa.Table.from_batches(batches).select(COLUMNS) if batches else None
        return sorted(tuple(row.values()) for row in found.to_pylist()) if found is not None else []

    def _hidden_from_hudi_rs(self) -> bool:
        """hudi-rs 0.5 sees no group without base file where a metadata table lists it; without one it does."""
        snapshot = drawstring.open_table(str(self.path)).snapshot()
        has_listing = bool(snapshot.state.config.metadata_partitions)
        return has_listing and any(found.base_file is None for found in snapshot.all_slices())

    def _newest(self) -> str:
        return str(drawstring.open_table(str(self.path)).snapshot().latest_instant.requested_time)

    def _completion(self, instant: str) -> str:
        timeline = drawstring.open_table(str(self.path)).snapshot().state.timeline
        return str(timeline.by_requested_time[instant].completion_time)
