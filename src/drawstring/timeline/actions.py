"""Actions as the file names of the timeline spell them."""

from __future__ import annotations

from drawstring.config.support import found_in_files
from drawstring.model.instant import Action

_ACTIONS = {action.value: action for action in Action}


def parse_action(word: str, path: str) -> Action:
    """Return the action a word names; raises `UnsupportedTable` for an unknown one."""
    action = _ACTIONS.get(word)
    if action is None:
        raise found_in_files("UNKNOWN_ACTION", path=path, found=word, known=", ".join(sorted(_ACTIONS)))
    return action
