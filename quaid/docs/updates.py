"""Edits after which a stale document is true again, as the deep model proposes them: exact pieces are replaced.

They are held against the document and the sources twice, when the model answers and before they are given on. Nothing
is written here: who asks decides what becomes of a `DocUpdate`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quaid.docs.changes import SourceChange
from quaid.docs.prompt_inputs import excerpt, numbered, share, show_change, show_files, show_refused, today
from quaid.docs.validation import MAX_NAMED, faults, invented
from quaid.errors import ModelAnswerError
from quaid.llm.exchange import ItemProblem
from quaid.vault import headings, replacements
from quaid.vault.replacements import Replacement

if TYPE_CHECKING:
    from quaid.llm import Models
    from quaid.llm.exchange import Answer

PROMPT = "docs_update"
TINY = 600
"""Characters: half of so little may be one sentence."""
MAX_DOC = 60_000
"""Characters of a document that the deep model is shown."""
_MAX_DIFFS = 48_000
"""Characters of all differences."""
_NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True)
class StillTrue:
    """Nothing in the document has to change: it is true of the sources as they are."""

    summary: str
    model: str
    prompt: str


@dataclass(frozen=True, slots=True)
class DocUpdate:
    """`edits` of `before`, in the order of their places, make `after`; no other character of it changes."""

    edits: tuple[Replacement, ...]
    before: str
    after: str
    summary: str
    model: str
    prompt: str

    @classmethod
    def of(cls, text: str, edits: Sequence[Replacement], summary: str, answer: Answer) -> DocUpdate:
        """The update that `edits` make of `text`, as a model answered."""
        after = replacements.apply(text, edits)
        return cls(tuple(edits), text, after, summary, answer.model, answer.prompt)

    @property
    def detail(self) -> str:
        """A line for each edit: what becomes what, and why."""
        return "\n".join(replacements.describe(self.before, edit) for edit in self.edits)


def ask_update(
    models: Models,
    path: str,
    text: str,
    changes: Sequence[SourceChange],
    files: Mapping[str, bytes],
    refused: Sequence[str] = (),
) -> DocUpdate | StillTrue:
    """Ask for edits after which the document `text` at `path` is true of its sources again.

    Args:
        models: who is asked.
        path: where the document is, for the model to read.
        text: the document as it is written, byte order mark and carriage returns included.
        changes: the changes of its sources since it was last true.
        files: path -> content of the sources now.
        refused: what the owner did not want of earlier updates, the newest first.

    Raises:
        ModelAnswerError: an edit cannot be made, or the result is not allowed; an update is never applied in part.
        ModelError: as `Models.ask`.
    """
    # All that a document may take names from, not only what there was room to show.
    sides = [side for change in changes for side in (change.before, change.after) if side is not None]
    names = [name for change in changes for name in (change.path, change.old_path) if name]
    subjects = [commit.subject for change in changes for commit in change.commits]
    contents = (data.decode("utf-8", "replace") for data in [*files.values(), *sides] if b"\0" not in data)
    material = "\n".join([*files, *names, *subjects, *contents])

    def check(value: Mapping[str, Any]) -> tuple[list[Replacement], list[str | ItemProblem]]:
        edits, problems = fit_edits(text, value["edits"])
        if value["still_true"] == bool(value["edits"]):
            return edits, [*problems, "`still_true` is true exactly when there are no edits"]
        return edits, [*problems] or [*(_problems(text, edits, material) if edits else ())]

    inputs = show_stale(path, text, changes, files, refused)
    answer = models.ask(models.prompt(PROMPT), inputs, check=lambda value: check(value)[1])
    edits, problems = check(answer.value)
    if problems:
        raise ModelAnswerError(answer.model, answer.prompt, "; ".join(map(str, problems)), json.dumps(answer.value))
    summary = clean(answer.value["summary"])
    if not edits:
        return StillTrue(summary, answer.model, answer.prompt)
    return DocUpdate.of(text, edits, summary, answer)


def show_stale(
    path: str, text: str, changes: Sequence[SourceChange], files: Mapping[str, bytes], refused: Sequence[str] = ()
) -> dict[str, str]:
    """Return what the deep model is shown of a stale document, by the slots of its prompt; as for `ask_update`."""
    each = share(_MAX_DIFFS, len(changes))
    return {
        "today": today(),
        "stale_path": headings.one_line(path),
        "stale_doc": excerpt(text, changes, MAX_DOC),
        "source_changes": numbered(show_change(change, each) for change in changes) or _NOTHING,
        "source_files": show_files(files) or _NOTHING,
        "undone_edits": show_refused(refused),
    }


def fit_edits(
    text: str, edits: Sequence[Mapping[str, Any]], fault_of: replacements.FindProblem | None = None
) -> tuple[list[Replacement], list[ItemProblem]]:
    """The edits that a model answered with, those of them that can be made, and what is wrong with the others."""
    found, problems = replacements.fit(text, edits, fault_of)
    wrong = [ItemProblem("edits", place, problem) for place, problem in problems]
    return [replace(edit, reason=clean(edit.reason)) for edit in found], wrong


def clean(text: str) -> str:
    """Return what a model says to the owner, fit for a commit."""
    from quaid.redaction import admit
    from quaid.text.quoting import neutralise

    return headings.one_line(neutralise(admit(text).text))


def _problems(text: str, edits: Sequence[Replacement], material: str) -> list[str]:
    before, after = (side.replace("\r\n", "\n") for side in (text, replacements.apply(text, edits)))
    size = len(before) - headings.text_start(before)
    problems = list(faults(before, after))
    if size >= TINY and 2 * sum(edit.end - edit.start for edit in edits) > size:
        problems.append("that is more than half of the doc: change only what is no longer true")
    if len(after) > 2 * len(before) + TINY:
        problems.append("the doc would be twice as long: change only what is no longer true")
    if names := invented(before, after, material):
        shown = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
        problems.append(f"`replace` names {shown}, which neither the sources nor the doc do")
    return problems
