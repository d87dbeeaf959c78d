"""What is known of an entity, for the page of its note: the portrait of a person, or the same frame for all else.

Its facts by theme, by relation and by who stated them, what replaced them, and what is uncertain.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import cos, pi, sin
from typing import Any

from starlette.requests import Request

from quaid.config import own_names
from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.index.known import list_about
from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING
from quaid.janitor.questions import Question
from quaid.local.claimed import OTHER_PERSON
from quaid.memory import Memory
from quaid.model import Kind, name_key, note_name
from quaid.recall.contradictions import list_opposed
from quaid.recall.hits import whose_word
from quaid.text.endings import is_coming, is_over, tell_days
from quaid.text.stop_words import read_lists
from quaid.text.words import find_words
from quaid.text.zones import local_now
from quaid.web.answer import Context, paginate
from quaid.web.changes import Row, list_changes, make_view
from quaid.web.outcomes import describe_outcomes, read_words
from quaid.web.templating import format_days, memory_path

ROWS = 50
"""Facts on a page of the list of all."""
MAX_ABOUT = 3_000
MAX_IN_THEME = 6
MAX_RELATIONS = 30
MAX_UNCERTAIN = 20
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


def describe_entity(memory: Memory, entity: Document, questions: Sequence[Question], request: Request) -> Context:
    """Return what the page of `entity` shows of its facts; `questions` are those of the vault."""
    index, today = memory.index(), local_now(memory.settings.timezone).date().isoformat()
    keys, about = list_about(index, entity.path, MAX_ABOUT, EVERYTHING)
    facts = sorted((each for each in about if each.kind == Kind.FACT), key=order_by_day, reverse=True)
    living = [fact for fact in facts if not is_over(fact, today)]
    edges = documents.fetch_edges(index, [fact.doc_id for fact in living])
    portrait: dict[str, list[Document]] = {theme: [] for theme in THEMES}
    for fact in living:
        portrait[find_theme(fact, edges.get(fact.doc_id, ()), today)].append(fact)
    relations = list_relations(index, keys, facts, today)
    names = {note_name(each.path) for each in (*facts, entity)}
    asked = [each for each in questions if each.answer is None and not names.isdisjoint(each.about)]
    theme = request.query_params.get("theme", "")
    listed = portrait.get(theme, facts)
    part, pages = paginate(len(listed), request, ROWS)
    return {
        "portrait": [(key, title, portrait[key]) for key, title in THEMES.items() if portrait[key]],
        "living": len(living),
        "max_in_theme": MAX_IN_THEME,
        "relations": relations[:MAX_RELATIONS],
        "drawing": draw_around(entity, relations),
        "changes": list_replacements(memory, facts),
        "others": group_by_speaker(memory, living, keys),
        "uncertain": list_doubts(index, living, asked)[:MAX_UNCERTAIN],
        "questions": [(question, describe_outcomes(question)["heading"]) for question in asked],
        "facts": [(fact, is_over(fact, today)) for fact in listed[part]],
        "theme": (theme, THEMES[theme]) if theme in portrait else None,
        **pages,
        "describe_days": describe_days,
    }


def describe_days(fact: Document) -> str:
    """Return the days of a fact in words, else the day on which it was learned."""
    days = ", ".join(tell_days(fact)) or (f"learned {fact.created[:10]}" if fact.created else "")
    return format_days(days)


# -- the parts of the page -------------------------------------------------------------------------------------------


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
    names = {fact.superseded_by for fact in facts if fact.superseded_by}
    found = documents.find_called(memory.index(), names, names)
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
