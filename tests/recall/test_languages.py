"""A question in another language than the memory: its meaning decides, and of its words only names and numbers count."""

from __future__ import annotations

import pytest
from recall_index import NOW, ByWords, ask, make_index, paths

from quaid.recall.query import list_shared_words, parse

SAFE = "รหัสเปิด ตู้นิรภัย คือ วันแต่งงาน ของเรา"
NOTES = {
    "facts/lock.md": "---\nid: 01a\n---\nMein Fahrrad steht im Keller, der Code vom Schloss ist das Alter der Katze.\n",
    "facts/safe.md": f"---\nid: 01b\n---\n{SAFE}\n",
    "facts/gift.md": "---\nid: 01c\n---\nMiriam bekommt von uns ein Service zur Hochzeit.\n",
}


class Understood(ByWords):
    """An embedder that takes a question for what `meant` says."""

    def __init__(self, meant: str) -> None:
        self.meant = meant

    def embed_query(self, text):
        return self.embed([self.meant])[0]


def first(question: str, meant: str, **more: str) -> str:
    embedder = Understood(meant)
    notes = NOTES | {f"facts/{name}.md": f"---\nid: {name}\n---\n{text}\n" for name, text in more.items()}
    index = make_index(notes, embedder)
    try:
        return paths(ask(index, question, embedder))[0]
    finally:
        index.close()


def test_a_word_that_another_language_spells_alike_does_not_outweigh_the_meaning() -> None:
    meant = f"{SAFE} der im"
    assert first("What is the code of the safe?", meant) == "facts/safe.md"


def test_it_counts_where_the_memory_has_the_language_of_the_question_too() -> None:
    safe = "The code of the safe is told by nobody, and this is what it is."
    assert first("What is the code of the safe?", f"{SAFE} {safe}", english=safe) == "facts/english.md"


def test_a_name_counts_in_every_language() -> None:
    assert first("What do we give to Miriam?", "ein der im Keller") == "facts/gift.md"


@pytest.mark.parametrize(("question", "words"), [
    ("When does Miriam open the winter tent in 2027?", ("miriam", "2027")),
    ("Где лежит файл redis и отчёт за Киев?", ("redis", "киев")), ("redis的端口是6379吗", ("redis", "端口", "6379")),
    ("Wo liegt der Bericht für köln?", ("bericht",)),
])  # fmt: skip
def test_words_that_are_shared_by_languages(question: str, words: tuple[str, ...]) -> None:
    shared = list_shared_words(parse(question, NOW))
    assert set(words) <= set(shared)
    assert not {word for word in set(shared) - set(words) if word.isascii() or word.upper() != word}
