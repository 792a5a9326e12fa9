"""Chooses the index of a write by `hoodie.index.type`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drawstring.config.write_options import DELETE
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.planning.table_state import TableState
from drawstring.write.index import Index, LookUp, SimpleIndex
from drawstring.write.live_keys import StoredLiveKeys
from drawstring.write.log_keys import searched_slices
from drawstring.write.moved_rows import StoredVersions
from drawstring.write.plan import WritePlan
from drawstring.write.record_index import RecordIndex
from drawstring.write.table_facts import visible_slices


def look_up(state: TableState, plan: WritePlan, slices: tuple[FileSlice, ...]) -> LookUp:
    """Return where the keys of a write are looked for; `slices` are those of the partitions that its rows name."""
    options = plan.options.index
    if not options.is_global:
        index, live_keys = _index(state, plan), _live_keys(state, plan, slices)
        return LookUp(state.storage, slices, searched_slices(state, slices), index, live_keys=live_keys)
    everywhere = visible_slices(state, state.view(None).partitions())
    # Deletes go where the key lies, whatever partition they name.
    by_group = {found.group: found for found in everywhere}

    def stored(groups: Sequence[FileGroupId]) -> StoredVersions:
        return StoredVersions.of(state, [by_group[group] for group in groups], plan.ordering)

    moves = options.moves_rows and plan.operation != DELETE and bool(state.config.partition_fields)
    return LookUp(
        state.storage,
        everywhere,
        searched_slices(state, everywhere),
        _index(state, plan),
        is_global=True,
        combines=plan.options.combine_before_upsert,
        ordering=plan.ordering,
        moves=stored if moves else None,
        live_keys=_live_keys(state, plan, everywhere),
    )


def _live_keys(
    state: TableState, plan: WritePlan, slices: tuple[FileSlice, ...]
) -> Callable[[Sequence[FileGroupId]], StoredLiveKeys] | None:
    """Deletes may go where a key is dead, and without logs none is."""
    if plan.operation == DELETE or not any(found.log_files for found in slices):
        return None
    by_group = {found.group: found for found in slices}
    return lambda groups: StoredLiveKeys.of(state, [by_group[group] for group in groups])


def _index(state: TableState, plan: WritePlan) -> Index:
    records = RecordIndex.of(state) if plan.options.index.uses_record_index else None
    return records or SimpleIndex()
