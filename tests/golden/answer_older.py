"""Let the newest Hudi read what `make_older.py` made, and pack table and answers as golden ones.

python tests/golden/answer_older.py --hudi 0.9.0 FOLDER INTO [NAME…]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]

from hudi_session import hudi_session  # noqa: E402
from making.catalogue import TABLE_TYPES, THEMES  # noqa: E402
from making.packing import pack  # noqa: E402
from making.reads import (  # noqa: E402
    RowStore,
    default_questions,
    read_all,
    without_unanswered,
    write_instants,
)


def main() -> None:
    """Answer for every table in a folder, or for those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hudi", required=True, help="who made the tables")
    parser.add_argument("folder", type=Path)
    parser.add_argument("into", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    spark = hudi_session("older tables", workspace=arguments.folder)
    for options in sorted(arguments.folder.glob("*.read_options.json")):
        table = arguments.folder / options.name.removesuffix(".read_options.json")
        if arguments.names and table.name not in arguments.names:
            continue
        version, kind, theme = table.name.split("_", 2)
        store, read_options = RowStore(), json.loads(options.read_text())
        answer = read_all(
            spark,
            table,
            merge_on_read=kind == "mor",
            read_options=read_options,
            store=store,
            asked=default_questions(write_instants(table)),
        )
        head = {
            "name": table.name,
            "hudi": arguments.hudi,
            "table_version": int(version[1:]),
            "table_type": TABLE_TYPES[kind],
            "exercises": THEMES[theme].exercises if theme in THEMES else theme,
            "read_options": read_options,
            "checked": [],
        }
        expected = {**head, **without_unanswered(answer), "rows": store.rows}
        pack(table, into=arguments.into, name=table.name, expected=expected)
        print(table.name, "packed", flush=True)


if __name__ == "__main__":
    main()
