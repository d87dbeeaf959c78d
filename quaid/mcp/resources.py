"""The resources that a host may attach to a conversation: notes, core notes, projects, and recent facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server import MCPServer

from quaid.errors import NoteNotFoundError
from quaid.mcp.results import one_line
from quaid.mcp.workers import Workers
from quaid.model import CORE_FILES, Kind
from quaid.text.quoting import PREFACE, neutralise
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.memory import Memory

MARKDOWN = "text/markdown"
MAX_RECENT = 30
_RECENT = (
    "doc_id IN (SELECT doc_id FROM documents WHERE kind = 'fact' AND superseded_by IS NULL AND created IS NOT NULL "
    "ORDER BY created DESC LIMIT :most)"
)


def add_resources(server: MCPServer, workers: Workers) -> None:
    """Register the `memory://` resources."""

    @server.resource("memory://recent", title="Recent memories", mime_type=MARKDOWN)
    async def recent() -> str:
        """The facts that were learned last, newest first."""
        from quaid.index import documents

        def list_recent(memory: Memory) -> str:
            index = memory.index()
            found = documents.find_documents(index, _RECENT, {"most": MAX_RECENT})
            newest = sorted(found, key=lambda fact: fact.created or "", reverse=True)
            lines = [
                f"- {(fact.created or '')[:10]} {one_line(documents.text_of(index, fact.doc_id))} ({fact.id})"
                for fact in newest
            ]
            return "\n".join([PREFACE, "", *lines])

        return await workers.reading.run(list_recent)

    @server.resource("memory://facts/{id}", title="A fact", mime_type=MARKDOWN)
    async def fact(id: str) -> str:  # noqa: A002 - the name in the address
        """One fact's note, by its id or a part of it."""
        return await workers.reading.run(lambda memory: _read_note(memory, id, Kind.FACT))

    @server.resource("memory://entities/{name}", title="A person, place or thing", mime_type=MARKDOWN)
    async def entity(name: str) -> str:
        """The note of what is called so, by a name or an alias."""
        return await workers.reading.run(lambda memory: _read_note(memory, name, Kind.ENTITY))

    @server.resource("memory://core/{file}", title="A core note", mime_type=MARKDOWN)
    async def core(file: str) -> str:
        """SOUL.md, USER.md, MEMORY.md or AGENTS.md."""
        if file not in CORE_FILES:
            raise NoteNotFoundError(file)
        return await workers.reading.run(lambda memory: _read_file(memory, file))

    @server.resource("memory://projects", title="Projects", mime_type=MARKDOWN)
    async def projects() -> str:
        """The active projects: what each is, how many documents it has, and which of them are stale."""
        from quaid.agents.project_context import read_projects

        found = await workers.reading.run(
            lambda memory: read_projects(memory.root, Layout.of(memory.settings.vault), most=None)
        )
        return "\n".join([PREFACE, "", *(f"- {one_line(line)}" for line in found.lines)])

    @server.resource("memory://projects/{name}", title="A project", mime_type=MARKDOWN)
    async def project(name: str) -> str:
        """The PROJECT.md of one project, and how fresh its documents are."""
        return await workers.documents.run(lambda memory: _read_project(memory, name))


def _read_file(memory: Memory, path: str) -> str:
    """The note as its file has it, disarmed, under the line that says what it is.

    Raises:
        NoteNotFoundError: there is none that the caller may see.
    """
    from quaid.recall.visibility import may_see
    from quaid.vault import files
    from quaid.vault.layout import Layout

    data = files.read_note(memory.root, path)
    if data is None or not may_see(path, data, memory.owners, Layout.of(memory.settings.vault)):
        raise NoteNotFoundError(path)
    return f"{PREFACE}\n\n{neutralise(data.decode('utf-8', 'replace'))}"


def _read_note(memory: Memory, reference: str, kind: Kind) -> str:
    """The file of the note that `reference` names.

    Raises:
        NoteNotFoundError: no note of that kind is called so.
        AmbiguousReferenceError
    """
    from quaid.index import documents, references

    index = memory.index()
    named = [found for found in documents.find_by_reference(index, reference) if found.kind == kind]
    document = named[0] if len(named) == 1 else references.resolve_one(index, reference).document
    if document.kind != kind:
        raise NoteNotFoundError(reference)
    return _read_file(memory, document.path)


def _read_project(memory: Memory, name: str) -> str:
    """The PROJECT.md and a list of the project's documents.

    Raises:
        NoteNotFoundError: there is no such project.
    """
    from quaid.docs.freshness import describe
    from quaid.errors import BadInputError

    try:
        project = memory.documentation.project(name)
    except BadInputError as error:
        raise NoteNotFoundError(name) from error
    found = memory.documentation.check(project=project.name)
    docs = [f"- {one_line(f'{doc.id}: {describe(freshness)}')}" for doc, freshness in found]
    return "\n".join([_read_file(memory, project.path).rstrip(), "", "## Documents", "", *docs])
