"""A batch of a streaming write, as its commit tells of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CHECKPOINT = "_hudi_streaming_sink_checkpoint"
"""Hudi's key: a JSON object from the identifier of a query to the number of its last batch, as text."""
QUERY = "drawstring_streaming_query"
"""Which of Spark's queries wrote the batch; a query with another checkpoint folder is another one."""


@dataclass(frozen=True)
class SinkBatch:
    """One batch of one streaming query; `query` is the id that its checkpoint folder gives it."""

    identifier: str
    number: int
    query: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """What the commit of the batch records."""
        found = {CHECKPOINT: json.dumps({self.identifier: str(self.number)}, separators=(",", ":"))}
        return {**found, QUERY: self.query} if self.query else found

    def is_covered_by(self, recorded: Mapping[str, str]) -> bool | None:
        """Whether a commit tells that this batch, or a later one, was written; None when it tells nothing of it.

        Batches that Hudi wrote do not say which query they belong to: they count, as they do in Hudi. Of batches that
        do say it, those of other queries tell nothing, though the identifier is the same: their numbers began anew.
        """
        number = _number(recorded.get(CHECKPOINT, ""), self.identifier)
        query = recorded.get(QUERY)
        if number is None or (query and self.query and query != self.query):
            return None
        return number >= self.number


def _number(value: str, identifier: str) -> int | None:
    try:
        found: Any = json.loads(value) if value else {}
        return int(found[identifier]) if identifier in found else None
    except (ValueError, TypeError):
        return None
