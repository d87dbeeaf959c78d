"""Anthropic's memory tool over a vault does what the SDK's own tool does over a folder of files."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from vaults import Vault

anthropic = pytest.importorskip("anthropic", reason="the real package of the SDK is in the dev extra")
from anthropic.lib.tools import ToolError  # noqa: E402
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool  # noqa: E402

from quaid.integrations.anthropic_memory import (  # noqa: E402
    QuaidAsyncMemoryTool,
    QuaidMemoryTool,
    file_name,
    note_name,
)

sys.path.insert(0, str(Path(__file__).parents[2]))
from examples import anthropic_memory_tool as example  # noqa: E402

PATHS = st.sampled_from(
    ["/memories", "/memories/a.md", "/memories/b.txt", "/memories/b.txt.md", "/memories/d", "/memories/d/c.xml",
     "/memories/d/e/f.md", "/memories/d/e", "/memories/README", "/memories/d/../a.md", "/memories/../x", "/other", "/memories/ü 日.json"]
)  # fmt: skip
TEXT = st.text(st.sampled_from("ab\n \té-#"), max_size=12)
PIECE = st.text(st.sampled_from("ab\n"), min_size=1, max_size=3)
COMMAND = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS}, optional={"view_range": st.sampled_from([[1, 2], [2, -1], [0, 9]])}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXT}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXT}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PATHS, "old_str": PIECE, "new_str": TEXT}),
    st.fixed_dictionaries({"command": st.just("insert"), "path": PATHS, "insert_line": st.integers(-1, 4), "insert_text": TEXT}),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)  # fmt: skip


def answer(tool: Any, command: dict[str, Any]) -> str:
    try:
        said = str(tool.call(command))
    except ToolError as error:
        return f"ToolError: {error}"
    except OSError as error:  # the SDK's own, where a file is in the place of a folder
        return f"OSError: {error.errno}"
    return re.sub(r"(?m)^\S+\t(?=.*/$|/memories$|/memories/d$|/memories/d/e$)", "", said)  # a folder's size


def tree(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_bytes().decode() for path in root.rglob("*") if path.is_file()}


def prune(root: Path) -> None:
    """git knows no empty folders."""
    for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


@settings(
    max_examples=8, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(COMMAND, min_size=4, max_size=14))
def test_any_sequence_of_commands_gives_the_same_texts_and_the_same_tree(
    vault: Vault, commands: list[dict[str, Any]]
) -> None:
    tool = QuaidMemoryTool(vault.root)
    with TemporaryDirectory() as folder, vault.memory() as memory:
        if memory.notes.list("memories"):
            memory.notes.delete("memories")
        model = BetaLocalFilesystemMemoryTool(folder)
        for command in commands:
            if {"../x", "/other"} & {command.get("path", "")[-4:], command.get("path", "")}:
                with pytest.raises(ToolError):
                    tool.call(command)
                continue
            new = command.get("new_path", "") + "/"
            if any(outside in json.dumps(command) for outside in ("../x", "/other")) or new.startswith(
                f"{command.get('old_path')}/"
            ):
                assert "rror" in answer(tool, command)
                continue
            assert answer(tool, command) == answer(model, command), command
            prune(model.memory_root)
            names = {file_name(path.removeprefix("memories/")): path for path in memory.notes.list("memories")}
            assert {name: memory.notes.read(path).shown for name, path in names.items()} == tree(model.memory_root)
    tool.memory.close()
    assert vault.status() == ""


@given(st.text(st.sampled_from("ab.md/X9"), min_size=1).filter(lambda path: not set(path.split("/")) & {"", ".", ".."}))
def test_each_file_is_one_note(path: str) -> None:
    assert file_name(note_name(path)) == path
    assert note_name(path).endswith(".md")


def test_what_the_model_wrote_is_a_note_that_is_recalled_and_undone(vault: Vault) -> None:
    tool = QuaidMemoryTool(vault.root)
    tool.call({"command": "create", "path": "/memories/prefs.txt", "file_text": "Maya takes oat milk.\n"})
    assert (vault.root / "memories/prefs.txt.md").read_text() == "---\nwritten_by: agent\n---\nMaya takes oat milk.\n"
    with vault.memory() as memory:
        assert memory.recall("What milk does Maya take?").hits[0].path == "memories/prefs.txt.md"
        memory.timeline.undo(None)
    assert "does not exist" in answer(tool, {"command": "view", "path": "/memories/prefs.txt"})
    vault.write("memories/memories.md", "---\nlocked: true\n---\n")
    assert "locked" in answer(tool, {"command": "create", "path": "/memories/x.md", "file_text": "x"})
    vault.write("memories/own.md", "mine\n")
    assert "owner's own note" in answer(tool, {"command": "delete", "path": "/memories/own.md"})
    tool.memory.close()


def test_a_secret_does_not_reach_the_vault(vault: Vault) -> None:
    tool = QuaidMemoryTool(vault.root)
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "key AKIAIOSFODNN7EXAMPLE\n"})
    assert "AKIAIOSFODNN7EXAMPLE" not in tool.call({"command": "view", "path": "/memories/a.md"})
    tool.memory.close()


def test_the_example_runs_with_the_real_sdk(vault: Vault, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []
    use = {"command": "create", "path": "/memories/coffee.md", "file_text": "Oat milk.\n"}

    def serve(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        content = (
            [{"type": "tool_use", "id": "t1", "name": "memory", "input": use}]
            if len(asked) == 1
            else [{"type": "text", "text": "Noted."}]
        )
        return httpx2.Response(200, json={
            "id": "m", "type": "message", "role": "assistant", "model": "x", "content": content, "stop_sequence": None,
            "stop_reason": "tool_use" if len(asked) == 1 else "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
        })  # fmt: skip

    client = anthropic.Anthropic(
        api_key="x", http_client=anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(serve))
    )
    example.main(str(vault.root), client=client)
    assert asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert asked[1]["messages"][-1]["content"][0]["content"] == "File created successfully at: /memories/coffee.md"
    assert "Noted." in capsys.readouterr().out
    assert (vault.root / "memories/coffee.md").exists()


def test_it_can_be_awaited(vault: Vault) -> None:
    async def work() -> None:
        tool = QuaidAsyncMemoryTool(vault.root)
        await tool.call({"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\n"})
        assert (await tool.call({"command": "view", "path": "/memories/a.md", "view_range": [2, 2]})).endswith(
            "     2\ttwo"
        )
        await tool.call({"command": "delete", "path": "/memories/a.md"})
        tool.memory.close()

    vault.open().close()
    asyncio.run(work())
    assert not (vault.root / "memories").exists()
