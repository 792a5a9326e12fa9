"""Parquet files read through pyarrow: the footer once, then batches of chosen columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.config.support import found_in_files
from drawstring.errors import CorruptTable, DrawstringError, UnsupportedTable
from drawstring.formats.parquet_pages import check_pages
from drawstring.model.flipped_names import flipped_name
from drawstring.schema.meta_columns import META_COLUMNS

_RUN_BYTES = 32 << 20
DEFAULT_BATCH_ROWS = 65_536
_SIGNATURE_BYTES = 28
"""Nonce and tag behind a footer that is signed but not encrypted."""


class ParquetSource:
    """One open Parquet file. Use it as a context.

    `footer` is the file's footer when it was read before.
    """

    def __init__(self, file: Any, path: str, *, footer: Any = None) -> None:
        self.path = path
        self._file = file
        try:
            self._parquet = pq.ParquetFile(
                file, metadata=footer, page_checksum_verification=True, coerce_int96_timestamp_unit="us"
            )
            if footer is None:
                check_not_encrypted(file, self._parquet.metadata, path)
                self._check_names()
        except (pa.ArrowException, OSError, ValueError) as error:
            encrypted = _ends_encrypted(file)
            file.close()
            raise encrypted_parquet(path) if encrypted else unreadable_parquet(path, error) from error
        except DrawstringError:
            file.close()
            raise

    def _check_names(self) -> None:
        """Compare the columns with Hudi's, and with the Avro schema that Hudi's writer leaves in the footer."""
        found, told = self.schema.names, _avro_schema_of(self.footer)
        flipped = flipped_name(found, META_COLUMNS)
        if flipped is None and not all(
            b'"name":"%b"' % name.encode(errors="replace") in told for name in found
        ):
            flipped = flipped_name(found, _names_of(told))
        if flipped is not None:
            raise unreadable_parquet(self.path, f"its footer has a damaged name, {flipped!r}.")

    def __enter__(self) -> ParquetSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parquet.close()
        self._file.close()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the file."""
        return self._parquet.schema_arrow

    @property
    def num_rows(self) -> int:
        """The number of rows, by the footer."""
        return int(self._parquet.metadata.num_rows)

    @property
    def footer(self) -> Any:
        """The footer, as pyarrow's `FileMetaData`."""
        return self._parquet.metadata

    def batches(
        self, columns: Sequence[str], *, batch_rows: int = DEFAULT_BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in file order with the top-level `columns`, and maybe others whose names resemble them.

        Raises:
            CorruptTable: the bytes are damaged, or fewer rows are there than the footer says.
        """
        rows = 0
        try:
            check_pages(self._file, self.footer, columns, all_chunks=_is_near(self._file))
            for batch in stream_batches(self._parquet, columns, batch_rows=batch_rows):
                rows += batch.num_rows
                yield batch
        except (pa.ArrowException, OSError, ValueError) as error:
            raise unreadable_parquet(self.path, error) from error
        if rows != self.num_rows:
            raise unreadable_parquet(self.path, f"{rows} rows found, {self.num_rows} in the footer")


def stream_batches(
    file: pq.ParquetFile, columns: Sequence[str], *, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in its order, with the bytes of a few row groups in memory at a time.

    An iterator of pyarrow keeps the bytes of all row groups that it was asked for until it ends.
    """
    for groups in _runs(file.metadata):
        yield from file.iter_batches(batch_size=batch_rows, row_groups=groups, columns=list(columns))


def _runs(footer: Any) -> Iterator[list[int]]:
    """Yield the numbers of row groups that are read at once: together about so many bytes, at least one."""
    groups: list[int] = []
    size = 0
    for number in range(footer.num_row_groups):
        groups.append(number)
        size += footer.row_group(number).total_byte_size
        if size >= _RUN_BYTES:
            yield groups
            groups, size = [], 0
    if groups:
        yield groups


def _is_near(file: Any) -> bool:
    """Whether small reads cost next to nothing."""
    return isinstance(file, (pa.OSFile, pa.BufferReader, pa.MemoryMappedFile))


def _avro_schema_of(footer: Any) -> bytes:
    return bytes((footer.metadata or {}).get(b"parquet.avro.schema", b""))


def _names_of(avro_schema: bytes) -> list[str]:
    try:
        return [str(field["name"]) for field in json.loads(avro_schema)["fields"]]
    except (ValueError, KeyError, TypeError):
        return []


def check_not_encrypted(file: Any, footer: Any, path: str) -> None:
    """Refuse a file whose footer is plain but signed, which says that columns are encrypted.

    Asking pyarrow for such a column's metadata ends the process. The signature is what stands between the footer
    that was parsed and the length that the file gives for it; files far away are not asked once more.
    """
    if _is_near(file):
        length = int.from_bytes(_tail(file)[:4], "little")
        if length == footer.serialized_size + _SIGNATURE_BYTES:
            raise encrypted_parquet(path)


def _ends_encrypted(file: Any) -> bool:
    return _is_near(file) and _tail(file)[4:] == b"PARE"


def _tail(file: Any) -> bytes:
    size = file.size()
    return bytes(file.read_at(8, max(size - 8, 0)))


def encrypted_parquet(path: str) -> UnsupportedTable:
    """The error for a file that only holders of its keys can read."""
    return found_in_files("ENCRYPTED_BASE_FILE", path=path)


def unreadable_parquet(path: str, reason: object) -> CorruptTable:
    """The error for a Parquet file that cannot be read."""
    return CorruptTable(
        f"Parquet file {path} cannot be read: {str(reason).rstrip('.')}.",
        condition="UNREADABLE_BASE_FILE",
        path=path,
    )
