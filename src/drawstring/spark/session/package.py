"""This package as something executors can import: a path, or a zip to send them."""

from __future__ import annotations

import hashlib
import os
import zipfile
from functools import lru_cache
from pathlib import Path

from drawstring.spark.session.cache import cache_directory

_PACKAGE = Path(__file__).resolve().parents[2]
_SUFFIXES = (".py", ".avsc", ".csv")


def package_parent() -> Path:
    """The folder that must be on the Python path for `import drawstring`."""
    return _PACKAGE.parent


@lru_cache(maxsize=1)
def package_zip() -> Path:
    """A zip of the package: its modules, schemas and tables of facts, named after their content."""
    files = sorted(file for file in _PACKAGE.rglob("*") if file.suffix in _SUFFIXES)
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(_PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    target = cache_directory() / f"drawstring-{digest.hexdigest()[:16]}.zip"
    if not target.is_file():
        _write(target, files)
    return target


def _write(target: Path, files: list[Path]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, f"drawstring/{file.relative_to(_PACKAGE).as_posix()}")
    os.replace(staged, target)
