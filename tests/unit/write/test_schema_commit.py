"""When a commit has to say the schema once more, beside one that was requested later and completed first."""

from __future__ import annotations

import json

import drawstring
from drawstring.write.schema_commit import is_hidden
from tests.small_writes import new_table


def test_a_schema_is_hidden_by_another_one_and_not_by_its_own_text_spaced_otherwise(tmp_path):
    new_table(tmp_path, [("1", "oslo", 1, "a")])
    state = drawstring.open_table(str(tmp_path)).state()
    (write,) = state.timeline.completed_writes
    schema = json.loads(state.metadata(write).schema)
    before = str(int(write.requested_time) - 1)
    for separators in ((",", ":"), (", ", ": "), (" ,", " : ")):
        assert not is_hidden(state, before, json.dumps(schema, separators=separators))
    other = {**schema, "fields": schema["fields"][:-1]}
    assert is_hidden(state, before, json.dumps(other))
    assert not is_hidden(state, write.requested_time, json.dumps(other))
