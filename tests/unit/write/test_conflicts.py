from __future__ import annotations

from types import SimpleNamespace

import pytest

from drawstring.errors import CommitConflict
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Action, Instant, State
from drawstring.storage import MemoryStorage
from drawstring.timeline.timeline import Timeline
from drawstring.write.conflicts import Candidate, check_groups, check_new_keys, completed_since
from drawstring.write.write_set import WriteSet


def _commit(requested: str, completed: str) -> Instant:
    return Instant(requested, Action.COMMIT, State.COMPLETED, completed, f"{requested}_{completed}.commit")


def _state(*instants: Instant, archived: tuple[Instant, ...] = ()):
    wrote = CommitMetadata("UPSERT", (WriteStat("f1", "p/f1_0_3.parquet", "p", prev_commit="1"),))
    writes = tuple(SimpleNamespace(instant=instant, metadata=wrote) for instant in archived)
    return SimpleNamespace(
        timeline=Timeline.of(instants), metadata=lambda _: wrote, history=SimpleNamespace(writes=writes)
    )


FIRST, SECOND, UNSEEN, LAST = (_commit(str(n), str(n + 1)) for n in (1, 3, 5, 7))


def test_write_that_was_archived_before_it_was_seen_still_conflicts():
    start = _state(FIRST, SECOND)
    now = _state(LAST, archived=(FIRST, SECOND, UNSEEN))
    found = completed_since(start, now)
    assert [candidate.instant for candidate in found] == [UNSEEN, LAST]
    with pytest.raises(CommitConflict) as caught:
        check_groups(
            found[:1], WriteSet(frozenset({FileGroupId("p", "f1")})), MemoryStorage("memory://c"), "4"
        )
    assert caught.value.fields["other"] == UNSEEN.requested_time


def test_history_is_not_read_where_nothing_was_archived():
    now = _state(FIRST, SECOND, LAST)
    del now.history
    assert [candidate.instant for candidate in completed_since(_state(FIRST, SECOND), now)] == [LAST]


def test_inserted_keys_whose_file_was_cleaned_are_a_conflict_that_is_tried_again():
    theirs = WriteStat("f9", "p/f9_0_7.parquet", "p", num_inserts=1)
    mine = WriteStat("f8", "p/f8_0_8.parquet", "p", num_inserts=1)
    other = Candidate(LAST, CommitMetadata("INSERT", (theirs,)))
    with pytest.raises(CommitConflict) as caught:
        check_new_keys([other], [(mine, mine.path)], MemoryStorage("memory://d"), "8")
    assert caught.value.condition == "CONCURRENT_INSERT"
