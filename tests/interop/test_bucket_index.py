"""Apache Hudi lays out its bucket index as drawstring's hash says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.model.file_names import bucket_of_file_id
from drawstring.write.bucket_index import BucketRule, bucket_numbers
from tests.interop.engine import read, run, write

pytestmark = pytest.mark.interop

ROWS = [
    [None if i % 5 == 0 else f"k{i}" + "\u00e9\U0001f600" * (i % 3), "" if i % 4 == 0 else f"x:{i},y", i]
    for i in range(80)
]
RULES = {
    "one": BucketRule(5, ("n",)),
    "several": BucketRule(5, ("id", "s", "n")),
    "some": BucketRule(5, ("id", "s", "n"), ("s", "id")),
}


def test_every_key_lies_in_its_bucket(tmp_path):
    actions = []
    for name, rule in RULES.items():
        options = {
            "hoodie.table.name": name,
            "hoodie.metadata.enable": "false",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": str(rule.buckets),
            "hoodie.datasource.write.recordkey.field": ",".join(rule.key_fields),
        }
        if rule.hash_fields:
            options["hoodie.bucket.index.hash.field"] = ",".join(rule.hash_fields)
        actions += [
            write(tmp_path / name, ROWS, "id string, s string, n int", options),
            read(name, tmp_path / name),
        ]
    results = run("hudi", actions)
    for name, rule in RULES.items():
        rows = results[name]["rows"]
        assert len(rows) == len(ROWS), results
        keys = pa.array([row["_hoodie_record_key"] for row in rows])
        assert bucket_numbers(keys, rule).tolist() == [
            bucket_of_file_id(row["_hoodie_file_name"]) for row in rows
        ]
