"""How many values of a column differ, by the dictionaries of its files."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.storage import LocalStorage
from drawstring.view.distinct_values import MAX_FILES, distinct_values

_chance = random.Random(1)


def drawn(values: int, *, rows: int = 1000, files: int = 4) -> list[list[str]]:
    return [[f"v{_chance.randrange(values):06}" for _ in range(rows)] for _ in range(files)]


CASES = {
    "few, in all files": drawn(20),
    "as many as rows of a file, by chance": drawn(1000),
    "many more than rows": drawn(100_000, files=10),
    "the same once in each file": [[f"v{i:06}" for i in range(1000)] for _ in range(4)],
    "others in each file": [[f"v{file}-{i:03}" for i in range(1000)] for file in range(4)],
    "few others in each file": [[f"v{file}-{_chance.randrange(9)}" for _ in range(500)] for file in range(6)],
    "unique, all over": [[f"v{4 * i + file:06}" for i in range(1000)] for file in range(4)],
    "one": [["v"] * 10] * 3,
    "with nulls": [[None, "v"] * 50, [None] * 9, ["w", None]],
    "more files than are looked at": drawn(300, rows=100, files=3 * MAX_FILES),
    "truth values": [[True, False, None]] * 3,
    "numbers": [[i / 3 for i in range(50)] * 5] * 3,
}


def write(folder, files, **options) -> list[str]:
    for number, values in enumerate(files):
        kind = pa.array([v for file in files for v in file]).type
        pq.write_table(pa.table({"c": pa.array(values, kind)}), folder / f"{number}.parquet", **options)
    return [f"{number}.parquet" for number in range(len(files))]


@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_near_the_truth(tmp_path, name):
    files = CASES[name]
    paths = write(tmp_path, files)
    truth = len({value for file in files for value in file if value is not None})
    found = distinct_values(LocalStorage(str(tmp_path)), paths, ["c", "absent"])
    assert found.keys() == {"c"}
    assert found["c"] == pytest.approx(truth, rel=0.1)


def test_row_groups_are_put_together_as_files_are(tmp_path):
    paths = write(tmp_path, drawn(3000, rows=10_000, files=2), row_group_size=1000)
    assert distinct_values(LocalStorage(str(tmp_path)), paths, ["c"])["c"] == pytest.approx(2990, rel=0.1)


def test_values_that_writers_do_not_repeat_are_taken_to_differ(tmp_path):
    paths = write(tmp_path, CASES["others in each file"], use_dictionary=False)
    assert distinct_values(LocalStorage(str(tmp_path)), paths, ["c"]) == {"c": 4000}


def test_a_full_dictionary_is_not_believed(tmp_path):
    values = [f"{'x' * 200}{i:06}" for i in range(9000)]
    paths = write(tmp_path, [values])
    assert distinct_values(LocalStorage(str(tmp_path)), paths, ["c"]) == {"c": 9000}


@pytest.mark.parametrize("content", [b"", b"PAR1 something else PAR1"])
def test_what_files_do_not_tell_is_left_out(tmp_path, content):
    paths = write(tmp_path, CASES["few, in all files"])
    (tmp_path / "0.parquet").write_bytes(content)
    assert distinct_values(LocalStorage(str(tmp_path)), [*paths, "absent.parquet"], ["c"]) == {}
    assert distinct_values(LocalStorage(str(tmp_path)), [], ["c"]) == {}
