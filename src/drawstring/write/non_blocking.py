"""Hudi's non-blocking concurrency control: several writers append to the same file groups, and all of them stand.

Readers put the logs of a group in order by the times when their writes began, and let the ordering columns decide. So
nothing that is kept beside the rows may depend on which write completed last.
"""

from __future__ import annotations

from drawstring.config.concurrency_options import MODE, NON_BLOCKING
from drawstring.config.index_options import BUCKET
from drawstring.config.option import not_supported
from drawstring.config.table_config import TableConfig
from drawstring.config.write_options import WriteOptions
from drawstring.write.change_files import capture_mode
from drawstring.write.metadata_table.layout import RECORD_INDEX
from drawstring.write.metadata_table.writer import kept_partitions


def check_non_blocking(config: TableConfig, wanted: WriteOptions) -> None:
    """Refuse the mode by name, with the reason, where appends of several writers would not all stand."""
    reason = _refusal(config, wanted) if wanted.concurrency.is_non_blocking else None
    if reason is not None:
        raise not_supported(MODE.key, NON_BLOCKING, reason, allowed=MODE.allowed)


def keeps_record_index(config: TableConfig) -> bool:
    """Whether a table has a record index, or one is being built."""
    return RECORD_INDEX in kept_partitions(config)


def _refusal(config: TableConfig, wanted: WriteOptions) -> str | None:
    if not config.is_merge_on_read:
        return (
            "the table is copy-on-write, of whose base files one replaces the other; it needs MERGE_ON_READ"
        )
    if wanted.index.kind != BUCKET:
        return (
            f"the index is {wanted.index.kind}, by which two writers may put a new key into two file groups; it needs "
            "hoodie.index.type=BUCKET"
        )
    if keeps_record_index(config) or wanted.metadata_table.record_index:
        return (
            "the record index would keep what the write that completed last did to a key, and readers take the logs "
            "by when their writes began; it needs a metadata table without record index"
        )
    if capture_mode(config):
        return "the change data of a write tells what it found, and others append to the group meanwhile"
    return None
