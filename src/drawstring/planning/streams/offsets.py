"""Where a streaming read stands, in the form that Hudi's checkpoints have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from drawstring.errors import InvalidInput

BEFORE_ALL = "00000000000000"
"""What Hudi's source begins with: before every instant."""
_TIME, _COMMIT, _SNAPSHOT, _DONE = "offsetCommitTime", "commit", "snapshot", "fileGroupsDone"


@dataclass(frozen=True)
class StreamOffset:
    """Everything up to here was delivered.

    - `time`: all commits that completed at or before it (version 6: with such an instant time).
    - `commit`: the requested time of the next commit, of which the first `done` file groups were delivered too.
    - `snapshot`: the time of the snapshot that is delivered first, of which `done` file slices were; `time` is then
      `BEFORE_ALL`.

    Hudi's source reads `offsetCommitTime` and passes over the rest, so after a divided commit it delivers that commit
    from its beginning.
    """

    time: str = BEFORE_ALL
    commit: str | None = None
    snapshot: str | None = None
    done: int = 0

    def to_json(self) -> str:
        """The offset as checkpoints hold it."""
        more: dict[str, Any] = {_COMMIT: self.commit, _SNAPSHOT: self.snapshot}
        more = {key: value for key, value in more.items() if value is not None}
        if more:
            more[_DONE] = self.done
        return json.dumps({_TIME: self.time, **more}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> StreamOffset:
        """Read an offset, Hudi's too; raises `InvalidInput`."""
        try:
            node = json.loads(text)
            found = cls(node[_TIME], node.get(_COMMIT), node.get(_SNAPSHOT), node.get(_DONE, 0))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_offset(text) from error
        if not (isinstance(found.time, str) and found.time.isdigit() and isinstance(found.done, int)):
            raise _no_offset(text)
        return found


def _no_offset(text: str) -> InvalidInput:
    return InvalidInput(
        f"The checkpoint holds the offset {text!r}; expected {StreamOffset().to_json()!r} or such. Was the checkpoint "
        "folder used by another source? Start the query with a folder of its own.",
        condition="INVALID_STREAM_OFFSET",
        found=text,
    )
