"""The tool memory_extract: learns from a conversation, with the owner's model or with the answer of the host's own."""

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
from quaid.mcp.toolbox import ASKS_A_MODEL, Tool, reporter, with_retries
from quaid.mcp.workers import Workers
from quaid.model import Kind, Turn

if TYPE_CHECKING:
    from quaid.capture.conversation_reader import HostAnswer
    from quaid.capture.extractor import ExtractResult
    from quaid.memory import Memory

MAX_TRANSCRIPT = 30_000_000
"""Characters."""


class TurnInput(TypedDict):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(max_length=200_000)]
    speaker: NotRequired[Annotated[str, Field(max_length=200)]]


Transcript = Annotated[str, Field(max_length=MAX_TRANSCRIPT, description=(
    "A conversation as text: 'Name: what was said' line by line, JSON lines with role and content, or the log or "
    "export of an agent as it is."
))]  # fmt: skip
Turns = Annotated[
    list[TurnInput] | None, Field(max_length=20_000, description="Instead: the conversation turn by turn.")
]
Session = Annotated[
    str | None, Field(max_length=300, description="Its id. Alone with an answer: a conversation that is kept.")
]
Answer = Annotated[dict[str, Any] | None, Field(description=(
    "What you found in it, in the form that `question` or the prompt remember-session asks for. Facts cite turns by "
    "number: t1 is the first."
))]  # fmt: skip
Through = Annotated[int | None, Field(ge=1, description="With an answer: the last turn you were shown.")]
Trigger = Annotated[str, Field(max_length=60, description="The occasion, such as Compaction.")]


class CaptureTools:
    """memory_extract."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

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
    ) -> Annotated[CallToolResult, results.ExtractOutput]:
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

        def extract(memory: Memory) -> CallToolResult:
            # What would end a heading is left out.
            options: dict[str, Any] = {"trigger": " ".join(trigger.replace("#", " ").split()) or "Session"}
            options["answer"] = _host_answer(context, answer, through)
            if transcript:
                data = io.BytesIO(transcript.encode("utf-8", "replace"))
                extracted = memory.extract(data, session=session, **options)
            elif turns:
                speakers = {"user": "User", "assistant": "Assistant"}
                conversation = [
                    Turn(turn.get("speaker") or speakers[turn["role"]], turn["content"], turn["role"]) for turn in turns
                ]
                extracted = memory.extract(conversation, session=session, **options)
            else:
                extracted = _extract_kept(memory, session or "", options)
            # Where no model answered, the host's own is asked.
            prompt = memory.extractor.build_prompt(extracted.path) if extracted.waiting else None
            return results.extract_result(extracted, prompt)

        return await self._workers.slow.run(with_retries(extract), reporter(context))


def _host_answer(context: Context, answer: dict[str, Any] | None, through: int | None) -> HostAnswer | None:
    from quaid.capture.conversation_reader import HostAnswer

    if answer is None:
        return None
    params = context.session.client_params
    host = " ".join(params.client_info.name.split())[:60] if params else "the host"
    return HostAnswer(answer, f"the model of {host}", through)


def _extract_kept(memory: Memory, session: str, options: dict[str, Any]) -> ExtractResult:
    """Learn from a conversation that is kept already.

    Raises:
        NoteNotFoundError: `session` is not one.
    """
    from quaid.capture.extractor import ExtractOptions

    document = memory.get(session).document
    if document.kind != Kind.EPISODE:
        raise NoteNotFoundError(session)
    extracted = memory.extractor.extract_kept(document.path, ExtractOptions(**options))
    memory.sync()
    return extracted
