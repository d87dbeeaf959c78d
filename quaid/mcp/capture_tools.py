"""The tool that takes a conversation in: with the owner's model, or with the answer of the host's own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field
from typing_extensions import TypedDict

from quaid.errors import BadInputError, NoteNotFoundError
from quaid.mcp import results
from quaid.mcp.toolbox import ASKS_A_MODEL, Tool, patiently, telling
from quaid.mcp.workers import Desks
from quaid.model import Kind, Turn

if TYPE_CHECKING:
    from quaid.capture.conversation_reader import HostAnswer
    from quaid.capture.extractor import ExtractResult
    from quaid.memory import Memory

LONGEST_TRANSCRIPT = 30_000_000
"""Characters."""


class Said(TypedDict):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(max_length=200_000)]
    speaker: NotRequired[Annotated[str, Field(max_length=200)]]


Transcript = Annotated[str, Field(max_length=LONGEST_TRANSCRIPT, description=(
    "A conversation as text: 'Name: what was said' line by line, JSON lines with role and content, or the log or "
    "export of an agent as it is."
))]  # fmt: skip
Turns = Annotated[list[Said] | None, Field(max_length=20_000, description="Instead: the conversation turn by turn.")]
Session = Annotated[
    str | None, Field(max_length=300, description="Its id. Alone with an answer: a conversation that is kept.")
]
Answer = Annotated[dict[str, Any] | None, Field(description=(
    "What you found in it, in the form that `question` or the prompt remember-session asks for. Facts cite turns by "
    "number: t1 is the first."
))]  # fmt: skip
Through = Annotated[int | None, Field(ge=1, description="With an answer: the last turn you were shown.")]
Trigger = Annotated[str, Field(max_length=60, description="The occasion, such as Compaction.")]


class Learning:
    """Takes conversations in."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks

    def tools(self) -> Iterator[Tool]:
        yield Tool(self.memory_extract, "Learn from a conversation", ASKS_A_MODEL, is_default=True)

    async def memory_extract(
        self,
        context: Context,
        transcript: Transcript = "",
        turns: Turns = None,
        session: Session = None,
        answer: Answer = None,
        through: Through = None,
        trigger: Trigger = "Session",
    ) -> Annotated[CallToolResult, results.Learned]:
        """Keep a conversation and learn from it: facts, names, relations. The same session is never taken in twice.

        USE WHEN: the user asks you to remember this conversation, or gives you one; or before context is lost, where no
        hook does it. SKIP WHEN: one fact is enough: memory_store.
        HOW: give `transcript` or `turns`. With a model configured that is all. Without one the conversation is kept and
        the result holds a `question`: answer it yourself and call again with `session`, `through` and your `answer`.
        You may also give conversation and answer at once. Leave out tool output, and memories that were recalled.
        """
        if not (transcript or turns or (session and answer)):
            raise BadInputError("Give the conversation as transcript or turns, or an answer with the session it is of.")
        if transcript and turns:
            raise BadInputError("transcript and turns are two forms of one conversation. Give one of them.")

        def learn(memory: Memory) -> CallToolResult:
            how: dict[str, Any] = {"trigger": _trigger(trigger), "answer": _host_answer(context, answer, through)}
            if transcript:
                done = memory.extract(io.BytesIO(transcript.encode("utf-8", "replace")), session=session, **how)
            elif turns:
                done = memory.extract([_turn(said) for said in turns], session=session, **how)
            else:
                done = _work_off(memory, session or "", how)
            return _answer(memory, done)

        return await self._desks.slow.do(patiently(learn), telling(context))


def _host_answer(context: Context, answer: dict[str, Any] | None, through: int | None) -> HostAnswer | None:
    from quaid.capture.conversation_reader import HostAnswer

    return None if answer is None else HostAnswer(answer, f"the model of {_client(context)}", through)


def _client(context: Context) -> str:
    """What the host calls itself, on one short line."""
    params = context.session.client_params
    return " ".join(params.client_info.name.split())[:60] if params else "the host"


def _turn(said: Said) -> Turn:
    usual = "User" if said["role"] == "user" else "Assistant"
    return Turn(said.get("speaker") or usual, said["content"], said["role"])


def _trigger(name: str) -> str:
    """One line without what would end a heading."""
    return " ".join(name.replace("#", " ").split()) or "Session"


def _work_off(memory: Memory, session: str, how: dict[str, Any]) -> ExtractResult:
    from quaid.capture.extractor import ExtractOptions

    document = memory.get(session).document
    if document.kind != Kind.EPISODE:
        raise NoteNotFoundError(session)
    done = memory.extractor.extract_kept(document.path, ExtractOptions(**how))
    memory.sync()
    return done


def _answer(memory: Memory, done: ExtractResult) -> CallToolResult:
    """What was done. Where no model answered the caller is given the question."""
    posed = memory.extractor.build_prompt(done.path) if done.waiting else None
    next_step = (
        f"Answer `question` yourself, in the form it asks for, and call memory_extract with session "
        f"{posed.session!r}, through {posed.through} and your answer."
        if posed
        else ""
    )
    return results.learned(done, posed, next_step)
