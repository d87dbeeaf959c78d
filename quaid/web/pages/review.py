"""Review: the janitor's questions as cards, both sides next to each other; each answer is carried out at once."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request

from quaid.errors import BadInputError
from quaid.index import documents
from quaid.index.documents import Document
from quaid.janitor.decision import CONFLICT, DISPUTE
from quaid.janitor.questions import Answer, Question, is_answerable
from quaid.janitor.vetoes import asks
from quaid.local.runs import Decision
from quaid.memory import Memory
from quaid.model import Edit, Kind, Use, note_name
from quaid.recall.provenance import list_cited
from quaid.recall.visibility import may_see
from quaid.vault import files, frontmatter, notes
from quaid.web.answer import Context, Form, go_to
from quaid.web.rendering import render_markdown, without_compared
from quaid.web.word_diff import diff_versions

MAX_CARDS = 20
"""Questions on the page; the others move up as these are answered."""
MAX_SIDES = 4
MAX_TURNS = 3
"""Turns of each side."""
MAX_ANSWERED = 50
MAX_LATER = 60
"""Deferred questions in the address."""
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\]", re.MULTILINE)
_TITLE = re.compile(r"\A\s*# .*\n?")
_ANSWERS = {
    "yes": ("Accept", "a"),
    "no": ("Refuse", "r"),
    "a": ("A is true", "a"),
    "b": ("B is true", "b"),
    "both": ("Both are true", "o"),
    "neither": ("Neither is true", "n"),
}
ANSWERS = {answer: {"answer": answer, "label": label, "key": key} for answer, (label, key) in _ANSWERS.items()}
"""The answers as buttons, each with its key."""


def show_review(memory: Memory, request: Request) -> Context:
    """Return the open questions, the one in the address first and deferred ones last, and the answers that had to
    wait.
    """
    later = _read_keys(request.query_params.get("later", ""))
    first = request.query_params.get("question", "")
    found = list_questions(memory)
    pending = [question for question in found if question.answer is None]
    places = {key: place for place, key in enumerate(later)}
    pending.sort(key=lambda question: (question.key != first, places.get(question.key, -1)))
    shown = pending[:MAX_CARDS]
    decisions = {question.key: memory.janitor.find_decision(question.key) for question in found}
    index, names = memory.index(), {name for question in shown for name in question.about}
    ids = {fact for question in shown if (decision := decisions[question.key]) for fact in decision.facts}
    about = documents.find_documents(
        index,
        "path IN (SELECT value FROM json_each(?)) OR id IN (SELECT value FROM json_each(?))",
        (json.dumps(documents.list_called(index, names)), json.dumps(sorted(ids))),
    )
    notes_by_name, notes_by_id = {note_name(each.path): each for each in about}, {each.id: each for each in about}
    uses = memory.answers.records.strengths(notes_by_id)
    keys = [question.key for question in shown]
    following = [*keys[1:], keys[0] if len(keys) > 1 else ""]
    cards = []
    for question, after in zip(shown, following, strict=False):
        decision = decisions[question.key]
        named = [notes_by_name[name] for name in question.choices or question.about if name in notes_by_name]
        others = [] if question.choices or decision is None else map(notes_by_id.get, decision.facts)
        # The fact that stays comes first; the facts of a conflict are in the order of its boxes.
        sides = dict.fromkeys(each for each in (*named, *others) if each and each.kind == Kind.FACT)
        card = _make_card(memory, question, decision, list(sides)[:MAX_SIDES], uses)
        deferred = [*(key for key in later if key != question.key), question.key][-MAX_LATER:]
        cards.append({**card, "later": ",".join(deferred), "following": after})
    return {
        "cards": cards,
        "more": len(pending) - len(shown),
        "later": [key for key in later if key in decisions],
        "here": f"/review?{urlencode({'later': ','.join(later)})}" if later else "/review",
        "answered": [
            {
                "question": question,
                "label": ANSWERS[question.answer]["label"],
                "remark": _describe_stranger(question, decisions[question.key]) if question.answer == "yes" else "",
            }
            for question in found
            if question.answer is not None
        ][:MAX_ANSWERED],
    }


def list_questions(memory: Memory) -> list[Question]:
    """Return the visible questions that a button can answer."""
    return [question for question in memory.janitor.visible_questions() if is_answerable(question)]


def count_open(memory: Memory) -> int:
    """Return the number of open questions."""
    return sum(question.answer is None for question in list_questions(memory))


def answer_question(memory: Memory, form: Form, _: Request) -> str:
    """Carry out an answer and return the way to the next question."""
    found = [each for each in list_questions(memory) if each.key == form.get("key")]
    if not found:
        raise BadInputError("This question is not asked any more. See what is: go back and reload the page.")
    if form.get("answer") not in found[0].answers:
        raise BadInputError(f"This question takes one of: {', '.join(found[0].answers)}.")
    written = memory.janitor.answer(found[0].rel_path, cast("Answer", form["answer"]), by_owner=True)[1]
    done = memory.janitor.carry_out_answers()
    later = ",".join(_read_keys(form.get("later", "")))
    following = "".join(_read_keys(form.get("following", ""))[:1])
    there = f"/review?{urlencode({'later': later})}" if later else "/review"
    message = "left" if written.left else "answered"
    commit = done.commit if done is not None and done.commit else written.commit
    return go_to(f"{there}#q-{following}" if following else there, message, commit)


def _read_keys(given: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\b[0-9a-f]{16}\b", given)))[:MAX_LATER]


# -- cards -----------------------------------------------------------------------------------------------------------


def _make_card(
    memory: Memory,
    question: Question,
    decision: Decision | None,
    facts: Sequence[Document],
    uses: Mapping[str, Use],
) -> dict[str, Any]:
    """Return an open question.

    `texts` are the wordings that an acceptance changes, `diffs` all its files; `remark` says why an answer may not do
    what it seems to.
    """
    edits = [  # of visible notes, without questions
        edit
        for edit in (decision.edits if decision else ())
        if not asks(edit.rel_path)
        and all(may_see(edit.rel_path, data or b"", memory.owners, memory.layout) for data in (edit.before, edit.after))
    ]
    described = {edit.rel_path: _describe_edit(memory, edit) for edit in edits}
    is_conflict = question.kind == CONFLICT
    sides = [
        {
            "reference": document.id,
            "text": documents.text_of(memory.index(), document.doc_id, None),
            "letter": letter if is_conflict else "",
            "fate": described.get(document.path, ("stays",))[0] if edits and not is_conflict else "",
            "known": list(_list_properties(document, uses.get(document.id, Use()))),
            "turns": list_cited(memory.index(), document)[:MAX_TURNS],
        }
        for letter, document in zip("ABCD", facts, strict=False)
    ]
    branches = [decision.branch] if decision is not None and decision.branch is not None else []
    diffs = [(edit.rel_path, edit.before, edit.after) for edit in edits]
    diffs += [(f"{branch.folder}/{branch.path}", branch.before, branch.after) for branch in branches]
    is_gone = is_conflict and len(sides) < len(question.choices)
    changed = [edit.rel_path for edit in edits if files.read_note(memory.root, edit.rel_path) != edit.before]
    remark = _describe_stranger(question, decision)
    if is_gone:
        remark = "One of the two notes is gone or has another name, so the next night closes this question."
    elif not remark and changed:
        remark = f"{changed[0]} has changed since this was asked. What still fits is done, else the question stays."
    text = question.data.decode("utf-8", "replace")
    return {
        "question": question,
        "asked": str(frontmatter.parse(text).fields.get("created") or ""),
        "why": _render_why(text, [str(side["text"]) for side in sides]),
        "sides": sides,
        "choices": [] if is_gone else [ANSWERS[answer] for answer in question.answers],
        "texts": [(path, pieces) for path, (_, pieces) in described.items() if pieces],
        "diffs": [(path, diff_versions(before, after)) for path, before, after in diffs],
        "remark": remark,
    }


def _describe_edit(memory: Memory, edit: Edit) -> tuple[str, Sequence[Any]]:
    """Return what an edit does to its note, and the change of the statement of a fact, or of the whole of another note;
    nothing for a fact that is written or goes.
    """
    is_fact = memory.layout.folder_kind(edit.rel_path) is Kind.FACT
    pieces = [] if is_fact else diff_versions(edit.before, edit.after)
    if edit.before is None or edit.after is None:
        return "would go" if edit.after is None else "would be written", pieces
    old, new = (notes.parse_fact(edit.rel_path, data) for data in (edit.before, edit.after))
    if is_fact:
        pieces = diff_versions(old.text.encode(), new.text.encode())
    if new.superseded_by and not old.superseded_by:
        return "would be replaced", pieces
    return "would be reworded" if old.text != new.text else "would change", pieces


def _list_properties(document: Document, use: Use) -> Iterator[tuple[str, str]]:
    """Yield what supports a fact: its speaker, its dates, its confidence, how often it was confirmed and used."""
    times = document.confirmations
    last = f", last {notes.format_day(use.last_access)}" if use.last_access else ""
    properties = {
        "said by": document.speaker,
        "source": document.source,
        "learned": document.created and notes.format_day(document.created),
        "true since": document.valid_from,
        "true until": document.valid_until,
        "confidence": None if document.confidence is None else f"{document.confidence:.2f}",
        "said again": f"{times} time{'s' * (times != 1)}" if times else "never",
        "used": f"{use.accesses} time{'s' * (use.accesses != 1)}{last}" if use.accesses else "never",
    }
    return ((name, value) for name, value in properties.items() if value)


def _render_why(text: str, shown: Sequence[str]) -> Markup:
    """Return the note between its title and its boxes, without the texts of the sides."""
    body = _TITLE.sub("", frontmatter.parse(text).body)
    box = _BOX.search(body)
    why = body[: box.start()] if box else body
    if shown:
        why = without_compared(why)
    return render_markdown("\n".join(line for line in why.splitlines() if line.strip("> ") not in shown))


def _describe_stranger(question: Question, decision: Decision | None) -> str:
    """Return why this machine cannot apply an acceptance; empty if it can. A conflict and a dispute hold all of it."""
    if decision is not None or question.kind in {CONFLICT, DISPUTE}:
        return ""
    return "Another machine has asked this: an acceptance is carried out there, or when a night here proposes it again."
