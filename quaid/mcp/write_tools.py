"""Tools that write one thing: store, note, forget, restore, create_edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from mcp.types import CallToolResult
from pydantic import Field

from quaid.mcp import results
from quaid.mcp.toolbox import ADDS, REMOVES, SETTLES, Day, Name, Ref, Tool, parse_date, patiently
from quaid.mcp.workers import Desks

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.memory import Memory

Category = Literal["fact", "preference", "belief", "experience", "event", "decision"]
Source = Annotated[Literal["user", "assistant", "tool"], Field(description=(
    "Whose word it is: the user said it, you concluded it, or a document, page or tool's output says so."
))]  # fmt: skip
Speaker = Annotated[str | None, Field(max_length=200, description="The name of who said it.")]
Keywords = Annotated[
    list[Annotated[str, Field(max_length=100)]] | None,
    Field(max_length=30, description="Words to find it by that the text does not have."),
]
Since = Annotated[Day, Field(description="True since, where that is known: 2026-11-01.")]
Until = Annotated[Day, Field(description="True until, where that is known.")]
Project = Annotated[str | None, Field(max_length=200, description="The project it is about.")]
Session = Annotated[str | None, Field(max_length=300, description="Only for this session; else for any.")]


class Keeping:
    """Each call is one commit, and `memory_restore` or `git revert` takes it back."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks

    def tools(self) -> Iterator[Tool]:
        yield Tool(self.memory_store, "Remember a fact", ADDS, is_default=True)
        yield Tool(self.memory_note, "Note for later", ADDS, is_default=True)
        yield Tool(self.memory_forget, "Forget a memory", REMOVES, is_default=True)
        yield Tool(self.memory_restore, "Restore a memory", SETTLES)
        yield Tool(self.memory_create_edge, "Connect two things", SETTLES)

    async def memory_store(
        self,
        text: Annotated[str, Field(min_length=1, max_length=4_000, description="One claim that stands alone.")],
        category: Category = "fact",
        speaker: Speaker = None,
        source: Source = "user",
        keywords: Keywords = None,
        valid_from: Since = None,
        valid_until: Until = None,
        project: Project = None,
    ) -> Annotated[CallToolResult, results.Changed]:
        """Remember one fact for good. One that is known already is confirmed instead of stored twice.

        USE WHEN: the user asks you to remember something, corrects you, or tells a lasting preference, decision, date
        or relation.
        SKIP WHEN: it is small talk, a passing state of a task, general knowledge, a secret (keys are taken out), or
        something that only a web page or tool told you and the user did not ask to keep.
        TIPS: at least three words, names instead of pronouns, absolute dates: "Maya Chen moves to Lisbon on 3 May
        2027", not "she moves there next week". One claim a call.
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
        return await self._write(lambda memory: memory.remember(text, **details))

    async def memory_note(
        self,
        text: Annotated[str, Field(min_length=1, max_length=4_000, description="One line.")],
        session: Session = None,
    ) -> Annotated[CallToolResult, results.Noted]:
        """Note a line that must not be lost when this conversation is learned from at its end.

        USE WHEN: something matters now and its meaning will be clear only later: an insight, an open question, a thing
        to follow up.
        SKIP WHEN: it is a plain fact: memory_store keeps that at once, and it can be recalled.
        """
        return results.answer(
            results.Noted(waiting=await self._desks.writing.do(lambda memory: memory.note(text, session)))
        )

    async def memory_forget(self, ref: Ref) -> Annotated[CallToolResult, results.Changed]:
        """Take one memory out: a fact, an entity, a conversation or one turn of it. git keeps it.

        USE WHEN: the user asks to forget something, or a memory proved wrong. Recall it first and give its id.
        SKIP WHEN: it was true and has changed: store the new fact; which one holds is settled later.
        """
        return await self._write(lambda memory: memory.forget(ref))

    async def memory_restore(
        self, ref: Annotated[str, Field(min_length=1, max_length=250, description="The whole id that was forgotten.")]
    ) -> Annotated[CallToolResult, results.Changed]:
        """Bring back a memory that was forgotten, as it was.

        USE WHEN: the user wants back what memory_forget took out.
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
    ) -> Annotated[CallToolResult, results.Changed]:
        """Connect two people or things in the graph of the memory.

        USE WHEN: the user tells how two named things are related and no fact says more than that.
        """
        return await self._write(lambda memory: memory.link(subject, relation, object))

    async def _write(self, job: Callable[[Memory], WriteResult]) -> CallToolResult:
        return results.changed(await self._desks.writing.do(patiently(job)))
