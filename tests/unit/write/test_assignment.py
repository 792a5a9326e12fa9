from __future__ import annotations

import itertools
import uuid

from drawstring.config.file_options import FileOptions
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice
from drawstring.model.file_names import file_id_prefix
from drawstring.write.assignment import HASH_RANGE, assign

FILES = FileOptions(max_file_size=1000, small_file_limit=500, record_size_estimate=10)


def slice_of(file_id: str, size: int, path: str = "p") -> FileSlice:
    base = BaseFile(f"{path}/{file_id}_0-0-0_1.parquet", size, file_id, "1")
    return FileSlice(FileGroupId(path, file_id), "1", base)


def covered(ranges) -> bool:
    bounds = sorted((r.low, r.high) for r in ranges)
    return (
        bounds[0][0] == 0
        and bounds[-1][1] == HASH_RANGE
        and all(a[1] == b[0] for a, b in itertools.pairwise(bounds))
    )


def test_small_files_are_filled_first_then_new_ones_are_made():
    slices = [slice_of("small", 300), slice_of("large", 600)]
    found = assign([], {"p": 270}, slices, files=FILES, record_size=None)
    assert [b.group.file_id for b in found.buckets if b.base_file] == ["small"]
    assert len(found.buckets) == 3
    assert covered(found.ranges)
    into_small = next(r for r in found.ranges if r.bucket == 0)
    assert abs((into_small.high - into_small.low) / HASH_RANGE - 70 / 272) < 0.01


def test_updates_and_inserts_share_the_bucket_of_a_file_group():
    found = assign(
        [FileGroupId("p", "small")], {"p": 5}, [slice_of("small", 300)], files=FILES, record_size=10
    )
    assert len(found.buckets) == 1
    assert found.by_group == {FileGroupId("p", "small"): 0}


def test_small_file_limit_of_zero_leaves_files_alone():
    files = FileOptions(max_file_size=1000, small_file_limit=0, record_size_estimate=10)
    found = assign([], {"p": 5}, [slice_of("small", 300)], files=files, record_size=None)
    assert [b.base_file for b in found.buckets] == [None]


def test_groups_of_a_pending_clustering_take_no_new_keys_but_their_own_rows():
    slices, group = [slice_of("small", 300)], FileGroupId("p", "small")
    found = assign([], {"p": 5}, slices, files=FILES, record_size=None, closed={group})
    assert [b.base_file for b in found.buckets] == [None]
    found = assign([group], {"p": 5}, slices, files=FILES, record_size=None, closed={group})
    assert [b.base_file is None for b in found.buckets] == [False, True]
    assert {r.bucket for r in found.ranges} == {1}


def test_nothing_to_write_needs_no_bucket():
    assert assign([], {}, [], files=FILES, record_size=None).buckets == ()


def test_new_file_groups_never_look_like_the_buckets_of_an_index():
    assert file_id_prefix(uuid.UUID("00872302-2f71-4104-b12c-ffd8c62cd2a1")).startswith("f0872302-2f71")
    assert file_id_prefix(uuid.UUID("0087230f-2f71-4104-b12c-ffd8c62cd2a1")).startswith("0087230f-2f71")
