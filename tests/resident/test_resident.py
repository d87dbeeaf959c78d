"""One process answers for all: the same answers to the byte, never stale, never for long, and nobody depends on it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
from matrices import for_each
from residents import listening, no_process_left, printed
from vaults import Vault, trust_vault, wait_for

from quaid import trust
from quaid.resident import call as calls
from quaid.resident.call import Call
from quaid.resident.finding import find_listening, lock_path, start
from quaid.user_config import changing_user_config, user_config_path

COMMAND = [sys.executable, "-m", "quaid"]
MILK = "What milk does Maya take?"
LINES = (
    ["recall", MILK],
    ["recall", MILK, "--json"],
    ["recall", MILK, "--explain", "--limit", "1"],
    ["recall", MILK, "--budget", "200", "--ids", "--context"],
    ["recall", MILK, "--expect", "01milk"],
    ["recall", MILK, "--expect", "01kiln", "-n", "1"],
    ["recall", "quetzalcoatlus", "-q"],
    ["recall", "quetzalcoatlus"],
    ["recall"],
    ["recall", MILK, "--kind", "nonsense"],
    ["recall", MILK, "--from", "someday", "--json"],
    ["recall", MILK, "--no-such-option"],
    ["search", "oat milk"],
    ["list", "--json"],
    ["list", "--kind", "fact"],
    ["context", "--tokens", "300"],
)


@pytest.fixture
def home(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    vault.write_fact("milk", "Maya takes oat milk in her coffee.")
    vault.write_fact("kiln", "The kiln in the studio reaches 1280 degrees. \u00bd \u202e")
    vault.write("USER.md", "# User\n\nMaya is a potter.\n")
    vault.write("quaid.toml", "[models]\nprovider = 'auto'\n")  # what it has no say in is remarked at every call
    vault.save()
    with vault.memory() as memory:
        memory.sync()
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    return vault


def alone(arguments: list[str], **more: str) -> tuple[str, str, int]:
    """The answer of a process of its own."""
    environ = {**os.environ, "QUAID_RESIDENT": "off", **more}
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, env=environ, stdin=subprocess.DEVNULL
    )
    return done.stdout, done.stderr, done.returncode


def without_times(told: tuple[str, str, int]) -> tuple[str, str, int]:
    """What a clock says differs from call to call."""
    times = r"\"(?:took_ms|\w+_ms)\": (?:[\d.]+|\{[^}]*\})| *[\d.]+ m?s\b[ █▉▊▋▌▍▎▏]*"
    return re.sub(times, "TIME", told[0]), told[1], told[2]


@pytest.mark.slow
def test_it_answers_as_a_process_of_its_own_would(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(2) as pool:
        expected = list(pool.map(alone, LINES))
    with listening(home.root, monkeypatch):
        for line, told in zip(LINES, expected, strict=True):
            here, there = without_times(printed(home.root, line)), without_times(told)
            if "--explain" in line:  # two stages run side by side
                here, there = [(*sorted(out.splitlines()), *rest) for out, *rest in (here, there)]
            assert here == there, line
    assert any("ignored" in err for _, err, _ in expected)
    assert {code for _, _, code in expected} == {0, 1, 2}


@pytest.mark.slow
def test_a_call_of_the_shell_is_answered_in_its_terms(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the script: encoding, exit code, and a reader that goes away."""
    with listening(home.root, monkeypatch):
        for encoding in ("utf-8", "ascii"):
            told = alone(["recall", "kiln degrees", "--json"], PYTHONIOENCODING=encoding)
            environ = {**os.environ, "PYTHONIOENCODING": encoding}
            done = subprocess.run(
                [*COMMAND, "recall", "kiln degrees", "--json"], capture_output=True, text=True, check=False, env=environ
            )
            assert without_times((done.stdout, done.stderr, done.returncode)) == without_times(told)
        gone = subprocess.run(
            f"{sys.executable} -m quaid list --json | true", shell=True, capture_output=True, text=True, check=False
        )
        assert gone.stderr.count("Traceback") == 0


