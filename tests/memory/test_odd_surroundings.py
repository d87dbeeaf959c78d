"""What this machine may be like: odd files in the vault, few handles, outputs that take nothing, odd words."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples
from vaults import Vault

from quaid.cli import main as boundary
from quaid.errors import DiskFullError
from quaid.vault import files, layout

QUAID = [sys.executable, "-m", "quaid"]


def quaid(
    vault: Vault, *words: str | bytes, prepare: Callable[[], object] | None = None, **streams: object
) -> tuple[int, str]:
    """One command in a process of its own: its exit code and what it said on stderr. It may take ten seconds."""
    line = [*QUAID, *words[:1], "--vault", str(vault.root), *words[1:]]
    given = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL} | streams
    done = subprocess.run(line, stderr=subprocess.PIPE, timeout=60, check=False, preexec_fn=prepare, **given)  # type: ignore[call-overload]
    return done.returncode, done.stderr.decode()


def sentence(told: str) -> str:
    assert "Traceback" not in told
    assert "bug" not in told
    return told.strip().splitlines()[-1]


@pytest.mark.matrix
@pytest.mark.parametrize(
    "words", [("status",), ("export",), ("recall", "violin", "--json"), ("--version",), ("--help",)]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_takes_nothing_is_said(vault, monkeypatch, words, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        line = (
            [*QUAID, *words] if words[0].startswith("-") else [*QUAID, words[0], "--vault", str(vault.root), *words[1:]]
        )
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 1
    assert "No space left" in sentence(done.stderr.decode())


def test_without_an_output_nothing_is_done(vault):
    before = vault.head()
    code, told = quaid(vault, "remember", "Maya keeps a violin.", prepare=lambda: os.close(1))
    assert code == 1
    assert "Standard output is closed" in sentence(told)
    assert vault.head() == before


@pytest.mark.slow
@pytest.mark.parametrize("closed", [0, 2])
def test_other_streams_may_be_closed(vault, closed):
    assert quaid(vault, "remember", "Maya keeps a violin.", prepare=lambda: os.close(closed))[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("handles", [14, 20, 24])
def test_few_handles_are_named_as_such(vault, handles):
    limit = (handles, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    code, told = quaid(
        vault, "remember", "Maya keeps a violin.", prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    )
    assert code in (0, 1)
    if code:
        assert "git is not installed" not in told
        assert f"limit is {handles}" in sentence(told)


@pytest.mark.parametrize(
    "error", [apsw.IOError("disk I/O error"), apsw.FullError("full"), OSError(5, "Input/output error")]
)
def test_a_failing_disk_is_no_bug(monkeypatch, capsys, error):
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(boundary, "invoke", fail)
    assert boundary.main(["status"]) == 1
    sentence(capsys.readouterr().err)


@given(st.text(min_size=1, max_size=300).filter(lambda text: "\0" not in text))
@settings(max_examples=examples(200))
def test_a_temporary_name_fits_whatever_the_name(name):
    try:
        made = layout.temporary_name(name)
    except UnicodeEncodeError:  # half a character is no name of a file
        return
    assert len(os.fsencode(made)) <= files.MAX_NAME_BYTES
    assert layout.is_temporary_name(made)


@pytest.mark.parametrize("name", ["漢" * 83, "漢" * 84, "é" * 126, "x" * 252, "two\nlines", "🎻" * 63])
def test_a_note_with_a_long_name_is_imported(vault, tmp_path, name):
    source = tmp_path / "source"
    source.mkdir()
    (source / f"{name}.md").write_text("Maya keeps a violin in the attic.\n")
    (source / "other.md").write_text("Jon keeps bees.\n")
    with vault.memory() as memory:
        done = memory.import_from(source)
    assert done.counts["notes"] == 2


def test_one_bad_file_does_not_stop_an_import(vault, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("good.md", "folder.md", "pipe.md", "below.md"):
        (source / name).write_text("Maya keeps a violin in the attic.\n")
    (source / "below").mkdir()
    (source / "below" / "deep.md").write_text("Jon keeps bees.\n")
    os.mkfifo(source / "away.md")
    (source / "gone.md").symlink_to("nowhere.md")
    into = vault.root / "notes" / "source"
    (into / "folder.md").mkdir(parents=True)
    os.mkfifo(into / "pipe.md")
    (into / "below").write_text("a file where a folder must be")
    with vault.memory() as memory:
        done = memory.import_from(source)
    assert done.counts["notes"] == 2
    assert sum(done.left_out.values()) == 5
    assert vault.git("show", "--format=", "--name-only", "HEAD").split() == [
        "notes/source/below.md",
        "notes/source/good.md",
    ]


def test_an_import_says_that_it_was_committed_when_the_index_has_no_room(vault, tmp_path, monkeypatch):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "note.md").write_text("Maya keeps a violin in the attic.\n")
    said: list[str] = []
    with vault.memory() as memory:
        memory.report_to(None, said.append)
        monkeypatch.setattr(memory, "sync", lambda *_: (_ for _ in ()).throw(DiskFullError("/state")))
        done = memory.import_from(tmp_path / "source")
    assert done.commit == vault.head()
    assert "committed" in said[-1]
    assert "quaid sync" in said[-1]
    with vault.memory() as memory:
        assert memory.recall("violin").hits


ODD: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo, "folder": Path.mkdir, "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
}  # fmt: skip
PLACES = (
    "projects/odd/PROJECT.md", "projects/odd/TOOLS.md", "projects/odd/AGENTS.md", "USER.md", "SOUL.md", "review/x.md", "eval/x.md",
    "journal/SOUL.journal.md", "snippets/SOUL.snippets.md", "facts/x.md", "sources/x.md", "AGENTS.md",
    ".obsidian/plugins/obsidian-git/data.json", ".gitmodules",
)  # fmt: skip
COMMANDS = (
    ("status",), ("doctor",), ("recall", "violin"), ("remember", "Jon keeps bees."), ("sync",), ("janitor", "list"),
    ("janitor", "run", "--dry-run"), ("context",), ("project", "list"), ("docs", "list"), ("docs", "check"),
    ("export",), ("stats",), ("verify",),
)  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(
    "place", [".gitignore", ".gitattributes", ".git/shallow", ".git/info/exclude", ".git/packed-refs"]
)
def test_a_pipe_that_git_would_wait_for_is_named(vault, place):
    (vault.root / place).unlink(missing_ok=True)
    os.mkfifo(vault.root / place)
    code, told = quaid(vault, "remember", "Maya keeps a violin.")
    assert code == 1
    assert f"{place} is not a file" in sentence(told)
    assert quaid(vault, "status")[0] in (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [["pipe"], ["folder", "device", "loop"]])
def test_odd_files_neither_hang_nor_crash_anything(vault, kinds):
    vault.write("projects/odd/GUIDE.md", "# Guide\n")
    for place, kind in zip(PLACES, cycle(kinds), strict=False):
        path = vault.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        ODD[kind](path)
    script = (
        "import sys, faulthandler; faulthandler.dump_traceback_later(50, exit=True); from quaid.cli.main import main\n"
        f"for words in {COMMANDS!r}:\n"
        f"    code = main(['--vault', {str(vault.root)!r}, *words]); print('CODE', code, words)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    codes = [line for line in done.stdout.splitlines() if line.startswith("CODE ")]
    assert len(codes) == len(COMMANDS), done.stderr[-3000:]
    assert [line for line in codes if line.split()[1] not in ("0", "1")] == []
