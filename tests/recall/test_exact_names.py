"""A question that is the name of a note: the note goes first, and the rest of the answer stays."""

from __future__ import annotations

import pytest
from recall_index import ByWords, ask, embed, make_index, paths

LONG = "".join(f"## Part {n}\n\nThe {word} of the garden needs water.\n\n" for n, word in enumerate("abcdefgh"))
NOTES = {
    "own/Garden.md": f"---\naliases: [Plot nine]\n---\nWhere things grow.\n\n{LONG}",
    "own/roof.md": "---\ntitle: What grows on the roof?\n---\nThyme.\n",
    "facts/tomatoes.md": "---\nid: 01a\n---\nTom waters the garden in the evening.\n",
    "facts/fence.md": "---\nid: 01b\n---\nThe garden has a new fence.\n",
    "facts/boat.md": "---\nid: 01c\n---\nTom has a boat.\n",
}


@pytest.fixture(params=[None, ByWords()], ids=["words", "vectors"])
def embedder(request):
    return request.param


@pytest.fixture
def index(embedder):
    connection = make_index(NOTES)
    if embedder is not None:
        embed(connection, embedder)
    return connection


@pytest.mark.parametrize(("question", "path"), [
    ("Garden", "own/Garden.md"), ("garden?", "own/Garden.md"), ("[[Garden]]", "own/Garden.md"),
    ("plot NINE", "own/Garden.md"), ("What grows on the roof?", "own/roof.md"),
    ("what grows on the roof", "own/roof.md"),
])  # fmt: skip
def test_the_note_that_is_called_so_goes_first(index, embedder, question, path):
    answer = ask(index, question, embedder)
    assert paths(answer)[0] == path


def test_it_opens_with_its_beginning_and_does_not_hide_the_rest(index, embedder):
    answer = ask(index, "Garden", embedder, limit=8)
    assert answer.hits[0].text == "Where things grow."
    assert {"facts/tomatoes.md", "facts/fence.md"} <= set(paths(answer))


def test_no_score_leaves_its_range(index, embedder):
    for question in ("Garden", "garden fence", "Tom has a boat", "01a", "What grows on the roof?"):
        scores = [hit.score for hit in ask(index, question, embedder, limit=8).hits]
        assert scores
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)


def test_a_question_about_it_is_not_its_name(index, embedder):
    answer = ask(index, "who waters the garden?", embedder)
    assert paths(answer)[0] == "facts/tomatoes.md"
