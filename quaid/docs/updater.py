"""How a stale doc becomes true again: a model sees what its sources became, and proposes to replace exact pieces of it.

What it proposes is held against the doc and the sources twice, when it answers and before it is given on. Nothing is
written here: who asks decides what becomes of an `Update`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from quaid.docs.changes import SourceChange, shorten
from quaid.docs.excerpt import excerpt
from quaid.docs.validation import MOST_NAMED, faults, invented, unsaid
from quaid.errors import ModelAnswerError
from quaid.vault import headings, replacements
from quaid.vault.replacements import Replacement

if TYPE_CHECKING:
    from quaid.llm import Models
    from quaid.llm.exchange import Answer

SIGNIFICANCE, UPDATE, CLEANUP = "docs_significance", "docs_update", "docs_cleanup"
TINY = 600
"""Characters: half of so little may be one sentence."""
MOST_REFUSED = 20
_FAST_DOC, _DEEP_DOC = 12_000, 60_000
_FAST_DIFF, _FAST_INPUT = 6_000, 10_000
"""Characters of one difference, tokens of all that one question shows: who reads too much at once judges carelessly."""
_OUTPUT_PER_VERDICT = 80
_DEEP_DIFFS, _DEEP_FILES, _LEAST_SHOWN, _MOST_SHOWN = 48_000, 60_000, 1_000, 16_000
"""Characters of all differences, of all files, and the least and the most of each one."""
_NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Verdict:
    change: SourceChange
    significant: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One for each change, in their order."""

    verdicts: tuple[Verdict, ...]
    model: str
    prompt: str

    @property
    def significant(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.significant)


@dataclass(frozen=True, slots=True)
class StillTrue:
    """Nothing in the doc has to change: it is true of the sources as they are."""

    summary: str
    model: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Update:
    """`edits` of `before`, in the order of their places, make `after`; no other character of it changes."""

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


def ask_significance(models: Models, path: str, text: str, changes: Sequence[SourceChange]) -> Verdicts:
    """Which of `changes` the doc `text` at `path` has to be looked at for; those without a verdict are among them.

    Raises:
        ModelError: as `Models.ask`.
    """
    from quaid.llm.batches import batches
    from quaid.llm.prices import estimate_tokens

    prompt = models.prompt(SIGNIFICANCE)
    batched = batches(
        [(change, _shown(change, _FAST_DIFF)) for change in changes],
        tokens_of=lambda item: estimate_tokens(item[1]),
        input_limit=_FAST_INPUT,
        output_per_item=_OUTPUT_PER_VERDICT,
        output_limit=prompt.max_output_tokens,
    )
    verdicts: list[Verdict] = []
    model = ""
    for batch in batched:
        asked = [change for change, _ in batch]
        inputs = {
            "watched_path": headings.one_line(path),
            "watched_doc": excerpt(text, asked, _FAST_DOC),
            "source_changes": _numbered(shown for _, shown in batch),
        }
        answer = models.ask(prompt, inputs, check=partial(_number_problems, len(batch)))
        verdicts += _read_verdicts(answer.value["changes"], asked)
        model = answer.model
    return Verdicts(tuple(verdicts), model, prompt.label)


