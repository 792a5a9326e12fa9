"""Ask Apache Hudi which options it knows, and keep the answer in src/drawstring/config/hudi_keys.csv.

For developers, when drawstring follows a newer Hudi: it needs a JDK and Hudi's bundle, and runs in the
environment with PySpark 3.5. What drawstring does with each key stands in config/hudi_key_rules.py; a test
names the keys that have no rule yet.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import maven_jars
import pyspark

HUDI = "1.2.0"
ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "drawstring" / "config" / "hudi_keys.csv"
Row = tuple[str, str, str, str]


def main() -> int:
    """Write the list."""
    rows = merged(_printed(maven_jars.hudi_bundle(HUDI)))
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("key", "default", "alternatives", "deprecated"))
        writer.writerows(rows)
    print(f"{len(rows)} keys of Hudi {HUDI} in {TARGET.relative_to(ROOT)}")
    return 0


def merged(printed: list[list[str]]) -> list[Row]:
    """One row per key: a declared option counts before a plain text, a default before none."""
    found: dict[str, Row] = {}
    for kind, *row in sorted(printed, key=lambda row: (row[0] == "text", row[1], not row[2], not row[3])):
        if kind == "option" or _is_a_key(row[0], found):
            found.setdefault(row[0], (row[0], row[1], row[2], row[3]))
    return [found[key] for key in sorted(found)]


def _is_a_key(text: str, options: dict[str, Row]) -> bool:
    """Whether a text of Hudi's code that looks like a key is one, and not a prefix, a file or an older name."""
    older = any(text in row[2].split() for row in options.values())
    prefix = any(key.startswith(f"{text}.") for key in options)
    return not older and not prefix and not text.startswith("hoodie.properties.")


def _printed(bundle: Path) -> list[list[str]]:
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    program = Path(__file__).with_name("HudiKeys.java")
    command = ["java", "-cp", f"{bundle}:{jars}", str(program), str(bundle)]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return [line.split("\t") for line in lines]


if __name__ == "__main__":
    sys.exit(main())
