"""What would act on a terminal, or hide in a text, is shown as an escape on every path to one; ordinary scripts stay."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from matrices import for_each
from mcp_host import talk
from vaults import Vault, copy_vault

from quaid.cli.main import main
from quaid.history.messages import render
from quaid.model import Message
from quaid.text.invisible import escaped, escaped_json, without_unseen

HOSTILE = {
    "clear": "\x1b[2J", "colour": "\x1b[31m", "link": "\x1b]8;;http://evil.example\x1b\\x", "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "title": "\x1b]0;own\x07", "c1": "\x9b2J", "c1 string": "\x9d0;x\x9c", "return": "safe\rrm -rf", "backspace": "abc\b\b\bxyz",
    "override": "\u202egnp.exe", "embedding": "\u202a\u202b\u202c\u202d", "isolate": "\u2066a\u2067b\u2068c\u2069", "zero width": "a\u200bb\u2060c\ufeffd",
    "tags": "\U000e0041\U000e0042\U000e007f", "surrogate": "\udc9b\ud800", "lines": "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", "bell": "\x07\x00\x7f",
    "lone joiner": "a\u200db", "lone mark": "a\u200eb\u200f", "selectors": "a\ufe0f\ufe0e\U000e0100",
}  # fmt: skip
ORDINARY = [
    "مرحبا بالعالم، كيف الحال؟", "שָׁלוֹם עֲלֵיכֶם", "שלום\u200f (C++\u200e) טוב", "中文，日本語、한국어", "👩‍👩‍👧‍👦 🏳️‍🌈 ❤️ 1️⃣ 👍🏽", "می‌خواهم", "क्‍ष ශ්‍රී",
    "e\u0301 a\u0308 Zalgo\u0336", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "tab\tand\nnewline", "∫ ≠ → “quotes”",
]  # fmt: skip
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e01ef]"
)
EVIL = "".join(HOSTILE.values())
NAME = "\x1b[2J\x9b2J\r\b\u202e\u2066\u200b\U000e0041\x07\u2028\x85\ufeff"
"""What a file may be called."""
TEXT = EVIL.translate({0: None, 0xD800: None, 0xDC9B: None})
"""What a note may say."""


@for_each("text", HOSTILE.values())
def test_what_acts_on_a_terminal_is_shown_and_left_out_for_agents(text: str) -> None:
    assert not FORBIDDEN.search(escaped(text))
    assert not FORBIDDEN.search(without_unseen(text))
    assert escaped(escaped(text)) == escaped(text)
    line = escaped_json(json.dumps({"a": text}, ensure_ascii=False))
    assert not FORBIDDEN.search(line)
    assert json.loads(line) == {"a": text}


@for_each("text", ORDINARY)
def test_ordinary_scripts_stay_as_they_are(text: str) -> None:
    assert escaped(text) == text
    assert json.loads(escaped_json(json.dumps({"a": text}, ensure_ascii=False))) == {"a": text}


# -- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    made = copy_vault(tmp_path_factory.mktemp("hostile") / "vault")
    evil = '"' + TEXT.replace("\\", "").encode("unicode_escape").decode() + '"'
    made.write(
        "facts/evil.md",
        f"---\nid: 01evil\ntype: fact\nspeaker: {evil}\nproject: {evil}\nsession: {evil}\ncreated: 2026-01-01\n"
        f"status: {evil}\nturns: ['[[talk#^t1]]']\n---\nThe kiln {TEXT} is hot. [[Kiln]]\n\n- [[Kiln {NAME}]] likes [[Maya {NAME}]]\n",
    )
    made.write("facts/gone.md", f"---\nid: 01gone\ntype: fact\n---\nThe kiln {TEXT} is cold.\n")
    made.write(f"entities/Kiln {NAME}.md", f"---\nid: 01kiln\ntype: thing\naliases: [Twin, {evil}]\n---\nA kiln.\n")
    made.write("entities/Other.md", "---\nid: 01other\ntype: thing\naliases: [Twin]\n---\nAnother kiln.\n")
    made.write(
        "episodes/talk.md",
        f"---\nid: 01talk\ntype: episode\nsession: {evil}\n---\n**Ma{NAME}ya**: The kiln {TEXT} ^t1\n",
    )
    made.write(
        "projects/kiln/PROJECT.md", f"---\nlabel: {evil}\ndescription: {evil}\n---\n# Kiln {NAME}\n\nAbout {TEXT}.\n"
    )
    made.write(f"projects/kiln/doc {NAME}.md", f"# A doc {TEXT}\n\nThe kiln {TEXT} is documented.\n")
    made.write("review/2026-01-01.md", f"# Is {TEXT} right?\n\n- [ ] yes {TEXT}\n")
    made.write("MEMORY.md", f"# Memory\n\nIt is {TEXT}.\n")
    made.write(f"notes/broken {NAME}.md", EVIL.encode("utf-8", "surrogatepass"))
    made.write(f"notes/yaml {NAME}.md", f"---\na: [{TEXT}\n---\nBroken {TEXT}.\n")
    made.save(f"owner {NAME}")
    made.write(f"facts/new {NAME}.md", f"---\nid: 01new\n---\nNot committed {NAME}.\n")
    return made


COMMANDS: list[list[str]] = [
    ["get", "01evil"], ["get", "01evil", "--raw"], ["get", "01talk"], ["get", "Twin"], ["get", "01kiln"], ["search", "kiln"],
    ["recall", "kiln"], ["recall", "kiln", "--explain"], ["recall", f"kiln {NAME}"], ["search", NAME], ["why", "01evil"],
    ["why", "01kiln"], ["log", "--stat"], ["log", "--author", NAME], ["status"], ["stats"], ["stats", "--recall"],
    ["stats", "--gaps"], ["doctor"], ["context"], ["export"], ["project", "list"], ["project", "show", "kiln"], ["docs", "list"],
    ["docs", "read", f"doc {NAME}"], ["docs", "search", "kiln"], ["docs", "check"], ["janitor", "list"], ["janitor", "run", "--dry-run"],
    ["sync"], ["config"], ["config", NAME], ["config", NAME, NAME], ["config", "recall.log", NAME], ["config", "owner_name", NAME],
    ["eval", f"/nowhere/{NAME}"], ["import", f"/nowhere/{NAME}"], ["extract", f"/nowhere/{NAME}"], ["analyze", f"/nowhere/{NAME}"],
    ["get", f"nothing {NAME}"], ["forget", NAME], ["restore", NAME], [NAME], ["get", f"--{NAME}"], ["recall", "x", "--limit", NAME],
    ["recall", "x", "--as-of", NAME], ["status", "--vault", f"/nowhere/{NAME}"], ["remember", f"The kiln of {TEXT} is new."],
    ["note", f"call {TEXT}"], ["link", f"Ki{NAME}ln", "likes", f"Ma{NAME}ya"], ["forget", "01gone"],
]  # fmt: skip


def run(vault: Vault, *arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    more = () if "--vault" in arguments else ("--vault", str(vault.root))
    with redirect_stdout(out), redirect_stderr(err):
        main([*arguments, *more])
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: escaped(" ".join(command))[:30])
def test_no_command_sends_it(vault: Vault, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("QUAID_VAULT_HAND_WRITTEN", "managed")
    monkeypatch.setenv("QUAID_MODELS_PROVIDER", "none")
    out, err = run(vault, *command)
    assert out or err
    assert not FORBIDDEN.search(out)
    assert not FORBIDDEN.search(err)
    if command[0] not in {"remember", "note", "link", "export", "forget", "restore"} and "--raw" not in command:
        out, err = run(vault, *command, "--json")
        assert not FORBIDDEN.search(out + err)
        for line in out.splitlines():
            json.loads(line)


def test_ordinary_scripts_are_printed_as_they_were_typed(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("QUAID_VAULT_HAND_WRITTEN", "managed")
    for number, text in enumerate(ORDINARY):
        if "\n" not in text:
            vault.write(f"facts/ordinary{number}.md", f"---\nid: 01ordinary{number}\n---\n{text}\n")
            assert text in run(vault, "get", f"01ordinary{number}")[0]
            assert json.loads(run(vault, "get", f"01ordinary{number}", "--json")[0])["text"] == text


def test_a_terminal_gets_the_colours_of_quaid_and_no_others(vault: Vault) -> None:
    leader, follower = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "QUAID_EMBEDDING_PROVIDER": "none", "QUAID_VAULT_HAND_WRITTEN": "managed"}
    environ.pop("NO_COLOR", None)
    for arguments in (["status"], ["get", "01kiln"], ["get", "01evil", "--raw"], ["--help"], ["search", "kiln"]):
        command = [
            sys.executable,
            "-m",
            "quaid",
            *arguments,
            *([] if "--help" in arguments else ["--vault", str(vault.root)]),
        ]
        done = subprocess.run(command, stdout=follower, stderr=subprocess.PIPE, env=environ, check=False)
        os.write(follower, b"END\n")
        told = b""
        while not told.endswith(b"END\r\n"):
            told += os.read(leader, 65_536)
        text = told.decode().replace("\r\n", "\n")
        assert not FORBIDDEN.search(re.sub(r"\x1b\[(?:0|1|2|31|32|33|36)m", "", text)), (arguments, done.stderr)
        if arguments == ["status"]:
            assert "\x1b[" in text
    os.close(leader)
    os.close(follower)


def test_bytes_for_a_program_are_exact(vault: Vault) -> None:
    environ = {**os.environ, "QUAID_EMBEDDING_PROVIDER": "none", "QUAID_VAULT_HAND_WRITTEN": "managed"}
    command = [sys.executable, "-m", "quaid", "get", "01evil", "--raw", "--vault", str(vault.root)]
    done = subprocess.run(command, capture_output=True, env=environ, check=True)
    assert done.stdout == (vault.root / "facts/evil.md").read_bytes()


# -- commits, logs, MCP ----------------------------------------------------------------------------------------------


@for_each("text", HOSTILE.values())
def test_a_commit_says_it_in_escapes(text: str) -> None:
    message = render(Message(f"remember: {text}", f"a {text}\nb", (("Quaid-Fact", f"01{text}"),)))
    assert not FORBIDDEN.search(message)
    assert message.count("\n") == 6


def test_no_value_forges_a_trailer() -> None:
    for end in ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\n\n"):
        message = render(Message(f"a{end}Quaid-Run: 1", "", (("Quaid-Fact", f"01{end}Quaid-Run: 1"),)))
        assert not re.search(r"(?m)^Quaid-Run", message)
        assert len(re.split(r"[\n\r\x0b\x0c\x1c\x85\u2028\u2029]", message.strip())) == 3
    assert not re.search(r"(?m)^Quaid-Run", render(Message("a", "said:\n\nQuaid-Run: 1\nquaid-decision: 2")))


def test_logs_that_people_read_have_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from quaid.hooks import queue_worker
    from quaid.local import hook_log
    from quaid.report.bug_report import write_report

    hook_log.write(tmp_path, f"stop{NAME}", 1.0, EVIL)
    queue_worker.log(f"problem with {EVIL}")
    assert not FORBIDDEN.search((tmp_path / "log" / hook_log.LOG_FILE).read_text())
    assert not FORBIDDEN.search(capsys.readouterr().err)
    report = write_report(ValueError(EVIL), [EVIL], None)
    assert report is not None
    assert not FORBIDDEN.search(report.read_text())


def test_agents_are_not_given_it(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("QUAID_VAULT_HAND_WRITTEN", "managed")

    async def body(client: Any) -> None:
        for tool, arguments in (
            ("memory_get", {"ref": "01kiln"}), ("memory_get", {"ref": "Twin"}), ("memory_get", {"ref": NAME}),
            ("memory_search", {"query": "kiln"}), ("memory_history", {"ref": "01kiln"}), ("memory_stats", {}),
            ("docs_list", {}), ("docs_list", {"project": "kiln"}), ("docs_search", {"query": "kiln"}), (NAME, {}), ("memory_get", {NAME: "x"}),
        ):  # fmt: skip
            result = await client.call_tool(tool, arguments)
            told = [content.text for content in result.content] + [str(result.structured_content)]
            assert not FORBIDDEN.search(json.dumps(told, ensure_ascii=False)), (tool, arguments)
        for address in ("recent", "projects", "projects/kiln", "core/MEMORY.md", "entities/Other"):
            result = await client.read_resource(f"memory://{address}")
            assert not FORBIDDEN.search(result.contents[0].text), address

    talk(vault.root, body)


@for_each("part", [*HOSTILE.values(), "\u200e", "\u200d", "\x1b]", "\x1b[", "\U0001f3f4", "a\ufe0f"])
def test_a_long_text_takes_no_long_time(part: str) -> None:
    import time

    text = part * (50_000 // len(part))
    started = time.thread_time()
    escaped(text)
    without_unseen(text)
    assert time.thread_time() - started < 10.0
