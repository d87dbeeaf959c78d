"""The docs say what there is, and nothing that is not."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from quaid import errors
from quaid.cli.app import COMMANDS, build_group
from quaid.config import list_settings
from quaid.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def page(name):
    path = ROOT / name
    if not path.is_file():
        pytest.skip(f"{name} is not written yet")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_place_in_the_docs(name):
    assert re.search(rf"^#+ .*\bquaid {name}\b", page("docs/cli.md"), re.MULTILINE), (
        f"docs/cli.md has no heading for quaid {name}"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_the_docs(name):
    text = page("docs/cli.md")
    options = {
        option
        for parameter in build_group().get_command(None, name).params
        for option in parameter.opts
        if option.startswith("--")
    }
    assert sorted(option for option in options if option not in text) == []


@pytest.mark.parametrize("key", [key for key, _ in list_settings(Settings())])
def test_every_setting_is_in_the_docs(key):
    text = page("docs/cli.md")
    section, _, name = key.rpartition(".")
    tables = re.split(r"^\[(\w+)\]", text, flags=re.MULTILINE)
    in_table = any(
        part == section and re.search(rf"\b{name}\b", body)
        for part, body in zip(tables[1::2], tables[2::2], strict=True)
    )
    assert key in text or in_table, f"docs/cli.md does not name {key}"


def test_every_exit_code_is_in_the_docs():
    text = page("docs/cli.md")
    classes = [
        found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.QuaidError)
    ]
    for code in {found.exit_code for found in classes} | {0, 3, 130}:
        assert re.search(rf"^\| *`?{code}`? *\|", text, re.MULTILINE), f"docs/cli.md does not explain exit code {code}"


def words_of_the_glossary():
    path = ROOT / "docs" / "glossary.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return re.findall(r"\*\*([^*]+)\*\*", text) or [None]


@pytest.fixture(scope="module")
def everything():
    """All code and all other pages, in lower case."""
    files = [*(ROOT / "quaid").rglob("*.py"), *(ROOT / "quaid").rglob("*.sql"), *PAGES]
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.name != "glossary.md").lower()


@pytest.mark.parametrize("word", words_of_the_glossary())
def test_every_word_of_the_glossary_is_used(word, everything):
    if word is None:
        pytest.skip("docs/glossary.md is not written yet")
    assert re.search(rf"\b{re.escape(word.lower())}", everything), f"{word} is in the glossary and nowhere else"


def typed_commands(text):
    """Every `quaid …` in a code span or a session, as its words."""
    lines = re.findall(
        r"^(?:\$ |> )?((?:[A-Z_]+=\S+ )*quaid [^\n]*)",
        "\n".join(re.findall(r"```[^\n]*\n(.*?)```", text, re.DOTALL)),
        re.MULTILINE,
    )
    spans = re.findall(r"`(quaid [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for line in (*lines, *spans):
        for part in re.split(r"\s(?:\||&&|;|#|>)\s*", line):
            try:
                words = shlex.split(part)
            except ValueError:
                continue
            if words[:1] == ["quaid"] and len(words) > 1:
                yield words[1:]


@pytest.mark.parametrize("name", [path.relative_to(ROOT).as_posix() for path in PAGES] or ["README.md"])
def test_what_the_docs_tell_to_type_exists(name):
    group = build_group()
    for words in typed_commands(page(name)):
        command = next((word for word in words if not word.startswith("-")), None)
        if command is None or not re.fullmatch(r"[a-z]+", command):
            continue
        assert command in COMMANDS, f"{name} tells to type quaid {command}"
        known = {
            option
            for parameter in group.get_command(None, command).params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        given = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)} - {"--help"}
        assert given <= known, f"{name}: quaid {command} has no {', '.join(sorted(given - known))}"


LINKS = [(path.relative_to(ROOT).as_posix(), target) for path in PAGES
         for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL))]  # fmt: skip


@pytest.mark.parametrize(("name", "target"), LINKS or [("README.md", "README.md")])
def test_links_between_pages_lead_somewhere(name, target):
    if not ((ROOT / name).parent / target).exists():
        pytest.skip(f"{target}, which {name} points at, is not written yet")


WITHOUT_SOURCES = {"glossary.md"}
"""It names words, and no file of its own."""


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_every_page_says_what_it_is_about_and_is_narrow(path):
    if path.name in WITHOUT_SOURCES:
        return
    found = re.fullmatch(r"<!-- SOURCES: (.+) -->", path.read_text(encoding="utf-8").split("\n")[1])
    assert found, f"the second line of {path.name} should be <!-- SOURCES: … -->"
    for source in found[1].split(", "):
        assert (ROOT / source).exists(), f"{path.name} is about {source}, which is not there"
        assert source not in {"quaid", "tests", "docs"}, f"{source} is too broad: every change would make it stale"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_prose_wraps_at_100_columns(path):
    prose = re.sub(r"(?ms)^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"))
    long = [line for line in prose.splitlines() if len(line) > 100 and not line.lstrip().startswith(("|", "<!--"))]
    assert [line for line in long if " " in line.strip()] == []


def test_the_readme_begins_with_two_commands():
    text = page("README.md")
    assert "pip install ." in text
    assert "quaid demo" in text
