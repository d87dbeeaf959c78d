"""The tools that write one thing: memory_store, memory_note, memory_forget, memory_restore, memory_create_edge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.types import CallToolResult
from pydantic import Field

from quaid.errors import BadInputError, NothingToReplaceError
from quaid.index import graph, listing
from quaid.mcp import results
from quaid.mcp.toolbox import ADDS, REMOVES, SETTLES, Day, Name, Ref, Tool, parse_date, with_retries
from quaid.mcp.workers import Workers
from quaid.model import Kind, name_key, note_name

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.memory import Memory

Category = Literal["fact", "preference", "belief", "experience", "event", "decision"]
Source = Annotated[
    Literal["user", "assistant", "tool"],
    Field(description="Who says so: the user, you (a conclusion), or a document or tool."),
]
Replaces = Annotated[
    str | None, Field(max_length=4_000, description="The id or the words of the fact that is no longer true with it.")
]
Speaker = Annotated[str | None, Field(max_length=200, description="Who said it, by name.")]
Keywords = Annotated[
    list[Annotated[str, Field(max_length=100)]] | None,
    Field(max_length=30, description="Other words to find it by."),
]
Since = Annotated[Day, Field(description="True since: 2026-11-01.")]
Until = Annotated[Day, Field(description="True until.")]
Project = Annotated[str | None, Field(max_length=200, description="The project it is about.")]
Session = Annotated[str | None, Field(max_length=300, description="Only for this session.")]


NEAREST = 3
"""Facts that are named where none is what a new one replaces."""
MAX_NAMED = 200
"""Characters of each."""
MAX_COUNTED = 10_000


class WriteTools:
    """Tools whose every call is one commit, which `memory_restore` or `git revert` takes back."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def tools(self) -> Iterator[Tool]:
        yield Tool(self.memory_store, "Remember a fact", ADDS, is_default=True)
        yield Tool(self.memory_note, "Note for later", ADDS, is_default=True)
        yield Tool(self.memory_forget, "Forget a memory", REMOVES, is_default=True)
        yield Tool(self.memory_restore, "Restore a memory", SETTLES)
        yield Tool(self.memory_create_edge, "Connect two things", SETTLES)

    async def memory_store(
        self,
        text: Annotated[str, Field(min_length=1, max_length=4_000, description="One claim that stands alone.")],
        replaces: Replaces = None,
        category: Category = "fact",
        speaker: Speaker = None,
        source: Source = "user",
        keywords: Keywords = None,
        valid_from: Since = None,
        valid_until: Until = None,
        project: Project = None,
    ) -> Annotated[CallToolResult, results.WriteOutput]:
        """Remember one fact for good. One that is known already is confirmed instead of stored twice.

        USE WHEN: the user asks you to remember something, or tells a lasting preference, decision, date or relation.
        When they correct or change one ("we moved from Linear to Jira"), give the old one as `replaces`.
        SKIP WHEN: it is small talk, the state of a task, general knowledge, a secret (keys are taken out), or what only
        a page or tool says and nobody asked to keep.
        TIPS: names instead of pronouns, absolute dates: "Maya Chen moves to Lisbon on 3 May 2027", not "she moves there
        next week". One claim a call.
        """
        since, until = parse_date(valid_from, end=False), parse_date(valid_until, end=True)
        details = {
            "type": category,
            "status": "approved",
            "speaker": speaker,
            "source": source,
            "keywords": keywords or [],
            "valid_from": since and since.isoformat(),
            "valid_until": until and until.isoformat(),
            "project": project,
        }
        return await self._write(lambda memory: _remember(memory, text, replaces, details))

    async def memory_note(
        self,
        text: Annotated[str, Field(min_length=1, max_length=4_000, description="One line.")],
        session: Session = None,
    ) -> Annotated[CallToolResult, results.NotedOutput]:
        """Note a line for when this conversation is learned from at its end.

        USE WHEN: something matters and its meaning will be clear only later: an open question, a thing to follow up.
        SKIP WHEN: it is a plain fact: memory_store.
        """
        waiting = await self._workers.writing.run(lambda memory: memory.note(text, session))
        return results.tool_result(results.NotedOutput(waiting=waiting), keep=("waiting",))

    async def memory_forget(self, ref: Ref) -> Annotated[CallToolResult, results.WriteOutput]:
        """Take out a fact, a turn, or, by its whole id, a person or a conversation. git keeps it.

        USE WHEN: the user asks to forget something, or a memory was never true. Recall it first and give its id.
        SKIP WHEN: it was true and has changed: memory_store with `replaces`.
        """

        def forget(memory: Memory) -> WriteResult:
            _ask_for_id(memory, ref)
            return memory.forget(ref)

        return await self._write(forget)

    async def memory_restore(
        self, ref: Annotated[str, Field(min_length=1, max_length=250, description="Its whole id.")]
    ) -> Annotated[CallToolResult, results.WriteOutput]:
        """Bring back a memory that was forgotten, as it was, or let a fact hold again that was replaced.

        USE WHEN: the user wants back what memory_forget or `replaces` took out.
        """
        return await self._write(lambda memory: memory.restore(ref))

    async def memory_create_edge(
        self,
        subject: Annotated[Name, Field(description="Who or what.")],
        relation: Annotated[
            str,
            Field(min_length=1, max_length=100, description="A verb in snake_case: works_at, parent_of, caused_by."),
        ],
        object: Annotated[Name, Field(description="To whom or what.")],  # noqa: A002 - the word of the graph
    ) -> Annotated[CallToolResult, results.WriteOutput]:
        """Connect two people or things in the graph of the memory.

        USE WHEN: the user tells how two named things are related and no fact says more than that.
        """
        return await self._write(lambda memory: memory.link(subject, relation, object))

    async def _write(self, job: Callable[[Memory], WriteResult]) -> CallToolResult:
        return results.write_result(await self._workers.writing.run(with_retries(job)))


