"""Words by which a question means a relation: `works_at` is meant by "job". They guide the walk through the graph.

A relation that is not here is meant by its own words. Compared without their endings, so that `worked` is `work`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_ENDINGS = ("ing", "ed", "es", "s", "e")
_SHORTEST = 3

_EDGE_WORDS: Mapping[str, str] = {
    "allergic_to": "allergy allergies eat food",
    "attends": "school university college class study studies church",
    "born_in": "birthplace hometown native",
    "born_on": "birthday birth age old",
    "caused_by": "why because reason cause caused lead result",
    "colleague_of": "coworker colleague work team",
    "created": "make made build built write wrote author",
    "diagnosed_with": "illness disease condition sick health diagnosis",
    "friend_of": "friend buddy pal",
    "has_pet": "pet dog cat animal puppy kitten",
    "interested_in": "hobby interest like enjoy passion",
    "knows": "know met friend",
    "lives_in": "live lives home house city town address reside stay moved",
    "lives_at": "live lives home house city town address reside stay moved",
    "located_in": "where place city country",
    "manages": "boss manager lead team",
    "member_of": "member group club team band",
    "moved_from": "from before came origin hometown",
    "neighbor_of": "neighbor neighbour next door",
    "owns": "own have possess belong",
    "parent_of": "mother father mom mum dad parent child children son daughter kid family",
    "partner_of": "partner girlfriend boyfriend dating wife husband",
    "plays": "play game instrument sport",
    "prefers": "like likes favorite favourite prefer preference enjoy love",
    "dislikes": "dislike hate avoid",
    "related_to": "related family relative",
    "sibling_of": "brother sister sibling family",
    "spouse_of": "wife husband spouse married marry partner family",
    "studied_at": "study studied school university college degree",
    "traveled_to": "travel trip visit visited vacation holiday",
    "uses": "use tool software",
    "visited": "travel trip visit visited vacation holiday",
    "works_at": "work works job employer company office employed",
    "works_on": "work working project",
}


def stem(word: str) -> str:
    """What is compared of a word in lower case."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word.removesuffix(ending)
    return word


def stems(words: Collection[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


_STEMS = {relation: stems(words.split()) for relation, words in _EDGE_WORDS.items()}


def means(relation: str, asked: Collection[str]) -> bool:
    """Whether one of the stems `asked` triggers `relation`."""
    known = _STEMS.get(relation, frozenset())
    return not known.isdisjoint(asked) or any(
        stem(part) in asked for part in relation.split("_") if len(part) >= _SHORTEST
    )
