"""Record keys that a condition asks for, and the files that cannot hold them by the bloom filters in their footers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.config.table_config import TableConfig
from drawstring.formats.bloom import KeyFooter
from drawstring.model.read_task import ReadTask
from drawstring.predicates.ast import Column, Comparison, In, Or, Predicate, conjuncts
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.storage.base import Storage

BY_BLOOM_FILTER = "bloom filter"
MAX_KEYS = 1000
"""With more keys hardly any file can be ruled out, and each key is hashed for each file."""
MAX_FILTERS = 256
"""How many bloom filters a plan reads at most; each may have some hundred kilobytes, but saves reading a file."""
_THREADS = 8
_GENERATORS = ("SIMPLE", "COMPLEX", "TIMESTAMP", "CUSTOM", "NON_PARTITION")


@dataclass(frozen=True)
class KeyQuestion:
    """Finds the record keys that conditions on a table ask for."""

    config: TableConfig
    schema: pa.Schema

    def keys(self, predicate: Predicate) -> tuple[str, ...] | None:
        """The texts of keys of which every matching row has one; None where the condition does not tell."""
        parts = conjuncts(predicate)
        found = [keys for part in parts if (keys := self._of(part)) is not None]
        if (several := self._of_all_fields(parts)) is not None:
            found.append(several)
        shortest = min(found, key=len, default=None)
        return shortest if shortest is not None and len(shortest) <= MAX_KEYS else None

    def _of_all_fields(self, parts: Sequence[Predicate]) -> tuple[str, ...] | None:
        """The texts of keys of several fields, where the condition tells the values of each."""
        fields = self.config.record_key_fields
        if len(fields) < 2 or self.config.key_generator not in _GENERATORS:
            return None
        choices: list[tuple[str, ...]] = []
        for field in fields:
            told = [_told(part) for part in parts]
            texts = [self._shown(*each) for each in told if each is not None and each[0] == Column((field,))]
            shortest = min((each for each in texts if each is not None), key=len, default=None)
            if shortest is None:
                return None
            choices.append(tuple(f"{field}:{text}" for text in shortest))
        if prod(map(len, choices)) > MAX_KEYS:
            return None
        return tuple(",".join(values) for values in product(*choices))

    def _of(self, part: Predicate) -> tuple[str, ...] | None:
        if isinstance(part, Or):
            several = [self._of(each) for each in part.parts]
            known = [keys for keys in several if keys is not None]
            return tuple(key for keys in known for key in keys) if len(known) == len(several) else None
        told = _told(part)
        return None if told is None else self._texts(*told)

    def _texts(self, column: Column, values: Sequence[Any]) -> tuple[str, ...] | None:
        """How values of the key column, or of Hudi's own, stand in files; only where a value has one text."""
        is_key = len(column.path) == 1 and column.path == self.config.record_key_fields
        if column.path != (RECORD_KEY,) and not (is_key and self.config.key_generator in _GENERATORS):
            return None
        texts = self._shown(column, values)
        if texts is None or not is_key:
            return texts
        # Generators of several fields, and some of one, write the field's name in front.
        return (*texts, *(f"{column.path[0]}:{text}" for text in texts))

    def _shown(self, column: Column, values: Sequence[Any]) -> tuple[str, ...] | None:
        """How values stand in keys; None where one may stand in several ways."""
        name = column.path[0]
        kind = self.schema.field(name).type if name in self.schema.names else pa.null()
        wanted = str if pa.types.is_string(kind) else int if pa.types.is_integer(kind) else None
        # A null among the values, and a text that generators replace, have no text of their own.
        if wanted is None or any(type(value) is not wanted or value == "" for value in values):
            return None
        return tuple(map(str, values))


def _told(part: Predicate) -> tuple[Column, Sequence[Any]] | None:
    """The values that a condition asks of a column; None for other conditions."""
    if isinstance(part, Comparison) and part.op in ("=", "<=>"):
        return part.column, (part.literal.value,)
    return (part.column, part.values) if isinstance(part, In) else None


def without_keys(storage: Storage, tasks: Sequence[ReadTask], keys: Sequence[str]) -> list[bool]:
    """Which tasks hold none of the keys: those of plain base files whose footers rule all of them out."""
    asked = [n for n, task in enumerate(tasks) if _is_plain(task)]
    left_out = [False] * len(tasks)
    if not keys or not 0 < len(asked) <= MAX_FILTERS:
        return left_out
    texts = pa.array(dict.fromkeys(keys), pa.string())
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda n: _rules_out(storage, tasks[n], texts), asked)
        for number, ruled_out in zip(asked, found, strict=True):
            left_out[number] = ruled_out
    return left_out


def _is_plain(task: ReadTask) -> bool:
    base = task.slice.base_file
    return (
        base is not None and base.extension == "parquet" and not task.slice.log_files and task.change is None
    )


def _rules_out(storage: Storage, task: ReadTask, keys: pa.Array) -> bool:
    base = task.slice.base_file
    assert base is not None
    try:
        with storage.open(base.path) as file:
            footer = KeyFooter.of(pq.read_metadata(file).metadata)
    except (OSError, pa.ArrowException):
        # Whoever reads the file reports what is wrong with it.
        return False
    return not footer.candidates(keys).any()
