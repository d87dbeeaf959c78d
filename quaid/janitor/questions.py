"""Questions for the owner: notes in review/ with boxes to tick, in any editor.

---
type: review
task: compare
kind: merge
key: 3f0c9a1b2c3d4e5f
created: 2026-11-20T03:30:00Z
---
# merge "Maya drinks oat milk" into "Maya takes oat milk in her coffee"

Both say the same …

- [ ] Yes, do it
- [ ] No, and do not ask again

A question whose yes replaces facts names them in its frontmatter, `replaces: ["[[old]]"]`, and their successor,
`with: "[[new]]"`; one whose yes rejects a fact has no `with`. Both are read before the owner answers: the older fact
is shown below its successor until then. One of the kind `conflict` asks which of two facts is true:

- [ ] a: Maya's mother was born on 4 April. ([[mayas-mother-was-born-on-4-april-7k3qd]])
- [ ] b: Maya's mother was born on 14 April. ([[mayas-mother-was-born-on-14-april-2m8xz]])
- [ ] Both are true
- [ ] Neither is true
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from quaid.index.scope import PRIVATE
from quaid.janitor.decision import CONFLICT, CORRECT, DISPUTE
from quaid.local.runs import Decision
from quaid.model import note_name
from quaid.vault import files, frontmatter, markdown, notes
from quaid.vault.layout import DEFAULT, Layout, is_note_path, is_question

Answer = Literal["yes", "no", "a", "b", "both", "neither"]
YES_OR_NO: Sequence[Answer] = ("yes", "no")
WHICH: Sequence[Answer] = ("a", "b", "both", "neither")
FOLDER = "review"
_BOXES = {"yes": "Yes, do it", "no": "No, and do not ask again", "both": "Both are true", "neither": "Neither is true"}
_REPLACING = frozenset({"supersede", CORRECT, "reject", DISPUTE})
"""Kinds of decisions after which a fact is out of date or wrong; a merge keeps what both say."""
_BOX = re.compile(r"^([ \t]*[-*+])([ \t]+\[[ xX]\])", re.MULTILINE)
_MARK = re.compile(r"^([ \t]*[-*+][ \t]+\[)([ xX])(\][ \t]+(Yes|No|a|b|Both|Neither)\b)", re.MULTILINE)
_LINK = re.compile(r"\[\[([^\[\]|#]+)")
_CHOICE = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][ \t]+[ab]\b.*\[\[([^\[\]|#]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Question:
    """A note in review/. `about` are the names of the notes that it is about, `choices` of those to choose from.
    `created` is when it was asked (ISO 8601). `answer` is None while no box is ticked, or several are.
    """

    rel_path: str
    data: bytes
    task: str
    kind: str
    key: str
    title: str
    about: tuple[str, ...]
    choices: tuple[str, ...]
    created: str
    answer: Answer | None

    @property
    def answers(self) -> Sequence[Answer]:
        """The possible answers."""
        return WHICH if self.kind == CONFLICT else YES_OR_NO

    def is_called(self, reference: str) -> bool:
        """Return whether `reference` is its path, the name of its file, the first four or more characters of its key,
        or `all`.
        """
        names = {"all", self.rel_path, note_name(self.rel_path)}
        return reference in names or (len(reference) >= 4 and self.key.startswith(reference))


def question_path(kind: str, key: str, place: Layout = DEFAULT) -> str:
    """Return the path of the note that asks about a decision of `kind` on the evidence `key`."""
    return place.place(f"{FOLDER}/{kind}-{key[:8]}.md")


def list_questions(root: Path, place: Layout) -> list[Question]:
    """Return the questions in review/ of the vault at `root`, answered or not, by path."""
    paths = [path.relative_to(root).as_posix() for path in sorted((root / place.place(FOLDER)).glob("*.md"))]
    found = [read_question(path, files.read_note(root, path) or b"") for path in paths]
    return [question for question in found if question is not None]


def list_quoted(decision: Decision) -> list[str]:
    """Return the paths of the notes that the question about `decision` quotes."""
    return [*decision.paths, *(path for path, _ in decision.choices)]


def find_replaced(decision: Decision) -> tuple[list[str], str | None]:
    """Return the links to the facts that `decision` would replace or reject, and to their successor."""
    replaced: list[str] = []
    successor: str | None = None
    for edit in decision.edits if decision.kind in _REPLACING else ():
        old, new = (
            notes.parse_fact(edit.rel_path, data).superseded_by if data else None for data in (edit.before, edit.after)
        )
        if not old and (new or edit.after is None):
            replaced.append(f"[[{note_name(edit.rel_path)}]]")
            successor = f"[[{new}]]" if new else successor
    return replaced, successor


def render_question(
    decision: Decision,
    now: datetime,
    contents: Mapping[str, bytes | None],
    place: Layout = DEFAULT,
    evidence: Sequence[str] = (),
) -> bytes:
    """Return the note that asks whether `decision` may be carried out. It is private if a note that it quotes is
    private; `contents` are those of the quoted notes, by path. `evidence` are the facts that it rests on.
    """
    paths = list_quoted(decision)
    present = {path: data for path in paths if is_note_path(path) and (data := contents.get(path))}
    found = [notes.parse_note(path, data, place=place) for path, data in present.items()]
    owner = next((note.owner for note in found if note.privacy == PRIVATE and note.owner != "default"), None)
    about = [f"[[{note_name(path)}]]" for path in paths if path.endswith(".md")]
    replaced, successor = find_replaced(decision)
    head = frontmatter.render(
        {
            "type": "review",
            "task": decision.task,
            "kind": decision.kind,
            "key": decision.key,
            "created": notes.render_time(now),
            "owner": owner,
            "privacy": PRIVATE if owner else None,
            "about": list(dict.fromkeys(about))[:20] or None,
            "replaces": replaced or None,
            "with": successor,
            "evidence": list(evidence) or None,
        }
    )
    shown = "\n\n".join(part for part in (f"# {decision.subject}", decision.why, decision.detail) if part)
    body = _BOX.sub(r"\1\\\2", shown)  # a line of the quoted text must not look like a box
    boxes = [
        f"{box}: {text} ([[{note_name(path)}]])" for box, (path, text) in zip("ab", decision.choices, strict=False)
    ]
    boxes += [_BOXES[answer] for answer in (WHICH[2:] if decision.kind == CONFLICT else YES_OR_NO)]
    return "\n".join([f"{head}{body}", "", *(f"- [ ] {box}" for box in boxes), ""]).encode()


@lru_cache(maxsize=256)  # every page counts them
def read_question(rel_path: str, data: bytes) -> Question | None:
    """Return the question in a note of review/; None for any other note."""
    text = data.decode("utf-8", errors="replace")
    head = frontmatter.parse(text)
    if not is_question(head.fields):
        return None
    task, kind, key = (str(head.fields[name]) for name in ("task", "kind", "key"))
    title = next((line.removeprefix("# ") for line in head.body.splitlines() if line.startswith("# ")), rel_path)
    choices = tuple(_CHOICE.findall(head.body))
    about = tuple(dict.fromkeys([*_LINK.findall(text[: frontmatter.body_start(text)]), *choices]))
    created = str(head.fields.get("created", ""))
    question = Question(rel_path, data, task, kind, key, title, about, choices, created, None)
    ticked = [word.lower() for _, mark, _, word in _MARK.findall(head.body) if mark != " "]
    answers = {answer for answer in question.answers if answer in ticked}
    return replace(question, answer=answers.pop() if len(answers) == 1 else None)


def is_answerable(question: Question) -> bool:
    """Return whether it has its boxes, and is not in the middle of a merge."""
    is_merging = markdown.has_conflict_markers(question.data.decode("utf-8", errors="replace"))
    return not is_merging and any(tick(question, answer) != question.data for answer in question.answers)


def tick(question: Question, answer: Answer | None) -> bytes:
    """Return the note with only the box of `answer` ticked, None for no box; nothing else changes."""
    text = question.data.decode("utf-8", errors="surrogateescape")
    marked = _MARK.sub(lambda box: f"{box[1]}{'x' if box[4].lower() == answer else ' '}{box[3]}", text)
    return marked.encode("utf-8", errors="surrogateescape")
