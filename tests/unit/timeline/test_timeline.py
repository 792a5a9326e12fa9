from __future__ import annotations

import pytest

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.base import FileInfo
from drawstring.timeline import layout_v1, layout_v2
from drawstring.timeline.commit_metadata import parse_commit_metadata
from drawstring.timeline.timeline import Timeline

T1, T2, T3 = "20260101000000001", "20260101000000002", "20260101000000003"


def entry(name: str, modified_ms: int = 0) -> FileInfo:
    return FileInfo(f".hoodie/{name}", 1, False, modified_ms)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{T1}.inflight", Instant(T1, Action.COMMIT, State.INFLIGHT, None, f"{T1}.inflight")),
        (f"{T1}.commit", Instant(T1, Action.COMMIT, State.COMPLETED, T1, f"{T1}.commit")),
        (
            f"{T1}.compaction.requested",
            Instant(T1, Action.COMPACTION, State.REQUESTED, None, f"{T1}.compaction.requested"),
        ),
        ("hoodie.properties", None),
        (f".{T1}.commit.crc", None),
        (f"{T1}.commit.requested.tmp", None),
    ],
)
def test_layout_1_names(name, expected):
    assert layout_v1.parse_instant(entry(name)) == expected


def test_layout_2_names_carry_completion_times():
    name = f"{T1}_{T2}.deltacommit"
    assert layout_v2.parse_instant(entry(name)) == Instant(T1, Action.DELTACOMMIT, State.COMPLETED, T2, name)


def test_a_completed_file_without_completion_time_takes_its_modification_time():
    found = layout_v2.parse_instant(entry(f"{T1}.commit", 1_767_225_600_123), timezone="UTC")
    assert found is not None
    assert found.completion_time == "20260101000000123"


def test_unknown_actions_are_refused():
    with pytest.raises(UnsupportedTable, match="teleport"):
        layout_v2.parse_instant(entry(f"{T1}_{T2}.teleport"))


def timeline(*names: str) -> Timeline:
    found = [layout_v2.parse_instant(entry(name)) for name in names]
    return Timeline.of(instant for instant in found if instant)


def test_the_most_advanced_file_decides_also_when_the_action_changes_its_name():
    found = timeline(f"{T1}.compaction.requested", f"{T1}_{T2}.commit", f"{T1}.compaction.inflight")
    assert [(i.action, i.state) for i in found.ascending_instants] == [(Action.COMMIT, State.COMPLETED)]
    assert not found.pending_compactions


def test_files_of_completed_and_of_older_instants_are_committed():
    found = timeline(f"{T2}_{T3}.commit", f"{T3}.deltacommit.inflight")
    assert found.is_committed(T2)
    assert found.is_committed(T1)
    assert not found.is_committed(T3)
    assert not found.is_committed("20270101000000000")


def test_a_savepointed_commit_left_behind_does_not_start_the_timeline():
    found = timeline(f"{T1}_{T1}.commit", f"{T1}_{T1}.savepoint", f"{T3}_{T3}.commit")
    assert found.start == T3
    assert found.is_committed(T2)


def test_the_fingerprint_changes_with_every_step():
    steps = [(), (f"{T1}.commit.requested",), (f"{T1}.inflight",), (f"{T1}_{T2}.commit",)]
    assert len({timeline(*names).fingerprint for names in steps}) == 4


def test_json_metadata_with_replaced_groups():
    content = (
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","path":"p/f_0_1.parquet","numWrites":3}]},'
        b'"partitionToReplaceFileIds":{"p":["g"]},"operationType":"INSERT_OVERWRITE","extraMetadata":{"schema":"s"}}'
    )
    found = parse_commit_metadata(content, source="x")
    assert (found.operation, found.schema, found.replaced) == ("INSERT_OVERWRITE", "s", {"p": ("g",)})
    assert (found.stats[0].path, found.stats[0].partition_path, found.stats[0].num_writes) == (
        "p/f_0_1.parquet",
        "p",
        3,
    )


def test_empty_metadata_says_nothing_and_garbage_is_told():
    assert parse_commit_metadata(b"", source="x").stats == ()
    for garbage in (b"Obj\x01junk", b"{", b"[1]"):
        with pytest.raises(CorruptTable, match="the instant x"):
            parse_commit_metadata(garbage, source="x")
