"""Review: the janitor's questions, one card at a time. Each answer is applied at once; the next page can undo it."""

import re
from collections.abc import Mapping, Sequence
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
from quaid.redaction import admit
from quaid.vault import files, frontmatter, notes
from quaid.web.answer import Context, Form, go_to, own_address
from quaid.web.outcomes import describe_outcomes, message_key
from quaid.web.rendering import render_markdown, without_compared
from quaid.web.word_diff import Piece, diff_versions, mark_differences

REVIEW = "/review"
MAX_SIDES = 4
MAX_TURNS = 3
"""Turns of each side."""
MAX_ANSWERED = 50
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\]", re.MULTILINE)
_TITLE = re.compile(r"\A\s*# .*\n?")
_ASKED_BECAUSE = re.compile(
    r"^(?:(Asked because .*)|This is always asked\.|Quaid does not decide this alone\.)\n*", re.MULTILINE
)


def show_review(memory: Memory, request: Request) -> Context:
    """Return the question in the address, or the first open one, and the answers that had to wait."""
    answered = [question for question in list_questions(memory) if question.answer is not None][:MAX_ANSWERED]
    decisions = {question.key: memory.janitor.find_decision(question.key) for question in answered}
    return {
        "card": build_card(memory, request.query_params.get("question", "")),
        "answered": [
            {
                "question": question,
                "label": describe_outcomes(question)["choices"][question.answer],
                "remark": _describe_stranger(question, decisions[question.key]) if question.answer == "yes" else "",
            }
            for question in answered
        ],
    }


def list_questions(memory: Memory) -> list[Question]:
    """Return the visible questions that a button can answer."""
    return [question for question in memory.janitor.visible_questions() if is_answerable(question)]


def count_open(memory: Memory) -> int:
    """Return the number of open questions."""
    return sum(question.answer is None for question in list_questions(memory))


def answer_question(memory: Memory, form: Form, _: Request) -> str:
    """Apply an answer and return the way to the next question, on the page that the form was on."""
    found = [each for each in list_questions(memory) if each.key == form.get("key")]
    if not found:
        raise BadInputError("This question is not open any more. Go back and reload the page to see the open ones.")
    answer = form.get("answer", "")
    if answer not in found[0].answers:
        raise BadInputError(f"This question takes one of: {', '.join(found[0].answers)}.")
    written = memory.janitor.answer(found[0].rel_path, cast("Answer", answer), by_owner=True)[1]
    done = memory.janitor.carry_out_answers()
    message = message_key(found[0], answer)
    if written.left:
        message = "left"
    elif done is None or any(each.key == found[0].key for each in memory.janitor.open_questions()):
        message = "answer_waits"
    following = "".join(re.findall(r"\A[0-9a-f]{16}\Z", form.get("following", "")))
    there = (own_address(form.get("back", "")) or REVIEW).partition("?")[0]
    commit = done.commit if done is not None and done.commit else written.commit
    return go_to(f"{there}?{urlencode({'question': following})}" if following else there, message, commit)


# -- the card --------------------------------------------------------------------------------------------------------


def build_card(memory: Memory, wanted: str = "") -> Mapping[str, Any] | None:
    """Return the open question with the key `wanted`, else the first one; None if none is open.

    `sides` are the notes to compare, the differing words marked. `changes` are what a yes changes in texts, `diffs` in
    all its files. `remark` says why an answer may not do what it seems to. `is_gone` if `wanted` is not open any more.
    """
    pending = [question for question in list_questions(memory) if question.answer is None]
    if not pending:
        return None
    keys = [question.key for question in pending]
    place = keys.index(wanted) if wanted in keys else 0
    question, decision = pending[place], memory.janitor.find_decision(pending[place].key)
    edits = [  # of visible notes, without questions
        edit
        for edit in (decision.edits if decision else ())
        if not asks(edit.rel_path)
        and all(may_see(edit.rel_path, data or b"", memory.owners, memory.layout) for data in (edit.before, edit.after))
    ]
    described = {edit.rel_path: _describe_edit(memory, edit) for edit in edits}
    is_conflict = question.kind == CONFLICT
    other = "stays" if described else ""
    sides = [
        _make_side(
            memory, fact, letter if is_conflict else described[fact.path][0] if fact.path in described else other
        )
        for letter, fact in zip("ABCD", _list_facts(memory, question, decision), strict=False)
    ]
    sides += [
        {"reference": "", "text": admit(new).text, "label": "New wording"} for _, new, _ in described.values() if new
    ][:1]
    text = question.data.decode("utf-8", "replace")
    is_missing = is_conflict and len(sides) < len(question.choices)
    changed = [edit.rel_path for edit in edits if files.read_note(memory.root, edit.rel_path) != edit.before]
    remark = _describe_stranger(question, decision)
    if is_missing:
        remark = "One of the two notes is gone or has another name, so the next run closes this question."
    elif not remark and changed:
        remark = f"{changed[0]} has changed since you were asked. Quaid applies what still fits."
    branches = [decision.branch] if decision is not None and decision.branch is not None else []
    diffs = [(edit.rel_path, edit.before, edit.after) for edit in edits]
    diffs += [(f"{branch.folder}/{branch.path}", branch.before, branch.after) for branch in branches]
    outcomes = describe_outcomes(question)
    return {
        **outcomes,
        "question": question,
        "choices": {} if is_missing else outcomes["choices"],
        "place": place + 1,
        "total": len(pending),
        "previous": keys[place - 1],
        "following": keys[(place + 1) % len(keys)] if len(keys) > 1 else "",
        "is_gone": bool(wanted) and wanted not in keys,
        "asked": str(frontmatter.parse(text).fields.get("created") or ""),
        "because": "".join(_ASKED_BECAUSE.findall(text)[-1:]) or outcomes["because"],
        "why": _render_why(text, [side["text"] for side in sides]),
        "sides": [
            {**side, "pieces": pieces}
            for side, pieces in zip(sides, mark_differences([side["text"] for side in sides]), strict=True)
        ],
        "changes": [(path, pieces) for path, (_, _, pieces) in described.items() if pieces],
        "diffs": [(path, diff_versions(before, after)) for path, before, after in diffs],
        "remark": remark,
    }


