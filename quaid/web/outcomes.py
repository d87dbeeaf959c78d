"""The words of each kind of question: what it asks, what each answer does, and why the janitor asks it.

A button names its outcome, so that nobody has to remember what a yes means. outcomes.txt has these words, and
words.txt those that other pages look up.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quaid.janitor.decision import CONFLICT
from quaid.janitor.questions import Question


def read_words(name: str) -> dict[str, str]:
    """Return a list of words.txt: the words of each key."""
    listed = _WORDS.partition(f"\n[{name}]\n")[2].partition("\n[")[0]
    return {key: words for key, _, words in (line.partition(" | ") for line in listed.splitlines() if line)}


_WORDS = Path(__file__).with_name("words.txt").read_text("utf-8")
_OTHER = "other"
"""The row for a kind that has none; its question is the title of the note."""
_LINES = Path(__file__).with_name("outcomes.txt").read_text("utf-8").splitlines()[1:]
_ROWS = {kind: row for kind, *row in ([cell.strip() for cell in line.split("|")] for line in _LINES)}
_WHICH = {
    "a": ("A is true", "A is true: B is marked as replaced."),
    "b": ("B is true", "B is true: A is marked as replaced."),
    "both": ("Both are true", "Both facts stay, and you are not asked about them again."),
    "neither": ("Forget both", "Both facts are forgotten. Git keeps them."),
}
MESSAGES = {f"answered-{CONFLICT}-{answer}": done for answer, (_, done) in _WHICH.items()}
"""What a page says after an answer, by the key of the message."""
for _kind, (_, _, _yes_done, _, _no_done, _) in _ROWS.items():
    MESSAGES |= {f"answered-{_kind}-yes": _yes_done, f"answered-{_kind}-no": _no_done}


def describe_outcomes(question: Question) -> Mapping[str, Any]:
    """Return the words of a question: `heading`, the label of each answer in `choices`, and `because`."""
    if question.kind == CONFLICT:
        because = "They cannot both be true, and nothing shows which one is."
        choices = {answer: label for answer, (label, _) in _WHICH.items()}
        return {"heading": "Which of these is true?", "choices": choices, "because": because}
    heading, yes, _, no, _, because = _ROWS.get(question.kind, _ROWS[_OTHER])
    return {"heading": heading or question.title, "choices": {"yes": yes, "no": no}, "because": because}


def message_key(question: Question, answer: str) -> str:
    """Return the key of the message that an answer has had its effect."""
    key = f"answered-{question.kind}-{answer}"
    return key if key in MESSAGES else f"answered-{_OTHER}-{answer}"
