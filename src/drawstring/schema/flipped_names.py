"""Names of columns in which a bit was flipped.

Nothing checks the bytes of a log block's header or of a Parquet footer. A column whose name changed there would be
read as one that the file never had: null in every row.
"""

from __future__ import annotations

from collections.abc import Collection

from drawstring.model import flipped_names
from drawstring.schema.meta_columns import META_COLUMNS


def flipped_name(found: Collection[str], told: Collection[str] = META_COLUMNS) -> str | None:
    """The name in `found` that stands for one that is `told` (by default Hudi's columns) but not found."""
    return flipped_names.flipped_name(found, told)
