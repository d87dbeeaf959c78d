"""The question in a prompt. Imports next to nothing: most prompts of a session ask nothing of a memory."""

from __future__ import annotations

import re

from quaid.text.stop_words import STOP_WORDS

MAX_QUESTION = 1_000
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")  # noqa: RUF001
_COMMAND = re.compile(r"\s*(?:/[\w:.-]+(?:\s|\Z)|[!#<])")
_FILLER_WORDS = frozenset(
    """ok okay k kk yes yep yeah y no nope n sure fine thanks thank thx ty please great good nice cool perfect awesome
    excellent right correct exactly agreed done continue proceed go ahead next again stop wait hi hello hey bye lgtm
    looks works working try retry run fix undo redo more less now then also too all both first second last one two three
    a b c d approve approved confirm confirmed ship merge commit push test tests it's that's let's don't didn't
    """.split()  # noqa: SIM905
)


def question_in(prompt: str) -> str | None:
    """What of `prompt` can be asked of a memory: None for commands, and for `ok`, `yes` and the like."""
    if _COMMAND.match(prompt):
        return None
    words = [word.lower() for word in _WORD.findall(prompt[:MAX_QUESTION])]
    if all(word in STOP_WORDS or word in _FILLER_WORDS or word.isdigit() for word in words):
        return None
    if len(prompt) <= MAX_QUESTION:
        return prompt
    # What is pasted stands mostly in the middle.
    return f"{prompt[: MAX_QUESTION // 2]}\n{prompt[-MAX_QUESTION // 2 :]}"
