"""The words of each kind of question: what it asks, what each answer does, and why the janitor asks it.

A button names its outcome, so that nobody has to remember what a yes means.
"""

from collections.abc import Mapping
from typing import Any

from quaid.janitor.decision import CONFLICT, CORRECT, DISPUTE
from quaid.janitor.questions import Question

_CHANGED = (
    "Has this changed?",
    ("Use the new fact", "The old fact is marked as replaced."),
    ("Keep the old fact too", "Both facts stay."),
    "Quaid replaces a fact by itself only when its speaker states the change.",
)
_DOCUMENT = (("Use the new text", "The document is updated."), ("Keep the old text", "The document stays as it is."))
_WORDS: Mapping[str, tuple[str, tuple[str, str], tuple[str, str], str]] = {
    DISPUTE: ("Forget this fact?", ("Forget it", "Forgotten. Git keeps it."), ("Keep it", "The fact stays."),
              "You have said that this fact is wrong."),
    "reject": ("Forget this new fact?", ("Forget it", "Forgotten. Git keeps it."), ("Keep it", "The fact is kept."),
               "Quaid forgets nothing without you."),
    "forget": ("Forget what nobody has needed for long?", ("Forget it", "Forgotten. Git keeps it."),
               ("Keep it", "The fact stays, and you are not asked again."), "Quaid forgets nothing without you."),
    "pin": ("Pin this fact?", ("Pin it", "Pinned: it does not fade, and the janitor does not change it."),
            ("Leave it unpinned", "The fact stays as it is."), "A pinned fact never fades."),
    "rewrite": ("Use this wording?", ("Use the new wording", "The fact has the new wording."),
                ("Keep the old wording", "The fact keeps its wording."), "Quaid is not certain of the new wording."),
    "date": ("Add these dates?", ("Add the dates", "The dates are added."),
             ("Leave them out", "The fact stays as it is."), "The dates follow from the text and are not in it."),
    "keep_both": ("Add these dates?", ("Add the dates", "The dates are added."),
                  ("Leave them out", "Both facts stay as they are."), "Both facts are true, each in its time."),
    "link": ("Add this relation?", ("Add the relation", "The relation is added."),
             ("Leave it out", "The fact stays as it is."), "A model has found this relation in the fact."),
    "merge": ("Do these say the same?", ("Merge them", "The facts are merged into one."),
              ("Keep them separate", "Both facts stay."), "A merge leaves out words of a fact."),
    "supersede": _CHANGED,
    CORRECT: _CHANGED,
    "approve": ("Use this new fact?", ("Use it", "Agents receive this fact now."),
                ("Leave it pending", "The fact stays pending."), "The source of this fact is in doubt."),
    "graduate": ("Use this new fact?", ("Use it", "Agents receive this fact now."),
                 ("Leave it pending", "The fact stays pending."), "The source of this fact is in doubt."),
    "promote": ("Add this to what every session starts with?", ("Add the line", "The line is added."),
                ("Leave it out", "The note stays as it is."), "Every session starts with this note."),
    "fold": ("Update this note, with which every session starts?", ("Update the note", "The note is updated."),
             ("Keep it as it is", "The note stays as it is."), "Every session starts with this note."),
    "trim": ("Shorten this note?", ("Shorten it", "The note is shorter."),
             ("Keep it as it is", "The note stays as it is."), "Quaid does not shorten your text without you."),
    "update": ("Update this document?", *_DOCUMENT, "You decide what your documents say."),
    "shorten": ("Shorten this document?", *_DOCUMENT, "You decide what your documents say."),
}  # fmt: skip
"""Kind -> the question, the buttons of yes and no with what each has done, and why it is asked."""
_UNKNOWN = (
    "",
    ("Make this change", "The change is made."),
    ("Leave it as it is", "Nothing is changed."),
    "Quaid does not decide this without you.",
)
_WHICH = {
    "a": ("A is true", "A is true: B is marked as replaced."),
    "b": ("B is true", "B is true: A is marked as replaced."),
    "both": ("Both are true", "Both facts stay, and you are not asked about them again."),
    "neither": ("Forget both", "Both facts are forgotten. Git keeps them."),
}
MESSAGES = {f"answered-{kind}-{name}": done for kind, (_, yes, no, _) in _WORDS.items()
            for name, (_, done) in (("yes", yes), ("no", no))}  # fmt: skip
MESSAGES |= {f"answered--{name}": done for name, (_, done) in (("yes", _UNKNOWN[1]), ("no", _UNKNOWN[2]))}
MESSAGES |= {f"answered-{CONFLICT}-{name}": done for name, (_, done) in _WHICH.items()}
"""What a page says after an answer, by the key of the message."""


def describe_outcomes(question: Question) -> Mapping[str, Any]:
    """Return the words of a question: `heading`, the label of each answer in `choices`, and `because`."""
    if question.kind == CONFLICT:
        because = "They cannot both be true, and nothing shows which one is."
        choices = {answer: label for answer, (label, _) in _WHICH.items()}
        return {"heading": "Which of these is true?", "choices": choices, "because": because}
    heading, (yes, _), (no, _), because = _WORDS.get(question.kind, _UNKNOWN)
    return {"heading": heading or question.title, "choices": {"yes": yes, "no": no}, "because": because}


def message_key(question: Question, answer: str) -> str:
    """Return the key of the message that an answer has had its effect."""
    key = f"answered-{question.kind}-{answer}"
    return key if key in MESSAGES else f"answered--{answer}"
