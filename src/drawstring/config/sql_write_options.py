"""The options of SQL's INSERT beside those of every write."""

from __future__ import annotations

from typing import Any

from drawstring.config.option import Option, boolean, one_of

_INSERT_OPERATIONS = ("insert", "bulk_insert", "upsert")
INSERT_INTO = Option(
    "hoodie.spark.sql.insert.into.operation",
    one_of(*_INSERT_OPERATIONS),
    "insert",
    "What SQL INSERT INTO does.",
    allowed=_INSERT_OPERATIONS,
)
INSERT_MODE = Option(
    "hoodie.sql.insert.mode",
    one_of("upsert", "non-strict"),
    "non-strict",
    "Older switch for INSERT INTO.",
    allowed=("upsert", "non-strict"),
)
BULK_INSERT = Option(
    "hoodie.sql.bulk.insert.enable",
    boolean,
    False,
    "Older switch for bulk inserts by INSERT INTO.",
    allowed=("true", "false"),
)

ALL: tuple[Option[Any], ...] = (INSERT_INTO, INSERT_MODE, BULK_INSERT)
