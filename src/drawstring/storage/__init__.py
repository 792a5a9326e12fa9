"""Storage: the only way the core touches files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from drawstring.errors import InvalidOption
from drawstring.storage.arrow_fs import SCHEMES, ArrowStorage
from drawstring.storage.base import FileInfo, Storage
from drawstring.storage.local import LocalStorage
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.nested import NestedStorage

__all__ = [
    "ArrowStorage",
    "FileInfo",
    "LocalStorage",
    "MemoryStorage",
    "NestedStorage",
    "Storage",
    "open_storage",
]


# A secret may hold slashes; a port and a path that holds an at sign are no secret.
_SECRETS = re.compile(
    r"(?<=://)[^/@?]*:(?!\d+/)[^@]*(?=@) | (?<=[?&])[^=&]*(?:secret|token|password|key)[^=&]*=[^&]*",
    re.IGNORECASE | re.VERBOSE,
)


def open_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """Return the storage of a table's base path: a plain path, `file:`, or a URI that pyarrow knows.

    Raises `InvalidOption` when the path is empty, its scheme unknown, or credentials are written in it: paths
    end up in messages and plans, where nobody should read those.
    """
    if not uri or not uri.strip():
        raise InvalidOption(
            "No path was given; expected the base path of a Hudi table, such as '/data/trips'.",
            condition="PATH_MISSING",
        )
    scheme, separator, _ = uri.partition("://")
    if uri.startswith("file:") or not separator:
        return LocalStorage(uri)
    if scheme == "memory":
        return MemoryStorage(uri)
    if _SECRETS.search(uri):
        raise InvalidOption(
            f"The path {_SECRETS.sub('***', uri)!r} holds credentials. Give them as options, such as "
            "fs.s3a.access.key and fs.s3a.secret.key, or leave them to the environment.",
            condition="CREDENTIALS_IN_PATH",
        )
    if scheme not in SCHEMES:
        raise InvalidOption(
            f"The path {uri!r} has the scheme {scheme!r}; expected a plain path, file:, or one of "
            f"{', '.join(sorted(SCHEMES))}.",
            condition="UNKNOWN_SCHEME",
            scheme=scheme,
        )
    return ArrowStorage(uri, options)