def ask_update(
    models: Models,
    path: str,
    text: str,
    changes: Sequence[SourceChange],
    files: Mapping[str, bytes],
    refused: Sequence[str] = (),
) -> Update | StillTrue:
    """Edits after which the doc `text` at `path` is true of its sources again.

    Args:
        models: who is asked.
        path: where the doc is, for the model to read.
        text: the doc as it is written, byte order mark and carriage returns included.
        changes: what became of its sources since it was last true.
        files: path -> content of the sources now.
        refused: what the owner did not want of earlier updates, the newest first.

    Raises:
        ModelAnswerError: an edit cannot be made, or the doc must not become that: half an update would pass for one.
        ModelError: as `Models.ask`.
    """
    prompt = models.prompt(UPDATE)
    material = _material(changes, files)
    each = _share(_DEEP_DIFFS, len(changes))

    def judge(value: Mapping[str, Any]) -> tuple[list[Replacement], list[str]]:
        edits, problems = _fit(text, value["edits"])
        if value["still_true"] == bool(value["edits"]):
            problems.append("`still_true` is true exactly when there are no edits")
        return edits, problems or (_update_problems(text, edits, material) if edits else [])

    inputs = {
        "stale_path": headings.one_line(path),
        "stale_doc": excerpt(text, changes, _DEEP_DOC),
        "source_changes": _numbered(_shown(change, each) for change in changes) or _NOTHING,
        "source_files": _shown_files(files) or _NOTHING,
        "undone_edits": _shown_refused(refused),
    }
    answer = models.ask(prompt, inputs, check=lambda value: judge(value)[1])
    edits, problems = judge(answer.value)
    if problems:
        raise ModelAnswerError(answer.model, answer.prompt, "; ".join(problems), json.dumps(answer.value))
    summary = _said(answer.value["summary"])
    if not edits:
        return StillTrue(summary, answer.model, answer.prompt)
    return _update(text, edits, summary, answer)


def ask_cleanup(models: Models, path: str, text: str, refused: Sequence[str] = ()) -> Update | None:
    """Cuts that shorten the doc `text` at `path` and take nothing from it; None where there is nothing to cut.

    Raises:
        ModelError: as `Models.ask`.
    """

    def judge(value: Mapping[str, Any]) -> tuple[list[Replacement], list[str]]:
        body = _bare(text)[replacements.text_start(text) :]
        edits, problems = _fit(text, value["edits"], lambda _, new: _unsaid_fault(new, body))
        return edits, problems + (_cleanup_problems(text, edits) if edits else [])

    inputs = {
        "grown_path": headings.one_line(path),
        "grown_doc": excerpt(text, (), _DEEP_DOC),
        "undone_edits": _shown_refused(refused),
    }
    answer = models.ask(models.prompt(CLEANUP), inputs, check=lambda value: judge(value)[1])
    # Each cut stands for itself: those that can be made are, if the doc bears them.
    edits, _ = judge(answer.value)
    if not edits or _cleanup_problems(text, edits):
        return None
    shorter = len(text) - len(replacements.apply(text, edits))
    return _update(text, edits, f"{shorter:,} of {len(text):,} characters can go", answer)


# -- what a model is shown -------------------------------------------------------------------------------------------


def _shown(change: SourceChange, longest: int) -> str:
    """What happened to a source, without its number: no line of it can pass for the heading of another one."""
    commits = [f"commit {c.id[:10]} {c.when[:10]} {headings.one_line(c.subject)[:120]}" for c in change.commits[:10]]
    more = [f"[…] {len(change.commits) - 10:,} commits before these"] if len(change.commits) > 10 else []
    return "\n".join([change.title, *commits, *more, change.diff(longest=longest)])


def _numbered(shown: Iterable[str]) -> str:
    return "\n".join(f"### {number} {text}" for number, text in enumerate(shown, 1))


def _shown_files(files: Mapping[str, bytes]) -> str:
    each = _share(_DEEP_FILES, len(files))
    room = _DEEP_FILES
    blocks: list[str] = []
    for path, data in files.items():
        title = f"### {headings.one_line(path)}"
        if room <= 0 or b"\0" in data:
            blocks.append(f"{title}\n[…] {'left out' if room <= 0 else 'not text'}: {len(data):,} bytes")
            continue
        text = shorten(headings.without_control(data.decode("utf-8", "replace")), each)
        room -= len(text)
        blocks.append(f"{title}\n" + "\n".join(f" {line}" for line in text.split("\n")))
    return "\n".join(blocks)