def _remember(memory: Memory, text: str, replaces: str | None, details: dict[str, Any]) -> WriteResult:
    """Store a fact. Where what it replaces is not found, the refusal names the facts nearest to that."""
    try:
        return memory.remember(text, replaces=replaces, **details)
    except NothingToReplaceError as error:
        near = memory.recall(replaces or "", NEAREST, kinds={"fact"}, keep=False, depth="fast").hits
        if not near:
            raise
        listed = "; ".join(f"{hit.id}: {results.shorten(results.one_line(hit.text), MAX_NAMED)}" for hit in near)
        raise BadInputError(f"{error}. Nearest are {listed}") from error


def _ask_for_id(memory: Memory, reference: str) -> None:
    """Refuse to forget a whole person or conversation that is not given by its id.

    Raises:
        BadInputError: the id, and how much would go.
        NoteNotFoundError, AmbiguousReferenceError
    """
    view = memory.get(reference)
    document = view.document
    if document.kind not in {Kind.ENTITY, Kind.EPISODE} or view.turn is not None or reference.strip() == document.id:
        return
    index = memory.index()
    if document.kind == Kind.EPISODE:
        turns = listing.list_turns(index, document.doc_id)
        citing = graph.citing_chunks(index, [(note_name(document.path), turn) for turn in turns])
        goes = f"the conversation of {results.day(document.created)} with its {_count(turns, 'turn')}"
        stays = f"{_count({chunk_id for _, _, chunk_id in citing}, 'fact')} learned from it"
    else:
        others = set(graph.documents_about(index, {name_key(document.title)}, limit=MAX_COUNTED)) - {document.doc_id}
        goes = f"the note of {results.one_line(document.title)} with its aliases and {_count(view.edges, 'relation')}"
        stays = f"{_count(others, 'note')} about it"
    raise BadInputError(
        f"That would take out {goes}; {stays} would stay. If the user wants that, call memory_forget again "
        f"with its id: {document.id}"
    )


def _count(things: Collection[object], what: str) -> str:
    return f"{len(things):,} {what}{'' if len(things) == 1 else 's'}"
