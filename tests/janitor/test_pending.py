"""A question names what its yes would replace, so that readers know before it is answered."""

from __future__ import annotations

from janitor_context import NOW, context_of
from janitor_facts import write_fact

from quaid.capture.facts import supersede
from quaid.janitor.questions import read_question, render_question
from quaid.local.runs import Decision
from quaid.model import Edit
from quaid.vault import frontmatter

OLD, NEW, OLDER = "The deposit is 600 euros.", "The deposit is 620 euros.", "The deposit is 500 euros."


def asked(vault, kind, edits):
    data = render_question(Decision("resolve", kind, "0" * 16, tuple(edits), "replace it", "It changed."), NOW, {})
    head = frontmatter.parse(data.decode()).fields
    return head.get("replaces"), head.get("with"), read_question("review/it.md", data)


def test_a_question_names_the_facts_that_a_yes_replaces_and_their_successor(vault):
    paths = [write_fact(vault, "old", OLD), write_fact(vault, "new", NEW)]
    older = write_fact(vault, "older", OLDER, superseded_by="[[old]]")
    with vault.memory() as memory:
        context = context_of(memory)
        edits = [supersede(path, context.read(path), paths[1], None) for path in (paths[0], older)]
    replaces, successor, question = asked(vault, "supersede", edits)
    assert (replaces, successor) == (["[[old]]"], "[[new]]")  # the older one is replaced already
    assert {"old", "new"} <= {*question.about}


def test_a_question_names_the_fact_that_a_yes_rejects(vault):
    path = write_fact(vault, "old", OLD)
    data = (vault.root / path).read_bytes()
    assert asked(vault, "reject", [Edit(path, data, None)])[:2] == (["[[old]]"], None)
    assert asked(vault, "dispute", [Edit(path, data, None)])[:2] == (["[[old]]"], None)


def test_a_merge_and_a_rewording_replace_nothing(vault):
    path = write_fact(vault, "old", OLD)
    data = (vault.root / path).read_bytes()
    replaced = supersede(path, data, "facts/new.md", None)
    assert asked(vault, "merge", [replaced])[:2] == (None, None)
    assert asked(vault, "rewrite", [Edit(path, data, data + b"\n")])[:2] == (None, None)
    assert asked(vault, "forget", [Edit(path, data, None)])[:2] == (None, None)  # it is unused, and not wrong
