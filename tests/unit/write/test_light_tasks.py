"""What a fresh worker of Spark loads before a bulk insert writes its first file."""

from __future__ import annotations

import subprocess
import sys

_WRITE = """
import sys
import numpy as np, pyarrow as pa
from drawstring.config.file_options import FileOptions
from drawstring.schema.arrays import number_array, text_array
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.spark.write import append_task
from drawstring.spark.write.task_results import stat_batch
from drawstring.storage import LocalStorage
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.key_generator import KeyGenerator

columns = [number_array(np.arange(3)), text_array(["a", "b", "a"]), number_array(np.arange(3.0))]
rows = pa.RecordBatch.from_arrays(columns, names=["id", "p", "amount"])
context = WriteContext(
    storage=LocalStorage(sys.argv[1]), requested_time="20261119213127123",
    schema=prepend_meta_columns(rows.schema), files=FileOptions(), key_fields=("id",),
    rule=KeyGenerator(("id",), ("p",), False, True, False),
)
writer = append_task.PartitionedWriter(context, TaskContext(0))
writer.write(rows)
assert stat_batch(writer.close()).num_rows == 2
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("drawstring.")}
print(*sorted(loaded & {"merge", "planning", "reading", "timeline", "view"}))
print("pandas" in sys.modules)
"""


def test_a_bulk_insert_loads_neither_the_reading_side_nor_pandas(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", _WRITE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["", "False"]
