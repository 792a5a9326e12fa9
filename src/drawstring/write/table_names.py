"""The Avro name that is made of a table's name."""

from __future__ import annotations

import re


def avro_names(table_name: str) -> tuple[str, str]:
    """Return the name and namespace of the Avro record of a table's rows; illegal characters become `_`."""
    clean = re.sub(r"[^A-Za-z0-9_]", "_", table_name)
    clean = f"_{clean}" if clean[:1].isdigit() else clean
    return f"{clean}_record", f"hoodie.{clean}"
