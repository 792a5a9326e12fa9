"""Pack a table and its expected reads: `NAME.zip` with one LZMA member `table.tar`, and `NAME.json`."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any


def pack(table: Path, *, into: Path, name: str, expected: dict[str, Any]) -> None:
    """Write both files of a golden table; checksum side files of Hadoop's local file system are left out."""
    into.mkdir(parents=True, exist_ok=True)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(table.rglob("*")):
            if path.suffix != ".crc":
                tar.add(path, arcname=str(path.relative_to(table)), recursive=False)
    with zipfile.ZipFile(into / f"{name}.zip", "w", compression=zipfile.ZIP_LZMA) as packed:
        packed.writestr("table.tar", archive.getvalue())
    (into / f"{name}.json").write_text(_json_text(expected), encoding="utf-8")


def _json_text(expected: dict[str, Any]) -> str:
    head = {key: value for key, value in expected.items() if key != "rows"}
    rows = ",\n  ".join(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in expected["rows"])
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    return "{\n" + ",\n".join([*lines, f' "rows": [\n  {rows}\n ]']) + "\n}\n"
