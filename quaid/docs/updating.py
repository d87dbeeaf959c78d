"""Bringing a stale document up to date: a commit in the vault, or a branch or a patch in its source repository."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.capture.writer import WritePlan, WriteResult
from quaid.docs import patches
from quaid.docs.catalogue import Doc
from quaid.docs.checking import Checker
from quaid.docs.edits import update_edit, update_message
from quaid.docs.staleness import Freshness
from quaid.docs.updater import StillTrue, Update, ask_update
from quaid.docs.weighing import TASK, StaleDoc, note_still_true, weigh
from quaid.errors import ModelError, NoteChangedError, ProposalError
from quaid.history import proposal
from quaid.history.proposal import Proposed
from quaid.history.vault_history import History
from quaid.local.runs import Judgements, key_of
from quaid.model import Edit, Message, SourceEdit
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.capture.writer import Writer
    from quaid.llm import Models

BY = ("Quaid", "quaid@localhost")


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a model would make of one document; `update` says `StillTrue` where nothing has to change."""

    stale: StaleDoc
    update: Update | StillTrue


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """What became of a proposal: a `commit` in the vault, or a `branch` with one in the source repository."""

    doc: Doc
    commit: str | None = None
    branch: Proposed | None = None
    left: tuple[str, ...] = ()


class Updater:
    """Updates documents of one vault."""

    def __init__(self, root: Path, checker: Checker, judgements: Judgements, writer: Callable[[], Writer]) -> None:
        self._root = root
        self._checker = checker
        self._judgements = judgements
        self._writer = writer

    def weigh(
        self, found: Sequence[tuple[Doc, Freshness]], models: Models
    ) -> tuple[list[tuple[Doc, Freshness]], str | None]:
        """The same, with what the fast model says; and why it was not asked on, if it was not."""
        weighed: list[tuple[Doc, Freshness]] = []
        problem: str | None = None
        for doc, freshness in found:
            told = freshness
            if freshness.is_stale and problem is None:
                try:
                    told = weigh(self.open(doc, freshness), models, self._judgements)
                except ModelError as error:
                    problem = str(error)
            weighed.append((doc, told))
        return weighed, problem

    def open(self, doc: Doc, freshness: Freshness) -> StaleDoc:
        """A stale document with all that is needed to bring it up to date."""
        data = files.read_note(doc.folder, doc.rel_path) or b""
        changes = tuple(self._checker.changes(freshness.significant))
        return StaleDoc(
            doc, freshness, data, changes, self._checker.read_sources(freshness, doc), self._checker.head_of(doc)
        )

    def propose(self, stale: StaleDoc, models: Models, refused: Sequence[str] = ()) -> Proposal:
        """Ask the deep model. That nothing has to change is remembered.

        Raises:
            ModelError: as `Models.ask`.
        """
        told = ask_update(models, stale.doc.rel_path, stale.text, stale.changes, stale.files, refused)
        if isinstance(told, StillTrue):
            note_still_true(stale, told.summary or "it is true as it is", self._judgements)
        return Proposal(stale, told)

    def carry_out(self, wanted: Proposal) -> CarriedOut:
        """Make the update a commit in the vault, or a branch in the source repository.

        Raises:
            ProposalError: the repository is not in a state for it, and why; nothing was changed.
            NoteChangedError: the document was changed meanwhile.
        """
        assert isinstance(wanted.update, Update)
        doc = wanted.stale.doc
        edit = update_edit(wanted.stale, wanted.update)
        if isinstance(edit, SourceEdit):
            made = propose_branch(edit)
            self._judgements.add(TASK, {key_of(TASK, *wanted.stale.evidence): f"branch {made.branch}"})
            return CarriedOut(doc, branch=made)
        written = self._write(edit, doc, wanted.update.summary, update_message(wanted.stale, wanted.update))
        return CarriedOut(doc, written.commit, left=written.left)

    def _write(self, edit: Edit, doc: Doc, summary: str, message: Message) -> WriteResult:
        def plan() -> WritePlan:
            if files.read_note(self._root, doc.rel_path) != edit.before:
                raise NoteChangedError(doc.rel_path)
            return WritePlan(WriteResult(doc.id, doc.rel_path, "set", summary), (edit,), message)

        key = hashlib.sha256(repr(("docs update", doc.id, edit.after)).encode("utf-8", "surrogateescape")).hexdigest()
        return self._writer().write(key, plan).written


def propose_branch(edit: SourceEdit) -> Proposed:
    """Make the branch.

    Raises:
        NoteChangedError: another state of the file was committed since.
        ProposalError: as `proposal.propose_branch`.
    """
    file = Path(edit.folder, edit.path)
    folder = file.parent.resolve()
    found = History.open_source(folder) if folder.is_dir() else None
    if found is None:
        raise ProposalError(edit.folder, "there is no repository any more", "Say where it is now in source_roots")
    path = (folder / file.name).relative_to(found.top.resolve()).as_posix()
    now = files.read_note(folder, file.name)
    if now != edit.before and (path not in found.files if now is None else found.holds(path, now)):
        raise NoteChangedError(edit.path)
    name = proposal.name_branch(path, edit.after)
    return proposal.propose_branch(folder, name, {path: (edit.before, edit.after)}, edit.message, BY)


def render_patch(wanted: Proposal) -> str:
    """The update as a patch that `git apply` takes, in the repository or in the vault."""
    assert isinstance(wanted.update, Update)
    doc = wanted.stale.doc
    path = doc.rel_path if doc.is_in_vault else _path_in_repository(doc)
    return patches.render_patch({path: (wanted.stale.data, wanted.update.after.encode("utf-8", "surrogateescape"))})


def _path_in_repository(doc: Doc) -> str:
    found = History.open_source(doc.file.parent)
    return found.inside(doc.file) if found else doc.rel_path
