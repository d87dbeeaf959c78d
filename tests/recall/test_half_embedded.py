"""While vectors are missing, recall finds at least what words alone find."""

from __future__ import annotations

import re
from zlib import crc32

import numpy as np
import pytest
from recall_index import ByWords, ask, everything, make_index, put

from quaid.index import vectors

THINGS = {
    "ladder": "shed", "passport": "drawer", "trumpet": "attic", "compass": "rucksack", "kettle": "cellar",
    "violin": "wardrobe", "tent": "garage", "anvil": "workshop", "globe": "study", "lantern": "porch",
    "easel": "studio", "sledge": "loft", "telescope": "balcony", "harpoon": "boathouse", "spinet": "parlour",
    "abacus": "classroom", "brazier": "courtyard", "cleaver": "kitchen", "dulcimer": "chapel", "flute": "bureau",
    "gavel": "courtroom", "hammock": "orchard", "icon": "niche", "jigsaw": "nursery",
}  # fmt: skip
OTHERS = "who was it that said the thing is kept and where, said {} of the {} we all know"
DEPTHS = (1, 5, 10)


class ByManyWords(ByWords):
    """The same in so many dimensions that no two words share one."""

    fingerprint, dimension = "by-many-words", 4096

    def embed(self, texts):
        made = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in re.findall(r"[a-z0-9]+", text.lower()):
                row[crc32(word.encode()) % self.dimension] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)


@pytest.fixture(scope="module")
def half_embedded():
    """An index of notes with an answer each and of twice as many that look like the questions."""
    connection = make_index({})
    for number, (thing, place) in enumerate(THINGS.items()):
        put(connection, f"own/{thing}.md", f"{thing} {place} repaired by Tom last winter, wrapped in {number} cloths\n")
        for n in range(2):
            put(connection, f"own/{number} {n}.md", f"{OTHERS.format(number, n)} the {place}\n")
    yield connection
    connection.close()


def embed_part(connection, share, embedder, *, newest=False):
    """Embed `share` per cent of the chunks: those that are embedded first, or those put in last."""
    known = vectors.list_embedders(connection)
    row = known[0] if known else vectors.use_embedder(connection, embedder.fingerprint, embedder.dimension, {})
    chunk_ids = [chunk_id for (chunk_id,) in connection.execute("SELECT chunk_id FROM chunks")]
    vectors.remove(connection, chunk_ids)
    connection.execute("UPDATE chunks SET embedded = 'pending'")
    count = len(chunk_ids) * share // 100
    pending = vectors.list_pending(connection, len(chunk_ids) if newest else count)
    first = sorted(pending, reverse=True)[:count] if newest else pending
    made = embedder.embed([text for _, _, text in first])
    found = [(i, key, v.astype("<f4").tobytes()) for (i, key, _), v in zip(first, made, strict=True)]
    vectors.insert(connection, row, found)


def count_right(connection, **how):
    """For each depth: how many questions have their note among the first so many hits."""
    right = [0, 0, 0]
    for thing in THINGS:
        hits = ask(connection, f"where is the {thing} that we kept", ByManyWords(), limit=10, **how).hits
        found = [hit.path == f"own/{thing}.md" for hit in hits]
        right = [count + any(found[:depth]) for count, depth in zip(right, DEPTHS, strict=True)]
    return right


@pytest.mark.parametrize("newest", [False, True], ids=["spread", "newest"])
@pytest.mark.parametrize("share", [0, 5, 25, 50, 75, 95, 100])
def test_recall_is_never_below_search(half_embedded, share, newest):
    embed_part(half_embedded, share, ByManyWords(), newest=newest)
    by_words, found = count_right(half_embedded, keyword_only=True), count_right(half_embedded)
    assert all(mine >= theirs for mine, theirs in zip(found, by_words, strict=True)), (found, by_words)


def test_an_answer_without_a_vector_is_not_cut_for_its_words_alone(half_embedded):
    connection = make_index({
        "own/a.md": "The lantern, the lantern and again the lantern on the porch.\n",
        "own/b.md": "Of the many things that were moved to the boathouse last winter by Tom, one was also a lantern, "
        "which nobody has looked at since and which is to be repaired before the summer begins.\n",
    })  # fmt: skip
    embed_part(connection, 0, ByManyWords())
    assert [hit.path for hit in ask(connection, "lantern", ByManyWords()).hits] == ["own/a.md", "own/b.md"]
    connection.close()


def test_a_chunk_scores_alike_with_and_without_a_vector():
    """Of twins, the one that was embedded is no better and no worse than the one that was not."""
    text = "The lantern is kept on the porch of the house{}\n"
    connection = make_index({f"own/{n}.md": text.format("." * n) for n in range(1, 9)})
    embed_part(connection, 50, ByManyWords())
    hits = ask(connection, "where is the lantern", ByManyWords(), everything()).hits
    assert max(hit.score for hit in hits) < 1.25 * min(hit.score for hit in hits)
    connection.close()
