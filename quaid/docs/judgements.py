"""Stale documents, and what the fast model says of the changes of their sources: which of them matter.

The check does not know what a document is about. A model that reads both may say that a change leaves it true. Each
change is judged once for a document.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange, clean, excerpt, number_changes, today
from quaid.docs.freshness import Freshness, SourceFinding, first_commit_of
from quaid.docs.source_trees import SourceTrees
from quaid.errors import ModelError
from quaid.llm.exchange import ItemProblem
from quaid.llm.prices import batches, estimate_tokens
from quaid.vault import files, headings

if TYPE_CHECKING:
    from quaid.llm import Models
    from quaid.local.runs import Judgements

TASK = "docs_staleness"
PROMPT = "docs_significance"
_MAX_DOC, _MAX_DIFF, _MAX_INPUT = 12_000, 6_000, 10_000
"""Characters of a document and of one difference, tokens of a whole prompt: with more, models judge carelessly."""
_OUTPUT_PER_JUDGEMENT = 80
"""Tokens."""


@dataclass(frozen=True, slots=True)
class StaleDoc:
    """A stale document with all that is needed to judge and to update it.

    `changes` belong to the significant findings of `freshness`, in their order; `files` are its sources as they are
    now, and `head` the commit that has them.
    """

    doc: Doc
    freshness: Freshness
    data: bytes
    changes: tuple[SourceChange, ...]
    files: Mapping[str, bytes]
    head: str | None

    @classmethod
    def open(cls, trees: SourceTrees, doc: Doc, freshness: Freshness) -> StaleDoc:
        """Read a stale document and its sources."""
        data = files.read_note(doc.folder, doc.rel_path) or b""
        changes = tuple(trees.read_changes(freshness.significant))
        return cls(doc, freshness, data, changes, trees.read_sources(doc, freshness.sources), trees.newest_head(doc))

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")

    @property
    def evidence(self) -> tuple[str, ...]:
        """What a decision is based on: the document and the changes of its sources, whatever a model says of them."""
        findings = (found for found in self.freshness.findings if found.by == "model" or not found.is_trivial)
        return (self.doc.evidence(self.data), *(_key(self.doc.id, finding) for finding in findings))

    def narrow(self, freshness: Freshness) -> StaleDoc:
        """Return the document after its changes were judged, with those that are still significant."""
        left = {_key(self.doc.id, finding) for finding in freshness.significant}
        changes = tuple(change for change in self.changes if _key(self.doc.id, change.finding) in left)
        return replace(self, freshness=freshness, changes=changes)

    def mark_true(self, why: str, judgements: Judgements) -> None:
        """Store that the document is true though its sources changed: the deep model has read both."""
        verdict = _render(why, is_significant=False)
        judgements.add(TASK, {_key(self.doc.id, finding): verdict for finding in self.freshness.significant})


def is_judged(freshness: Freshness) -> bool:
    """Return whether a model has judged all changes that are significant."""
    return not freshness.is_stale or all(finding.by == "model" for finding in freshness.significant)


def apply_stored(found: Sequence[Freshness], judgements: Judgements) -> list[Freshness]:
    """Return `found` with the stored judgements on the changes of the stale ones."""
    keys = [_key(freshness.doc, finding) for freshness in found for finding in freshness.significant]
    known = judgements.known(keys) if keys else {}
    return [_apply(freshness, known) if known else freshness for freshness in found]


def judge_all(
    found: Sequence[tuple[Doc, Freshness]], trees: SourceTrees, models: Models, judgements: Judgements
) -> tuple[list[tuple[Doc, Freshness]], str | None]:
    """Return `found` as the fast model judges. Also return why it stopped, if it failed."""
    judged: list[tuple[Doc, Freshness]] = []
    problem: str | None = None
    for doc, freshness in found:
        known = freshness
        if freshness.is_stale and problem is None:
            try:
                known = judge_doc(StaleDoc.open(trees, doc, freshness), models, judgements)
            except ModelError as error:
                problem = str(error)
        judged.append((doc, known))
    return judged, problem


def judge_doc(stale: StaleDoc, models: Models, judgements: Judgements) -> Freshness:
    """Prompt the fast model with the changes of a document that it has not judged yet.

    Raises:
        ModelError: as `Models.ask`.
    """
    changes = {_key(stale.doc.id, change.finding): change for change in stale.changes}
    known = dict(judgements.known(list(changes)))
    new = [key for key in changes if key not in known]
    if new:
        judged = ask_significance(models, stale.doc.rel_path, stale.text, [changes[key] for key in new])
        fresh = {
            key: _render(why, is_significant=is_significant)
            for key, (is_significant, why) in zip(new, judged, strict=True)
        }
        judgements.add(TASK, fresh)
        known |= fresh
    return _apply(stale.freshness, known)


def ask_significance(models: Models, path: str, text: str, changes: Sequence[SourceChange]) -> list[tuple[bool, str]]:
    """Return for each change whether the document `text` at `path` has to be checked for it, and why. A change that the
    model does not judge is significant.

    Raises:
        ModelError: as `Models.ask`.
    """
    prompt = models.prompt(PROMPT)
    batched = batches(
        [(shown, estimate_tokens(shown)) for shown in (change.show(_MAX_DIFF) for change in changes)],
        input_limit=_MAX_INPUT,
        output_per_item=_OUTPUT_PER_JUDGEMENT,
        output_limit=prompt.max_output_tokens,
    )
    judged: list[tuple[bool, str]] = []
    for batch in batched:
        inputs = {
            "today": today(),
            "watched_path": headings.one_line(path),
            "watched_doc": excerpt(text, changes[len(judged) : len(judged) + len(batch)], _MAX_DOC),
            "source_changes": number_changes(batch),
        }
        numbers = range(1, len(batch) + 1)
        answer = models.ask(prompt, inputs, check=partial(_find_missing, numbers))
        for number in numbers:
            items = [item for item in answer.value["changes"] if item["n"] == number]
            # Of two judgements that differ, the one that has the document checked.
            worst = max(items, key=lambda item: item["significant"], default=None)
            reason = clean(worst["reason"]) if worst else "The model did not judge it."
            judged.append((worst["significant"] if worst else True, reason))
    return judged


def _find_missing(numbers: Iterable[int], value: Mapping[str, Any]) -> list[ItemProblem]:
    given = {item["n"] for item in value["changes"]}
    return [ItemProblem("changes", None, f"number {n} is missing") for n in numbers if n not in given]


def _render(why: str, *, is_significant: bool) -> str:
    return json.dumps({"significant": is_significant, "why": why})


def _key(doc: str, finding: SourceFinding) -> str:
    """Return the key of a judgement: one document and one change."""
    parts = [doc, finding.kind, finding.path, finding.old_path or "", finding.before or "", finding.after or ""]
    joined = "\n".join(parts)
    return hashlib.sha256(f"docs {joined}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _apply(freshness: Freshness, known: Mapping[str, str]) -> Freshness:
    """Return `freshness` with its significant findings as they were judged; `known` are judgements by key."""
    findings = []
    for finding in freshness.findings:
        stored = known.get(_key(freshness.doc, finding)) if not finding.is_trivial else None
        if stored is None:
            findings.append(finding)
        else:
            shape = json.loads(stored)
            findings.append(replace(finding, is_trivial=not shape["significant"], why=str(shape["why"]), by="model"))
    if freshness.is_stale and all(finding.is_trivial for finding in findings):
        return replace(freshness, status="fresh", since=None, findings=tuple(findings))
    left = {commit.id for finding in findings if not finding.is_trivial for commit in finding.commits}
    is_since_left = freshness.since is not None and freshness.since.id in left
    since = freshness.since if is_since_left else first_commit_of(findings)
    return replace(freshness, findings=tuple(findings), since=since)
