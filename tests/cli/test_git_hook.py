"""`quaid install git-hook`: real commits, made by hand, with and without new secrets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import quaid
from vaults import Vault

from quaid.history import commit_hook
from quaid.report.checks import check_git_hook

pytestmark = pytest.mark.usefixtures("calm")
SECRET = "My password is swordfish-77!\n"
OTHER = "My password is haddock-9923!\n"


@pytest.fixture
def hooked(vault: Vault) -> Vault:
    with vault.memory():
        pass
    assert typed(vault, "install")["changed"]
    return vault


def typed(vault: Vault, command: str, *options: str) -> dict[str, object]:
    vault.accept()
    code, out, err = quaid("--vault", str(vault.root), command, "git-hook", "--json", *options)
    return json.loads(out) | {"code": code, "err": err}


def commit(vault: Vault, *arguments: str) -> tuple[int, str]:
    done = vault.run("commit", "-q", "-m", "by hand", *arguments, check=False)
    return done.returncode, done.stderr.decode()


def hook_of(vault: Vault) -> Path:
    return vault.root / ".git/hooks/pre-commit"


def test_a_staged_secret_is_refused_by_file_line_and_kind_and_never_shown(hooked: Vault) -> None:
    note = hooked.write("Notes/login page.md", f"Login\n\n{SECRET}")
    hooked.git("add", "-A")
    note.write_text("Login\n")  # what is staged counts, not what the file holds now
    head = hooked.head()
    code, err = commit(hooked)
    assert (code, hooked.head()) == (1, head)
    assert "'Notes/login page.md', line 3: a new secret is staged (password)" in err
    assert "git commit --no-verify" in err
    assert "swordfish" not in err
    hooked.git("add", "-A")
    assert commit(hooked) == (0, "")


@pytest.mark.slow
def test_only_new_secrets_refuse(hooked: Vault) -> None:
    note = hooked.write("Notes/login.md", SECRET)
    hooked.git("add", "-A")
    assert commit(hooked, "--no-verify")[0] == 0
    note.write_text(f"How to log in.\n{SECRET}")
    hooked.git("add", "-A")
    hooked.git("mv", "Notes/login.md", "Notes/moved.md")
    assert commit(hooked) == (0, "")
    hooked.write("Notes/moved.md", f"How to log in.\n{OTHER}")
    assert commit(hooked, "-a")[0] == 1


def test_a_commit_of_one_file_is_checked_alone_also_in_a_linked_worktree(hooked: Vault, tmp_path: Path) -> None:
    hooked.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Vault(tmp_path / "linked")
    for name in ("one.md", "two.md"):
        linked.write(name, "Nothing yet.\n")
    linked.git("add", "-A")
    linked.write("one.md", SECRET)
    code, err = commit(linked, "one.md")
    assert (code, "'one.md', line 1" in err) == (1, True)
    assert commit(linked, "two.md") == (0, "")


@pytest.mark.slow
def test_a_merge_is_refused_for_what_neither_side_had(hooked: Vault) -> None:
    hooked.write("a.md", "Begin.\n")
    hooked.git("add", "-A")
    commit(hooked, "--no-verify")
    here = hooked.git("branch", "--show-current")
    hooked.git("switch", "-q", "-c", "theirs")
    hooked.write("a.md", SECRET)
    commit(hooked, "-a", "--no-verify")
    hooked.git("switch", "-q", here)
    hooked.write("a.md", "Here.\n")
    commit(hooked, "-a", "--no-verify")
    hooked.run("merge", "-q", "theirs", check=False)
    hooked.write("a.md", f"Here.\n{SECRET}{OTHER}")
    hooked.git("add", "-A")
    code, err = commit(hooked)
    assert (code, err.count("a new secret"), "line 3" in err) == (1, 1, True)
    hooked.write("a.md", f"Here.\n{SECRET}")
    hooked.git("add", "-A")
    assert commit(hooked) == (0, "")


def test_the_first_commit_of_a_repository_is_checked(hooked: Vault, tmp_path: Path) -> None:
    new = Vault(tmp_path / "new")
    new.write("a.md", SECRET)
    new.git("init", "-q")
    shutil.copy(hook_of(hooked), hook_of(new))
    new.git("add", "-A")
    assert commit(new)[0] == 1


@pytest.mark.parametrize("command", ["/nowhere/quaid", "false"])
def test_a_quaid_that_is_gone_or_broken_lets_the_commit_pass_and_is_told(hooked: Vault, command: str) -> None:
    hook = hook_of(hooked)
    ours = commit_hook.find(hooked.root).command
    hook.write_text(hook.read_text().replace(ours, command))
    hooked.write("a.md", SECRET)
    hooked.git("add", "-A")
    code, err = commit(hooked)
    assert (code, "not checked for secrets" in err) == (0, True)
    with hooked.memory() as memory:
        (found,) = check_git_hook(memory)
        assert (found.level, found.next_step) == ("warning", "quaid install git-hook")
        assert typed(hooked, "install")["changed"]
        assert next(check_git_hook(memory)).level == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_hook_of_the_owner_is_left_alone_and_can_call_quaid(vault: Vault, is_elsewhere: bool) -> None:
    with vault.memory():
        pass
    hook = vault.write("my hooks/pre-commit" if is_elsewhere else ".git/hooks/pre-commit", "#!/bin/sh\necho mine >&2\n")
    hook.chmod(0o755)
    if is_elsewhere:
        vault.git("config", "core.hooksPath", "my hooks")
    before = hook.read_text()
    refused = typed(vault, "install")
    assert (refused["code"], refused["error"]["code"], hook.read_text()) == (1, "hook_taken", before)
    line = refused["error"]["message"].partition("beginning: ")[2]
    hook.write_text(before.replace("\n", f"\n{line}\n", 1))
    assert (typed(vault, "install")["changed"], typed(vault, "uninstall")["code"]) == (False, 1)
    vault.write("a.md", SECRET)
    vault.git("add", "a.md")
    assert commit(vault)[0] == 1
    vault.write("a.md", "Nothing.\n")
    vault.git("add", "a.md")
    assert commit(vault) == (0, "mine\n")


def test_a_folder_of_hooks_that_the_owner_chose_gets_none(vault: Vault) -> None:
    with vault.memory():
        pass
    vault.git("config", "core.hooksPath", "shared")
    assert typed(vault, "install")["error"]["code"] == "hook_taken"
    assert not (vault.root / "shared").exists()


def test_quaid_asks_no_hook_of_its_own_and_says_to_others_that_it_commits(hooked: Vault) -> None:
    hook = hook_of(hooked)
    ours = commit_hook.find(hooked.root).command
    hook.write_text(hook.read_text().replace(ours, "touch ran;"))
    with hooked.memory() as memory:
        memory.remember("Maya rides the green bicycle to work")
        assert hooked.git("log", "-1", "--format=%an") == "Quaid"
        assert not (hooked.root / "ran").exists()
        hook.write_text(f'#!/bin/sh\necho "${commit_hook.BY_QUAID}" > .git/seen\n')
        hooked.accept()
        memory.remember("Maya waters the tomatoes on Mondays")
    assert (hooked.root / ".git/seen").read_text() == "1\n"


def test_what_is_set_up_is_removed(hooked: Vault) -> None:
    assert not typed(hooked, "install")["changed"]
    assert typed(hooked, "install", "--project")["error"]["code"] == "usage"
    assert typed(hooked, "uninstall", "--dry-run")["changed"]
    assert hook_of(hooked).exists()
    assert typed(hooked, "uninstall")["changed"]
    assert not hook_of(hooked).exists()
    assert not typed(hooked, "uninstall")["changed"]


@pytest.mark.parametrize("words", [("install", "git-hook"), ("install", "cursor"), ("janitor", "install")])
def test_nothing_is_made_to_start_a_quaid_that_is_in_a_cache(
    vault: Vault, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with vault.memory():
        pass
    vault.accept()
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55")
    monkeypatch.setattr("sys.prefix", str(tmp_path / "uv" / "archive-v0" / "tliy2KKl"))
    code, _, err = quaid("--vault", str(vault.root), *words)
    assert (code, "uv tool install quaid" in err) == (2, True)
    assert not hook_of(vault).exists()
