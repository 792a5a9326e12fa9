"""Log blocks read within a limit of memory: small ones together, large ones a piece at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence

import pyarrow as pa

from drawstring.formats.avro import block_schema, decode_records, row_count, row_pieces
from drawstring.formats.log_blocks import BlockType, LogBlock
from drawstring.formats.parquet import ParquetSource
from drawstring.merge.file_errors import naming_file
from drawstring.merge.log_records import (
    LogRecords,
    MergeColumns,
    decoding_plan,
    log_of,
    read_records,
    records_of,
)
from drawstring.model.read_task import ReadTask

_PREFIX_BYTES = 8
_COPY_BYTES = 2**22
_PARQUET_EXPANSION = 6
"""How much larger than its bytes a Parquet block is taken to be once decoded."""


_LEAST_RECORD_BYTES = 64
"""Five meta columns alone take more."""


def decoded_size(blocks: Sequence[LogBlock], schema: pa.Schema, *, enough: int) -> int:
    """About how many bytes blocks take when they are decoded.

    Avro spends a byte on a null or a small number where Arrow spends eight. How many records a block has takes a
    look at its first bytes, which blocks do not need that are far below `enough`.
    """
    sizes = [_content_size(block) for block in blocks]
    width = _row_width(schema)
    if sum(sizes) * max(1, width // _LEAST_RECORD_BYTES) <= enough or sum(sizes) > enough:
        return sum(sizes)
    rows = sum(
        row_count(block.read(0, _PREFIX_BYTES), block.content_length)
        for block in blocks
        if block.type is BlockType.AVRO_DATA
    )
    return sum(sizes) + rows * width


def _content_size(block: LogBlock) -> int:
    return block.content_length * (_PARQUET_EXPANSION if block.type is BlockType.PARQUET_DATA else 1)


def _row_width(schema: pa.Schema) -> int:
    """Bytes that each row takes whatever it holds; nested columns count as one value."""
    return sum(_width(field.type) for field in schema)


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 4


def stream_records(
    task: ReadTask, blocks: Sequence[LogBlock], columns: MergeColumns, *, max_bytes: int
) -> Iterator[LogRecords]:
    """Decode blocks in order, about `max_bytes` of them at a time."""
    for run in runs_of(blocks, max_bytes):
        if _is_large(run, max_bytes):
            for table in _tables(task, run[0], columns, max_bytes):
                yield records_of(task, table, run[0], columns)
        else:
            yield read_records(task, run, columns)


def runs_of(blocks: Sequence[LogBlock], max_bytes: int) -> Iterator[Sequence[LogBlock]]:
    """Split blocks into runs of at most so many bytes; a larger block is a run of its own."""
    run: list[LogBlock] = []
    size = 0
    for block in blocks:
        if run and size + _content_size(block) > max_bytes:
            yield run
            run, size = [], 0
        run.append(block)
        size += _content_size(block)
    if run:
        yield run


def _is_large(run: Sequence[LogBlock], max_bytes: int) -> bool:
    return len(run) == 1 and run[0].type is not BlockType.DELETE and _content_size(run[0]) > max_bytes


def _tables(task: ReadTask, block: LogBlock, columns: MergeColumns, max_bytes: int) -> Iterator[pa.Table]:
    """The rows of one block in the schema that merging wants."""
    pieces = _avro_pieces if block.type is BlockType.AVRO_DATA else _parquet_pieces
    with naming_file(log_of(task, block), task.slice.group.partition_path, instant=block.instant_time):
        yield from pieces(task, block, columns.schema, max_bytes)


def _avro_pieces(task: ReadTask, block: LogBlock, wanted: pa.Schema, max_bytes: int) -> Iterator[pa.Table]:
    plan = decoding_plan(task, block, block_schema(block.schema_json), wanted)
    for rows in row_pieces(block.read, block.content_length, max_bytes):
        decoded = decode_records(block.schema_json or "", [rows], columns=plan.file_columns)
        yield pa.Table.from_batches(map(plan.apply, decoded), schema=wanted)


def _parquet_pieces(task: ReadTask, block: LogBlock, wanted: pa.Schema, max_bytes: int) -> Iterator[pa.Table]:
    with tempfile.NamedTemporaryFile(prefix="drawstring-block-", suffix=".parquet") as copy:
        for start in range(0, block.content_length, _COPY_BYTES):
            copy.write(block.read(start, _COPY_BYTES))
        copy.flush()
        with ParquetSource(pa.OSFile(copy.name), block.path) as parquet:
            plan = decoding_plan(task, block, parquet.schema, wanted)
            batches: list[pa.RecordBatch] = []
            for batch in parquet.batches(plan.file_columns):
                batches.append(plan.apply(batch))
                if sum(kept.nbytes for kept in batches) > max_bytes:
                    yield pa.Table.from_batches(batches, schema=wanted)
                    batches = []
            if batches:
                yield pa.Table.from_batches(batches, schema=wanted)
