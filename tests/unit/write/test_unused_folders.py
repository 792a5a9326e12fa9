"""Folders that a paused process takes away although others have begun to use them."""

from __future__ import annotations

import pytest

from drawstring.storage import LocalStorage
from drawstring.write.unused_folders import drop_folders


@pytest.mark.parametrize("made_anew", [False, True])
def test_files_of_others_are_put_back_also_where_they_made_the_folder_anew(tmp_path, made_anew):
    storage = LocalStorage(str(tmp_path))
    storage.write(".hoodie/timeline/history/1.parquet", b"one")
    storage.write(".hoodie/timeline/1.commit", b"one")
    looks = []

    def is_unused():
        looks.append(True)
        if len(looks) == 2 and made_anew:
            storage.write(".hoodie/timeline/2.commit", b"two")
        return len(looks) == 1

    assert not drop_folders(storage, [".hoodie/timeline"], is_unused)
    found = {
        file.path: storage.read(file.path)
        for file in storage.list("", recursive=True)
        if not file.is_directory
    }
    expected = {".hoodie/timeline/history/1.parquet": b"one", ".hoodie/timeline/1.commit": b"one"}
    assert found == expected | ({".hoodie/timeline/2.commit": b"two"} if made_anew else {})


def test_unused_folders_are_deleted(tmp_path):
    storage = LocalStorage(str(tmp_path))
    storage.write(".hoodie/timeline/1.commit", b"one")
    assert drop_folders(storage, [".hoodie/timeline", ".hoodie/metadata"], lambda: True)
    assert not storage.exists(".hoodie/timeline")
