"""What tasks leave behind in a worker of PySpark that runs many."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
from zipimport import zipimporter

import pytest

from drawstring.spark.write.lean_tasks import lean


@pytest.fixture
def zip_on_path(tmp_path, monkeypatch):
    path = tmp_path / "modules.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("module_of_a_zip.py", "value = 1")
        archive.writestr("other_module_of_a_zip.py", "value = 2")
    monkeypatch.syspath_prepend(str(path))
    yield str(path)
    for name in ("module_of_a_zip", "other_module_of_a_zip"):
        sys.modules.pop(name, None)
    gc.unfreeze()


def test_the_next_task_neither_reads_zip_files_anew_nor_looks_for_garbage_among_imports(zip_on_path):
    assert importlib.import_module("module_of_a_zip").value == 1
    assert isinstance(sys.path_importer_cache[zip_on_path], zipimporter)

    assert list(lean(lambda rows: iter([sum(rows)]))([1, 2])) == [3]

    assert not [p for p, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]
    assert gc.get_freeze_count() > 0


def test_modules_of_zip_files_are_still_found(zip_on_path):
    importlib.import_module("module_of_a_zip")
    list(lean(iter)([]))
    importlib.invalidate_caches()

    assert importlib.import_module("other_module_of_a_zip").value == 2
