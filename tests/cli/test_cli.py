"""The command line: its shapes, its docs, exit codes, pipes, signals, start-up. What it prints is in transcripts."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import DOCS, quaid, section_of
from matrices import for_each

from quaid import Memory
from quaid.cli import main as boundary
from quaid.cli.app import COMMANDS
from quaid.cli.demo import CONVERSATION
from quaid.cli.invocation import Invocation, render_json
from quaid.cli.terminal import ProgressBar, columns, count, drawn_bars, safe_streams, seconds, size, styled
from quaid.errors import LockedError
from quaid.model import Hit
from quaid.place import state_folder

REPOSITORY = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "quaid.cli.main"]
BICYCLE = "---\nid: 01kagx3m7r9q2d5w8t0v7k3qd\ntype: fact\nstatus: active\n---\nMaya has a blue bicycle.\n"
HEAVY = {"rich", "httpx", "git", "numpy", "onnxruntime", "pydantic", "watchdog", "tomlkit", "mcp"}


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "HOME": str(tmp_path / "home"),
        "QUAID_CACHE_DIR": str(tmp_path / "cache"),
        "QUAID_HOME": str(tmp_path / "vault"),
        "QUAID_EMBEDDING_PROVIDER": "none",
        "QUAID_MODELS_PROVIDER": "none",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONPATH": str(REPOSITORY),
        "COLUMNS": "80",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    Memory.create(root)[0].close()
    (root / "facts").mkdir()
    (root / "facts" / "bicycle.md").write_text(BICYCLE, encoding="utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a bicycle")
    return root


def git(root: Path, *args: str) -> str:
    identity = ("-c", "user.name=Maya", "-c", "user.email=maya@localhost")
    return subprocess.run(["git", *identity, *args], cwd=root, capture_output=True, text=True, check=True).stdout


def answer(*arguments: str) -> dict[str, Any]:
    _, out, _ = quaid(*arguments, "--json")
    (line,) = out.splitlines()
    shape: dict[str, Any] = json.loads(line)
    assert shape["v"] == 1
    return shape


class TestDocs:
    def test_the_commands_are_those_that_are_documented(self) -> None:
        assert set(re.findall(r"^### quaid (\w+)$", DOCS, re.MULTILINE)) == set(COMMANDS)

    @for_each("command", COMMANDS)
    def test_every_command_helps_with_an_example_and_takes_the_shared_options(self, command: str) -> None:
        code, out, _ = quaid(command, "--help")
        assert "\\b" not in out
        assert code == 0
        assert f"quaid {command}" in out.partition("Examples:")[2]
        for option in ("--json", "--vault", "-q, --quiet"):
            assert option in out

    def test_help_lists_every_command_and_loads_none(self) -> None:
        program = (
            "import sys; from quaid.cli.main import main; main(['--help']); "
            "print([m for m in sys.modules if m.startswith('quaid.')], file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert all(re.search(rf"^  {name} +\S", done.stdout, re.MULTILINE) for name in COMMANDS)
        loaded = set(re.findall(r"'quaid\.([\w.]+)'", done.stderr))
        assert loaded <= {
            "cli",
            "cli.main",
            "cli.app",
            "cli.commands",
            "cli.invocation",
            "cli.terminal",
            "errors",
            "place",
            "resident",
            "resident.call",
            "shapes",
            "text",
            "text.invisible",
        }


class TestShapes:
    """Each JSON shape holds what docs/reference/commands.md says, and nothing more."""

    @pytest.mark.matrix
    @pytest.mark.parametrize(
        ("line", "command"),
        [
            ("remember Maya sings in the choir", "remember"),
            ("extract chat.txt", "extract"),
            ("recall bicycle", "recall"),
            ("search bicycle", "search"),
            ("get bicycle", "get"),
            ("forget bicycle", "remember"),
            ("link Maya owns Bicycle", "remember"),
            ("note remember the lease", "note"),
            ("sync", "sync"),
            ("reindex", "reindex"),
            ("verify", "verify"),
            ("status", "status"),
            ("doctor", "doctor"),
            ("stats", "stats"),
            ("log", "log"),
            ("why bicycle", "why"),
            ("config", "config"),
            ("config recall.limit 3", "remember"),
        ],
    )
    def test_fields_are_those_documented(self, vault: Path, line: str, command: str) -> None:
        Path("chat.txt").write_text("Maya: hello there\nTom: good morning\n", encoding="utf-8")
        block = re.search(r"```json\n(.*?)```", section_of(command), re.DOTALL)
        assert block
        assert json.loads(block[1]).keys() == answer(*line.split()).keys()

    def test_recall_has_every_field_of_a_hit(self, vault: Path) -> None:
        (hit,) = answer("recall", "bicycle")["hits"]
        assert set(hit) == set(Hit.__slots__) - {"vault", "also_in"}  # of several vaults
        documented = re.search(r"```json\n(.*?)```", section_of("recall"), re.DOTALL)
        assert documented
        assert json.loads(documented[1])["hits"][0].keys() == hit.keys()

    def test_an_error_is_json_too(self, vault: Path) -> None:
        shape = answer("get", "nothing")
        assert shape["error"]["code"] == "not_found"
        assert answer("recall", "--limit", "x")["error"]["code"] == "usage"

    def test_explain_adds_the_trace(self, vault: Path) -> None:
        assert "trace" in answer("recall", "bicycle", "--explain")

    def test_what_cannot_be_printed_in_the_terminals_encoding_is_escaped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
        assert render_json({"text": "café"}) == '{"v": 1, "text": "caf\\u00e9"}'


class TestOptions:
    @pytest.mark.parametrize("place", ["before", "after"])
    def test_shared_options_count_before_and_after_the_command(self, vault: Path, place: str, tmp_path: Path) -> None:
        os.environ["QUAID_HOME"] = str(tmp_path / "elsewhere")
        options = ("--vault", str(vault), "--json", "-q")
        line = (*options, "search", "bicycle") if place == "before" else ("search", "bicycle", *options)
        code, out, err = quaid(*line)
        assert (code, err) == (0, "")
        assert json.loads(out)["hits"][0]["path"] == "facts/bicycle.md"

    def test_quiet_is_empty_label_but_errors(self, vault: Path) -> None:
        assert quaid("recall", "zeppelin", "-q") == (0, "", "")
        assert quaid("get", "zeppelin", "-q")[2].startswith("quaid: No note")

    def test_the_vault_around_the_working_folder_is_found(self, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("QUAID_HOME")
        monkeypatch.chdir(vault / "facts")
        assert answer("search", "bicycle")["hits"]

    @pytest.mark.parametrize("line", ["recall", "recall milk --colour", "recall milk --limit 0", "log extra", "-q"])
    def test_what_makes_no_sense_is_one_sentence_and_a_way_to_the_help(self, line: str) -> None:
        code, out, err = quaid(*line.split())
        assert (code, out) == (2, "")
        assert re.fullmatch(r"quaid: .+\. Help is in: quaid( \w+)? --help\n", err)

    def test_nothing_typed_is_a_question_for_help(self) -> None:
        assert quaid()[:2] == quaid("--help")[:2]

    def test_version_is_an_option_anywhere_before_the_command(self) -> None:
        assert quaid("-q", "--version")[:2] == quaid("--version")[:2]


class TestCommands:
    def test_init_says_why_the_model_could_not_be_had_and_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "local")
        monkeypatch.setenv("QUAID_OFFLINE", "1")
        code, out, err = quaid("init", "new", "--json")
        assert code == 0
        assert json.loads(out)["fetch_problem"]
        assert "offline is set" in err

    def test_get_raw_prints_the_files_own_bytes(self, vault: Path) -> None:
        data = b"---\nid: '01x'   # mine\n---\r\nA note with CRLF\r\n"
        (vault / "own.md").write_bytes(data)
        done = subprocess.run([*COMMAND, "get", "own", "--raw"], capture_output=True, check=True)
        assert done.stdout == data

    def test_a_fact_confirmed_is_shown_as_it_stands(self, vault: Path) -> None:
        shape = answer("remember", "maya has  a blue bicycle")
        assert (shape["outcome"], shape["text"]) == ("confirmed", "Maya has a blue bicycle.")

    def test_what_could_not_be_committed_is_named(self, vault: Path) -> None:
        note = vault / "facts" / "bicycle.md"
        note.write_text(BICYCLE.replace("status: active", "status: active\nspeaker: Maya"), encoding="utf-8")
        code, _, err = quaid("remember", "Maya has a blue bicycle")
        assert code == 0
        assert "facts/bicycle.md" in err or "speaker" in git(vault, "diff")

    def test_setting_a_key_keeps_comments_and_commits(self, vault: Path) -> None:
        before = (vault / "quaid.toml").read_text(encoding="utf-8").splitlines()
        assert answer("config", "recall.limit", "3")["outcome"] == "set"
        after = (vault / "quaid.toml").read_text(encoding="utf-8").splitlines()
        assert [line for line in after if line not in before] == ["limit = 3"]
        assert [line for line in before if line not in after] == []
        assert git(vault, "log", "-1", "--format=%s").strip() == "config: recall.limit = 3"

    def test_verify_fails_when_the_index_says_something_else(
        self, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        quaid("sync")
        from quaid.index.sqlite import database

        connection, _ = database.connect_writer(state_folder(vault) / "index.db")
        connection.execute("UPDATE documents SET title = 'another' WHERE path = 'facts/bicycle.md'")
        connection.close()
        code, out, err = quaid("verify")
        assert code == 1
        assert "different" in out
        assert "quaid reindex" in err
        assert quaid("reindex")[0] == 0
        assert quaid("verify")[0] == 0

    def test_doctor_names_the_models_and_why_these(self, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "Switched off" in quaid("doctor")[1]
        monkeypatch.setenv("QUAID_MODELS_PROVIDER", "anthropic")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
        monkeypatch.setenv("QUAID_MODELS_FAST", "quick-1")
        (models,) = [finding for finding in answer("doctor")["findings"] if finding["name"] == "models"]
        assert models["level"] == "ok"
        assert "fast quick-1 (models.provider is anthropic)" in models["sentence"]
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
        (models,) = [finding for finding in answer("doctor")["findings"] if finding["name"] == "models"]
        assert (models["level"], models["sentence"]) == ("warning", "ANTHROPIC_API_KEY is not set.")

    def test_a_rebase_in_progress_is_reported_and_makes_writes_wait(self, vault: Path) -> None:
        (vault / ".git" / "rebase-merge").mkdir()
        os.environ["QUAID_GIT_WAIT_S"] = "0.1"
        try:
            shape = answer("status")
            assert shape["repository"]["operation"] == "rebase"
            assert any("rebase" in item["what"] for item in shape["attention"])
            code, _, err = quaid("remember", "Maya bought a helmet")
            assert code == LockedError.exit_code == 75
            assert "git rebase --continue" in err
        finally:
            del os.environ["QUAID_GIT_WAIT_S"]

    @pytest.mark.slow
    def test_demo_runs_through(self, tmp_path: Path) -> None:
        shape = answer("demo", "--path", str(tmp_path / "demo"))
        assert [step["exit_code"] for step in shape["steps"]] == [0] * len(shape["steps"])
        story = "\n".join(step["command"] + "\n" + step["output"] for step in shape["steps"])
        for said in ("almond milk", "Already remembered", "Maya has_pet Biscuit", "Restored", "files changed"):
            assert said in story
        assert quaid("demo", "--path", str(tmp_path / "demo"))[0] == 1

    def test_the_sample_conversation_is_one_session(self) -> None:
        lines = [json.loads(line) for line in CONVERSATION.read_text(encoding="utf-8").splitlines()]
        assert lines[0].keys() == {"session", "started"}
        assert 12 <= len(lines) - 1 <= 20


class TestTerminal:
    def test_hits_are_a_list_to_read_on_a_terminal(self, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("quaid.cli.recall.has_terminal", lambda: True)
        _, out, _ = quaid("recall", "bicycle")
        assert "[MEMORY]" not in out
        assert re.match(r"\d\.\d\d  Maya has a blue bicycle\.\n      fact · from owner · 01kagx", out)

    def test_colours_are_for_terminals_that_want_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("quaid.cli.terminal.has_terminal", lambda: True)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        out = io.StringIO()
        with redirect_stdout(out), safe_streams():
            sys.stdout.write(styled("ok", "green"))
        assert out.getvalue() == "\x1b[32mok\x1b[0m"
        monkeypatch.setenv("NO_COLOR", "1")
        assert styled("ok", "green") == "ok"

    def test_columns_line_up(self) -> None:
        assert columns([("a", "long", "x"), ("bcd", "e", "y")]) == "a    long  x\nbcd  e     y"

    def test_numbers_read_well(self) -> None:
        assert (count(1, "note"), count(1200, "note"), size(1500), seconds(0.0349)) == (
            "1 note", "1,200 notes", "1.5 kB", "35 ms",
        )  # fmt: skip

    def test_a_bar_is_shown_only_to_who_looks_and_waits(self, capsys: pytest.CaptureFixture[str]) -> None:
        with ProgressBar(shown=True) as bar:
            bar.update("Reading notes", 1, 2)
        with ProgressBar(shown=False, after_s=0) as bar:
            bar.update("Reading notes", 1, 2)
        assert capsys.readouterr().err == ""
        with ProgressBar(shown=True, after_s=0) as bar:
            bar.update("Reading notes", 1, 2)
            assert drawn_bars == [bar]


class TestBoundary:
    @staticmethod
    def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(boundary, "invoke", fail)

    def test_a_bug_leaves_a_report_in_the_vault(self, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_: object, query: str, *__: object, **___: object) -> None:
            raise ZeroDivisionError(query)

        monkeypatch.setattr(Memory, "recall", fail)
        code, out, err = quaid("recall", "everything", "--json")
        assert code == boundary.EXIT_BUG
        (report,) = (state_folder(vault) / "log").iterdir()
        assert str(report) in err
        assert json.loads(out)["error"]["code"] == "bug"
        text = report.read_text(encoding="utf-8")
        assert "ZeroDivisionError: everything" in text
        assert "Python 3" in text
        assert "apsw" in text

    def test_without_a_vault_the_report_goes_to_the_cache_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fail_with(RuntimeError("no"), monkeypatch)
        assert quaid("status")[0] == boundary.EXIT_BUG
        assert len(list((tmp_path / "cache" / "log").iterdir())) == 1

    def test_interruption_has_its_own_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail_with(KeyboardInterrupt(), monkeypatch)
        assert quaid("status")[0] == boundary.EXIT_INTERRUPTED == 130

    def test_commands_may_leave_with_a_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def leave(_: typer.Context) -> None:
            raise typer.Exit(7)

        monkeypatch.setattr("quaid.cli.stats.run_stats", leave)
        leave.__doc__ = "x"
        assert quaid("stats")[0] == 7

    def test_remarks_and_answers_keep_apart(self, capsys: pytest.CaptureFixture[str]) -> None:
        Invocation().notify("a remark")
        Invocation(quiet=True).notify("unheard")
        Invocation().respond("an answer", x=1)
        Invocation(as_json=True).respond("an answer", x=1)
        assert capsys.readouterr() == ('an answer\n{"v": 1, "x": 1}\n', "a remark\n")


class TestProcesses:
    """What only a real process shows."""

    @pytest.mark.slow
    def test_exit_codes_reach_the_shell(self, vault: Path) -> None:
        def code(*arguments: str) -> int:
            return subprocess.run([*COMMAND, *arguments], capture_output=True, check=False).returncode

        assert [code("stats"), code("get", "nothing"), code("recal")] == [0, 1, 2]

    @pytest.mark.slow
    def test_a_closed_pipe_is_quiet(self, vault: Path) -> None:
        for number in range(40):
            (vault / f"n{number}.md").write_text(f"bicycle number {number} " * 200, encoding="utf-8")
        line = f"{' '.join(COMMAND)} recall bicycle --limit 40 -q | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("0\n", "")

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_watcher_follows_and_ends_cleanly(self, vault: Path, number: signal.Signals) -> None:
        with subprocess.Popen(
            [*COMMAND, "watch", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as watcher:
            assert watcher.stdout
            assert watcher.stderr
            assert watcher.stderr.readline().startswith("Following")
            first = json.loads(watcher.stdout.readline())
            assert "facts/bicycle.md" in first["added"]
            status = answer("status")
            assert status["watcher"]["alive"]
            assert status["watcher"]["pid"] == watcher.pid
            (vault / "heron.md").write_text("A heron stands in the river.\n", encoding="utf-8")
            assert json.loads(watcher.stdout.readline())["added"] == ["heron.md"]
            watcher.send_signal(number)
            assert watcher.wait(10) == 0
        assert answer("status")["watcher"] is None

    @staticmethod
    def settle() -> None:
        """Files as young as the clock's tick are read again, and that costs imports: let them age."""
        time.sleep(0.05)
        quaid("sync")

    def test_start_up_imports_nothing_heavy(self, vault: Path) -> None:
        self.settle()
        program = (
            "import sys; from quaid.cli.main import main; main(sys.argv[1:]); "
            "print(' '.join({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, "recall", "bicycle", "-q"], capture_output=True, text=True, check=True
        )
        assert "[MEMORY]" in done.stdout
        assert HEAVY & set(done.stderr.split()) == set()

    def test_the_status_of_a_plain_vault_loads_neither_numpy_nor_the_janitor(self, vault: Path) -> None:
        self.settle()
        program = "import sys; from quaid.cli.main import main; main(['status']); print(*sys.modules, sep='\\n', file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert "up to date" in done.stdout
        unneeded = {"numpy", "asyncio", "ssl", "watchdog", "quaid.janitor.janitor", "quaid.docs.documentation"}
        assert unneeded & set(done.stderr.split()) == set()
