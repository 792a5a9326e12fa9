"""Apache Hudi tables for PySpark through DataSource V2, and for Python through Arrow.

Names load when first used: `import drawstring` imports neither pyspark nor pyarrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drawstring import errors
    from drawstring.config.read_options import ReadOptions
    from drawstring.config.write_options import WriteOptions
    from drawstring.predicates.builder import col
    from drawstring.spark import attach, configure, session
    from drawstring.table import Table, create_table, open_table

__version__ = "0.1.0"

_HOMES = {
    "ReadOptions": "drawstring.config.read_options",
    "Table": "drawstring.table",
    "WriteOptions": "drawstring.config.write_options",
    "attach": "drawstring.spark",
    "col": "drawstring.predicates.builder",
    "configure": "drawstring.spark",
    "create_table": "drawstring.table",
    "errors": "drawstring.errors",
    "open_table": "drawstring.table",
    "session": "drawstring.spark",
}

__all__ = [
    "ReadOptions",
    "Table",
    "WriteOptions",
    "attach",
    "col",
    "configure",
    "create_table",
    "errors",
    "open_table",
    "session",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'drawstring' has no attribute {name!r}")
    module = import_module(_HOMES[name])
    return module if _HOMES[name] == f"drawstring.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
