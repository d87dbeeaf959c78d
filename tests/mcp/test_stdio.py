"""`quaid mcp` as a process: both protocol eras, nothing but protocol on stdout, and nothing left behind."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from mcp_host import BATCH, DEFAULT, HELLO, OLD_HELLO, call, hosted
from residents import printed
from vaults import Vault, wait_for

from quaid.cli.mcp import JsonLines
from quaid.place import state_folder
from quaid.resident.call import Call
from quaid.resident.finding import find_listening
from quaid.sync.watcher import read_heartbeat

READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def called(number, name, **arguments):
    return request(number, "tools/call", name=name, arguments=arguments)


class Served:
    """A server's process, its wire by hand."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, *messages) -> None:
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def answer(self, number) -> dict:
        while (message := self.read()).get("id") != number:
            pass
        return message

    def is_gone(self, within_s=10.0) -> int:
        return self.process.wait(within_s)


@contextmanager
def serving(*command, **options):
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    try:
        yield Served(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()


def test_the_answers_to_a_batch_are_one(vault: Vault) -> None:
    with serving("quaid", "mcp", "--vault", str(vault.root)) as host:
        host.send(OLD_HELLO, READY)
        assert host.read()["result"]["protocolVersion"] == "2025-03-26"
        host.send([*BATCH, called(4, "memory_search", query="nothing")], request(5, "ping"), BATCH[1:2])
        found = [host.read(), host.read()]
        assert {"jsonrpc": "2.0", "id": 5, "result": {}} in found
        (answers,) = (each for each in found if isinstance(each, list))
        assert {answer["id"] for answer in answers} == {2, "three", 4}
        host.send(request(6, "ping"))
        assert host.read()["id"] == 6


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_both_eras_of_the_protocol(vault: Vault, monkeypatch, mode, version) -> None:
    monkeypatch.setenv("QUAID_HOOKS_RECALL", "on")
    monkeypatch.setenv("QUAID_RESIDENT", "auto")

    async def body():
        async with hosted(vault.root, mode=mode) as client:
            assert client.protocol_version == version
            assert client.server_info.name == "quaid"
            assert "memory_recall" in client.instructions
            assert tuple(tool.name for tool in (await client.list_tools()).tools) == DEFAULT
            done = await call(client, "memory_store", text="Maya takes oat milk in her coffee")
            found = await call(client, "memory_recall", query="What milk does Maya take?")
            assert [memory["id"] for memory in found["memories"]] == [done["id"]]
            assert (await client.read_resource("memory://recent")).contents[0].text.count(done["id"]) == 1
            # Somebody else's edit, not told to anybody.
            vault.write_fact("tea00000000000000000000", "Jon takes green tea in the morning.")
            assert (await call(client, "memory_recall", query="green tea"))["memories"]
            await anyio.to_thread.run_sync(
                lambda: wait_for(lambda: read_heartbeat(state_folder(vault.root)), "a watch")
            )
            assert read_heartbeat(state_folder(vault.root)).what == "quaid mcp"
            question = ["search", "tea in the morning"]
            answered = await anyio.to_thread.run_sync(
                lambda: wait_for(lambda: Call(str(vault.root), question).ask(), "an answer in time")
            )
            assert answered is not None
            assert "green tea" in printed(vault.root, question)[0]
            assert find_listening(vault.root).what == "quaid mcp"

    anyio.run(body)
    wait_for(lambda: read_heartbeat(state_folder(vault.root)) is None, "the watch to end")
    assert find_listening(vault.root) is None
    vault.assert_sound()


@pytest.mark.slow
def test_half_a_character_is_answered_wherever_it_stands(vault: Vault) -> None:
    with serving("quaid", "mcp", "--vault", str(vault.root)) as served:
        served.send(HELLO)
        served.answer(1)
        served.send(READY)
        asked = [
            called(2, "memory_recall", query="What milk does Maya take HALF?"),
            called(7, "memory_store", text="Maya takes HALF milk", speaker="HALF", keywords=["HALF"], project="HALF"),
            called(8, "memory_note", text="HALF", session="HALF"),
            called(3, "memory_HALF"),
            called(4, "memory_recall", query="milk", HALF=1),
            request(5, "tools/HALF"),
            request(6, "resources/read", uri="memory://HALF"),
        ]
        for message in asked:
            for half in (r"\ud83d", r"\u0000"):
                served.send(json.dumps(message).replace("HALF", half).encode() + b"\n")
                answer = served.answer(message["id"])
                assert "bug" not in str(answer)
                assert "result" in answer or answer["error"]["message"]


@pytest.mark.parametrize(("line", "mended"), [
    (r'{"a": "\ud83d\ude00"}', "😀"), (r'{"a": "\\ud83d"}', r"\ud83d"), (r'{"a": "\ud83d\ud83d\ude00"}', "�😀"),
    (r'{"a": "\\\ud83d"}', "\\�"), (r'{"a": "\u00e9\ude00"}', "é�"),
])  # fmt: skip
def test_only_half_a_character_is_replaced(line, mended) -> None:
    stream = JsonLines(io.BytesIO(line.encode() + b"\n"), encoding="utf-8")
    assert json.loads(stream.readline()) == {"a": mended}


NOISY = """
import os, subprocess, sys
from pathlib import Path
from quaid.mcp import results
from quaid.cli.mcp import claim_streams
from quaid.place import state_folder

def note(view, was=results.note_result):
    print("stray", end="")
    sys.__stdout__.write("stray too")
    os.write(1, b"straight to the descriptor")
    subprocess.run(["sh", "-c", "echo from a child; cat"], check=True)
    import ctypes
    ctypes.CDLL(None).puts(b"from a library in C")
    return was(view)

results.note_result = note
streams = claim_streams()
from quaid.mcp import transports
transports.serve_stdio(Path(sys.argv[1]), "default", streams)
"""


@pytest.mark.slow
def test_stdout_carries_protocol_only_whatever_prints_and_nonsense_on_stdin_ends_nothing(vault: Vault) -> None:
    with serving(sys.executable, "-c", NOISY, str(vault.root)) as served:
        served.send(HELLO, READY, b"no json\n", b"[1, 2\n", b"\xff\xfe\n", b'{"jsonrpc": "2.0"}\n')
        served.send(called(2, "memory_recall", query="x" * 10_000_000), called(3, "memory_get", ref="SOUL.md"))
        assert served.answer(3)["result"]["isError"] is False
        served.send(request(4, "no/such/method"))
        assert served.answer(4)["error"]["code"] == -32601
        # And the host dies in the middle of a call.
        served.send(called(5, "memory_store", text="Maya takes oat milk in her coffee"))
        served.process.stdin.close()
        assert served.is_gone() == 0
        rest = served.process.stdout.read()
        assert [json.loads(line)["jsonrpc"] for line in rest.splitlines()] == ["2.0"] * len(rest.splitlines())
        said = served.process.stderr.read().decode()
    for stray in ("stray", "straight to the descriptor", "from a child"):
        assert stray in said
    vault.assert_sound()


def test_it_ends_with_its_host_though_another_process_holds_its_stdin(vault: Vault) -> None:
    host = "import os, subprocess, sys, time; p = subprocess.Popen(sys.argv[1:], stdin=0); print(p.pid, flush=True); time.sleep(60)"
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", host, "quaid", "mcp", "--vault", str(vault.root)],
        stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        pid = int(process.stdout.readline())
        os.write(writing, json.dumps(HELLO).encode() + b"\n")
        assert process.stdout.readline()
        process.kill()
        process.wait()
        wait_for(lambda: is_gone(pid), "the server to end with its host")
    finally:
        process.kill()
        process.communicate()
        os.close(reading)
        os.close(writing)


def is_gone(pid: int) -> bool:
    """Whether the process has ended, though nobody may have asked how."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_without_anything_to_serve_one_sentence_says_so(vault: Vault) -> None:
    command = f"exec quaid mcp --vault {vault.root} <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("quaid: There is no stdin or stdout")


def test_without_a_vault_one_sentence_says_what_to_do(tmp_path, calm) -> None:
    done = subprocess.run(
        ["quaid", "mcp", "--vault", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"quaid: No vault at {tmp_path}. Make one with: quaid init {tmp_path}\n"
