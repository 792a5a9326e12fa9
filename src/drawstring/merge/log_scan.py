"""Which log blocks of a slice count, in which order."""

from __future__ import annotations

from drawstring.config.support import found_in_files
from drawstring.errors import CorruptTable
from drawstring.formats.log_blocks import BlockType, CorruptRegion, Header, LogBlock, LogScan, scan_log_file
from drawstring.merge.file_errors import naming_file
from drawstring.model.file_group import LogFile
from drawstring.model.read_task import ReadTask
from drawstring.storage.base import Storage

_ROLLBACK = "0"
_HELD_BYTES = 2**26
"""Bytes of log files that are held between finding blocks and reading them; small files beyond are read twice."""
_FIRST_RECORD = 12
"""Where the length of the first record ends, behind the content's version and count."""
_FIRST_BYTES = 4096
"""More than enough to see the first column of the first record."""
_RECORDS = frozenset({BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.DELETE})


def blocks_of(task: ReadTask, storage: Storage) -> list[LogBlock]:
    """The data and delete blocks of a slice that count, oldest first.

    1. Blocks of instants that do not count, or that a later command rolls back, are left out.
    2. A block of compacted logs stands where the newest of the blocks it replaces stood.

    Raises:
        CorruptTable: a log file is missing, or committed bytes of it are damaged.
        UnsupportedTable: a block of a kind that has no place in a table of records.
    """
    collected: list[LogBlock] = []
    budget = _HELD_BYTES
    for log in task.slice.log_files:
        with naming_file(log, task.slice.group.partition_path):
            scan = _sound(task, storage, log)
            budget -= scan.held_bytes
            if budget < 0:
                scan.forget()
            for block in scan.blocks:
                if block.type is BlockType.COMMAND:
                    collected = _rolled_back(collected, block, task)
                    continue
                _check_instant(block, task)
                if task.counts_block(block.instant_time):
                    collected.append(_known(block))
    return _with_compacted_in_place(collected)


def _sound(task: ReadTask, storage: Storage, log: LogFile) -> LogScan:
    scan = scan_log_file(storage, log.path)
    if scan.size < log.size:
        raise CorruptTable(
            f"Only {scan.size} bytes are there, {log.size} were committed.",
            condition="LOG_FILE_CUT",
            expected=log.size,
            found=scan.size,
        )
    for region in scan.corrupt_regions:
        if _is_damage(task, region, log.size):
            raise CorruptTable(
                f"The {region.length} bytes at {region.offset} are no log block: {region.reason}.",
                condition="CORRUPT_LOG_BLOCK",
                offset=region.offset,
                length=region.length,
                written_by=region.instant,
            )
    return scan


def _check_instant(block: LogBlock, task: ReadTask) -> None:
    """Make sure that a block of an instant which is not on the timeline says so truly: its records carry it too.

    Blocks of compacted logs hold records of other instants; in deletes and in Parquet it cannot be seen.
    """
    if task.valid_instants is None or block.instant_time in task.valid_instants:
        return
    has_times = task.keys.populate_meta_fields and block.type is BlockType.AVRO_DATA
    if has_times and not block.compacted_instants:
        content = bytes(block.read(0, _FIRST_BYTES))
        if len(content) > _FIRST_RECORD and block.instant_time.encode() not in content:
            raise CorruptTable(
                f"The block at byte {block.offset} says that {block.instant_time!r} wrote it, but its records do not.",
                condition="CORRUPT_LOG_BLOCK",
                offset=block.offset,
                written_by=block.instant_time,
            )


def _is_damage(task: ReadTask, region: CorruptRegion, committed_size: int) -> bool:
    """Whether committed bytes are lost; the size that commits know is 0 where nobody told it."""
    if region.instant is not None and not task.counts_block(region.instant):
        return False
    committed = None if task.valid_instants is None else {region.instant or ""}
    return region.is_damage(committed, committed_size=committed_size or None)


def _rolled_back(collected: list[LogBlock], command: LogBlock, task: ReadTask) -> list[LogBlock]:
    kind = command.headers.get(Header.COMMAND_BLOCK_TYPE)
    if kind != _ROLLBACK:
        raise found_in_files("UNKNOWN_LOG_COMMAND", offset=command.offset, found=kind, known=_ROLLBACK)
    if task.max_instant is not None and command.instant_time > task.max_instant:
        return collected
    return [block for block in collected if block.instant_time != command.target_instant_time]


def _known(block: LogBlock) -> LogBlock:
    if block.type not in _RECORDS:
        raise found_in_files("UNSUPPORTED_LOG_BLOCK", offset=block.offset, found=block.type.name)
    return block


def _with_compacted_in_place(blocks: list[LogBlock]) -> list[LogBlock]:
    """Put each block of compacted logs where the newest block that it replaces stood.

    Where none of those is read, in a range that began after them, it says nothing that is new, as in Hudi.
    """
    if not any(block.compacted_instants for block in blocks):
        return blocks
    by_instant: dict[str, list[LogBlock]] = {}
    for block in blocks:
        by_instant.setdefault(block.instant_time, []).append(block)
    replaced_by: dict[str, str] = {}
    placed: dict[str, None] = {}
    for instant in reversed(by_instant):
        replaced = [old for block in by_instant[instant] for old in block.compacted_instants]
        final = replaced_by.get(instant, instant)
        if replaced:
            replaced_by.update(dict.fromkeys(replaced, final))
        else:
            placed.setdefault(final)
    return [block for instant in reversed(placed) for block in by_instant[instant]]
