"""Prompts that a person picks in their host: `recall`, and `remember-session`, where the host's own model learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp.server import MCPServer
from pydantic import Field

from quaid.errors import BadInputError
from quaid.mcp.results import warn
from quaid.mcp.workers import Desks
from quaid.text.quoting import render_memory_block

if TYPE_CHECKING:
    from quaid.memory import Memory
    from quaid.model import Recall

_ANSWER_ABOUT = """\
{question}

Answer with one JSON object as the schema above says, and hand it in: call memory_extract with session {session!r},
through {through}, and the object as `answer`. If the result says that something is wrong with it, mend that and call
again. If the result has another `question`, answer that too."""

_WRITE_DOWN = """\
Keep this conversation in my memory. Do it in one call of memory_extract, with two arguments:

1. `turns`: what I and you have said, in order, as {{"role": "user" or "assistant", "content": "…"}}. Keep what matters
   word for word and shorten the rest. Leave out tool output, code listings, secrets, and memories that were recalled.
   The first is t1, the next t2, and so on.
2. `answer`: what you learn from it, as the following instructions and their schema say. Cite the numbers of your turns.

If the result says that something is wrong with the answer, mend that and call again, with the session it names and the
answer, without the turns.

{instructions}"""


def add_prompts(server: MCPServer, desks: Desks) -> None:
    """Register the prompts."""

    @server.prompt("recall", title="Recall what is known about something")
    async def recall(topic: Annotated[str, Field(description="What you want to know, with names.")]) -> str:
        """What the memory holds on a topic, put before the model."""
        found = await desks.reading.do(lambda memory: memory.recall(_topic(topic), door="mcp"))
        return f"{_render(found)}\n\nTell me what you know about: {topic}"

    @server.prompt("remember-session", title="Remember this conversation")
    async def remember_session(
        session: Annotated[str, Field(description="A conversation that is kept and waits; none means this one.")] = "",
    ) -> str:
        """Lets the host's own model learn from a conversation. No key is needed."""
        return await desks.slow.do(lambda memory: _ask(memory, session))


def _topic(topic: str) -> str:
    if not topic.strip():
        raise BadInputError("The topic is empty. Name a person, a thing or a question.")
    return topic[:4_000]


def _render(found: Recall) -> str:
    block = render_memory_block(found.hits)
    return "\n".join(part for part in (block, warn(found)) if part)


def _ask(memory: Memory, session: str) -> str:
    if not session:
        from quaid.capture.extraction import PROMPT

        return _WRITE_DOWN.format(instructions=memory.models.prompt(PROMPT).system)
    posed = memory.extractor.build_prompt(memory.get(session).document.path)
    if posed is None:
        raise BadInputError(f"All of session {session} was learned from already. See which wait with: quaid status")
    return _ANSWER_ABOUT.format(question=posed.text, session=posed.session, through=posed.through)
