"""Words of the timeline's file names."""

from __future__ import annotations

from drawstring.errors import UnsupportedTable
from drawstring.model.instant import Action
from drawstring.storage.base import FileInfo

_ACTIONS = {action.value: action for action in Action}


def parse_action(word: str, entry: FileInfo) -> Action:
    """Return the action a word names; raises `UnsupportedTable` for one that nobody here knows."""
    action = _ACTIONS.get(word)
    if action is None:
        raise UnsupportedTable(
            f"The timeline file {entry.path} has the action {word!r}; expected one of "
            f"{', '.join(sorted(_ACTIONS))}. A newer Hudi wrote it: upgrade drawstring.",
            condition="UNKNOWN_ACTION",
            path=entry.path,
            found=word,
        )
    return action
