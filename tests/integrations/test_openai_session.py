"""A session of OpenAI's Agents SDK as a note gives back what it was given."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vaults import Vault

agents = pytest.importorskip("agents", reason="the real package of OpenAI's Agents SDK is in the dev extra")
from agents.items import ModelResponse  # noqa: E402
from agents.memory import Session, SQLiteSession  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from agents.usage import Usage  # noqa: E402
from openai.types.responses import ResponseOutputMessage, ResponseOutputText  # noqa: E402

from quaid.integrations.openai_session import _BLOCK, QuaidSession, parse_items, render_item  # noqa: E402
from quaid.vault.agent_notes import with_mark  # noqa: E402
from quaid.vault.notes import StoredNote  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2]))
from examples import openai_session as example  # noqa: E402

TEXT = st.text(st.sampled_from("ab \n>%{}[]!é\r\u2028")) | st.just('> %%{"a": 1}%%\n%%{}%%')
ITEMS = st.one_of(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), TEXT),
    st.builds(lambda text: {"id": "m1", "type": "message", "role": "assistant", "status": "completed",
                            "content": [{"type": "output_text", "text": text, "annotations": []}]}, TEXT),
    st.builds(lambda text: {"type": "function_call", "name": "f\n", "arguments": text, "call_id": "c"}, TEXT),
    st.builds(lambda text: {"role": "user", "content": [{"type": "input_text", "text": text}, {"type": "x"}]}, TEXT),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(ITEMS, max_size=5))
def test_items_are_read_as_they_were_written(items: list[dict[str, Any]]) -> None:
    text = "# Session x\n\n" + "\n".join(map(render_item, items))
    assert parse_items(StoredNote("x.md", with_mark(text).encode())) == items
    assert len(list(_BLOCK.finditer(text))) == len(items)


def test_it_does_what_the_sdks_own_session_does(vault: Vault) -> None:
    items = [{"role": "user", "content": f"turn {number}\n\nmore"} for number in range(4)]

    async def work(session: Any) -> list[Any]:
        seen = [await session.pop_item(), await session.get_items()]
        await session.add_items(items[:2])
        await session.add_items([])
        await session.add_items(items[2:])
        seen += [await session.get_items(), await session.get_items(2), await session.get_items(9)]
        seen += [await session.pop_item(), await session.get_items()]
        await session.clear_session()
        return [*seen, await session.get_items(), await session.pop_item()]

    session = QuaidSession("s/1 ü", vault.root)
    assert isinstance(session, Session)
    assert asyncio.run(work(session)) == asyncio.run(work(SQLiteSession("s")))
    session.memory.close()
    assert vault.status() == ""


def test_two_of_them_lose_nothing_and_no_secret_is_stored(vault: Vault) -> None:
    one, other = (QuaidSession("s", vault.root) for _ in range(2))

    async def work() -> list[Any]:
        added = [[{"role": "user", "content": f"{number}"}] for number in range(6)]
        await asyncio.gather(*((one, other)[place % 2].add_items(each) for place, each in enumerate(added)))
        await one.add_items([{"role": "user", "content": "my key is AKIAIOSFODNN7EXAMPLE"}])
        return await one.get_items()

    found = asyncio.run(work())
    assert {item["content"] for item in found[:6]} == set("012345")
    assert "AKIAIOSFODNN7EXAMPLE" not in str(found) + vault.git("log", "-p")
    one.memory.close()
    other.memory.close()


class Parrot(Model):
    """A model that says what it was asked."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:  # noqa: A002
        said = f"{len(input)}: {input[-1]['content']}"
        text = ResponseOutputText(text=said, type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def test_the_example_runs_in_the_real_sdk_and_quaid_learns_from_it(
    vault: Vault, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(example.main(str(vault.root), Parrot()))
    assert capsys.readouterr().out.splitlines()[1] == "3: Where do I move to?"
    (note,) = (vault.root / "sessions").glob("lisbon-*.md")
    assert "> [!quote] user\n> My name is Maya and I move to Lisbon in May.\n> %%" in note.read_text()
    session = QuaidSession("lisbon", vault.root)
    kept = asyncio.run(session.extract())
    session.memory.close()
    assert (kept.turns, kept.session) == (4, "lisbon")
    assert "I move to Lisbon in May" in (vault.root / kept.path).read_text()