def _list_facts(memory: Memory, question: Question, decision: Decision | None) -> list[Document]:
    """Return the facts that a question is about: of a conflict in the order of its boxes, else changed ones first."""
    ids = decision.facts if decision is not None and not question.choices else ()
    found = documents.find_called(memory.index(), question.about, ids)
    by_name, by_id = {note_name(each.path): each for each in found}, {each.id: each for each in found}
    named = [by_name.get(name) for name in question.choices or question.about]
    facts = dict.fromkeys(each for each in (*named, *map(by_id.get, ids)) if each and each.kind == Kind.FACT)
    return list(facts)[:MAX_SIDES]


def _make_side(memory: Memory, fact: Document, fate: str) -> dict[str, Any]:
    """Return a fact as a side of the card, with what supports it; `fate` is what becomes of it, or its letter."""
    use, times = memory.answers.records.strengths([fact.id]).get(fact.id, Use()), fact.confirmations
    last = f", last {notes.format_day(use.last_access)}" if use.last_access else ""
    properties = {
        "stated by": fact.speaker,
        "source": None if fact.speaker else fact.source,
        "learned": fact.created and notes.format_day(fact.created),
        "true since": fact.valid_from and notes.format_day(fact.valid_from),
        "true until": fact.valid_until and notes.format_day(fact.valid_until),
        "confidence": None if fact.confidence is None else f"{fact.confidence:.2f}",
        "confirmed": f"{times} time{'s' * (times != 1)}" if times else None,
        "used": f"{use.accesses} time{'s' * (use.accesses != 1)}{last}" if use.accesses else "never",
    }
    return {
        "reference": fact.id,
        "text": admit(documents.text_of(memory.index(), fact.doc_id)).text,
        "label": fate,
        "known": [(name, value) for name, value in properties.items() if value],
        "turns": list_cited(memory.index(), fact)[:MAX_TURNS],
    }


def _describe_edit(memory: Memory, edit: Edit) -> tuple[str, str, Sequence[Piece]]:
    """Return what an edit does to its note, the new wording of a fact, and the change of any other text or property."""
    is_fact = memory.layout.folder_kind(edit.rel_path) is Kind.FACT
    if edit.before is None or edit.after is None:
        pieces = [] if is_fact else diff_versions(edit.before, edit.after)
        return "would be forgotten" if edit.after is None else "would be written", "", pieces
    if not is_fact:
        return "would change", "", diff_versions(edit.before, edit.after)
    old, new = (notes.parse_fact(edit.rel_path, data) for data in (edit.before, edit.after))
    if new.superseded_by and not old.superseded_by:
        return "would be replaced", "", []
    if old.text != new.text:
        return "would be reworded", new.text, []
    return "would change", "", diff_versions(edit.before, edit.after)


def _render_why(text: str, shown: Sequence[str]) -> Markup:
    """Return the reason for a question: its note between title and boxes, without the texts of the sides."""
    body = _ASKED_BECAUSE.sub("", _TITLE.sub("", frontmatter.parse(text).body))
    box = _BOX.search(body)
    why = body[: box.start()] if box else body
    if shown:
        why = without_compared(why)
    return render_markdown("\n".join(line for line in why.splitlines() if line.strip("> ") not in shown))


def _describe_stranger(question: Question, decision: Decision | None) -> str:
    """Return why this machine cannot apply a yes; empty if it can. A conflict and a dispute have all it needs."""
    if decision is not None or question.kind in {CONFLICT, DISPUTE}:
        return ""
    return "Another machine has asked this. That machine applies a yes, or the next run here that finds the same."