def _share(room: int, count: int) -> int:
    return min(_MOST_SHOWN, max(_LEAST_SHOWN, room // max(1, count)))


def _shown_refused(refused: Sequence[str]) -> str:
    return "\n".join(json.dumps(text, ensure_ascii=False) for text in refused[:MOST_REFUSED]) or "(nothing so far)"


def _material(changes: Sequence[SourceChange], files: Mapping[str, bytes]) -> str:
    """All that a doc may take names from, not only what there was room to show."""
    sides = [side for change in changes for side in (change.before, change.after) if side is not None]
    names = [name for change in changes for name in (change.path, change.old_path) if name]
    subjects = [commit.subject for change in changes for commit in change.commits]
    contents = (data.decode("utf-8", "replace") for data in [*files.values(), *sides] if b"\0" not in data)
    return "\n".join([*files, *names, *subjects, *contents])


# -- what it answers -------------------------------------------------------------------------------------------------


def _fit(
    text: str, edits: Sequence[Mapping[str, Any]], fault_of: replacements.FindProblem | None = None
) -> tuple[list[Replacement], list[str]]:
    found, problems = replacements.fit(text, edits, fault_of)
    return [replace(edit, reason=_said(edit.reason)) for edit in found], problems


def _said(text: str) -> str:
    """What a model says to the owner, fit for a commit."""
    from quaid.redaction import admit
    from quaid.text.quoting import neutralise

    return headings.one_line(neutralise(admit(text).text))


def _update_problems(text: str, edits: Sequence[Replacement], material: str) -> list[str]:
    before, after = _bare(text), _bare(replacements.apply(text, edits))
    size = len(before) - replacements.text_start(before)
    problems = faults(before, after)
    if size >= TINY and 2 * sum(edit.end - edit.start for edit in edits) > size:
        problems.append("that is more than half of the doc: change only what is no longer true")
    if len(after) > 2 * len(before) + TINY:
        problems.append("the doc would be twice as long: change only what is no longer true")
    if names := invented(before, after, material):
        shown = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
        problems.append(f"`replace` names {shown}, which neither the sources nor the doc do")
    return problems


def _cleanup_problems(text: str, edits: Sequence[Replacement]) -> list[str]:
    before, after = _bare(text), _bare(replacements.apply(text, edits))
    size, left = (len(side) - replacements.text_start(side) for side in (before, after))
    problems = faults(before, after)
    if not size <= 2 * left < 2 * size:
        problems.append(f"the doc must get shorter, and keep at least {size // 2:,} characters")
    return problems


def _unsaid_fault(new: str, body: str) -> str:
    words = unsaid(new, body)
    return f"`replace` says {words[0]!r}, which the doc does not" if words else ""


def _update(text: str, edits: Sequence[Replacement], summary: str, answer: Answer) -> Update:
    after = replacements.apply(text, edits)
    return Update(tuple(edits), text, after, summary, answer.model, answer.prompt)


def _bare(text: str) -> str:
    return text.replace("\r\n", "\n")


def _number_problems(count: int, value: Mapping[str, Any]) -> list[str]:
    times = Counter(item["n"] for item in value["changes"])
    unknown = [f"there is no number {n}" for n in sorted(times) if n > count]
    twice = [f"number {n} is answered twice" for n in sorted(times) if times[n] > 1]
    return [*unknown, *twice, *(f"number {n} is missing" for n in range(1, count + 1) if n not in times)]


def _read_verdicts(items: Sequence[Mapping[str, Any]], asked: Sequence[SourceChange]) -> list[Verdict]:
    verdicts = []
    for number, change in enumerate(asked, 1):
        said = [item for item in items if item["n"] == number]
        # Of two verdicts that differ, the one that has the doc looked at.
        worst = max(said, key=lambda item: item["significant"], default=None)
        reason = _said(worst["reason"]) if worst else "The model did not judge it."
        verdicts.append(Verdict(change, worst["significant"] if worst else True, reason))
    return verdicts
