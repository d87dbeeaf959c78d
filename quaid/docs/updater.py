"""A stale document, from the question to the model to a commit in the vault or a branch in its source repository."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.docs import changes, registry
from quaid.docs.catalogue import Doc
from quaid.docs.freshness import Freshness
from quaid.docs.judgements import TASK, KeptJudgements, StaleDoc, judge_doc, keep_still_true
from quaid.docs.source_trees import SourceTrees
from quaid.docs.updates import PROMPT, DocUpdate, StillTrue, ask_update, show_stale
from quaid.errors import ModelError, NoteBrokenError, NoteChangedError, ProposalError
from quaid.history import proposal
from quaid.history.messages import render
from quaid.history.proposal import Proposed
from quaid.history.source_repository import open_repository
from quaid.local.runs import evidence_key
from quaid.model import Edit, Message, PlannedCall, SourceEdit
from quaid.redaction import admit
from quaid.text.quoting import neutralise
from quaid.vault import files, headings

if TYPE_CHECKING:
    from quaid.llm import Models
    from quaid.open_vault import OpenVault

AUTHOR = ("Quaid", "quaid@localhost")


@dataclass(frozen=True, slots=True)
class ProposedUpdate:
    """The answer of the deep model on one document; `update` is `StillTrue` if nothing has to change."""

    stale: StaleDoc
    update: DocUpdate | StillTrue


@dataclass(frozen=True, slots=True)
class AppliedUpdate:
    """A proposed update that was carried out: a `commit` in the vault, or a `branch` in the source repository.

    `left` are the paths whose change stays in the working tree.
    """

    doc: Doc
    commit: str | None = None
    branch: Proposed | None = None
    left: tuple[str, ...] = ()


class Updater:
    """Updates documents of one vault."""

    def __init__(self, root: Path, trees: SourceTrees, judgements: KeptJudgements, vault: OpenVault) -> None:
        self._root = root
        self._trees = trees
        self._judgements = judgements
        self._vault = vault

    def judge(
        self, found: Sequence[tuple[Doc, Freshness]], models: Models
    ) -> tuple[list[tuple[Doc, Freshness]], str | None]:
        """Return `found` as the fast model judges, and why it was not asked further, if it failed."""
        judged: list[tuple[Doc, Freshness]] = []
        problem: str | None = None
        for doc, freshness in found:
            known = freshness
            if freshness.is_stale and problem is None:
                try:
                    known = judge_doc(self.open(doc, freshness), models, self._judgements)
                except ModelError as error:
                    problem = str(error)
            judged.append((doc, known))
        return judged, problem

    def open(self, doc: Doc, freshness: Freshness) -> StaleDoc:
        """A stale document with all that is needed to bring it up to date."""
        data = files.read_note(doc.folder, doc.rel_path) or b""
        changed = tuple(self._trees.read_changes(freshness.significant))
        sources = self._trees.read_sources(doc, freshness.sources)
        return StaleDoc(doc, freshness, data, changed, sources, self._trees.newest_head(doc))

    def propose(self, stale: StaleDoc, models: Models) -> ProposedUpdate:
        """Ask the deep model. That nothing has to change is remembered.

        Raises:
            ModelError: as `Models.ask`.
        """
        update = ask_update(models, stale.doc.rel_path, stale.text, stale.changes, stale.files)
        if isinstance(update, StillTrue):
            keep_still_true(stale, update.summary or "it is true as it is", self._judgements)
        return ProposedUpdate(stale, update)

    def estimate(self, stale: StaleDoc, models: Models) -> PlannedCall:
        """Return the call that `propose` would make, with the most it can take."""
        inputs = show_stale(stale.doc.rel_path, stale.text, stale.changes, stale.files)
        return models.estimate(models.prompt(PROMPT), inputs)

    def apply(self, wanted: ProposedUpdate, *, by_owner: bool = False) -> AppliedUpdate:
        """Make the update a commit in the vault, `by_owner` in the owner's name, or a branch in the source repository.

        Raises:
            ProposalError: the repository is not in a state for it, and why; nothing was changed.
            NoteChangedError: the document was changed meanwhile.
        """
        assert isinstance(wanted.update, DocUpdate)
        doc, summary = wanted.stale.doc, wanted.update.summary
        edit = update_edit(wanted.stale, wanted.update)
        if isinstance(edit, SourceEdit):
            made = propose_branch(edit)
            self._judgements.add(TASK, {evidence_key(TASK, *wanted.stale.evidence): f"branch {made.branch}"})
            return AppliedUpdate(doc, branch=made)
        message = message_of("update", doc, wanted.update, TASK, since_of(wanted.stale))

        def plan() -> WritePlan:
            if files.read_note(self._root, doc.rel_path) != edit.before:
                raise NoteChangedError(doc.rel_path)
            return WritePlan(WriteResult(doc.id, doc.rel_path, "set", summary), (edit,), message)

        key = hashlib.sha256(repr(("docs update", doc.id, edit.after)).encode("utf-8", "surrogateescape")).hexdigest()
        written = Writer(self._vault).write(key, plan, by_owner=by_owner).written
        return AppliedUpdate(doc, written.commit, left=written.left)


def update_edit(stale: StaleDoc, update: DocUpdate) -> Edit | SourceEdit:
    """Return the edit that updates a stale document; one of the vault also notes at which commit it is true."""
    doc, after = stale.doc, update.after.encode("utf-8", "surrogateescape")
    if not doc.is_in_vault:
        message = render(message_of("update", doc, update, TASK, since_of(stale)))
        return SourceEdit(str(doc.folder), doc.rel_path, stale.data, after, message)
    if stale.head is not None:
        with suppress(NoteBrokenError):  # then the day of the commit says it
            after = registry.plan_fields(doc.rel_path, after, {"true_at": stale.head}).after or after
    return Edit(doc.rel_path, stale.data, after)


def since_of(stale: StaleDoc) -> str:
    """`Stale since 3f2a91c0de (settings: a new default).`, fit for a commit."""
    since = stale.freshness.since
    return f"Stale since {since.id[:10]} ({quote(headings.one_line(since.subject))})." if since is not None else ""


def quote(text: str) -> str:
    """Return what a document or a commit says, fit to be quoted: without secrets, orders, and what is not text."""
    return neutralise(admit(text.encode("utf-8", "replace").decode()).text)


def message_of(verb: str, doc: Doc, update: DocUpdate, task: str, more: str = "") -> Message:
    """Return the message of a commit that changes a document as a model proposed."""
    body = "\n\n".join(part for part in (update.summary, update.detail, more) if part)
    trailers = (("Quaid-Task", task), ("Quaid-Model", update.model), ("Quaid-Prompt", update.prompt))
    return Message(f"docs: {verb} {headings.one_line(doc.rel_path)}", body, trailers)


def propose_branch(edit: SourceEdit) -> Proposed:
    """Create the branch that an edit of a source repository becomes.

    Raises:
        NoteChangedError: another state of the file was committed since.
        ProposalError: as `proposal.propose_branch`.
    """
    file = Path(edit.folder, edit.path)
    folder = file.parent.resolve()
    found = open_repository(folder) if folder.is_dir() else None
    if found is None:
        raise ProposalError(edit.folder, "there is no repository any more", "Say where it is now in source_roots")
    path = (folder / file.name).relative_to(found.top.resolve()).as_posix()
    now = files.read_note(folder, file.name)
    if now != edit.before and (path not in found.files if now is None else found.holds(path, now)):
        raise NoteChangedError(edit.path)
    name = proposal.name_branch(path, edit.after)
    return proposal.propose_branch(folder, name, {path: (edit.before, edit.after)}, edit.message, AUTHOR)


def render_patch(wanted: ProposedUpdate) -> str:
    """Return the update as a patch that `git apply` takes, in the repository or in the vault."""
    assert isinstance(wanted.update, DocUpdate)
    doc = wanted.stale.doc
    found = open_repository(doc.file.parent) if not doc.is_in_vault else None
    path = found.inside(doc.file) if found is not None else doc.rel_path
    return changes.render_patch({path: (wanted.stale.data, wanted.update.after.encode("utf-8", "surrogateescape"))})
