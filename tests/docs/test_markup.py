"""Documents of every markup are found, cut under their headings, and begin with prose, not with what surrounds it."""

from __future__ import annotations

import pytest
from source_repos import SourceRepo

from quaid.docs.chunks import parse_doc
from quaid.docs.markup import read_blocks, read_description, read_title
from quaid.docs.registry import Project


def passages(name, text):
    return parse_doc(f"p:{name}", "p", text.encode(), 2_000_000).passages


def shown(name, text):
    return "\n".join(passage.text for passage in passages(name, text))


def test_documents_of_every_markup_are_found_without_patterns(vault, tmp_path):
    repo = SourceRepo(tmp_path / "code")
    wanted = [
        "CHANGES.rst", "README.adoc", "docs/a.rst", "docs/deep/b.mdx", "documentation/c.md", "packages/one/README.md",
        "packages/two/docs/d.adoc", "src/web/README.rst",
    ]  # fmt: skip
    unwanted = [
        "docs/requirements.txt", "docs/conf.py", "node_modules/x/README.md", "src/notes.md", "tests/data/README.md",
        ".github/docs/e.md",
    ]  # fmt: skip
    for path in (*wanted, *unwanted):
        repo.write(path, "Words of it.\n")
    repo.commit("begin")
    with vault.memory() as memory:
        memory.documentation.create(Project("code", source_roots=(str(repo.path),)))
        found = memory.documentation.catalogue("code").docs
    assert sorted(doc.rel_path for doc in found if not doc.is_in_vault) == wanted


RST = """\
.. _settings:

========
Settings
========

|build| |docs|

.. |build| image:: https://example.org/build.svg

.. toctree::
   :maxdepth: 2

   one

Set them with :ref:`a file <config>`.

max_rows
~~~~~~~~

.. versionadded:: 1.2
   It was a constant.

.. code-block:: python
   :linenos:

   settings(max_rows=10)

.. autofunction:: load
.. a comment
   of two lines

Rows of a page::

    max_rows 100
"""


def test_restructured_text_has_headings_and_its_directives_are_no_passages():
    blocks = list(read_blocks("a.rst", RST.split("\n")))
    assert [(block.level, block.title) for block in blocks if block.kind == "heading"] == [
        (1, "Settings"), (2, "max_rows"),
    ]  # fmt: skip
    text = shown("a.rst", RST)
    for stays in ("Set them with", "It was a constant.", "settings(max_rows=10)", "Rows of a page", "max_rows 100"):
        assert stays in text
    for goes in (
        "_settings:",
        "toctree",
        "maxdepth",
        "|build|",
        "image::",
        "linenos",
        "autofunction",
        "a comment",
        "two lines",
    ):
        assert goes not in text
    chunks = parse_doc("p:a.rst", "p", RST.encode(), 2_000_000).chunks
    assert chunks[0].text == "Set them with a file."
    assert "Settings > max_rows" in [chunk.context for chunk in chunks]
    assert read_title("a.rst", RST) == "Settings"


def test_the_lines_of_a_block_are_those_of_the_document():
    lines = RST.split("\n")
    for block in read_blocks("a.rst", lines):
        if block.kind == "text" and "\n" not in block.text:
            assert block.text in lines[block.first - 1]


def test_anchors_and_directives_of_myst_are_no_passages():
    text = (
        "(setup)=\n# Setup\n\n```{toctree}\none\n```\n\n:::{note}\nRead this first.\n:::\n\n"
        "```{warning}\n:class: big\nIt deletes files.\n```\n\n```{eval-rst}\n.. automodule:: a\n```\n\n"
        "```python\nsetup()\n```\n\n```{code-block} python\nrun()\n```\n"
    )
    found = shown("a.md", text)
    for stays in ("# Setup", "Read this first.", "It deletes files.", "setup()", "run()"):
        assert stays in found
    for goes in ("(setup)=", "toctree", ":::", ":class:", "automodule"):
        assert goes not in found


def test_imports_and_components_of_mdx_are_no_passages():
    text = "import Tabs from '@theme/Tabs'\n\n# Setup\n\n<Tabs>\n<Card title=\"one\">\n\nRead this first.\n\n</Card>\n</Tabs>\n"
    assert shown("a.mdx", text) == "# Setup\n\nRead this first."
    assert read_description("a.mdx", text) == "Read this first."


def test_asciidoc_has_headings_and_its_attributes_are_no_passages():
    text = (
        "= Guide\n:toc: left\n\n[[intro]]\n== Intro\n\nIt counts rows.\n\n[source,ruby]\n----\n== no heading\n----\n\n"
        "// a comment\ninclude::more.adoc[]\n"
    )
    assert [block.title for block in read_blocks("a.adoc", text.split("\n")) if block.kind == "heading"] == [
        "Guide", "Intro",
    ]  # fmt: skip
    found = shown("a.adoc", text)
    assert "It counts rows." in found
    assert "== no heading" in found
    for goes in (":toc:", "[[intro]]", "[source", "a comment", "include::"):
        assert goes not in found


@pytest.mark.parametrize(("name", "text", "described"), [
    ("README.md", "# X\n\n[![a](b)](c) [![d](e)][f]\n\nX counts rows. It is quick.\n", "X counts rows."),
    ("README.md", ('<h1 align="center"><img src="x"></h1>\n\n[Docs](a) | [Blog](b) | [Chat](c)\n\n> Any color.\n\n'
                  "**X** counts [many rows](a), e.g. those of tables. Fast.\n"), "X counts many rows, e.g. those of tables."),
    ("README.md", "# X\n\n*A tool for counting rows*\n\nX counts rows.\n", "X counts rows."),
    ("README.md", "# X\n\nA tool for counting rows\n", "A tool for counting rows"),
    ("README.md", "(top)=\n# X\n\n:::{image} a.png\n:::\n\nX counts rows.\n", "X counts rows."),
    ("README.rst", ".. image:: a.svg\n   :target: b\n.. begin\n\n**X** is for `Rows\n<http://a.b/>`__ only.\n\nX\n=\n",
     "X is for Rows only."),
    ("README.adoc", "= X\n:toc:\nimage:a.svg[]\n\nX counts rows. More.\n", "X counts rows."),
    ("README.md", "# X\n\n![a](b)\n", ""),
])  # fmt: skip
def test_a_description_is_the_first_sentence_of_prose(name, text, described):
    assert read_description(name, text) == described


@pytest.mark.parametrize(("name", "text", "title"), [
    ("a.md", "# `llm logs` <img src=x>\n", "llm logs"),
    ("a.md", "Some words of prose.\n\n## Install\n", ""),
    ("a.md", "Some words of prose.\n\n# X\n", "X"),
    ("a.rst", ".. _x:\n\nX\n--\n\nWords.\n", "X"),
    ("a.adoc", "= The X\n", "The X"),
    ("a.md", "```\n# no\n```\n", ""),
])  # fmt: skip
def test_a_title_is_the_first_heading(name, text, title):
    assert read_title(name, text) == title
