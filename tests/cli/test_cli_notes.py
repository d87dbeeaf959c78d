"""Reading, listing, editing and choosing notes where a transcript cannot show it: at a terminal, and while others write."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import quaid
from vaults import Vault, trust_vault

from quaid.cli import editing, notes
from quaid.memory import Memory

GARDEN = (
    b"---\r\ntags: [a]\r\n---\r\n# Garden\r\n\r\n## Tomatoes\r\n\r\n```py\r\n# no heading\r\n```\r\n### Red\r\n"
    b"\r\n- [ ] buy [[Seeds|some]] ^s1\r\n\r\n## Beans\xff\r\n"
)


@pytest.fixture
def home(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    trust_vault(vault.root)
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    vault.run("config", "user.name", "Maya")
    vault.run("config", "user.email", "maya@example.org")
    vault.write("own/Garden.md", GARDEN)
    vault.write_fact("tea", "Maya takes green tea.")
    vault.write_fact("tea-too", "maya takes green tea")
    vault.save()
    return vault


def pipe(*arguments: str) -> bytes:
    done = subprocess.run([sys.executable, "-m", "quaid.cli.main", *arguments], capture_output=True, check=True)
    return done.stdout


def at_terminal(*arguments: str, typed: str = "") -> str:
    """Return what a terminal shows of a command, and of what is typed into it."""
    screen, end = pty.openpty()
    os.write(screen, typed.encode())
    with subprocess.Popen([sys.executable, "-m", "quaid.cli.main", *arguments], stdin=end, stdout=end, stderr=end):
        os.close(end)
        shown = b""
        while True:
            try:
                shown += (part := os.read(screen, 65536))
            except OSError:
                break
            if not part:
                break
    os.close(screen)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_a_pipe_gets_the_bytes_of_the_file(home: Vault) -> None:
    assert pipe("get", "[[garden]]") == GARDEN
    assert pipe("get", "Garden#tomatoes").decode().splitlines()[0] == "## Tomatoes"
    assert b"Beans" not in pipe("get", "Garden#tomatoes")
    assert pipe("get", "[[Garden#^s1]]") == b"- [ ] buy [[Seeds|some]] ^s1\r\n"
    code, _, err = quaid("get", "Garden#nope")
    assert (code, "own/Garden.md has no heading 'nope'" in err) == (1, True)


def test_a_terminal_shows_all_that_the_note_says(home: Vault) -> None:
    shown = at_terminal("get", "Garden")
    for line in ("own/Garden.md", "tags: [a]", "## Tomatoes", "```py", "# no heading", "- [ ] buy", "[[Seeds|some]]"):
        assert line in shown
    assert "\x1b[1m## Tomatoes" in shown
    assert "\x1b[1m# no heading" not in shown


def test_long_lines_are_wrapped_and_tables_are_not(monkeypatch: pytest.MonkeyPatch, home: Vault) -> None:
    table = "| " + " | ".join(["column"] * 20) + " |"
    home.write("own/Long.md", f"{'word ' * 40}\n\n- {'item ' * 40}\n\n{table}\n")
    monkeypatch.setenv("COLUMNS", "60")
    with Memory.open(home.root) as memory:
        text = notes.render_note(memory.get("Long"))
    assert table in text
    assert all(len(line) <= 60 for line in text.splitlines() if line != table)
    assert "\n  item" in text


@pytest.mark.slow
def test_a_terminal_asks_which_note_is_meant(home: Vault) -> None:
    shown = at_terminal("forget", "Maya takes green tea", typed="1\n")
    assert "1  01tea-too" in shown
    assert "2  01tea " in shown
    assert "maya takes green tea\n  id      01tea-too" in shown
    assert not (home.root / "facts/tea-too.md").exists()
    home.write_fact("tea-three", "MAYA takes green tea")
    assert "Forgotten" not in at_terminal("forget", "Maya takes green tea", typed="7\n")


def test_a_file_is_meant_from_where_one_stands(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.root / "own")
    other = home.root.parent / "other" / "own"
    other.mkdir(parents=True)
    for ref in ("Garden.md", "./Garden.md", str(home.root / "own/Garden.md"), "../own/Garden.md"):
        assert quaid("open", ref)[1].strip() == str(home.root / "own/Garden.md")
    (other / "Elsewhere.md").write_text("x")
    assert quaid("open", str(other / "Elsewhere.md"))[0] == 1


# -- edit ------------------------------------------------------------------------------------------------------------


def editor(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "my editor"
    path.write_text(f"#!{sys.executable}\nimport pathlib, sys\nnote = pathlib.Path(sys.argv[1])\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", f"'{path}'")


def test_what_changed_meanwhile_is_merged(home: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.write("own/Plan.md", "one\n\ntwo\n\nthree\n")
    home.save()
    meanwhile = f"pathlib.Path({str(path)!r}).write_text('ONE\\n\\ntwo\\n\\nthree\\n')"
    editor(tmp_path, f"{meanwhile}\nnote.write_text('one\\n\\ntwo\\n\\nTHREE\\n')", monkeypatch)
    code, out, err = quaid("edit", "Plan")
    assert (code, path.read_text()) == (0, "ONE\n\ntwo\n\nTHREE\n"), out + err
    assert home.git("show", "--format=%an <%ae>, %cn", "--no-patch") == "Maya <maya@example.org>, Maya"
    assert "+THREE" in home.git("show")
    assert "ONE" not in home.git("show")


def test_the_same_line_is_not_overwritten_and_no_text_is_lost(
    home: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, head = home.write("own/Plan.md", "one\n"), home.save()
    editor(tmp_path, f"pathlib.Path({str(path)!r}).write_text('theirs\\n')\nnote.write_text('mine\\n')", monkeypatch)
    code, _, err = quaid("edit", "Plan")
    assert (code, path.read_text(), home.head()) == (75, "theirs\n", head)
    kept = Path(err.strip().rpartition("is kept in ")[2])
    assert kept.read_text() == "mine\n"


def test_a_note_that_was_removed_meanwhile_is_not_lost_either(
    home: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.write("own/Plan.md", "one\n")
    editor(tmp_path, f"pathlib.Path({str(path)!r}).unlink()\nnote.write_text('mine\\n')", monkeypatch)
    code, _, err = quaid("edit", "Plan")
    assert code == 1
    assert Path(err.strip().rpartition("is kept in ")[2]).read_text() == "mine\n"


@pytest.mark.parametrize("script", ["sys.exit(3)", "note.write_text(''); sys.exit(0)", "note.unlink()", "pass"])
def test_an_editor_that_fails_or_saves_nothing_changes_nothing(
    home: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    before, head = home.notes(), home.head()
    editor(tmp_path, script, monkeypatch)
    quaid("edit", "Garden")
    assert (home.notes(), home.head(), home.status()) == (before, head, "")


def test_an_own_note_that_would_be_empty_is_not_given_to_forget(
    home: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, "note.write_text('')", monkeypatch)
    code, _, err = quaid("edit", "Garden")
    assert (code, "quaid forget" in err, "delete the file" in err) == (1, False, True)


# -- open ------------------------------------------------------------------------------------------------------------


def test_a_note_is_opened_by_its_path_or_address_and_never_by_what_it_says(
    home: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("own/--help; rm.md", "#!/bin/sh\ntouch ran\n")
    started, opener = tmp_path / "started", tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\necho "$@" >> "{started}"\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", f"{opener.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(editing, "has_terminal", lambda: True)
    monkeypatch.setattr(editing, "_has_obsidian", lambda: True)
    path = str(home.root / "own/--help; rm.md")
    quaid("open", "own/--help; rm")
    (home.root / ".obsidian").mkdir()
    quaid("open", "own/--help; rm")
    plain, address = started.read_text().splitlines()
    assert plain == path
    assert address.startswith("obsidian://open?path=%2F")
    assert " " not in address
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    code, out, err = quaid("open", "own/--help; rm")
    assert (code, out.strip(), "No program" in err) == (0, path, True)


# -- completion, help, settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["rec"], ["recall"]),
        (["recall", "--super"], ["--superseded"]),
        (["get", "gard"], ["Garden"]),
        (["get", "x", "gard"], []),
        (["config", "recall.lim"], ["recall.limit"]),
        (["janitor", "und"], ["undo"]),
        (["help", "versi"], ["version"]),
        (["install", "claude-c"], ["claude-code"]),
        (["nothing", ""], []),
    ],
)
def test_words_are_completed(home: Vault, words: list[str], found: list[str]) -> None:
    quaid("sync")
    assert quaid("completion", "words", "--", *words)[1].split("\n")[:-1] == (found or [""])


def test_bash_completes_with_the_script(home: Vault, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "quaid"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quaid.cli.main "$@"\n')
    script.chmod(0o755)
    home.write("own/Long name.md", "x")
    quaid("sync")
    typed = 'eval "$(quaid completion bash)"; COMP_WORDS=(quaid get long); COMP_CWORD=2; _quaid; echo "${COMPREPLY[@]}"'
    environ = {**os.environ, "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", typed], env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("Long\\ name", "")


def test_help_and_version() -> None:
    assert quaid("help", "recall")[1] == quaid("recall", "--help")[1]
    assert quaid("help")[1] == quaid("--help")[1]
    assert quaid("version")[1] == quaid("--version")[1]
    code, _, err = quaid("help", "remembre")
    assert (code, "Did you mean remember?" in err) == (2, True)


def test_a_setting_is_checked_and_a_wrong_one_can_be_repaired(home: Vault) -> None:
    code, _, err = quaid("config", "recall.limit", "-3")
    assert (code, "must be 0 or more" in err) == (1, True)
    home.write("quaid.toml", "# mine\n[recall]\nlimit = -3\n[git]\nwait_s = -1\n")
    code, out, err = quaid("recall", "tea")
    assert (code, "green tea" in out) == (0, True)
    assert "config: what cannot be used has its default until it is repaired. quaid.toml, line 3" in err
    code, _, err = quaid("remember", "Maya likes cake a lot")
    assert (code, "quaid.toml, line 3: recall.limit is -3" in err) == (1, True)
    assert "line 5" in quaid("status")[1]
    assert quaid("config", "recall.limit", "3")[0] == 0
    assert quaid("config", "git.wait_s", "6")[0] == 0
    assert quaid("remember", "Maya likes cake a lot")[0] == 0


def test_a_file_that_is_not_toml_names_its_line_and_recall_answers(home: Vault) -> None:
    home.write("quaid.toml", "owner = 'default'\n[recall\n")
    code, out, err = quaid("recall", "tea", "--json")
    assert (code, '"config"' in out, "at line 2" in err) == (0, True, True)


@pytest.mark.parametrize(
    "line",
    ["log --since nonsense", "list --until nonsense", "recall x --at nonsense", "recall x --from 2026-13-45",
     "search x --to whenever", "recall x --as-of nonsense", "recall x --session s --compacted-at soon",
     "remember a fact it is --valid-from nonsense", "remember a fact it is --valid-until 32.13."],
)  # fmt: skip
def test_what_is_not_a_date_is_refused_with_a_sentence(home: Vault, line: str) -> None:
    code, out, err = quaid(*line.split())
    assert code in {1, 2}
    assert out == ""
    assert err.startswith("quaid: ")
    assert "bug" not in err


def test_log_since_takes_days_and_moments(home: Vault) -> None:
    assert len(quaid("log", "--since", "yesterday")[1].splitlines()) == 2
    assert quaid("log", "--since", "2099-01-01T10:00")[1] == ""


def test_the_list_is_sorted_and_cut(home: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = quaid("list", "--paths", "--sort", "path")[1].split()
    assert paths == sorted(paths)
    assert quaid("list", "--paths", "--sort", "path", "--reverse")[1].split() == paths[::-1]
    facts = {"facts/tea.md", "facts/tea-too.md"}
    assert set(quaid("list", "--kind", "fact", "--about", "green tea", "--paths")[1].split()) == facts
    home.write("entities/Tom.md", "---\ntype: person\naliases: [Tommy]\n---\n- likes [[Sailing]]\n")
    home.write("facts/a.md", "---\nid: 01x\ntype: fact\nsuperseded_by: '[[tea]]'\n---\nTommy drinks tea.\n")
    home.save()
    assert set(quaid("list", "--about", "tom", "--paths")[1].split()) == {"entities/Tom.md", "facts/a.md"}
    assert quaid("list", "--status", "superseded", "--paths")[1].split() == ["facts/a.md"]
    assert "facts/a.md" not in quaid("list", "--status", "active", "--paths")[1]
    monkeypatch.setattr("quaid.cli.listing.has_terminal", lambda: True)
    monkeypatch.setattr("quaid.cli.listing.MAX_SHOWN", 2)
    _, out, err = quaid("list")
    assert len(out.splitlines()) == 2
    assert "2 of " in err
