"""Words of the timeline's file names."""

from __future__ import annotations

from drawstring.config.support import found_in_files
from drawstring.model.instant import Action
from drawstring.storage.base import FileInfo

_ACTIONS = {action.value: action for action in Action}


def parse_action(word: str, entry: FileInfo) -> Action:
    """Return the action a word names; raises `UnsupportedTable` for one that nobody here knows."""
    action = _ACTIONS.get(word)
    if action is None:
        raise found_in_files("UNKNOWN_ACTION", path=entry.path, found=word, known=", ".join(sorted(_ACTIONS)))
    return action
