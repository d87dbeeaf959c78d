"""`quaid init`: which folder becomes the vault, who owns it, and what is offered at its end."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from command_line import quaid
from embed_tiny import write_tiny_model
from vaults import wait_for

from quaid.cli.background import run_embedding
from quaid.config import load_settings
from quaid.embed import fetch_weights
from quaid.local import locks
from quaid.place import state_folder
from quaid.settings import EmbeddingSettings
from quaid.sync.embedding import MARKER

pytestmark = pytest.mark.usefixtures("calm")
COMMAND = (sys.executable, "-m", "quaid.cli.main")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it but git's settings; the working folder is in it."""
    folder = tmp_path / "home"
    (folder / "here").mkdir(parents=True)
    (folder / ".gitconfig").write_text("[user]\nname = Maya Chen\nemail = maya@example.org\n")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder / "here")
    return folder


def made(*arguments: str) -> dict:
    code, out, err = quaid("init", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


# -- the folder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notes", [(), ("Tea.md",), ("Ideas/Garden.md", "photo.jpg"), (".obsidian/app.json",)])
def test_the_working_folder_becomes_the_vault_when_it_can_be_meant(home: Path, notes: tuple[str, ...]) -> None:
    for name in notes:
        (home / "here" / name).parent.mkdir(exist_ok=True)
        (home / "here" / name).write_text("x")
    assert made()["vault"] == str(home / "here")


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("pyproject.toml", "notes.md"), "looks like code (pyproject.toml)"),
        (("README.md", "a.jpg"), "has no notes"),
        (("package.json",), "looks like code (package.json)"),
    ],
)
def test_another_folder_is_left_alone_and_it_is_said_why(home: Path, names: tuple[str, ...], why: str) -> None:
    for name in names:
        (home / "here" / name).write_text("x")
    code, out, err = quaid("init")
    assert code == 0
    assert str(home / "quaid") in out
    assert why in err
    assert "quaid init ." in err
    assert sorted(path.name for path in (home / "here").iterdir()) == sorted(names)
    assert made(".")["vault"] == str(home / "here")


