"""Which tables services run on, as data: others are refused by name before anything is changed."""

from __future__ import annotations

from drawstring.config.support import Refusal, refuse_first
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write.support import REFUSALS, require_atomic_create, version_not_written

CLEAN, ARCHIVE, COMPACT, LOG_COMPACT = "clean", "archive", "compact", "log compaction"
ROLLBACK, REBUILD_METADATA = "roll back", "rebuild the metadata table of"
_BY_ACTION = {
    CLEAN: frozenset({"WRITE_BASE_FILE_FORMAT"}),
    ARCHIVE: frozenset(),
    ROLLBACK: frozenset(),
    REBUILD_METADATA: frozenset(),
    COMPACT: frozenset(
        {
            "WRITE_WITHOUT_META_FIELDS",
            "WRITE_DROPPED_PARTITION_COLUMNS",
            "WRITE_BASE_FILE_FORMAT",
        }
    ),
}
"""The refusals of writes that apply to a service too."""


_VERSION = Refusal(
    "WRITE_TABLE_VERSION",
    version_not_written,
    "its table version is {found}; services run on versions 8 and 9. Upgrade the table with Apache Hudi",
)


def check_serviceable(state: TableState, action: str) -> None:
    """Raise `UnsupportedTable` for a table on which the service cannot run correctly."""
    refusals = [_VERSION, *(refusal for refusal in REFUSALS if refusal.condition in _BY_ACTION[action])]
    refuse_first(refusals, state.config, operation=action, path=state.storage.root)


def check_storage(storage: Storage) -> None:
    """Refuse stores where no lock would be safe."""
    require_atomic_create(storage)
