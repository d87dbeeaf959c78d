"""Telling without a model that a conversation states nothing: greetings, thanks, `go on`, a command and its output."""

from __future__ import annotations

import re

from quaid.capture.prompt_pieces import Material
from quaid.text.replies import asks_nothing

ASSISTANT = "Assistant"
"""The name that the logs of agents give the agent."""
MAX_ANSWERED = 120
"""Characters. In more than this an agent says something of its own."""
_QUESTION = re.compile("[?\uff1f\u061f]")
_COMMAND = re.compile(r"/[\w:-]+")


def states_nothing(material: Material) -> bool:
    """Return whether nothing can be learned from the new turns of an episode. Where that is not sure a model decides: a
    `no` to a question is a statement.
    """
    before, answered = (material.earlier[-1].text if material.earlier else ""), 0
    for turn in material.turns:
        if turn.speaker == ASSISTANT:
            answered += len(turn.text)
        elif turn.is_note or _QUESTION.search(before) or not _is_idle(turn.text):
            return False
        before = turn.text
    return answered <= MAX_ANSWERED


def _is_idle(text: str) -> bool:
    return _COMMAND.fullmatch(text) is not None or asks_nothing(text)