def test_the_home_folder_is_never_a_vault(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert made()["vault"] == str(home / "quaid")
    for named in (".", str(home), "..", "/"):
        code, _, err = quaid("init", named)
        assert code == 1
        assert "home folder" in err


def test_what_is_named_goes_before_the_working_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_HOME", str(home / "b"))
    assert made()["vault"] == str(home / "b")
    assert made("--vault", str(home / "c"))["vault"] == str(home / "c")
    assert made(str(home / "d"), "--vault", str(home / "e"))["vault"] == str(home / "d")


def test_a_file_is_refused(home: Path) -> None:
    (home / "here" / "notes.txt").write_text("tea")
    code, _, err = quaid("init", "notes.txt")
    assert (code, "notes.txt is not a folder" in err) == (1, True)


def test_every_next_step_can_be_typed_in_a_folder_with_a_space(home: Path) -> None:
    folder = home / "My Notes"
    folder.mkdir()
    (folder / "Tea.md").write_text("Green tea.\n")
    _, _, made_it = quaid("init", str(folder))
    _, _, again = quaid("init", str(folder))
    commit = next(line for line in made_it.splitlines() if "not committed yet" in line).partition(": ")[2]
    subprocess.run(commit, shell=True, check=True, capture_output=True)
    assert not subprocess.run(["git", "status", "--short"], cwd=folder, check=True, capture_output=True).stdout
    assert f"quaid status --vault '{folder}'" in again
    assert f"quaid trust '{folder}'" in again


def test_a_folder_in_a_vault_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    (home / "here" / "sub").mkdir()
    monkeypatch.chdir(home / "here" / "sub")
    for arguments in ((), (".",)):
        code, _, err = quaid("init", *arguments)
        assert code == 1
        assert f"{home / 'here'} is a vault already" in err


def test_odd_repositories_are_named(home: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, capture_output=True)

    git("init", "-q", "--bare", "bare.git")
    code, _, err = quaid("init", "bare.git")
    assert (code, "is a bare git repository" in err) == (1, True)
    git("init", "-q", "around")
    (home / "here" / "around" / "notes").mkdir()
    assert f"is in the git repository {home / 'here' / 'around'}" in quaid("init", "around/notes")[2]
    git("init", "-q", "detached")
    git("-C", "detached", "commit", "-q", "--allow-empty", "-m", "one")
    git("-C", "detached", "checkout", "-q", "--detach")
    assert "switch -c NAME" in quaid("init", "detached")[2]
    git("init", "-q", "unborn")
    assert made("unborn")["commit"]


# -- the owner -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--yes",)])
def test_the_owner_is_whom_git_names(home: Path, arguments: tuple[str, ...]) -> None:
    shape = made(*arguments)
    assert shape["owner_name"] == "Maya Chen"
    assert "entities/Maya Chen.md" in shape["files"]
    assert load_settings(home / "here").owner_name == "Maya Chen"


def test_the_owner_can_be_named_and_nobody_has_to_be(home: Path) -> None:
    assert made("--name", "Jon")["owner_name"] == "Jon"
    (home / ".gitconfig").write_text("")
    code, _, err = quaid("init", str(home / "other"))
    assert code == 0
    assert "quaid config owner_name NAME" in err
    assert load_settings(home / "other").owner_name == ""
    assert quaid("init", str(home / "third"), "--name", "User")[0] == 1


def on_terminal(answers: dict[str, str], *arguments: str) -> str:
    """What a terminal shows of `quaid …`, with what was typed after each question in `answers`."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(COMMAND[0], [*COMMAND, *arguments])
    shown, left, deadline = b"", dict(answers), time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            read = os.read(terminal, 65_536)
        except OSError:
            break
        if not read:
            break
        shown += read
        for question in [one for one in left if one.encode() in shown]:
            os.write(terminal, f"{left.pop(question)}\n".encode())
    os.waitpid(pid, 0)
    assert not left, f"was not asked: {left}\n{shown.decode()}"
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_a_terminal_is_asked_for_the_name_and_for_each_memory(home: Path) -> None:
    memory = home / ".claude" / "projects" / "-work" / "memory" / "MEMORY.md"
    memory.parent.mkdir(parents=True)
    memory.write_text("# Memory\n\n- Maya's dog Biscuit is a beagle\n")
    told = on_terminal({"Your name [Maya Chen]": "Maya Ortiz", "Take it in? [Y/n]": ""}, "init")
    assert load_settings(home / "here").owner_name == "Maya Ortiz"
    assert "Imported: 1 fact from claude-code" in told
    assert "quaid install claude-code" in told
    assert quaid("recall", "Biscuit", "-q")[1].count("beagle") == 1


@pytest.mark.slow
def test_a_terminal_is_asked_for_the_language(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "local")
    monkeypatch.setenv("QUAID_CONFIG_DIR", str(home / "config"))
    on_terminal({"Your name [Maya Chen]": "", "other than English? [y/N]": "y"}, "init", "--no-fetch")
    assert load_settings(home / "here").embedding.model == "multilingual-e5-small"


@pytest.mark.slow
def test_a_terminal_is_asked_nothing_with_yes(home: Path) -> None:
    (home / ".claude").mkdir()
    told = on_terminal({}, "init", "--yes")
    assert "?" not in told
    assert load_settings(home / "here").owner_name == "Maya Chen"


# -- what follows ----------------------------------------------------------------------------------------------------


def test_without_a_terminal_the_commands_are_named(home: Path) -> None:
    (home / ".claude" / "projects" / "a b" / "memory").mkdir(parents=True)
    (home / ".claude" / "projects" / "a b" / "memory" / "MEMORY.md").write_text("- x\n")
    (home / "Downloads").mkdir()
    with zipfile.ZipFile(home / "Downloads" / "export.zip", "w") as archive:
        archive.writestr("conversations.json", "[]")
    (home / "Downloads" / "photos.zip").write_bytes(b"no archive")
    (home / "Downloads" / "conversations.json").write_text("[]")
    code, _, err = quaid("init")
    assert code == 0
    assert "Found memories of Claude Code: quaid import --from claude-code\n" in err
    assert f"quaid extract {home}/Downloads/export.zip" in err
    assert f"quaid extract {home}/Downloads/conversations.json" in err
    assert "photos" not in err
    assert "quaid install claude-code\n" in err
    assert f"export QUAID_HOME={home / 'here'}" in err


def test_the_default_vault_needs_no_variable(home: Path) -> None:
    _, _, err = quaid("init", str(home / "quaid"))
    assert "QUAID_HOME" not in err
    assert "--vault" not in err


# -- the background --------------------------------------------------------------------------------------------------


def pending(root: Path) -> int:
    return json.loads(quaid("--vault", str(root), "status", "--json")[1])["index"]["pending"]


@pytest.fixture
def large(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with more notes than are embedded in one batch, and a small model."""
    monkeypatch.setenv("QUAID_CACHE_DIR", str(home / "cache"))
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "local")
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", str(write_tiny_model(home / "model")))
    monkeypatch.setattr("quaid.cli.init.EMBED_S", 0.0)
    folder = home / "here"
    for number in range(600):
        (folder / f"note {number}.md").write_text(f"Note {number} tells of tea and kiln {number * 7}.\n")
    fetch_weights(EmbeddingSettings(model=os.environ["QUAID_EMBEDDING_MODEL"]))
    return folder


