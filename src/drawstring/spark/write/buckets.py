"""Numbers of Hudi's bucket index as a Spark column; `drawstring.write.bucket_index` has the rule."""

from __future__ import annotations

import re

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.model.key_names import EMPTY_KEY_PART, NULL_KEY_PART
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.write.bucket_index import BucketRule

_HASH = "drawstring_string_hash"


def register_hash(spark: SparkSession) -> None:
    """Make Java's hash of texts known to the session; once more does no harm."""
    spark.udf.registerJavaFunction(_HASH, "drawstring.bridge.StringHash", T.IntegerType())


def string_hash(text: Column) -> Column:
    """Java's hash of a text, 0 for null, as a long."""
    return F.call_udf(_HASH, text).cast("long")


def bucket_column(rule: BucketRule) -> Column:
    """The bucket of each row's record key."""
    hashed = F.lit(1).cast("long")
    for value in _hash_values(rule):
        # Java's ints wrap around: longs that are cut to 32 bits do the same.
        hashed = (hashed * 31 + string_hash(value)).bitwiseAND(F.lit(0xFFFFFFFF))
    return (hashed.bitwiseAND(F.lit(0x7FFFFFFF)) % rule.buckets).cast("int")


def _hash_values(rule: BucketRule) -> list[Column]:
    key = F.col(RECORD_KEY)
    if len(rule.key_fields) == 1:
        return [key]
    pattern = ",".join(f"{re.escape(name)}:(.*?)" for name in rule.key_fields)
    parts = [
        F.regexp_extract(key, f"(?s)^{pattern}$", number)
        for number, name in enumerate(rule.key_fields, 1)
        if not rule.hash_fields or name in rule.hash_fields
    ]
    return [F.when(~part.isin(NULL_KEY_PART, EMPTY_KEY_PART), part) for part in parts]
