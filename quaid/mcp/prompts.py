"""The prompts that people pick in their host: `recall`, and `remember-session`, where the host's own model learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp.server import MCPServer
from pydantic import Field

from quaid.errors import BadInputError
from quaid.mcp.results import recall_block, warning_of
from quaid.mcp.workers import Workers

if TYPE_CHECKING:
    from quaid.memory import Memory

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


def add_prompts(server: MCPServer, workers: Workers) -> None:
    """Register the prompts `recall` and `remember-session`."""

    @server.prompt("recall", title="Recall what is known about something")
    async def recall(topic: Annotated[str, Field(description="What you want to know, with names.")]) -> str:
        """What the memory holds on a topic, put before the model."""
        if not topic.strip():
            raise BadInputError("The topic is empty. Name a person, a thing or a question.")
        found = await workers.reading.run(lambda memory: memory.recall(topic[:4_000], door="mcp", beside=True))
        parts = (recall_block(found)[0], warning_of(found))
        return "\n".join(part for part in parts if part) + f"\n\nTell me what you know about: {topic}"

    @server.prompt("remember-session", title="Remember this conversation")
    async def remember_session(
        session: Annotated[str, Field(description="A conversation that is kept and waits; none means this one.")] = "",
    ) -> str:
        """Lets the host's own model learn from a conversation. No key is needed."""
        return await workers.slow.run(lambda memory: _instructions(memory, session))


def _instructions(memory: Memory, session: str) -> str:
    if not session:
        from quaid.capture.extraction import PROMPT

        return _REMEMBER.format(instructions=memory.models.prompt(PROMPT).system)
    prompt = memory.extractor.build_prompt(memory.get(session).document.path)
    if prompt is None:
        raise BadInputError(f"All of session {session} was learned from already. See which wait with: quaid status")
    return _ANSWER.format(question=prompt.text, session=prompt.session, through=prompt.through)
