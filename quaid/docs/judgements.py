"""Judgements of the fast model on the changes of a stale document: which of them matter to it. Each is asked for once.

The filter has no idea what a document is about; a model that reads both may say that a change leaves it true.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange
from quaid.docs.freshness import Freshness, SourceFinding, first_commit_of
from quaid.docs.prompt_inputs import excerpt, numbered, show_change, today
from quaid.docs.updates import clean
from quaid.llm.exchange import ItemProblem
from quaid.vault import headings

if TYPE_CHECKING:
    from quaid.llm import Models

TASK = "docs_staleness"
PROMPT = "docs_significance"
_MAX_DOC, _MAX_DIFF, _MAX_INPUT = 12_000, 6_000, 10_000
"""Characters of a document and of one difference, tokens of all that one question shows: who reads too much at once
judges carelessly.
"""
_OUTPUT_PER_JUDGEMENT = 80
"""Tokens."""


class ChangeJudgement(NamedTuple):
    """A model's answer whether a document has to be looked at for a change, and why."""

    change: SourceChange
    significant: bool
    reason: str


class KeptJudgements(Protocol):
    """Judgements that were made before, by the hash of their evidence."""

    def known(self, keys: Collection[str], /) -> Mapping[str, str]: ...

    def add(self, task: str, judgements: Mapping[str, str], /) -> None: ...


@dataclass(frozen=True, slots=True)
class StaleDoc:
    """A document that its sources have left behind, with all that is needed to judge it and to bring it up to date.

    `changes` belong to the significant findings of `freshness`, in their order; `files` are its sources as they are
    now, and `head` the commit that has them.
    """

    doc: Doc
    freshness: Freshness
    data: bytes
    changes: tuple[SourceChange, ...]
    files: Mapping[str, bytes]
    head: str | None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")

    @property
    def evidence(self) -> tuple[str, ...]:
        """The parts that a decision rests on: the document and the changes of its sources, whatever a model says."""
        findings = (found for found in self.freshness.findings if found.by == "model" or not found.is_trivial)
        return (self.doc.evidence(self.data), *(_key_of(self.doc.id, finding) for finding in findings))

    def narrowed(self, freshness: Freshness) -> StaleDoc:
        """The same after its changes were judged: with those that are still significant."""
        left = {_key_of(self.doc.id, finding) for finding in freshness.significant}
        pairs = zip(self.freshness.significant, self.changes, strict=True)
        changes = tuple(change for finding, change in pairs if _key_of(self.doc.id, finding) in left)
        return replace(self, freshness=freshness, changes=changes)


def is_judged(freshness: Freshness) -> bool:
    """Return whether a model has judged all that the filter let through."""
    return not freshness.is_stale or all(finding.by == "model" for finding in freshness.significant)


def apply_kept(found: Sequence[Freshness], kept: KeptJudgements) -> list[Freshness]:
    """Return `found` with the kept judgements on the changes of the stale ones."""
    keys = [_key_of(freshness.doc, finding) for freshness in found for finding in freshness.significant]
    known = kept.known(keys) if keys else {}
    return [_apply(freshness, known) if known else freshness for freshness in found]


def judge_doc(stale: StaleDoc, models: Models, kept: KeptJudgements) -> Freshness:
    """Ask the fast model about the changes of a document that it has not judged yet.

    Raises:
        ModelError: as `Models.ask`.
    """
    changes = {
        _key_of(stale.doc.id, finding): change
        for finding, change in zip(stale.freshness.significant, stale.changes, strict=True)
    }
    known = dict(kept.known(list(changes)))
    new = {key: change for key, change in changes.items() if key not in known}
    if new:
        judged = ask_significance(models, stale.doc.rel_path, stale.text, list(new.values()))
        fresh = {
            key: _as_text(significant=each.significant, why=each.reason) for key, each in zip(new, judged, strict=True)
        }
        kept.add(TASK, fresh)
        known |= fresh
    return _apply(stale.freshness, known)


def keep_still_true(stale: StaleDoc, why: str, kept: KeptJudgements) -> None:
    """Remember that a document is true though its sources changed: the deep model has read both."""
    judgement = _as_text(significant=False, why=why)
    kept.add(TASK, {_key_of(stale.doc.id, finding): judgement for finding in stale.freshness.significant})


def ask_significance(models: Models, path: str, text: str, changes: Sequence[SourceChange]) -> list[ChangeJudgement]:
    """A judgement for each of `changes`, in their order: whether the document `text` at `path` has to be looked at for
    it. Those that the model did not judge are significant.

    Raises:
        ModelError: as `Models.ask`.
    """
    from quaid.llm.batches import batches
    from quaid.llm.prices import estimate_tokens

    prompt = models.prompt(PROMPT)
    batched = batches(
        [(change, show_change(change, _MAX_DIFF)) for change in changes],
        tokens_of=lambda item: estimate_tokens(item[1]),
        input_limit=_MAX_INPUT,
        output_per_item=_OUTPUT_PER_JUDGEMENT,
        output_limit=prompt.max_output_tokens,
    )
    judged: list[ChangeJudgement] = []
    for batch in batched:
        asked = [change for change, _ in batch]
        inputs = {
            "today": today(),
            "watched_path": headings.one_line(path),
            "watched_doc": excerpt(text, asked, _MAX_DOC),
            "source_changes": numbered(shown for _, shown in batch),
        }
        answer = models.ask(prompt, inputs, check=partial(_missing_numbers, len(batch)))
        for n, change in enumerate(asked, 1):
            items = [item for item in answer.value["changes"] if item["n"] == n]
            # Of two judgements that differ, the one that has the document looked at.
            worst = max(items, key=lambda item: item["significant"], default=None)
            reason = clean(worst["reason"]) if worst else "The model did not judge it."
            judged.append(ChangeJudgement(change, worst["significant"] if worst else True, reason))
    return judged


def _missing_numbers(count: int, value: Mapping[str, Any]) -> list[ItemProblem]:
    given = {item["n"] for item in value["changes"]}
    return [ItemProblem("changes", None, f"number {n} is missing") for n in range(1, count + 1) if n not in given]


def _key_of(doc: str, finding: SourceFinding) -> str:
    """Names a change as one document sees it."""
    parts = [doc, finding.kind, finding.path, finding.old_path or "", finding.before or "", finding.after or ""]
    joined = "\n".join(parts)
    return hashlib.sha256(f"docs {joined}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _as_text(*, significant: bool, why: str) -> str:
    return json.dumps({"significant": significant, "why": why})


def _apply(freshness: Freshness, known: Mapping[str, str]) -> Freshness:
    """The same, with its significant findings as they were judged: `known` are judgements by their keys."""
    findings = []
    for finding in freshness.findings:
        kept = known.get(_key_of(freshness.doc, finding)) if not finding.is_trivial else None
        if kept is None:
            findings.append(finding)
        else:
            shape = json.loads(kept)
            findings.append(replace(finding, is_trivial=not shape["significant"], why=str(shape["why"]), by="model"))
    if freshness.is_stale and all(finding.is_trivial for finding in findings):
        return replace(freshness, status="fresh", since=None, findings=tuple(findings))
    left = {commit.id for finding in findings if not finding.is_trivial for commit in finding.commits}
    is_kept = freshness.since is not None and freshness.since.id in left
    since = freshness.since if is_kept else first_commit_of(findings)
    return replace(freshness, findings=tuple(findings), since=since)
