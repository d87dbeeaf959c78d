"""Edits of documents as models propose them: updates of stale ones, cuts of those that have grown.

An edit replaces an exact passage. Each proposal is validated against the document and its sources. Nothing is written
here: the caller decides what becomes of a `DocUpdate`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quaid.docs.changes import (
    SourceChange,
    clean,
    divide_budget,
    excerpt,
    number_changes,
    show_files,
    show_refused,
    today,
)
from quaid.docs.validation import MAX_NAMED, faults, find_added_words, invented
from quaid.errors import ModelAnswerError
from quaid.llm import Models
from quaid.llm.exchange import Answer, ItemProblem
from quaid.vault import headings, replacements
from quaid.vault.replacements import Replacement

PROMPT = "docs_update"
CLEANUP_PROMPT = "docs_cleanup"
TINY = 600
"""Characters: half of a document of this size may be one sentence."""
MAX_DOC = 60_000
"""Characters of a document that a model is shown."""
_MAX_DIFFS = 48_000
"""Characters of all differences."""


@dataclass(frozen=True, slots=True)
class DocUpdate:
    """The answer of a model: `edits` of `before`, in the order of their places, make `after`. Without edits the
    document is true as it is.
    """

    edits: tuple[Replacement, ...]
    before: str
    after: str
    summary: str
    model: str
    prompt: str

    @property
    def detail(self) -> str:
        """A line for each edit: what becomes what, and why."""
        return "\n".join(replacements.describe(self.before, edit) for edit in self.edits)


def _make_update(text: str, edits: Sequence[Replacement], summary: str, answer: Answer) -> DocUpdate:
    return DocUpdate(tuple(edits), text, replacements.apply(text, edits), summary, answer.model, answer.prompt)


def ask_update(
    models: Models,
    path: str,
    text: str,
    changes: Sequence[SourceChange],
    files: Mapping[str, bytes],
    refused: Sequence[str] = (),
) -> DocUpdate:
    """Ask for edits after which the document `text` at `path` is true of its sources again.

    `changes` are those of its sources since it was last true, `files` the content of the sources now by path,
    `refused` earlier updates that the owner refused, the newest first.

    Raises:
        ModelAnswerError: an edit cannot be made, or the result is not allowed; an update is never applied in part.
        ModelError: as `Models.ask`.
    """
    # Everything that the document may take names from, not only what the model was shown.
    sides = [side for change in changes for side in (change.before, change.after) if side is not None]
    names = [name for change in changes for name in (change.finding.path, change.finding.old_path) if name]
    subjects = [commit.subject for change in changes for commit in change.finding.commits]
    contents = (data.decode("utf-8", "replace") for data in [*files.values(), *sides] if b"\0" not in data)
    material = "\n".join([*files, *names, *subjects, *contents])

    def check(value: Mapping[str, Any]) -> tuple[list[Replacement], list[str | ItemProblem]]:
        edits, problems = _fit_edits(text, value["edits"])
        if value["still_true"] == bool(value["edits"]):
            return edits, [*problems, "`still_true` is true exactly when there are no edits"]
        if problems or not edits:
            return edits, [*problems]
        before, after = (side.replace("\r\n", "\n") for side in (text, replacements.apply(text, edits)))
        size = len(before) - headings.text_start(before)
        found: list[str | ItemProblem] = [*faults(before, after)]
        if size >= TINY and 2 * sum(edit.end - edit.start for edit in edits) > size:
            found.append("that is more than half of the doc: change only what is no longer true")
        if len(after) > 2 * len(before) + TINY:
            found.append("the doc would be twice as long: change only what is no longer true")
        if names := invented(before, after, material):
            shown = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
            found.append(f"`replace` names {shown}, which neither the sources nor the doc do")
        return edits, found

    inputs = show_stale(path, text, changes, files, refused)
    answer = models.ask(models.prompt(PROMPT), inputs, check=lambda value: check(value)[1])
    edits, problems = check(answer.value)
    if problems:
        raise ModelAnswerError(answer.model, answer.prompt, "; ".join(map(str, problems)), json.dumps(answer.value))
    return _make_update(text, edits, clean(answer.value["summary"]), answer)


def show_stale(
    path: str, text: str, changes: Sequence[SourceChange], files: Mapping[str, bytes], refused: Sequence[str] = ()
) -> dict[str, str]:
    """Return the inputs of the prompt for a stale document; the arguments are those of `ask_update`."""
    longest = divide_budget(_MAX_DIFFS, len(changes))
    return {
        "today": today(),
        "stale_path": headings.one_line(path),
        "stale_doc": excerpt(text, changes, MAX_DOC),
        "source_changes": number_changes(change.show(longest) for change in changes) or "(nothing)",
        "source_files": show_files(files) or "(nothing)",
        "undone_edits": show_refused(refused),
    }


def ask_cleanup(models: Models, path: str, text: str, refused: Sequence[str] = ()) -> DocUpdate | None:
    """Ask for cuts that shorten the document `text` at `path` and lose nothing; None if there is nothing to cut.

    Raises:
        ModelError: as `Models.ask`.
    """
    body = text.replace("\r\n", "\n")[headings.text_start(text) :]

    def find_fault(_find: str, new: str) -> str:
        words = find_added_words(new, body)
        return f"`replace` says {words[0]!r}, which the doc does not" if words else ""

    def check(value: Mapping[str, Any]) -> tuple[list[Replacement], Sequence[str | ItemProblem]]:
        edits, problems = _fit_edits(text, value["edits"], find_fault)
        return edits, problems or (_find_cut_problems(text, edits) if edits else [])

    inputs = {
        "today": today(),
        "grown_path": headings.one_line(path),
        "grown_doc": excerpt(text, (), MAX_DOC),
        "undone_edits": show_refused(refused),
    }
    answer = models.ask(models.prompt(CLEANUP_PROMPT), inputs, check=lambda value: check(value)[1])
    # Cuts are independent: those that are possible are made, if the document stays valid with them.
    edits, _ = check(answer.value)
    if not edits or _find_cut_problems(text, edits):
        return None
    shorter = len(text) - len(replacements.apply(text, edits))
    return _make_update(text, edits, f"{shorter:,} of {len(text):,} characters can go", answer)


def _fit_edits(
    text: str, edits: Sequence[Mapping[str, Any]], find_fault: replacements.FindProblem | None = None
) -> tuple[list[Replacement], list[ItemProblem]]:
    """Return the edits of an answer that can be made, and what is wrong with the others."""
    found, problems = replacements.fit(text, edits, find_fault)
    wrong = [ItemProblem("edits", place, problem) for place, problem in problems]
    return [replace(edit, reason=clean(edit.reason)) for edit in found], wrong


def _find_cut_problems(text: str, edits: Sequence[Replacement]) -> list[str]:
    before, after = (side.replace("\r\n", "\n") for side in (text, replacements.apply(text, edits)))
    size, left = (len(side) - headings.text_start(side) for side in (before, after))
    problems = list(faults(before, after))
    if not size <= 2 * left < 2 * size:
        problems.append(f"the doc must get shorter, and keep at least {size // 2:,} characters")
    return problems
