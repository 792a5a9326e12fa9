"""Which tables services run on, as data: what one would spoil is refused by name before anything is touched."""

from __future__ import annotations

from drawstring.errors import UnsupportedTable
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write.support import REFUSALS, require_atomic_create

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
"""Of what writes refuse, the conditions that stand in the way of a service too."""


def check_serviceable(state: TableState, action: str) -> None:
    """Raise `UnsupportedTable` when a service would spoil the table."""
    version = state.config.version
    if version not in (8, 9):
        raise _refused(
            state.storage,
            action,
            "WRITE_TABLE_VERSION",
            f"its table version is {version}; drawstring serves versions 8 and 9. Upgrade the table with Apache Hudi",
            str(version),
        )
    for refusal in REFUSALS:
        found = refusal.finds(state) if refusal.condition in _BY_ACTION[action] else None
        if found is not None:
            message = refusal.message.format(found=found).replace("Write it with", "Run it with")
            raise _refused(state.storage, action, refusal.condition, message, found)


def check_storage(storage: Storage) -> None:
    """Refuse stores where no lock would be safe."""
    require_atomic_create(storage)


def _refused(storage: Storage, action: str, condition: str, why: str, found: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"Cannot {action} {storage.root}: {why}.",
        condition=condition,
        operation=action,
        path=storage.root,
        found=found,
    )
