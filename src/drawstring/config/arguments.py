"""Checks of the arguments of `open_table` and `create_table`, before storage is accessed."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from drawstring.config.read_options import (
    DELETE_FIELD,
    DELETE_MARKER,
    MERGE_TYPE,
    READ_OPTIMIZED,
    ReadOptions,
)
from drawstring.config.table_config import TableConfig
from drawstring.errors import InvalidOption


def path_text(uri: object) -> str:
    """Return a base path as text; raises `InvalidOption` for what is no path."""
    path = fspath(uri) if isinstance(uri, (str, PathLike)) else None
    if not isinstance(path, str) or "\0" in path:
        raise InvalidOption(
            f"The path is {uri!r} ({type(uri).__name__}); expected the base path of a Hudi table as text or a path "
            "object, such as '/data/trips'.",
            condition="INVALID_OPTION_VALUE",
            key="path",
            value=repr(uri),
        )
    return path


def check_mapping(name: str, given: object) -> None:
    """Refuse options that are no mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidOption(
            f"{name} is {given!r} ({type(given).__name__}); expected a mapping from option keys to values.",
            condition="INVALID_OPTION_VALUE",
            key=name,
            value=repr(given),
        )


def check_delete_marker(config: TableConfig) -> None:
    """One without the other marks nothing: rows that were meant to be deleted would be returned."""
    if (config.merge.delete_field is None) != (config.merge.delete_marker is None):
        given, missing = DELETE_FIELD.key, DELETE_MARKER.key
        if config.merge.delete_field is None:
            given, missing = missing, given
        raise InvalidOption(
            f"Option {given} is given without {missing}; expected both or neither.",
            condition="CONTRADICTING_OPTIONS",
            key=given,
            missing=missing,
        )


def check_merge_type(config: TableConfig, options: ReadOptions, path: str) -> None:
    """Refuse merge types other than the one by which slices are read."""
    merges = config.is_merge_on_read and options.query_type != READ_OPTIMIZED
    if merges and options.merge_type != MERGE_TYPE.default:
        raise InvalidOption(
            f"Cannot read {path} with {MERGE_TYPE.key}={options.merge_type}: drawstring always merges logs with "
            "base files. Remove the option, read read_optimized, or read with Apache Hudi.",
            condition="READ_OPTION_NOT_SUPPORTED",
            key=MERGE_TYPE.key,
            value=options.merge_type,
        )
