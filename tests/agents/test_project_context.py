"""What a session is told of projects: each in a line, the one it works in with its notes."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_repos import SourceRepo
from vaults import Vault

from quaid.agents.project_context import MAX_PROJECTS, read_projects
from quaid.agents.session_context import SessionContext, render_context
from quaid.docs import registry
from quaid.docs.registry import Project
from quaid.hooks.entry import answer
from quaid.place import state_folder
from quaid.recall.cutoff import CHARACTERS_PER_TOKEN
from quaid.vault.layout import Layout

KEY = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.fixture
def studio(vault: Vault, tmp_path: Path) -> SourceRepo:
    repo = SourceRepo(tmp_path / "studio")
    repo.write("src/kiln.py", "COOLING_H = 9\n")
    repo.write("docs/firing.md", "# Firing\n\nThe kiln of `src/kiln.py` cools for nine hours.\n")
    repo.write("README.md", "# Studio\n\nPots and how they are fired. In Berlin.\n")
    repo.commit("the studio")
    with vault.memory() as memory:
        memory.documentation.create(Project("studio", "The studio", source_roots=(str(repo.path),)))
        memory.documentation.create(Project("archive"))
    return repo


def told(vault: Vault, cwd: Path | str | None = None) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    return read_projects(vault.root, Layout(), None if cwd is None else str(cwd))


def test_a_vault_without_projects_is_left_alone(vault: Vault) -> None:
    assert told(vault, vault.root) == ((), ())
    assert not (state_folder(vault.root) / "local.db").exists()


def test_a_line_each_and_the_stale_ones_by_name(vault: Vault, studio: SourceRepo) -> None:
    assert told(vault)[0] == ("archive", "studio (The studio): Pots and how they are fired")
    with vault.memory() as memory:
        memory.documentation.search("kiln")
    assert told(vault)[0][1].endswith(": Pots and how they are fired. 3 docs, 2 unknown")
    studio.save("src/kiln.py", "COOLING_H = 12\n")
    with vault.memory() as memory:
        memory.documentation.check()
    assert told(vault)[0][1].endswith(". 3 docs, 1 stale (docs/firing.md), 2 unknown")
    assert told(vault)[0][0] == "archive: 1 doc, 1 unknown"
    with vault.memory() as memory:
        memory.documentation.registrar.set_state("studio", "archived")
    assert told(vault)[0] == ("archive: 1 doc, 1 unknown",)


def test_the_project_at_work_comes_first_with_its_notes(vault: Vault, studio: SourceRepo, tmp_path: Path) -> None:
    vault.write("projects/studio/TOOLS.md", "---\ntype: note\n---\n# Tools\n\n<!-- a hint -->\nTest with pytest.\n")
    vault.write("projects/studio/AGENTS.md", "# Agents\n")
    elsewhere = studio.worktree(tmp_path / "elsewhere", "wip")
    with vault.memory() as memory:
        memory.documentation.create(Project("vendored", source_roots=(str(studio.path / "src"),)))
    for cwd in (
        studio.path,
        studio.path / "docs",
        elsewhere.path,
        elsewhere.path / "docs",
        vault.root / "projects/studio",
    ):
        found = told(vault, cwd)
        assert found[0][0].startswith("studio (The studio), where this session works: Pots")
        assert found[1] == (("projects/studio/TOOLS.md", "# Tools\n\n\nTest with pytest."),)
    assert told(vault, studio.path / "src")[0][0].startswith("vendored, where this session works")
    for cwd in (tmp_path, vault.root, studio.path.with_name("studio-2"), "", "src", "/\0", "/" + "x" * 5_000):
        assert told(vault, cwd)[1] == ()


def test_of_two_projects_with_the_same_root_all_doors_name_the_first(vault: Vault, studio: SourceRepo) -> None:
    with vault.memory() as memory:
        memory.documentation.create(Project("twin", source_roots=(str(studio.path),)))
        owner = memory.documentation.find(studio.path / "src/kiln.py")
    assert owner is not None
    assert owner[0].name == "studio"
    assert told(vault, studio.path / "src")[0][0].startswith("studio (The studio), where this session works")


def test_notes_are_read_once_and_seen_when_they_change(vault: Vault, studio: SourceRepo, monkeypatch) -> None:
    vault.write("projects/studio/TOOLS.md", "# Tools\n\nTest with pytest.\n")
    first = told(vault, studio.path)
    with monkeypatch.context() as patched:
        patched.setattr(registry, "parse_project", lambda *_: pytest.fail("read again"))
        assert told(vault, studio.path) == first
    vault.write("projects/studio/TOOLS.md", "# Tools\n\nTest with pnpm.\n")
    assert "pnpm" in told(vault, studio.path)[1][0][1]
    (vault.root / "projects/studio/TOOLS.md").unlink()
    assert told(vault, studio.path)[1] == ()
    known = told(vault)
    (state_folder(vault.root) / "projects.json").write_text("[]")
    assert told(vault) == known


def test_the_hook_that_begins_a_session_tells_it(vault: Vault, studio: SourceRepo, monkeypatch) -> None:
    monkeypatch.setattr("quaid.hooks.entry.start_worker", lambda _: None)
    vault.write("projects/studio/AGENTS.md", "# Agents\n\nAsk before you fire.\n")
    event = {"source": "startup", "cwd": str(studio.path)}
    alone = answer("session-start", vault.root, event).text
    assert "- studio (The studio), where this session works: " in alone
    assert "## projects/studio/AGENTS.md\n# Agents\n\nAsk before you fire." in alone
    with vault.memory() as memory:
        assert answer("session-start", vault.root, event, memory).text == alone


def test_a_secret_is_neither_told_nor_kept(vault: Vault, studio: SourceRepo) -> None:
    vault.write("projects/studio/TOOLS.md", f"# Tools\n\ntoken: {KEY}\n<private>\nmine\n</private>\nThe rest.\n")
    ((_, text),) = told(vault, studio.path)[1]
    assert "The rest." in text
    assert KEY not in text
    assert "mine" not in text
    assert all(KEY.encode() not in path.read_bytes() for path in state_folder(vault.root).glob("*") if path.is_file())


def test_broken_and_foreign_files_are_no_trouble(vault: Vault, studio: SourceRepo, tmp_path: Path) -> None:
    vault.write("projects/broken/PROJECT.md", b"---\nlabel: [\nstate: \xff\n")
    vault.write("projects/bare/PROJECT.md", "")
    outside = tmp_path / "outside.md"
    outside.write_text("# Outside\n\nNot of this vault.\n")
    (vault.root / "projects/studio/TOOLS.md").symlink_to(outside)
    (vault.root / "projects/link").mkdir()
    (vault.root / "projects/link/PROJECT.md").symlink_to(outside)
    (state_folder(vault.root) / "local.db").write_bytes(b"no database at all" * 100)
    found = told(vault, studio.path)
    assert [line.split(" ")[0] for line in found[0]] == ["studio", "archive", "bare", "broken"]
    assert found[1] == ()


def test_many_projects_leave_room_for_the_rest(vault: Vault) -> None:
    for number in range(MAX_PROJECTS + 3):
        vault.write(f"projects/p{number:02}/PROJECT.md", f"# P\n\n{'Pots and pans. ' * 30}\n")
    lines = told(vault)[0]
    assert len(lines) == MAX_PROJECTS + 1
    assert lines[-1] == "and 3 more: quaid project list"
    notes = (("projects/p00/TOOLS.md", "\n".join(["Use this tool."] * 900)),)
    text = render_context(
        SessionContext((("USER.md", "Maya.\n" * 900),), lines, (), 0, (("2026-11-20", "A fact."),), notes), 1_500
    )
    assert len(text) <= 1_500 * CHARACTERS_PER_TOKEN
    assert [line for line in text.splitlines() if line.startswith("## ")][2:] == [
        "## projects/p00/TOOLS.md",
        "## Learned lately",
    ]
