"""Hudi's non-blocking concurrency control: several writers append to the same file groups without conflicts.

Readers order the logs of a file group by when their writes began, and the ordering columns decide. So nothing that is
stored beside the rows, such as a record index or change data, may depend on which write completed last.
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
        others = [mode for mode in MODE.allowed if mode != NON_BLOCKING]
        raise not_supported(MODE.key, NON_BLOCKING, reason, allowed=others)


def keeps_record_index(config: TableConfig) -> bool:
    """Whether a table has a record index, or one is being built."""
    return RECORD_INDEX in kept_partitions(config)


def _refusal(config: TableConfig, wanted: WriteOptions) -> str | None:
    if not config.is_merge_on_read:
        return "the table is copy-on-write, where a base file replaces the one before it; the mode needs MERGE_ON_READ"
    if wanted.index.kind != BUCKET:
        return (
            f"the index is {wanted.index.kind}, by which two writers may put a new key into two file groups; the mode "
            "needs hoodie.index.type=BUCKET"
        )
    if keeps_record_index(config) or wanted.metadata_table.record_index:
        return (
            "the record index would keep what the write that completed last did to a key, but readers order logs by "
            "when their writes began; the mode needs a metadata table without record index"
        )
    if capture_mode(config):
        return "the table captures changes, and a write does not see what others append to its file groups meanwhile"
    return None
