"""What of a stale document's changes matters to it, in the fast model's eyes: asked once, and kept.

The filter has no idea what a document is about; a model that reads both may say that a change leaves it true.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from quaid.docs import staleness
from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange
from quaid.docs.staleness import Finding, Freshness

if TYPE_CHECKING:
    from quaid.llm import Models

TASK = "docs_staleness"


class Judgements(Protocol):
    """What was judged before, by the hash of its evidence."""

    def known(self, keys: Collection[str]) -> Mapping[str, str]: ...

    def add(self, task: str, verdicts: Mapping[str, str]) -> None: ...


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
        """What a decision about it rests on: the document, and what became of its sources, whatever a model says."""
        findings = (found for found in self.freshness.findings if found.by == "model" or not found.is_trivial)
        return (self.doc.evidence(self.data), *(key_of(self.doc.id, finding) for finding in findings))

    def narrowed(self, freshness: Freshness) -> StaleDoc:
        """The same after its changes were weighed: with those that are still significant."""
        left = {key_of(self.doc.id, finding) for finding in freshness.significant}
        pairs = zip(self.freshness.significant, self.changes, strict=True)
        changes = tuple(change for finding, change in pairs if key_of(self.doc.id, finding) in left)
        return replace(self, freshness=freshness, changes=changes)


def key_of(doc: str, finding: Finding) -> str:
    """Names a change as one document sees it."""
    told = "\n".join(
        [doc, finding.kind, finding.path, finding.old_path or "", finding.before or "", finding.after or ""]
    )
    return hashlib.sha256(f"docs {told}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def recall_verdicts(found: Sequence[Freshness], judgements: Judgements) -> list[Freshness]:
    """The same, with what is known already of the changes of the stale ones."""
    keys = [key_of(freshness.doc, finding) for freshness in found for finding in freshness.significant]
    known = {key: json.loads(verdict) for key, verdict in judgements.known(keys).items()} if keys else {}
    return [_apply(freshness, known) if known else freshness for freshness in found]


def is_weighed(freshness: Freshness) -> bool:
    """Whether there is nothing that a model has not judged yet."""
    return not freshness.is_stale or all(finding.by == "model" for finding in freshness.significant)


def weigh(stale: StaleDoc, models: Models, judgements: Judgements) -> Freshness:
    """Ask the fast model about the changes of a document that it has not judged yet.

    Raises:
        ModelError: as `Models.ask`.
    """
    from quaid.docs.updater import ask_significance

    findings = stale.freshness.significant
    keys = [key_of(stale.doc.id, finding) for finding in findings]
    known = judgements.known(keys)
    new = [change for key, change in zip(keys, stale.changes, strict=True) if key not in known]
    if new:
        told = ask_significance(models, stale.doc.rel_path, stale.text, new)
        verdicts = {id(verdict.change): verdict for verdict in told.verdicts}
        fresh = {
            key: json.dumps({"significant": verdicts[id(change)].significant, "why": verdicts[id(change)].reason})
            for key, change in zip(keys, stale.changes, strict=True)
            if id(change) in verdicts
        }
        judgements.add(TASK, fresh)
        known = {**known, **fresh}
    return _apply(stale.freshness, {key: json.loads(verdict) for key, verdict in known.items()})


def note_still_true(stale: StaleDoc, why: str, judgements: Judgements) -> None:
    """Remember that a document is true though its sources changed: the deep model has read both."""
    verdict = json.dumps({"significant": False, "why": why})
    judgements.add(TASK, {key_of(stale.doc.id, finding): verdict for finding in stale.freshness.significant})


def _apply(freshness: Freshness, verdicts: Mapping[str, Mapping[str, object]]) -> Freshness:
    def judged(finding: Finding) -> Finding:
        verdict = verdicts.get(key_of(freshness.doc, finding)) if not finding.is_trivial else None
        if verdict is None:
            return finding
        return replace(finding, is_trivial=not verdict["significant"], why=str(verdict["why"]), by="model")

    findings = tuple(map(judged, freshness.findings))
    if freshness.is_stale and all(finding.is_trivial for finding in findings):
        return replace(freshness, status="fresh", since=None, findings=findings)
    left = {commit.id for finding in findings if not finding.is_trivial for commit in finding.commits}
    is_kept = freshness.since is not None and freshness.since.id in left
    return replace(freshness, findings=findings, since=freshness.since if is_kept else staleness.first_of(findings))