@pytest.mark.slow
def test_words_are_there_at_once_and_vectors_come_in_the_background(large: Path) -> None:
    code, _, err = quaid("init")
    assert code == 0
    assert "in the background" in err
    assert quaid("search", "kiln 4193", "-q")[1].count("kiln 4193") == 1
    wait_for(lambda: not (state_folder(large) / MARKER).exists(), "the end of the embedding")
    wait_for(lambda: not locks.is_held(state_folder(large) / locks.EMBEDDING_LOCK), "the end of the process")
    assert pending(large) == 0


@pytest.mark.slow
def test_a_killed_process_is_started_again_by_the_next_command(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []
    monkeypatch.setattr("quaid.cli.init.start_embedding", lambda root: started.append(root) or True)
    quaid("init")
    assert started == [large]
    (state_folder(large) / MARKER).touch()  # as the process leaves it that was killed
    monkeypatch.setattr("quaid.sync.embedding.start_embedding", lambda root: started.append(root) or True)
    before = pending(large)
    assert before > 0
    assert started == [large, large]
    with locks.try_lock(state_folder(large) / locks.EMBEDDING_LOCK):
        quaid("search", "kiln")
    assert started == [large, large]
    run_embedding(large)
    assert pending(large) == 0
    assert started == [large, large]
    assert not (state_folder(large) / MARKER).exists()


@pytest.mark.slow
def test_status_says_how_far_it_is(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quaid.cli.init.start_embedding", lambda _: True)
    quaid("init")
    with locks.try_lock(state_folder(large) / locks.EMBEDDING_LOCK):
        out = quaid("status")[1]
        assert "256 of 601 chunks embedded; a process does the rest" in out
        assert "quaid sync" not in out
    assert "quaid sync" in quaid("status")[1]


@pytest.mark.slow
def test_weights_that_come_later_are_used_at_once(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quaid.cli.init.start_embedding", lambda _: True)
    shutil.rmtree(large.parent / "cache")
    code, _, err = quaid("init", "--no-fetch")
    assert code == 0
    assert "background" not in err
    assert pending(large) == 601
    quaid("doctor", "--fetch")
    assert pending(large) == 601 - 256
