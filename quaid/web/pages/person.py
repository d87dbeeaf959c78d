"""What is known of an entity, for the page of its note: the portrait of a person, or the same frame for all else."""

from collections.abc import Sequence

from starlette.requests import Request

from quaid.index import documents
from quaid.index.documents import Document
from quaid.index.known import list_about
from quaid.index.scope import EVERYTHING
from quaid.janitor.questions import Question
from quaid.memory import Memory
from quaid.model import Kind, note_name
from quaid.text.endings import is_over, tell_days
from quaid.text.zones import local_now
from quaid.web import entities
from quaid.web.answer import Context, paginate
from quaid.web.outcomes import describe_outcomes
from quaid.web.templating import format_days

ROWS = 50
"""Facts on a page of the list of all."""
MAX_ABOUT = 3_000
MAX_IN_THEME = 6
MAX_RELATIONS = 30
MAX_UNCERTAIN = 20


def describe_entity(memory: Memory, entity: Document, questions: Sequence[Question], request: Request) -> Context:
    """Return what the page of `entity` shows of its facts; `questions` are those of the vault."""
    index, today = memory.index(), local_now(memory.settings.timezone).date().isoformat()
    keys, about = list_about(index, entity.path, MAX_ABOUT, EVERYTHING)
    facts = sorted((each for each in about if each.kind == Kind.FACT), key=entities.order_by_day, reverse=True)
    living = [fact for fact in facts if not is_over(fact, today)]
    edges = documents.fetch_edges(index, [fact.doc_id for fact in living])
    portrait: dict[str, list[Document]] = {theme: [] for theme in entities.THEMES}
    for fact in living:
        portrait[entities.find_theme(fact, edges.get(fact.doc_id, ()), today)].append(fact)
    relations = entities.list_relations(index, keys, facts, today)
    names = {note_name(each.path) for each in (*facts, entity)}
    asked = [each for each in questions if each.answer is None and not names.isdisjoint(each.about)]
    theme = request.query_params.get("theme", "")
    listed = portrait.get(theme, facts)
    part, pages = paginate(len(listed), request, ROWS)
    return {
        "portrait": [(key, title, portrait[key]) for key, title in entities.THEMES.items() if portrait[key]],
        "living": len(living),
        "max_in_theme": MAX_IN_THEME,
        "relations": relations[:MAX_RELATIONS],
        "drawing": entities.draw_around(entity, relations),
        "changes": entities.list_replacements(memory, facts),
        "others": entities.group_by_speaker(memory, living, keys),
        "uncertain": entities.list_doubts(index, living, asked)[:MAX_UNCERTAIN],
        "questions": [(question, describe_outcomes(question)["heading"]) for question in asked],
        "facts": [(fact, is_over(fact, today)) for fact in listed[part]],
        "theme": (theme, entities.THEMES[theme]) if theme in portrait else None,
        **pages,
        "describe_days": describe_days,
    }


def describe_days(fact: Document) -> str:
    """Return the days of a fact in words, else the day on which it was learned."""
    days = ", ".join(tell_days(fact)) or (f"learned {fact.created[:10]}" if fact.created else "")
    return format_days(days)