def test_a_terminal_gets_the_list_that_a_terminal_gets(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(home.root, monkeypatch):
        asked = Call(str(home.root), ["recall", MILK])
        asked.has_terminal, asked.columns, asked.environ = True, 40, {"TERM": "xterm"}
        text = b"".join(part for kind, part in asked.ask() if kind == calls.OUT).decode()
        assert "\x1b[36m" in text
        assert max(len(re.sub(r"\x1b\[\w+", "", line)) for line in text.splitlines()) <= 41
        asked.environ = {"NO_COLOR": "1", "TERM": "xterm"}
        assert b"\x1b" not in b"".join(part for _, part in asked.ask())


def test_it_is_never_behind_the_files_nor_the_settings(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(home.root, monkeypatch):
        assert "green tea" not in printed(home.root, ["recall", "green tea"])[0]
        path = home.write_fact("tea", "Jon takes green tea.")
        assert "green tea" in printed(home.root, ["recall", "green tea"])[0]
        path.unlink()
        assert "green tea" not in printed(home.root, ["recall", "green tea"])[0]
        assert "ignored" in printed(home.root, ["recall", MILK])[1]
        home.write("quaid.toml", "[hooks]\ncontext_tokens = 60\n")
        assert "ignored" not in printed(home.root, ["recall", MILK])[1]
        short = len(printed(home.root, ["context"])[0])
        home.write("quaid.toml", "")
        assert len(printed(home.root, ["context"])[0]) > short


def test_what_only_the_caller_can_do_is_left_to_it(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is asked with the caller's keys; another vault or owner is another memory; the past takes long."""
    other = home.root.parent / "other"
    with listening(home.root, monkeypatch):
        for line in (
            ["recall", MILK, "--vault", str(other)],
            ["recall", MILK, "--owner", "jon"],
            ["recall", MILK, "--as-of", "HEAD"],
        ):
            assert Call(str(home.root), line).ask() is None, line
        assert printed(home.root, ["recall", MILK, "--vault", f"{home.root}/../{home.root.name}"])[2] == 0


def test_no_model_is_asked(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_MODELS_PROVIDER", "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-used")
    with listening(home.root, monkeypatch):
        assert Call(str(home.root), ["recall", MILK, "--depth", "deep"]).ask() is None
        assert printed(home.root, ["recall", MILK, "--depth", "fast"])[2] == 0


def test_trust_that_is_taken_away_counts_at_once(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(home.root, monkeypatch) as listener:
        assert "oat milk" in printed(home.root, ["recall", MILK])[0]
        trust.distrust(home.root)
        try:
            assert Call(str(home.root), ["recall", MILK]).ask() is None
            assert "not trusted" in alone(["recall", MILK])[1]
            wait_for(lambda: not listener.thread.is_alive(), "its end")
        finally:
            trust_vault(home.root)


def test_it_ends_when_it_is_switched_off(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(home.root, monkeypatch) as listener:
        assert printed(home.root, ["recall", MILK])[2] == 0
        monkeypatch.delenv("QUAID_RESIDENT")
        before = user_config_path().read_bytes()
        with changing_user_config() as document:
            document.update(resident="off")
        try:
            assert Call(str(home.root), ["recall", MILK]).ask() is None
            assert not start(str(home.root))
            wait_for(lambda: not listener.thread.is_alive(), "its end")
        finally:
            user_config_path().write_bytes(before)


def test_it_ends_with_the_vault_and_without_a_question(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(home.root, monkeypatch, idle_s=0.3) as listener:
        wait_for(lambda: not listener.thread.is_alive(), "its end", 5)
    with listening(home.root, monkeypatch) as listener:
        home.root.rename(home.root.with_name("moved"))
        assert Call(str(home.root), ["recall", MILK]).ask() is None
        wait_for(lambda: not listener.thread.is_alive(), "its end")
    home.root.with_name("moved").rename(home.root)
    with listening(home.root, monkeypatch) as listener:
        Path(calls.socket_path(calls.identity_of(home.root))).unlink()  # nobody can reach it any more
        wait_for(lambda: not listener.thread.is_alive(), "its end")


def test_it_looks_whether_an_exchange_with_remotes_is_due(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, object]] = []
    monkeypatch.setattr(
        "quaid.resident.listener.schedule_exchange", lambda root, settings: asked.append((root, settings))
    )
    monkeypatch.setattr("quaid.resident.listener.CHECK_S", 0.05)
    with listening(home.root, monkeypatch):
        wait_for(lambda: len(asked) > 1, "a look at what is due")
    assert {root for root, _ in asked} == {home.root}


def test_after_an_upgrade_it_does_not_answer(home: Vault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("quaid_of_today")
    module.__file__ = str(tmp_path / "module.py")
    Path(module.__file__).write_text("")
    monkeypatch.setitem(sys.modules, "quaid_of_today", module)
    with listening(home.root, monkeypatch) as listener:
        assert printed(home.root, ["recall", MILK])[2] == 0
        Path(module.__file__).unlink()
        Path(module.__file__).write_text("new")
        assert Call(str(home.root), ["recall", MILK]).ask() is None
        wait_for(lambda: not listener.thread.is_alive(), "its end")


def test_a_folder_that_others_can_enter_is_not_trusted(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(home.root, monkeypatch):
        folder = Path(calls.socket_path(calls.identity_of(home.root))).parent
        folder.chmod(0o777)
        try:
            assert Call(str(home.root), ["recall", MILK]).ask() is None
            assert "others can enter" in alone(["doctor"], QUAID_RESIDENT="auto")[0]
        finally:
            folder.chmod(0o700)


def test_a_name_too_long_for_a_socket_leaves_each_alone(
    home: Vault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QUAID_RESIDENT", "auto")
    monkeypatch.setattr(calls, "_MAX_PATH", 10)
    assert Call(str(home.root), ["recall", MILK]).ask() is None
    assert not start(str(home.root))


def test_what_is_no_call_harms_nobody(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(home.root, monkeypatch):
        path = calls.socket_path(calls.identity_of(home.root))
        for data in (b"", b"\0", b"\0" * 9, b"\0" * 8 + b"-3\0", b"x" * 3_000_000, b"\xff\0" * 8 + b"1\0a\0"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(path)
                try:
                    client.sendall(data)
                    client.shutdown(socket.SHUT_WR)
                except OSError:
                    continue
                assert client.recv(100) == b""
        assert printed(home.root, ["recall", MILK])[2] == 0


def test_who_does_not_answer_in_time_is_not_waited_for(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_RESIDENT", "auto")
    monkeypatch.setattr(calls, "ANSWER_S", 0.1)
    path = Path(calls.socket_path(calls.identity_of(home.root)))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hanging:
        hanging.bind(str(path))
        hanging.listen(8)
        assert Call(str(home.root), ["recall", MILK]).ask() is None
    assert Call(str(home.root), ["recall", MILK]).ask() is None  # killed: its name is still there
    with listening(home.root, monkeypatch):
        monkeypatch.setattr(calls, "ANSWER_S", 5.0)
        assert printed(home.root, ["recall", MILK])[2] == 0


@for_each(("line", "expected"), [
    ("--vault V recall q", "recall --vault V q"), ("-q --vault=V --json search q -- -x", "search -q --vault=V --json q -- -x"),
    ("--vault V hook stop --text", "hook stop --vault V --text"), ("recall q --vault V", "recall q --vault V"),
    ("--vault recall", "--vault recall"), ("--json", "--json"), ("", ""), ("--version recall", "--version recall"),
])  # fmt: skip
def test_options_before_the_command_mean_the_same(line: str, expected: str) -> None:
    assert calls.put_command_first(line.split()) == expected.split()


def test_options_before_the_command_are_answered_too(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUAID_HOME")
    monkeypatch.setenv("QUAID_RESIDENT", "auto")
    line = ["--json", "--vault", str(home.root), "recall", MILK]
    asked = calls.of_this_process(calls.put_command_first(line))
    assert asked is not None
    assert asked.root == str(home.root)
    with listening(home.root, monkeypatch):
        assert without_times(printed(home.root, asked.arguments)) == without_times(alone(line))


def test_an_answer_that_was_cut_off_is_none() -> None:
    whole = calls.pack_answer([(calls.OUT, b"one"), (calls.EXIT, b"0")])
    assert calls.unpack_answer(whole) == [(calls.OUT, b"one"), (calls.EXIT, b"0")]
    assert all(calls.unpack_answer(whole[:end]) is None for end in range(len(whole)))


@pytest.mark.slow
def test_the_first_call_starts_it_and_one_stays(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way, with processes: nothing hangs on it, a killed one is replaced, and it is told of."""
    monkeypatch.setenv("QUAID_RESIDENT", "auto")
    expected = alone(["recall", MILK])

    def ask(_: object = None) -> tuple[str, str, int]:
        # capture_output waits until nobody holds the other ends any more: as $(quaid recall …) does in a shell.
        done = subprocess.run(
            [*COMMAND, "recall", MILK],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout, done.stderr, done.returncode

    with no_process_left(home.root):
        assert ask() == expected
        first = wait_for_listening(home.root)
        again = subprocess.run(
            [sys.executable, "-m", "quaid.cli.resident", str(home.root), "60"], timeout=30, check=False
        )
        assert again.returncode == 0
        assert find_listening(home.root).pid == first
        assert f"process {first} (resident)" in alone(["status"], QUAID_RESIDENT="auto")[0]
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(ask) for _ in range(20)]
            os.kill(first, signal.SIGKILL)
            assert [each.result() for each in asked] == [expected] * 20
        started = lock_path(Path(calls.socket_path(calls.identity_of(home.root)))).with_suffix(".started")
        os.utime(started, (1, 1))  # a while ago
        assert ask() == expected
        assert wait_for_listening(home.root) != first


def test_of_several_that_start_at_the_same_moment_one_stays(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_RESIDENT", "auto")
    command = [sys.executable, "-m", "quaid.cli.resident", str(home.root), "60"]
    with no_process_left(home.root):
        started = [subprocess.Popen(command) for _ in range(4)]
        stays = wait_for_listening(home.root)
        others = [each for each in started if each.pid != stays]
        assert [each.wait(30) for each in others] == [0] * 3
        assert find_listening(home.root).pid == stays
        assert without_times(printed(home.root, ["recall", MILK])) == without_times(alone(["recall", MILK]))
    (one,) = (each for each in started if each.pid == stays)
    assert one.wait(30) == 0


def wait_for_listening(root: Path) -> int:
    wait_for(lambda: find_listening(root), "a process that listens", 60)
    return find_listening(root).pid


def test_a_hook_starts_it_too(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_RESIDENT", "auto")
    monkeypatch.delenv("QUAID_HOME")
    event = json.dumps({"session_id": "s1", "cwd": str(home.root / "facts"), "source": "startup"})
    with no_process_left(home.root):
        for name in ("session-start", "SessionStart"):
            done = subprocess.run(
                [*COMMAND, "hook", name], input=event, capture_output=True, text=True, check=False, timeout=30, cwd="/"
            )
            assert "Maya is a potter." in done.stdout
            wait_for_listening(home.root)
            time.sleep(0.01)
