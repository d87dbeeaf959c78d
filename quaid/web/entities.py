"""The facts of an entity in order: by theme, by relation, by who stated them, what replaced them, what is uncertain."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import cos, pi, sin
from typing import Any

from quaid.config import own_names
from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING
from quaid.janitor.questions import Question
from quaid.local.claimed import OTHER_PERSON
from quaid.memory import Memory
from quaid.model import name_key, note_name
from quaid.recall.contradictions import list_opposed
from quaid.recall.hits import whose_word
from quaid.text.endings import is_coming, is_over
from quaid.text.stop_words import read_lists
from quaid.text.words import find_words
from quaid.web.changes import Row, list_changes, make_view
from quaid.web.outcomes import read_words
from quaid.web.templating import memory_path

THEMES = read_words("themes")
"""The themes in their order. themes.txt has the relations and words of each."""
MAX_CHANGES = 10
MAX_DRAWN = 10
"""Entities around the one in the middle of a drawing."""
LOW_CONFIDENCE = 0.75
_WIDTH, _HEIGHT = 560, 340
_BY_TYPE = {"preference": "tastes", "decision": "plans", "event": "events", "experience": "events"}
_SENTENCES = read_words("relations")
"""Relations whose words alone make no sentence."""
_LISTS = read_lists("themes.txt")
_WORDS, _RELATIONS = (
    {each: theme for theme in reversed(THEMES) for each in _LISTS.get(f"{theme}{ending}", "").split()}
    for ending in ("_words", "")
)
"""Word -> theme, and relation -> theme; the first theme that has one counts."""
_SPEAKERS = {OTHER_PERSON: "Another person", "agent": "An agent", "tool": "A tool", "import": "An import"}


def order_by_day(fact: Document) -> tuple[str, str]:
    """Return the key that sorts facts by the day since which they are true, or on which they were learned."""
    return (fact.valid_from or fact.created or "")[:10], fact.id


def find_theme(fact: Document, edges: Sequence[tuple[str, str, str]], today: str) -> str:
    """Return the theme of a fact: plans for what begins later, else that of its relation, its type or its words."""
    worded = [_WORDS[word] for word in find_words(fact.text) if word in _WORDS]
    if is_coming(fact, today):
        return "plans"
    named = [_RELATIONS[relation] for _, relation, _ in edges if relation in _RELATIONS]
    if "health" in (*named, *worded):
        return "health"
    typed = [_BY_TYPE[fact.type]] if fact.type in _BY_TYPE else []
    return next(iter([*typed, *named, *worded, "other"]))


def list_relations(
    index: IndexConnection, keys: Collection[str], facts: Sequence[Document], today: str
) -> list[dict[str, Any]]:
    """Return the relations of the entity that is called one of `keys` as sentences, those that hold first, each once
    with the newest of `facts` that states it.
    """
    stating = {fact.doc_id: fact for fact in facts}
    steps = [step for step in graph.neighbours(index, keys, limit=1_000) if step.doc_id in stating]
    types = graph.entity_types(index, {end for step in steps for end in (step.subject, step.object)})
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for step in sorted(steps, key=lambda step: order_by_day(stating[step.doc_id]), reverse=True):
        other = step.object if step.from_key == name_key(step.subject) else step.subject
        words = step.relation.replace("_", " ")
        if step.relation.endswith("_of"):
            words = f"is {'an' if words[0] in 'aeiou' else 'a'} {words}"
        relation = {
            "subject": step.subject,
            "relation": step.relation,
            "words": _SENTENCES.get(step.relation, words),
            "object": step.object,
            "name": other,
            "type": types.get(other, "other"),
            "has_page": other in types,
            "fact": stating[step.doc_id],
            "is_over": is_over(stating[step.doc_id], today),
        }
        found.setdefault((name_key(step.subject), step.relation, name_key(step.object)), relation)
    return sorted(found.values(), key=lambda relation: bool(relation["is_over"]))


def draw_around(entity: Document, relations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the places of the related entities around `entity` in a drawing; None if there are less than two."""
    others = {name_key(relation["name"]): relation for relation in reversed(relations)}
    shown = list(reversed(others.values()))[:MAX_DRAWN]
    nodes = []
    for place, relation in enumerate(shown):
        angle = 2 * pi * (place + 0.5) / len(shown) - pi / 2
        x, y = _WIDTH / 2 * (1 + 0.72 * cos(angle)), _HEIGHT / 2 * (1 + 0.74 * sin(angle)) - 8
        nodes.append({**relation, "x": round(x), "y": round(y)})
    middle = {"x": _WIDTH // 2, "y": _HEIGHT // 2 - 8, "name": entity.title, "type": entity.type or "other"}
    return {"width": _WIDTH, "height": _HEIGHT, "middle": middle, "nodes": nodes} if len(nodes) > 1 else None


def list_replacements(memory: Memory, facts: Sequence[Document]) -> list[Row]:
    """Return the facts that were replaced, the latest first, as changes to their successors."""
    names, index = {str(fact.superseded_by): fact for fact in facts if fact.superseded_by}, memory.index()
    where = f"d.path IN {documents.NAMES} OR d.id IN {documents.NAMES}"
    called = json.dumps(documents.list_called(index, names)), json.dumps(list(names))
    found = documents.find_documents(index, where, called, with_text=True)
    successors = {name: each for each in found for name in (note_name(each.path), each.id)}
    pairs = [(fact, after) for fact in facts if (after := successors.get(fact.superseded_by or ""))]
    pairs.sort(key=lambda pair: order_by_day(pair[1]), reverse=True)
    views = [
        make_view(after.text, order_by_day(after)[0], files={"": (before.text.encode(), after.text.encode())})
        for before, after in pairs[:MAX_CHANGES]
    ]
    rows = list_changes(memory, views)
    return [{**row, "address": memory_path(after.id)} for row, (_, after) in zip(rows, pairs, strict=False)]


def group_by_speaker(
    memory: Memory, facts: Sequence[Document], keys: Collection[str]
) -> list[tuple[str, list[Document]]]:
    """Return the facts that the owner of the memory has not stated, by who has; `keys` are those of the entity."""
    owner_keys = graph.with_aliases(memory.index(), own_names(memory.root, memory.settings))
    groups: dict[str, list[Document]] = defaultdict(list)
    for fact in facts:
        word = whose_word(fact.source, fact.speaker, owner_keys)
        if fact.owner not in memory.owners:
            groups[f"The memory of {fact.owner}"].append(fact)
        elif word == OTHER_PERSON and name_key(fact.speaker or "") in keys:
            groups[f"{fact.speaker}, in their own words"].append(fact)
        elif word != "owner":
            groups[(word == OTHER_PERSON and fact.speaker) or _SPEAKERS[word]].append(fact)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def list_doubts(
    index: IndexConnection, facts: Sequence[Document], asked: Sequence[Question]
) -> list[tuple[Document, list[str]]]:
    """Return the facts that are not certain, each with the reasons. `asked` are open questions about them."""
    own = {fact.doc_id for fact in facts}
    living = EVERYTHING.narrowed("d.kind = 'fact' AND d.superseded_by IS NULL")
    opposed: dict[int, set[int]] = defaultdict(set)
    for one, other in list_opposed(index, own, living) | graph.list_disputed(index):
        opposed[one].add(other)
        opposed[other].add(one)
    compared = own.union(*(opposed[one] for one in own & opposed.keys()))
    texts = {doc_id: each.text for doc_id, each in documents.read_documents(index, compared).items()}
    in_question = {name for question in asked for name in question.about}
    found = []
    for fact in (each for each in facts if not each.verified):
        others = [texts[other] for other in sorted(opposed[fact.doc_id] & texts.keys())]
        doubts = {
            **{f"contradicts “{text}”": True for text in others},
            "a question about it is open": not others and note_name(fact.path) in in_question,
            f"confidence {fact.confidence or 0:.2f}": fact.confidence is not None and fact.confidence < LOW_CONFIDENCE,
            "stated as a belief": fact.type == "belief",
            "stated by another person": fact.source == OTHER_PERSON,
            "nobody has reviewed it yet": fact.status == "pending",
        }
        if reasons := [reason for reason, applies in doubts.items() if applies]:
            found.append((fact, reasons))
    return found
