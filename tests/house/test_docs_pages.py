"""The docs say what there is, and nothing that is not."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from command_line import parameters_of

from quaid import errors
from quaid.agents.hosts import HOSTS
from quaid.cli.app import COMMANDS
from quaid.config import list_settings
from quaid.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_settings_in_the_docs_are_those_that_exist():
    keys = {key for key, _ in list_settings(Settings())}
    text = page("docs/reference/settings.md")
    assert [key for key in keys if f"`{key}`" not in text] == []
    sections = "|".join(sorted({key.partition(".")[0] for key in keys if "." in key} - {"docs", "embedding"}))
    for path in PAGES:
        named = re.findall(
            rf"`(?:quaid config )?((?:{sections})\.[a-z_]+)(?: [^`]*)?`", path.read_text(encoding="utf-8")
        )
        unknown = {name for name in named if not any(key == name or key.startswith(f"{name}.") for key in keys)}
        files = {name for name in unknown if name.rpartition(".")[2] in {"py", "md", "db", "log", "json", "toml"}}
        assert path.name == "CHANGELOG.md" or unknown == files, path.name


def test_every_exit_code_is_in_the_docs():
    text = page("docs/reference/commands.md")
    classes = [
        found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.QuaidError)
    ]
    for code in {found.exit_code for found in classes} | {0, 3, 130}:
        assert re.search(rf"^\| *`?{code}`? *\|", text, re.MULTILINE), (
            f"docs/reference/commands.md does not explain exit code {code}"
        )


@pytest.mark.slow
def test_every_word_of_the_glossary_is_used():
    words = re.findall(r"\*\*([^*]+)\*\*", page("docs/reference/glossary.md"))
    files = [*(ROOT / "quaid").rglob("*.py"), *(ROOT / "quaid").rglob("*.sql"), *PAGES]
    texts = [path.read_text(encoding="utf-8").lower() for path in files if path.name != "glossary.md"]
    assert [word for word in words if not any(re.search(rf"\b{re.escape(word.lower())}", text) for text in texts)] == []


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


def test_what_the_docs_tell_to_type_exists():
    for name, words in ((path.name, words) for path in PAGES for words in typed_commands(path.read_text("utf-8"))):
        command = next((word for word in words if not word.startswith("-")), None)
        if command is None or not re.fullmatch(r"[a-z]+", command):
            continue
        assert command in COMMANDS, f"{name} tells to type quaid {command}"
        known = {
            option for parameter in parameters_of(command) for option in (*parameter.opts, *parameter.secondary_opts)
        }
        given = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)} - {"--help"}
        assert given <= known, f"{name}: quaid {command} has no {', '.join(sorted(given - known))}"


def test_links_between_pages_lead_somewhere():
    for path in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
        assert [target for target in targets if not (path.parent / target).exists()] == [], path.name


def test_links_of_the_pages_stay_inside_docs_so_that_the_site_has_them():
    for path in (path for path in PAGES if path.is_relative_to(ROOT / "docs")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text):
            linked = (path.parent / target).resolve()
            assert linked.is_file(), f"{path.name}: {target} is no page"
            assert linked.is_relative_to(ROOT / "docs"), f"{path.name}: name {target} in backticks instead"


def test_every_page_is_in_the_navigation_and_every_decision_in_its_list():
    if not (ROOT / "zensical.toml").exists():
        pytest.skip("the site is built in a checkout")
    nav = tomllib.loads(page("zensical.toml"))["project"]["nav"]
    listed = [
        entry
        for section in nav
        for value in section.values()
        for entry in ([value] if isinstance(value, str) else value)
    ]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.is_relative_to(ROOT / "docs")}
    decisions = {name for name in pages if name.startswith("decisions/2")}
    assert sorted(listed) == sorted(pages - decisions), "zensical.toml"
    titles = re.findall(r"\[([^\]]+)\]\((2[^)]+)\)", page("docs/decisions/index.md"))
    assert {f"decisions/{name}" for _, name in titles} == decisions, "docs/decisions/index.md"
    for title, name in titles:
        assert page(f"docs/decisions/{name}").startswith(f"# {' '.join(title.split())}\n"), name


def test_the_integrations_list_every_program_and_which_have_hooks():
    rows = re.findall(
        r"^\| ([^|]+) \| `([a-z-]+)` \| yes \| (?:(yes) )?\|", page("docs/integrations/index.md"), re.MULTILINE
    )
    have = {"claude-code", "openclaw"} | {name for name, host in HOSTS.items() if getattr(host, "hooks", None)}
    assert rows == [(host.title, name, "yes" if name in have else "") for name, host in HOSTS.items()]


WITHOUT_SOURCES = {"glossary.md"}
"""It names words, and no file of its own."""


def test_every_page_says_what_it_is_about_and_is_narrow():
    for path in PAGES:
        if "docs" not in path.parts[-3:-1] or "decisions" in path.parts or path.name in WITHOUT_SOURCES:
            continue
        found = re.fullmatch(r"<!-- SOURCES: (.+) -->", path.read_text(encoding="utf-8").split("\n")[1])
        assert found, f"the second line of {path.name} should be <!-- SOURCES: … -->"
        for source in found[1].split(", "):
            assert (ROOT / source).exists(), f"{path.name} is about {source}, which is not there"
            assert source not in {"quaid", "tests", "docs"}, f"{source} is too broad: every change would make it stale"


def test_prose_wraps_at_100_columns():
    for path in PAGES:
        prose = re.sub(r"(?ms)^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"))
        long = [line for line in prose.splitlines() if len(line) > 100 and not line.lstrip().startswith(("|", "<!--"))]
        assert [line for line in long if " " in line.strip()] == [], path.name


def test_the_readme_begins_with_two_commands():
    text = page("README.md")
    assert "pip install ." in text
    assert "quaid demo" in text
