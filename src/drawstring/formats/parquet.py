"""Parquet files read through pyarrow: the footer once, then batches of chosen columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.errors import CorruptTable
from drawstring.formats.parquet_pages import check_pages

DEFAULT_BATCH_ROWS = 65_536


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
        except (pa.ArrowException, OSError, ValueError) as error:
            file.close()
            raise unreadable_parquet(path, error) from error

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
            for batch in self._parquet.iter_batches(batch_size=batch_rows, columns=list(columns)):
                rows += batch.num_rows
                yield batch
        except (pa.ArrowException, OSError, ValueError) as error:
            raise unreadable_parquet(self.path, error) from error
        if rows != self.num_rows:
            raise unreadable_parquet(self.path, f"{rows} rows found, {self.num_rows} in the footer")


def _is_near(file: Any) -> bool:
    """Whether small reads cost next to nothing."""
    return isinstance(file, (pa.OSFile, pa.BufferReader, pa.MemoryMappedFile))


def unreadable_parquet(path: str, reason: object) -> CorruptTable:
    """The error for a Parquet file that cannot be read."""
    return CorruptTable(
        f"Parquet file {path} cannot be read: {reason}", condition="UNREADABLE_BASE_FILE", path=path
    )
