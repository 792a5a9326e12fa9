"""Which base files Spark can read by itself, and how those of other schemas come to the table's schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from drawstring.errors import IncompatibleSchema
from drawstring.model.file_group import BaseFile
from drawstring.model.read_task import ColumnMapping, ReadTask
from drawstring.planning.file_schemas import FileSchemas
from drawstring.planning.scan import ScanSource
from drawstring.schema import conversions
from drawstring.schema.projection import (
    IDENTITY,
    LIST,
    MAP,
    NULL,
    STRUCT,
    Conversion,
    Projection,
    plan_projection,
)
from drawstring.schema.type_text import type_text
from drawstring.view.partitions import is_shown

AS_IS = -1
"""The index of files that need no projection."""
_POSITIONS = "_tmp_metadata_row_index"
"""A column of this name Spark's Parquet reader fills with positions, whatever the file has in it."""

_ALWAYS = frozenset(
    {
        IDENTITY,
        NULL,
        STRUCT,
        LIST,
        MAP,
        conversions.FLOAT_TO_DOUBLE,
        conversions.FLOAT_TO_TEXT,
        conversions.DECIMAL_TO_DECIMAL,
        conversions.DATE_TO_TEXT,
        conversions.TEXT_TO_BYTES,
    }
)
_OF_INTEGERS = frozenset({conversions.CAST, conversions.NUMBER_TO_TEXT, conversions.INTEGER_TO_DECIMAL})
_OF_TIMES = frozenset({conversions.TIMESTAMP, conversions.TIMESTAMP_TO_TEXT})


class Projections:
    """The distinct projections of a plan's base files, in the order in which files first need them."""

    def __init__(self, source: ScanSource) -> None:
        self.found: list[Any] = []
        self._schema = source.schema
        self._files = FileSchemas(source.state)
        self._known: dict[Any, int | None] = {}
        self._texts: dict[int, bytes] = {}

    def look_up(self, tasks: Iterable[ReadTask]) -> None:
        """Read what the tasks' files may need of them, many files at once."""
        bases = (_plain_base(task) for task in tasks if not task.file_schema_known_equal)
        self._files.look_up(base for base in bases if base is not None)

    def index(self, task: ReadTask) -> int | None:
        """The index of the projection of a task's base file, or `AS_IS`; None when a worker must read the file."""
        base = _plain_base(task)
        if base is None or not self._are_constants(task.partition_values) or _POSITIONS in self._schema.names:
            return None
        return AS_IS if task.file_schema_known_equal else self._index(base, task.mapping_for(base.path))

    def _are_constants(self, names: Iterable[str]) -> bool:
        """Whether the bridge can show values of these columns in place of the file's."""
        return all(name in self._schema.names and is_shown(self._schema.field(name).type) for name in names)

    def _index(self, base: BaseFile, mapping: tuple[ColumnMapping, ...] | None) -> int | None:
        schema = self._files.of(base)
        if schema is None:
            return None
        key = (self._text(schema), mapping)
        if key not in self._known:
            self._known[key] = self._plan(schema, mapping)
        return self._known[key]

    def _text(self, schema: pa.Schema) -> bytes:
        """What equal schemas have in common; files of one instant share the object, which the state keeps."""
        if id(schema) not in self._texts:
            self._texts[id(schema)] = schema.remove_metadata().serialize().to_pybytes()
        return self._texts[id(schema)]

    def _plan(self, schema: pa.Schema, mapping: tuple[ColumnMapping, ...] | None) -> int | None:
        try:
            projection = plan_projection(schema, self._schema, mapping=mapping)
        except IncompatibleSchema:
            return None
        if _only_selects(projection, schema):
            return AS_IS
        if not spark_can_apply(projection, schema):
            return None
        self.found.append(projection.describe())
        return len(self.found) - 1


def _plain_base(task: ReadTask) -> BaseFile | None:
    """The base file, if its rows and the file's columns are all that is read of it."""
    base = task.slice.base_file
    if base is None or base.extension != "parquet":
        return None
    return None if task.keep_commit_times is not None or task.change is not None else base


def spark_can_apply(projection: Projection, schema: pa.Schema) -> bool:
    """Whether the bridge has every conversion of a projection, with the answers that `Projection.apply` gives."""
    folded = [name.lower() for name in schema.names]
    sources = [column.source.lower() for column in projection.columns if column.source is not None]
    if len(set(folded)) < len(folded) or len(set(sources)) < len(sources):
        return False
    return all(map(_is_known, projection.columns))


def _only_selects(projection: Projection, schema: pa.Schema) -> bool:
    """Whether reading by name does it; a missing column must not find an older one of the same name."""
    present = {name.lower() for name in schema.names}
    return projection.only_selects and not any(name.lower() in present for name in projection.missing_columns)


def _is_known(conversion: Conversion) -> bool:
    if not conversion.is_identity and not all(map(_is_known, conversion.children)):
        return False
    return conversion.kind in _ALWAYS or _is_known_value(conversion.kind, conversion.found, conversion.wanted)


def _is_known_value(kind: str, found: Any, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if kind in _OF_INTEGERS and found in (pa.int32(), pa.int64()):
        return True
    if kind == conversions.NUMBER_TO_TEXT:
        return bool(pa.types.is_decimal(found))
    if kind == conversions.CAST:
        return type_text(found) == type_text(wanted) and type_text(found) in ("string", "binary")
    if kind in _OF_TIMES:
        # Spark reads no nanoseconds.
        return bool(found == pa.int64() or found.unit in ("ms", "us"))
    return bool(kind == conversions.BYTES_TO_TEXT and found == pa.binary())
