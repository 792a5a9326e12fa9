"""Avro to Arrow by native code: rows of one schema, framed as an Avro container, decoded by datafusion.

The decoder never ends when a container block has bytes left after its last row, which damaged rows can bring
about. So the container promises more rows than its bytes can hold, and reading stops when all true rows are
there: damage leads to an error, or to rows that the caller's checks refuse. Rows leave the decoder in full
batches only; filler rows fill the last.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.machinery
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

BATCH_ROWS = 65_536
_SHARED_MEMORY = "/dev/shm"
_SYNC = os.urandom(16)
_LOADING = threading.Lock()


class NativeDecodeError(Exception):
    """The native decoder could not take the schema or the bytes."""


_process: int | None = None
"""The process in which the decoder was first used."""


@dataclass(frozen=True)
class Rows:
    """`count` Avro-encoded rows, one behind the other, none of them empty."""

    count: int
    data: pa.Buffer


def decode_rows(
    schema: Mapping[str, Any], parts: Sequence[Rows], *, filler: bytes, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Decode the rows of all `parts` in order; only `columns`, when given.

    `filler` is some encoded row of the schema. The caller must check that the rows fill their bytes.

    Raises:
        NativeDecodeError: the schema has something the decoder does not know, or the bytes do not fit it.
    """
    rows = sum(part.count for part in parts)
    if not rows:
        return
    _check_process()
    batch_count = -(-rows // BATCH_ROWS)
    batch_rows = -(-rows // batch_count)
    padding = filler * (batch_count * batch_rows - rows)
    try:
        with _container(schema, parts, padding) as path:
            batches = _read(path, columns, batch_rows)
            for index in range(batch_count):
                yield next(batches).slice(0, rows - index * batch_rows)
    except BaseException as error:
        # A panic of the native code is a BaseException of a private class; a full disk is an OSError.
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)):
            raise
        raise NativeDecodeError(str(error)) from error


def _check_process() -> None:
    """The decoder's threads began in one process; a fork has none, and would wait for ever."""
    global _process
    if _process is None:
        _process = os.getpid()
    if _process != os.getpid():
        raise NativeDecodeError("the native decoder does not work in a forked process")


def _read(path: str, columns: Sequence[str] | None, batch_rows: int) -> Iterator[pa.RecordBatch]:
    internal = _internal_module()
    # One partition keeps the order of the rows, which decides who wins.
    config = internal.SessionConfig().with_target_partitions(1).with_batch_size(batch_rows)
    frame = internal.SessionContext(config, None).read_avro(path, None, [], ".avro")
    if columns is not None:
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        frame = frame.select(*[internal.expr.RawExpr.column(name) for name in quoted])
    yield from pa.RecordBatchReader.from_stream(frame)


@contextlib.contextmanager
def _container(schema: Mapping[str, Any], parts: Sequence[Rows], filler: bytes) -> Iterator[str]:
    """Write an Avro container to a file, in memory when it fits there, for as long as the context lasts."""
    size = sum(part.data.size for part in parts) + len(filler)
    with tempfile.NamedTemporaryFile(suffix=".avro", prefix="drawstring-", dir=_directory(size)) as file:
        file.write(_container_header(schema))
        file.write(varint(size + 1) + varint(size))
        for part in parts:
            file.write(part.data)
        file.write(filler + _SYNC)
        file.flush()
        yield file.name


def _directory(size: int) -> str | None:
    """Shared memory when it has room to spare, else the default temporary directory."""
    try:
        free = shutil.disk_usage(_SHARED_MEMORY).free
    except OSError:
        return None
    return _SHARED_MEMORY if free > 2 * size and os.access(_SHARED_MEMORY, os.W_OK) else None


def _container_header(schema: Mapping[str, Any]) -> bytes:
    text = json.dumps(schema).encode()
    entries = _bytes(b"avro.schema") + _bytes(text) + _bytes(b"avro.codec") + _bytes(b"null")
    return b"Obj\x01" + varint(2) + entries + varint(0) + _SYNC


def varint(value: int) -> bytes:
    """Encode a long as Avro does: zigzag, then seven bits a byte."""
    value = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Decode a long; return it and the position behind it. IndexError when the bytes end."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise IndexError("varint longer than ten bytes")


def _bytes(data: bytes) -> bytes:
    return varint(len(data)) + data


@lru_cache(maxsize=1)
def _internal_module() -> Any:
    """Load datafusion's extension module alone: its Python package pulls in pandas, which takes seconds.

    It is registered under its own name, for it can be initialised only once in a process.
    """
    name = "datafusion._internal"
    with _LOADING:
        return sys.modules[name] if name in sys.modules else _load(name)


def _load(name: str) -> Any:
    spec = importlib.util.find_spec("datafusion")
    if spec is None or not spec.origin:
        raise ModuleNotFoundError("datafusion is not installed", name="datafusion")
    folder = os.path.dirname(spec.origin)
    libraries = sorted(
        path
        for suffix in importlib.machinery.EXTENSION_SUFFIXES
        for path in glob.glob(os.path.join(glob.escape(folder), f"_internal*{suffix}"))
    )
    if not libraries:
        return importlib.import_module(name)
    loader = importlib.machinery.ExtensionFileLoader(name, libraries[0])
    module_spec = importlib.util.spec_from_loader(name, loader)
    assert module_spec is not None
    module = importlib.util.module_from_spec(module_spec)
    loader.exec_module(module)
    sys.modules[name] = module
    return module
