"""The resources that a host may attach to a conversation, and the prompts that people select in their host."""

from functools import partial
from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field

from quaid.agents.project_context import read_projects
from quaid.docs.freshness import describe
from quaid.errors import BadInputError, NoteNotFoundError
from quaid.index import documents, references
from quaid.mcp.results import one_line, recall_block, warning_of
from quaid.mcp.workers import Workers
from quaid.memory import Memory
from quaid.model import CORE_FILES, Kind
from quaid.recall.visibility import may_see
from quaid.text.quoting import PREFACE, neutralise
from quaid.text.zones import order_key
from quaid.vault import files

MARKDOWN = "text/markdown"
MAX_RECENT = 30
_RECENT = (
    "doc_id IN (SELECT doc_id FROM documents WHERE kind = 'fact' AND superseded_by IS NULL AND created IS NOT NULL "
    "ORDER BY created DESC LIMIT :most)"
)
_ANSWER = """\
{question}

Answer with one JSON object as the schema above says, and hand it in: call memory_extract with session {session!r},
through {through}, and the object as `answer`. If the result says that something is wrong with it, mend that and call
again. If the result has another `question`, answer that too."""

_REMEMBER = """\
Keep this conversation in my memory. Do it in one call of memory_extract, with two arguments:

1. `turns`: what I and you have said, in order, as {{"role": "user" or "assistant", "content": "…"}}. Keep what matters
   word for word and shorten the rest. Leave out tool output, code listings, secrets, and memories that were recalled.
   The first is t1, the next t2, and so on.
2. `answer`: what you learn from it, as the following instructions and their schema say. Cite the numbers of your turns.

If the result says that something is wrong with the answer, mend that and call again, with the session it names and the
answer, without the turns.

{instructions}"""


def add_resources(server: MCPServer, workers: Workers) -> None:
    """Register the `memory://` resources."""

    @server.resource("memory://recent", title="Recent memories", mime_type=MARKDOWN)
    async def recent() -> str:
        """The facts that were learned last, newest first."""

        def read(memory: Memory) -> str:
            index = memory.index()
            found = documents.find_documents(index, _RECENT, {"most": MAX_RECENT})
            lines = [
                f"- {(fact.created or '')[:10]} {one_line(documents.text_of(index, fact.doc_id))} ({fact.id})"
                for fact in sorted(found, key=lambda fact: order_key(fact.created), reverse=True)
            ]
            return "\n".join([PREFACE, "", *lines])

        return await workers.reading.run(read)

    @server.resource("memory://facts/{id}", title="A fact", mime_type=MARKDOWN)
    async def fact(id: str) -> str:  # noqa: A002 - the name in the address
        """One fact's note, by its id or a part of it."""
        return await workers.reading.run(partial(_read_note, reference=id, kind=Kind.FACT))

    @server.resource("memory://entities/{name}", title="A person, place or thing", mime_type=MARKDOWN)
    async def entity(name: str) -> str:
        """The note of what is called so, by a name or an alias."""
        return await workers.reading.run(partial(_read_note, reference=name, kind=Kind.ENTITY))

    @server.resource("memory://core/{file}", title="A core note", mime_type=MARKDOWN)
    async def core(file: str) -> str:
        """SOUL.md, USER.md, MEMORY.md or AGENTS.md."""
        if file not in CORE_FILES:
            raise NoteNotFoundError(file)
        return await workers.reading.run(partial(_read_file, path=file))


def add_project_resources(server: MCPServer, workers: Workers) -> None:
    """Register the `memory://projects` resources."""

    @server.resource("memory://projects", title="Projects", mime_type=MARKDOWN)
    async def projects() -> str:
        """The active projects: what each is, how many documents it has, and which of them are stale."""

        def read(memory: Memory) -> str:
            lines, _ = read_projects(memory.root, memory.layout, most=None)
            return "\n".join([PREFACE, "", *(f"- {one_line(line)}" for line in lines)])

        return await workers.reading.run(read)

    @server.resource("memory://projects/{name}", title="A project", mime_type=MARKDOWN)
    async def project(name: str) -> str:
        """The PROJECT.md of one project, and how fresh its documents are."""

        def read(memory: Memory) -> str:
            try:
                project = memory.documentation.project(name)
            except BadInputError as error:
                raise NoteNotFoundError(name) from error
            found = memory.documentation.check(project=project.name)
            docs = [f"- {one_line(f'{doc.id}: {describe(freshness)}')}" for doc, freshness in found]
            return "\n".join([_read_file(memory, project.path).rstrip(), "", "## Documents", "", *docs])

        return await workers.documents.run(read)


def _read_file(memory: Memory, path: str) -> str:
    """Return the text of a note, disarmed, below a line that says what it is.

    Raises:
        NoteNotFoundError: there is none that the caller may see.
    """
    data = files.read_note(memory.root, path)
    if data is None or not may_see(path, data, memory.owners, memory.layout):
        raise NoteNotFoundError(path)
    return f"{PREFACE}\n\n{neutralise(data.decode('utf-8', 'replace'))}"


def _read_note(memory: Memory, reference: str, kind: Kind) -> str:
    """Return the text of the referenced note.

    Raises:
        NoteNotFoundError: no note of that kind has this id or name.
        AmbiguousReferenceError
    """
    index = memory.index()
    named = [found for found in documents.find_by_reference(index, reference) if found.kind == kind]
    document = named[0] if len(named) == 1 else references.resolve_one(index, reference).document
    if document.kind != kind:
        raise NoteNotFoundError(reference)
    return _read_file(memory, document.path)


def add_prompts(server: MCPServer, workers: Workers) -> None:
    """Register the prompts `recall` and `remember-session`."""

    @server.prompt("recall", title="Recall what is known about something")
    async def recall(topic: Annotated[str, Field(description="What you want to know, with names.")]) -> str:
        """What the memory holds on a topic, put before the model."""
        if not topic.strip():
            raise BadInputError("The topic is empty. Name a person, a thing or a question.")
        found = await workers.reading.run(lambda memory: memory.recall(topic[:4_000], door="mcp", with_neighbours=True))
        parts = (recall_block(found)[0], warning_of(found))
        return "\n".join(part for part in parts if part) + f"\n\nTell me what you know about: {topic}"

    @server.prompt("remember-session", title="Remember this conversation")
    async def remember_session(
        session: Annotated[str, Field(description="A conversation that is kept and waits; none means this one.")] = "",
    ) -> str:
        """Lets the host's own model learn from a conversation. No key is needed."""

        def write(memory: Memory) -> str:
            if not session:
                from quaid.capture.extraction import PROMPT

                return _REMEMBER.format(instructions=memory.models.prompt(PROMPT).system)
            prompt = memory.extractor.build_prompt(memory.get(session).document.path)
            if prompt is None:
                raise BadInputError(
                    f"All of session {session} was learned from already. See which wait with: quaid status"
                )
            return _ANSWER.format(question=prompt.text, session=prompt.session, through=prompt.through)

        return await workers.slow.run(write)
