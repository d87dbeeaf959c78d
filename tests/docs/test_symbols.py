"""Pages are stale by the symbols that they name, in real repositories."""

import shutil

import pytest
from docs_repo import statuses

from quaid.docs.definitions import define_python
from quaid.docs.mentions import find_mentions
from quaid.docs.registry import Project

CLI = """import click

@click.group()
def cli():
    "Tools"

@cli.command()
@click.option("--count", default=3, help="How many")
@click.option("--short", is_flag=True)
def logs(count, short):
    "Show logs"
    print(count)

@cli.command()
@click.option("--limit", default=10)
def search(limit):
    "Search"
"""
LOGS = "# Logs\n\nSee what was asked.\n\nUse `logs --count 5` for five of them. `--short` cuts them.\n"
SEARCH = "# Search\n\n`tool search --limit 5` finds five.\n"


@pytest.fixture
def tool(repo):
    repo.write("tool/cli.py", CLI)
    repo.write("docs/logs.md", LOGS)
    repo.write("docs/search.md", SEARCH)
    repo.write("docs/tale.md", "# Tale\n\nOnce there was a log.\n")
    repo.commit("a tool")
    return repo


def test_a_new_default_makes_the_page_of_the_option_stale_and_no_other(tool, check):
    assert statuses(check())["docs/logs.md"] == "fresh"
    commit = tool.save("tool/cli.py", CLI.replace("default=3", "default=5"))
    found = check()
    assert (found["docs/logs.md"].status, found["docs/search.md"].status) == ("stale", "fresh")
    doubt = found["docs/logs.md"].doubts[0]
    assert (doubt.symbol, doubt.path, doubt.part) == ("logs --count", "tool/cli.py", "signature")
    assert (doubt.commit.id, doubt.line) == (commit, 5)
    assert doubt.sentence == "Use `logs --count 5` for five of them."
    assert found["docs/logs.md"].since.id == commit


def test_a_page_that_names_nothing_known_is_unknown(tool, check):
    assert statuses(check())["docs/tale.md"] == "no sources"


def test_another_body_alone_leaves_a_page_as_it_is(tool, check):
    tool.save("tool/cli.py", CLI.replace("print(count)", "print(count + 1)"))
    assert check()["docs/logs.md"].status == "fresh"


def test_a_new_option_is_a_weak_doubt_about_the_page_that_describes_its_siblings(tool, check):
    tool.save(
        "tool/cli.py", CLI.replace('@click.option("--short"', '@click.option("--since")\n@click.option("--short"')
    )
    found = check()
    assert [doubt.symbol for doubt in found["docs/logs.md"].doubts] == ["logs --since"]
    assert found["docs/logs.md"].status == "moved"
    assert found["docs/search.md"].doubts == ()


@pytest.mark.parametrize("source", ["tool/cli.py::logs", "tool/cli.py::logs --short", "--short", "cli.py::logs"])
def test_an_owner_names_symbols_as_sources(tool, check, source):
    tool.save("docs/tale.md", f"<!-- SOURCES: {source} -->\n# Tale\n\nOnce there was a log.\n")
    assert statuses(check())["docs/tale.md"] == "fresh"
    tool.save("tool/cli.py", CLI.replace('"--short", is_flag=True', '"--short", "-s", is_flag=True'))
    assert check()["docs/tale.md"].is_stale
    assert not check()["docs/tale.md"].problems


def test_a_symbol_that_is_not_there_is_named(tool, check):
    tool.save("docs/tale.md", "<!-- SOURCES: --nowhere -->\n# Tale\n")
    assert check()["docs/tale.md"].problems == ("its source --nowhere is not a file there",)


def test_what_every_page_names_says_little_about_one_of_them(tool, check):
    for number in range(12):
        tool.write(f"docs/page{number}.md", f"# Page {number}\n\nUse `--limit`.\n")
    tool.commit("pages")
    tool.save("tool/cli.py", CLI.replace("default=10", "default=20"))
    assert "stale" not in {status for doc, status in statuses(check()).items() if doc.startswith("docs/page")}


def test_what_moves_to_another_file_is_no_doubt(tool, check):
    tool.write("tool/more.py", CLI)
    tool.remove("tool/cli.py")
    tool.commit("another file")
    assert statuses(check())["docs/logs.md"] in {"fresh", "moved"}


def test_a_partial_clone_is_checked_as_far_as_it_goes_and_named_in_one_sentence(tool, vault, check, tmp_path):
    tool.save("tool/cli.py", CLI.replace("default=3", "default=5"))
    tool.git("config", "uploadpack.allowFilter", "true")
    tool.git("clone", "-q", "--filter=blob:none", tool.path.as_uri(), str(tmp_path / "partial"))
    tool.path.rename(tmp_path / "away")
    with vault.memory() as memory:
        memory.documentation.create(Project("partial", source_roots=(str(tmp_path / "partial"),)))
    found = {doc: one for doc, one in check().items() if doc.startswith("partial:")}
    problems = {problem for one in found.values() for problem in one.problems}
    assert len(problems) == 1
    assert "partial clone" in problems.pop()
    assert "stale" not in statuses(found).values()


@pytest.mark.skipif(shutil.which("ctags") is None, reason="universal-ctags is not installed")
def test_other_languages_are_read_with_ctags(repo, check):
    repo.write("lib/store.go", "package store\n\nfunc OpenStore(path string) error {\n\treturn nil\n}\n")
    repo.save("docs/store.md", "# Store\n\n`OpenStore` opens it.\n")
    repo.save("lib/store.go", "package store\n\nfunc OpenStore(path string, mode int) error {\n\treturn nil\n}\n")
    assert [doubt.symbol for doubt in check()["docs/store.md"].doubts] == ["store.OpenStore"]


@pytest.mark.skipif(shutil.which("ctags") is None, reason="universal-ctags is not installed")
def test_a_function_without_a_name_is_no_symbol(repo, check):
    code = "rows.map(function (row) {\n  row.payload = 1;\n  return row;\n});\nfunction openRows() {}\n"
    repo.write("lib/rows.js", code)
    repo.save("docs/rows.md", "# Rows\n\n`openRows` gives rows, each with a `payload`.\n")
    repo.save("lib/rows.js", f"// Rows.\n{code}".replace("= 1", "= 2"))
    assert check()["docs/rows.md"].doubts == ()


def test_a_changed_file_of_another_language_has_no_other_name(repo, check):
    repo.write("setup.cfg", "[tool]\nlimit = 1\n")
    repo.save("docs/tool.md", "# Tool\n\n<!-- SOURCES: setup.cfg -->\nSee `setup.cfg`.\n")
    repo.save("setup.cfg", "[tool]\nlimit = 2\n")
    assert [(doubt.symbol, doubt.part) for doubt in check()["docs/tool.md"].doubts] == [("setup.cfg", "signature")]


def test_names_are_found_in_rst_and_in_roles():
    text = "Facets\n======\n\nSee :func:`datasette.facets.load` and ``--facet``.\n\n.. autofunction:: app.run\n"
    assert {"datasette.facets.load", "load", "--facet", "app.run"} <= find_mentions("a.rst", text).keys()


def test_a_definition_holds_hashes_and_no_text_of_the_file():
    (found,) = define_python("a.py", b"TOKEN = 'sk-secret'\n").values()
    assert "secret" not in repr(found)
