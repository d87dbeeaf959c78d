"""What becomes of a document, as an edit: of a file of the vault, or of one in its source repository. Pure."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from quaid.docs import registry
from quaid.errors import NoteBrokenError
from quaid.history.messages import render
from quaid.model import Edit, Message, SourceEdit
from quaid.redaction import admit
from quaid.text.quoting import neutralise
from quaid.vault import headings

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.churn import GrownDoc
    from quaid.docs.updater import Update
    from quaid.docs.weighing import StaleDoc


def update_edit(stale: StaleDoc, update: Update) -> Edit | SourceEdit:
    """What brings a stale document up to date. One of the vault says then at which commit of its sources it is true."""
    after = _written(update)
    if not stale.doc.is_in_vault:
        return _source_edit(stale.doc, stale.data, after, update_message(stale, update))
    if stale.head is not None:
        with suppress(NoteBrokenError):  # then the day of the commit says it
            after = registry.plan_sources(stale.doc.rel_path, (), stale.head, after).after or after
    return Edit(stale.doc.rel_path, stale.data, after)


def cleanup_edit(grown: GrownDoc, cuts: Update) -> Edit | SourceEdit:
    """What shortens a document that has grown."""
    doc, after = grown.doc, _written(cuts)
    if doc.is_in_vault:
        return Edit(doc.rel_path, grown.data, after)
    return _source_edit(doc, grown.data, after, _message("shorten", doc, cuts, "docs_cleanup"))


def update_message(stale: StaleDoc, update: Update) -> Message:
    """What a commit says that brings a document up to date."""
    return _message("update", stale.doc, update, "docs_staleness", since_of(stale))


def since_of(stale: StaleDoc) -> str:
    """`Stale since 3f2a91c0de (settings: a new default).`, fit for a commit."""
    since = stale.freshness.since
    return f"Stale since {since.id[:10]} ({shown(headings.one_line(since.subject))})." if since is not None else ""


def shown(text: str) -> str:
    """What a document or a commit says, fit to be quoted: without secrets, orders, and what is no text."""
    return neutralise(admit(text.encode("utf-8", "replace").decode()).text)


def _written(update: Update) -> bytes:
    return update.after.encode("utf-8", "surrogateescape")


def _source_edit(doc: Doc, before: bytes, after: bytes, message: Message) -> SourceEdit:
    return SourceEdit(str(doc.folder), doc.rel_path, before, after, render(message))


def _message(verb: str, doc: Doc, update: Update, task: str, more: str = "") -> Message:
    body = "\n\n".join(part for part in (update.summary, update.detail, more) if part)
    trailers = (("Quaid-Task", task), ("Quaid-Model", update.model), ("Quaid-Prompt", update.prompt))
    return Message(f"docs: {verb} {headings.one_line(doc.rel_path)}", body, trailers)
