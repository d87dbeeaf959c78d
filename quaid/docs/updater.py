"""Proposed edits of documents, carried out: a commit in the vault, or a branch in the source repository."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.docs import changes, registry
from quaid.docs.catalogue import Doc
from quaid.docs.judgements import TASK, StaleDoc
from quaid.docs.updates import DocUpdate
from quaid.errors import NoteBrokenError, NoteChangedError, ProposalError
from quaid.history import proposal
from quaid.history.messages import render
from quaid.history.proposal import Proposed
from quaid.history.source_repository import open_repository
from quaid.local.runs import Judgements, evidence_key
from quaid.model import Edit, Message, SourceEdit
from quaid.redaction import admit
from quaid.text.quoting import neutralise
from quaid.vault import files, headings

if TYPE_CHECKING:
    from quaid.open_vault import OpenVault

AUTHOR = ("Quaid", "quaid@localhost")


def apply_update(
    vault: OpenVault, stale: StaleDoc, update: DocUpdate, judgements: Judgements, *, by_owner: bool
) -> Proposed | WriteResult:
    """Commit the update in the vault, `by_owner` in the owner's name, or create a branch in the repository.

    Raises:
        ProposalError: the repository is not in a state for it, and why; nothing was changed.
        NoteChangedError: the document was changed meanwhile.
    """
    doc = stale.doc
    edit = make_edit(stale, update)
    if isinstance(edit, SourceEdit):
        made = propose_branch(edit)
        judgements.add(TASK, {evidence_key(TASK, *stale.evidence): f"branch {made.branch}"})
        return made
    message = _write_message("update", doc, update, TASK, describe_since(stale))

    def plan() -> WritePlan:
        if files.read_note(vault.root, doc.rel_path) != edit.before:
            raise NoteChangedError(doc.rel_path)
        return WritePlan(WriteResult(doc.id, doc.rel_path, "set", update.summary), (edit,), message)

    key = hashlib.sha256(repr(("docs update", doc.id, edit.after)).encode("utf-8", "surrogateescape")).hexdigest()
    return Writer(vault).write(key, plan, by_owner=by_owner).written


def make_edit(stale: StaleDoc, update: DocUpdate) -> Edit | SourceEdit:
    """Return the edit that updates a stale document; one of the vault also notes at which commit it is true."""
    doc, after = stale.doc, update.after.encode("utf-8", "surrogateescape")
    if not doc.is_in_vault:
        return _edit_source(doc, stale.data, after, _write_message("update", doc, update, TASK, describe_since(stale)))
    if stale.head is not None:
        with suppress(NoteBrokenError):  # then the day of the commit says it
            after = registry.plan_fields(doc.rel_path, after, {"true_at": stale.head}).after or after
    return Edit(doc.rel_path, stale.data, after)


def make_cut(doc: Doc, data: bytes, cuts: DocUpdate) -> Edit | SourceEdit:
    """Return the edit that shortens a document."""
    after = cuts.after.encode("utf-8", "surrogateescape")
    if doc.is_in_vault:
        return Edit(doc.rel_path, data, after)
    return _edit_source(doc, data, after, _write_message("shorten", doc, cuts, "docs_cleanup", ""))


def _edit_source(doc: Doc, before: bytes, after: bytes, message: Message) -> SourceEdit:
    return SourceEdit(str(doc.folder), doc.rel_path, before, after, render(message))


def _write_message(verb: str, doc: Doc, update: DocUpdate, task: str, more: str) -> Message:
    body = "\n\n".join(part for part in (update.summary, update.detail, more) if part)
    trailers = (("Quaid-Task", task), ("Quaid-Model", update.model), ("Quaid-Prompt", update.prompt))
    return Message(f"docs: {verb} {headings.one_line(doc.rel_path)}", body, trailers)


def describe_since(stale: StaleDoc) -> str:
    """`Stale since 3f2a91c0de (settings: a new default).`, fit for a commit."""
    since = stale.freshness.since
    return f"Stale since {since.id[:10]} ({quote(headings.one_line(since.subject))})." if since is not None else ""


def quote(text: str) -> str:
    """Return text of a document or a source as it may be shown, also where a file's name is not text."""
    return neutralise(admit(text.encode("utf-8", "replace").decode()).text)


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
    return proposal.propose_branch(folder, name, path, edit.before, edit.after, edit.message, AUTHOR)


def render_patch(stale: StaleDoc, update: DocUpdate) -> str:
    """Return the update as a patch that `git apply` takes, in the repository or in the vault."""
    doc = stale.doc
    found = open_repository(doc.file.parent) if not doc.is_in_vault else None
    path = found.inside(doc.file) if found is not None else doc.rel_path
    return changes.render_patch(path, stale.data, update.after.encode("utf-8", "surrogateescape"))
