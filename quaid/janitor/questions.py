"""Questions for the owner: notes in review/ with boxes to tick, in any editor.

---
type: review
task: duplicates
kind: merge
key: 3f0c9a1b2c3d4e5f
created: 2026-11-20T03:30:00Z
---
# merge "Maya drinks oat milk" into "Maya takes oat milk in her coffee"

Both say the same …

- [ ] Yes, do it
- [ ] No, and do not ask again
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from quaid.janitor.decision import Decision
from quaid.model import note_name
from quaid.vault import files, frontmatter, notes
from quaid.vault.layout import DEFAULT, Layout, is_question

Answer = Literal["yes", "no"]
YES, NO = "Yes, do it", "No, and do not ask again"
FOLDER = "review"
_TICKED = re.compile(r"^[ \t]*[-*+][ \t]+\[[xX]\][ \t]+(Yes|No)\b", re.MULTILINE)
_BOX = re.compile(r"^([ \t]*[-*+])([ \t]+\[[ xX]\])", re.MULTILINE)
_MARK = re.compile(r"^([ \t]*)([-*+][ \t]+\[)[ xX](\][ \t]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Question:
    """A note in review/ as its owner left it. `answer` is None while no box is ticked, or both are."""

    rel_path: str
    data: bytes
    task: str
    kind: str
    key: str
    title: str
    answer: Answer | None

    def is_called(self, reference: str) -> bool:
        """Return whether `reference` is its path, its file's name, four characters of its key at least, or `all`."""
        names = {"all", self.rel_path, note_name(self.rel_path)}
        return reference in names or (len(reference) >= 4 and self.key.startswith(reference))


def question_path(kind: str, key: str, place: Layout = DEFAULT) -> str:
    """The path of the note that asks about a decision of `kind` on the evidence `key`."""
    return place.place(f"{FOLDER}/{kind}-{key[:8]}.md")


def list_questions(root: Path, place: Layout) -> list[Question]:
    """The questions in review/ of the vault at `root`, answered or not, by path."""
    paths = [path.relative_to(root).as_posix() for path in sorted((root / place.place(FOLDER)).glob("*.md"))]
    found = [read_question(path, files.read_note(root, path) or b"") for path in paths]
    return [question for question in found if question is not None]


def render_question(decision: Decision, now: datetime) -> bytes:
    """The note that asks whether `decision` may be carried out."""
    about = [f"[[{note_name(path)}]]" for path in decision.paths if path.endswith(".md")]
    head = frontmatter.render(
        {
            "type": "review",
            "task": decision.task,
            "kind": decision.kind,
            "key": decision.key,
            "created": notes.render_time(now),
            "about": list(dict.fromkeys(about))[:20] or None,
        }
    )
    shown = "\n\n".join(part for part in (f"# {decision.subject}", decision.why, decision.detail) if part)
    body = _BOX.sub(r"\1\\\2", shown)  # a line of what is shown must not be taken for a box
    return f"{head}{body}\n\n- [ ] {YES}\n- [ ] {NO}\n".encode()


def read_question(rel_path: str, data: bytes) -> Question | None:
    """The question in a note of review/, None for any other note."""
    head = frontmatter.parse(data.decode("utf-8", errors="replace"))
    if not is_question(head.fields):
        return None
    task, kind, key = (str(head.fields[name]) for name in ("task", "kind", "key"))
    ticked = {word.lower() for word in _TICKED.findall(head.body)}
    answer: Answer | None = None
    if len(ticked) == 1:
        answer = "yes" if ticked == {"yes"} else "no"
    title = next((line.removeprefix("# ") for line in head.body.splitlines() if line.startswith("# ")), rel_path)
    return Question(rel_path, data, task, kind, key, title, answer)


def tick(question: Question, answer: Answer) -> bytes:
    """The note with one box ticked and the other not; nothing else of it changes."""
    text = question.data.decode("utf-8", errors="surrogateescape")

    def mark(box: re.Match[str]) -> str:
        rest = text[box.end() :].lstrip()
        if not rest.startswith(("Yes", "No")):
            return box[0]
        ticked = rest.startswith("Yes") == (answer == "yes")
        return f"{box[1]}{box[2]}{'x' if ticked else ' '}{box[3]}"

    return _MARK.sub(mark, text).encode("utf-8", errors="surrogateescape")
