"""PROJECT.md is data: it may have been written by a stranger, and names nothing into the open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from source_repos import SourceRepo
from vaults import Vault, refused

from quaid.cli.main import main
from quaid.docs import source_roots
from quaid.docs.registry import Project
from quaid.docs.source_roots import allow, allowed_roots

SECRET = "The safe opens with 4711."


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody with a home folder, a configuration and secrets."""
    home = tmp_path / "home"
    for name in (".ssh/notes.md", "Documents/diary.md", "code/shop/README.md", "code/.hidden/README.md"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Notes\n\n{SECRET}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("QUAID_CONFIG_DIR", str(tmp_path / "config"))
    return home


def write_project(vault: Vault, *written: str, entries: tuple[str, ...] = (), name: str = "odd") -> None:
    listed = "".join(f"\n  - '{root}'" for root in written)
    registered = "".join(f"\n  - '{entry}'" for entry in entries)
    vault.write(
        f"projects/{name}/PROJECT.md",
        f"---\ntype: project\npatterns: ['**/*']\nsource_roots: {listed or '[]'}\ndocuments: {registered or '[]'}\n---\n# Odd\n",
    )


def seen(vault: Vault) -> set[str]:
    """The files that are documents of the project, without those of its home."""
    with vault.memory() as memory:
        catalogue = memory.documentation.catalogue()
        for doc in catalogue.docs:
            memory.documentation.read(doc.id)
        memory.documentation.check()
        return {str(doc.file) for doc in catalogue.docs if doc.file.name != "PROJECT.md"}


def link_to_home(vault: Vault, home: Path) -> str:
    (vault.root / "projects" / "odd").mkdir(parents=True)
    (vault.root / "projects" / "odd" / "src").symlink_to(home / "Documents")
    return "projects/odd/src"


def borrow_history(vault: Vault, home: Path) -> str:
    """A folder of the vault whose .git points to a repository elsewhere."""
    SourceRepo(home / "code/private").save("README.md", SECRET)
    vault.write("away/.git", f"gitdir: {home}/code/private/.git\n")
    vault.write("away/README.md", "# Here\n")
    return "away"


ROOTS: dict[str, Callable[[Vault, Path], str]] = {
    "a folder of the owner's": lambda _, home: str(home / "Documents"),
    "from the home folder": lambda *_: "~/code/shop",
    "the home folder": lambda *_: "~",
    "what holds it": lambda _, home: str(home.parent),
    "everything": lambda *_: "/",
    "the system": lambda *_: "/etc",
    "processes": lambda *_: "/proc/self",
    "keys": lambda *_: "~/.ssh",
    "a hidden folder": lambda *_: "~/code/.hidden",
    "out of the vault": lambda *_: "../home/Documents",
    "around a corner": lambda *_: "projects/../../home/Documents",
    "a link": link_to_home,
    "the vault": lambda *_: ".",
    "git's folder": lambda *_: ".git",
    "git's folder by another name": lambda *_: "projects/../.git/info",
    "the state": lambda *_: ".quaid",
    "another one's home": lambda *_: "~nobody-at-all/code",
    "a name too long": lambda *_: "/" + "x" * 5000,
    "history from elsewhere": borrow_history,
}


@pytest.mark.matrix
@pytest.mark.parametrize("trick", ROOTS)
def test_a_root_that_nobody_allowed_is_not_read(vault, person, trick):
    vault.write(".git/info/notes.md", SECRET)
    vault.write_state("notes.md", SECRET)
    root = ROOTS[trick](vault, person)
    write_project(vault, root)
    assert seen(vault) == set()
    with vault.memory() as memory:
        ((name, told),) = memory.documentation.catalogue().refused
    assert name == "odd"
    assert told.problem


@pytest.mark.parametrize("root", ["/", "/etc", "/proc/self", "~", "~/.ssh", "~/code/.hidden"])
def test_what_is_never_a_root_cannot_be_allowed(vault, person, root):
    allow([Path(root).expanduser(), Path("/")])
    write_project(vault, root)
    assert seen(vault) == set()
    with vault.memory() as memory:
        refused(lambda: memory.documentation.create(Project("other", source_roots=(root,))))


@pytest.mark.matrix
@pytest.mark.parametrize("entry", [
    "README", "key.pem", ".env", ".git/config", ".git/info/notes.md", ".quaid/notes.md", "../home/Documents/diary.md",
    "/etc/hostname", "{home}/Documents/diary.md", "~/Documents/diary.md", "src/link.md", "src/linked/diary.md",
    "facts/private.md", "USER.md", "projects/../facts/private.md", "pipe.md", "folder.md", "src/.hidden.md",
    "quaid.toml", "./.git/info/notes.md",
])  # fmt: skip
def test_a_registered_entry_is_a_document_of_the_project_or_none(vault, person, entry):
    home = vault.root / "projects" / "odd" / "src"
    home.mkdir(parents=True)
    for name in (*("README", "key.pem", ".env", ".git/info/notes.md", "facts/private.md", "src/.hidden.md"),
                 *(f"projects/odd/src/{name}" for name in ("README", "key.pem", ".env", ".hidden.md"))):  # fmt: skip
        vault.write(name, SECRET)
    (home / "link.md").symlink_to(person / "Documents" / "diary.md")
    (home / "linked").symlink_to(person / "Documents")
    os.mkfifo(vault.root / "pipe.md")
    (vault.root / "folder.md").mkdir()
    write_project(vault, "projects/odd/src", entries=(entry.format(home=person),))
    assert seen(vault) == set()


def test_a_project_folder_that_is_a_link_is_none(vault, person):
    write_project(vault)
    (vault.root / "projects" / "away").symlink_to(person / "Documents")
    (person / "Documents" / "PROJECT.md").write_text("---\ntype: project\n---\n# Away\n")
    with vault.memory() as memory:
        assert [project.name for project in memory.documentation.projects()] == ["odd"]


def test_a_tracked_file_behind_a_link_is_none(vault, person):
    shop = SourceRepo(person / "code" / "shop")
    shop.save("docs/guide.md", "# Guide\n")
    allow([shop.path])
    write_project(vault, "~/code/shop")
    assert str(shop.path / "docs/guide.md") in seen(vault)
    (shop.path / "docs").rename(shop.path / "old")
    (person / "Documents" / "guide.md").write_text(SECRET)
    (shop.path / "docs").symlink_to(person / "Documents")
    assert not any("docs/guide.md" in path for path in seen(vault))


class TestConsent:
    def test_who_names_a_root_at_the_command_line_allows_it(self, vault, person):
        shop = person / "code" / "shop"
        assert main(["--vault", str(vault.root), "project", "create", "shop", "--root", str(shop)]) == 0
        assert allowed_roots() == (str(shop),)
        assert seen(vault) == {str(shop / "README.md")}

    def test_one_that_came_with_the_vault_is_named_with_the_next_step(self, vault, person, capsys):
        write_project(vault, "~/code/shop")
        for command in (["project", "list"], ["project", "show", "odd"], ["docs", "list"], ["doctor"]):
            main(["--vault", str(vault.root), *command])
            told = "".join(capsys.readouterr())
            assert "odd" in told
            if command != ["project", "list"]:
                assert "cannot be checked" in told
                assert "quaid project allow odd" in told
        assert main(["--vault", str(vault.root), "project", "allow", "odd"]) == 0
        assert seen(vault) == {str(person / "code/shop/README.md")}

    def test_what_the_config_says_besides_stays(self, vault, person):
        config = Path(os.environ["QUAID_CONFIG_DIR"]) / "config.toml"
        config.parent.mkdir(exist_ok=True)
        config.write_text("# mine\noffline = true\n\n[models]\nprovider = 'none' # no\n")
        allow([person / "code" / "shop"])
        allow([person / "code" / "shop"])
        assert allowed_roots() == (str(person / "code/shop"),)
        assert config.read_text().startswith("# mine\noffline = true\n")
        assert "provider = 'none' # no" in config.read_text()

    def test_what_lies_below_an_allowed_folder_is_allowed(self, vault, person):
        allow([person / "code"])
        write_project(vault, "~/code/shop")
        assert seen(vault) == {str(person / "code/shop/README.md")}

    def test_a_folder_of_the_vault_needs_no_word(self, vault):
        vault.write("projects/odd/src/GUIDE.md", "# Guide\n")
        write_project(vault, "projects/odd/src", name="other")
        (found,) = source_roots.check_roots(vault.root, ["projects/odd/src"])
        assert found.problem == ""
