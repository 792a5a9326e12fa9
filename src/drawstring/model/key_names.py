"""Texts that stand for absent values in record keys and partition paths."""

from __future__ import annotations

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
NULL_KEY_PART = "__null__"
EMPTY_KEY_PART = "__empty__"
