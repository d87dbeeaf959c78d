"""Review: the janitor's questions as cards, both sides beside each other, and answers that are commits at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlencode

from markupsafe import Markup

from quaid.errors import BadInputError
from quaid.index import documents
from quaid.janitor.decision import CONFLICT, DISPUTE
from quaid.janitor.questions import Answer, Question, is_answerable
from quaid.janitor.runner import RunOptions
from quaid.janitor.vetoes import TASK, is_byproduct
from quaid.model import Kind, Use, note_name
from quaid.recall.provenance import CitedTurn, list_cited
from quaid.recall.visibility import may_see
from quaid.vault import files, frontmatter, notes
from quaid.vault.layout import Layout
from quaid.web.answer import go_to
from quaid.web.rendering import render_markdown, without_compared
from quaid.web.word_diff import Piece, diff_versions

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.index.documents import Document
    from quaid.janitor.decision import Decision
    from quaid.memory import Memory
    from quaid.model import Commit, Edit

MAX_CARDS = 20
"""Questions on the page; the others move up as these are answered."""
MAX_SIDES = 4
MAX_TURNS = 3
"""Turns that a side shows."""
MAX_ANSWERED = 50
MAX_LATER = 60
"""Questions that the address can put off."""
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\]", re.MULTILINE)
_TITLE = re.compile(r"\A\s*# .*\n?")


class Choice(NamedTuple):
    """An answer as a button, and the key that presses it."""

    answer: Answer
    label: str
    key: str


ANSWERS: Mapping[Answer, Choice] = {
    "yes": Choice("yes", "Accept", "a"),
    "no": Choice("no", "Refuse", "r"),
    "a": Choice("a", "A is true", "a"),
    "b": Choice("b", "B is true", "b"),
    "both": Choice("both", "Both are true", "o"),
    "neither": Choice("neither", "Neither is true", "n"),
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the notes that a question is about: what becomes of it, what is known of it and what was said."""

    reference: str
    text: str
    letter: str = ""
    fate: str = ""
    known: Sequence[tuple[str, str]] = ()
    turns: Sequence[CitedTurn] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """An open question. `texts` are the wordings that an acceptance changes, `diffs` all files of it; `remark` says why
    an answer may not do what it seems to.
    """

    question: Question
    asked: str
    why: Markup
    sides: Sequence[Side]
    choices: Sequence[Choice]
    texts: Sequence[tuple[str, list[Piece]]] = ()
    diffs: Sequence[tuple[str, list[Piece]]] = ()
    remark: str = ""
    later: str = ""
    following: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with an answer that no night has carried out yet; `commit` is None for a box ticked in an editor."""

    question: Question
    label: str
    commit: Commit | None = None
    remark: str = ""


@dataclass(slots=True)
class _Known:
    """What cards look up: documents by the names of their notes and by their ids, and how they were used."""

    named: dict[str, Document] = field(default_factory=dict)
    by_id: dict[str, Document] = field(default_factory=dict)
    uses: Mapping[str, Use] = field(default_factory=dict)


def show_review(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the open questions, the one that the address asks for first and those put off last, and what was answered
    and not carried out yet.
    """
    later = _read_later(request.query_params.get("later", ""))
    first = request.query_params.get("question", "")
    found = list_questions(memory)
    waiting = [question for question in found if question.answer is None]
    places = {key: place for place, key in enumerate(later)}
    waiting.sort(key=lambda question: (question.key != first, places.get(question.key, -1)))
    shown = waiting[:MAX_CARDS]
    decisions = {question.key: memory.janitor.find_decision(question.key) for question in found}
    known = _look_up(memory, shown, decisions)
    keys = [question.key for question in shown]
    following = [*keys[1:], keys[0] if len(keys) > 1 else ""]
    put_off = {key: ",".join([*(each for each in later if each != key), key][-MAX_LATER:]) for key in keys}
    return {
        "cards": [
            _make_card(memory, question, decisions[question.key], known, put_off[question.key], after)
            for question, after in zip(shown, following, strict=False)
        ],
        "more": len(waiting) - len(shown),
        "later": [key for key in later if key in decisions],
        "here": f"/review?{urlencode({'later': ','.join(later)})}" if later else "/review",
        "answered": list(_list_answered(memory, found, decisions))[:MAX_ANSWERED],
    }


def list_questions(memory: Memory) -> list[Question]:
    """Return the questions that may be seen and that a button can answer."""
    return [question for question in memory.janitor.visible_questions() if is_answerable(question)]


def count_open(memory: Memory) -> int:
    """Return how many questions wait for an answer."""
    return sum(question.answer is None for question in list_questions(memory))


def answer_question(memory: Memory, form: Mapping[str, str], _: Request) -> str:
    """Commit an answer and return the way to the next question.

    Raises:
        BadInputError: the question is not there any more, or takes other answers.
    """
    found = [each for each in list_questions(memory) if each.key == form.get("key")]
    if not found:
        raise BadInputError("This question is not asked any more. See what is: go back and reload the page.")
    if form.get("answer") not in found[0].answers:
        raise BadInputError(f"This question takes one of: {', '.join(found[0].answers)}.")
    written = memory.janitor.answer(found[0].rel_path, cast("Answer", form["answer"]), by_owner=True)[1]
    later = ",".join(_read_later(form.get("later", "")))
    following = "".join(_read_later(form.get("following", ""))[:1])
    there = f"/review?{urlencode({'later': later})}" if later else "/review"
    said = "left" if written.left else "answered"
    return go_to(f"{there}#q-{following}" if following else there, said, written.commit)


def carry_out_answers(memory: Memory, _: Mapping[str, str], __: Request) -> str:
    """Have the janitor do what was answered, and return the way to that night.

    Raises:
        LockedError, JanitorStoppedError, LeaseHeldError: nothing was done.
    """
    report = memory.janitor.run(RunOptions(tasks=("resolve",), only_answers=True))
    return go_to(f"/nights/{report.run}", "carried_out" if report.commit else "nothing_to_carry_out")


def _read_later(given: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\b[0-9a-f]{16}\b", given)))[:MAX_LATER]


# -- cards -----------------------------------------------------------------------------------------------------------


def _make_card(
    memory: Memory, question: Question, decision: Decision | None, known: _Known, later: str, following: str
) -> Card:
    edits = list(_list_edits(memory, decision))
    fates = {edit.rel_path: _tell_fate(edit) for edit in edits}
    sides = [
        Side(
            document.id,
            documents.text_of(memory.index(), document.doc_id, None),
            letter if question.kind == CONFLICT else "",
            "" if question.kind == CONFLICT else fates.get(document.path, "stays") if edits else "",
            list(_tell_known(document, known.uses.get(document.id, Use()))),
            list_cited(memory.index(), document)[:MAX_TURNS],
        )
        for letter, document in zip("ABCD", _list_sides(question, decision, known), strict=False)
    ]
    branches = [decision.branch] if decision is not None and decision.branch is not None else []
    is_gone = question.kind == CONFLICT and len(sides) < len(question.choices)
    text = question.data.decode("utf-8", "replace")
    return Card(
        question,
        str(frontmatter.parse(text).fields.get("created") or ""),
        _render_why(text, [side.text for side in sides]),
        sides,
        [] if is_gone else [ANSWERS[answer] for answer in question.answers],
        [(edit.rel_path, pieces) for edit in edits if (pieces := _diff_text(memory, edit))],
        [(edit.rel_path, diff_versions(edit.before, edit.after)) for edit in edits]
        + [(f"{branch.folder}/{branch.path}", diff_versions(branch.before, branch.after)) for branch in branches],
        "One of the two notes is gone or has another name, so the next night closes this question."
        if is_gone
        else _tell_doubt(memory, question, decision, edits),
        later,
        following,
    )


def _look_up(memory: Memory, shown: Sequence[Question], decisions: Mapping[str, Decision | None]) -> _Known:
    names = {name for question in shown for name in question.about}
    ids = {fact for question in shown if (decision := decisions[question.key]) for fact in decision.facts}
    index = memory.index()
    paths = documents.list_called(index, names)
    found = documents.find_documents(
        index,
        "path IN (SELECT value FROM json_each(?)) OR id IN (SELECT value FROM json_each(?))",
        (json.dumps(paths), json.dumps(sorted(ids))),
    )
    by_id = {document.id: document for document in found}
    named = {note_name(document.path): document for document in found}
    return _Known(named, by_id, memory.answers.records().strengths(by_id))


def _list_sides(question: Question, decision: Decision | None, known: _Known) -> list[Document]:
    """The facts that a question is about: the one that stays first, of a conflict in the order of its boxes."""
    named = [known.named[name] for name in question.choices or question.about if name in known.named]
    others = [] if question.choices or decision is None else map(known.by_id.get, decision.facts)
    found = dict.fromkeys(document for document in (*named, *others) if document and document.kind == Kind.FACT)
    return list(found)[:MAX_SIDES]


def _list_edits(memory: Memory, decision: Decision | None) -> Iterator[Edit]:
    """The edits that an acceptance makes of notes that may be seen, without what only comes along."""
    owners, place = memory.owners, Layout.of(memory.settings.vault)
    for edit in decision.edits if decision else ():
        sides = (edit.before or b"", edit.after or b"")
        if not is_byproduct(edit.rel_path) and all(may_see(edit.rel_path, data, owners, place) for data in sides):
            yield edit


def _tell_fate(edit: Edit) -> str:
    if edit.after is None:
        return "would go"
    if edit.before is None:
        return "would be written"
    old, new = (notes.parse_fact(edit.rel_path, data) for data in (edit.before, edit.after))
    if new.superseded_by and not old.superseded_by:
        return "would be replaced"
    return "would be reworded" if old.text != new.text else "would change"


def _diff_text(memory: Memory, edit: Edit) -> list[Piece]:
    """What an edit does to what a fact says, or to all of another note; nothing where a fact goes."""
    layout = Layout.of(memory.settings.vault)
    if layout.folder_kind(edit.rel_path) is not Kind.FACT:
        return diff_versions(edit.before, edit.after)
    if edit.before is None or edit.after is None:
        return []
    return diff_versions(*(notes.parse_fact(edit.rel_path, data).text.encode() for data in (edit.before, edit.after)))


def _tell_known(document: Document, use: Use) -> Iterator[tuple[str, str]]:
    """Yield what speaks for a fact: who said it, when, how sure, how often it was said and used."""
    if document.speaker:
        yield "said by", document.speaker
    if document.source:
        yield "source", document.source
    if document.created:
        yield "learned", notes.format_day(document.created)
    if document.valid_from:
        yield "true since", document.valid_from
    if document.valid_until:
        yield "true until", document.valid_until
    if document.confidence is not None:
        yield "confidence", f"{document.confidence:.2f}"
    times = document.confirmations
    yield "said again", f"{times} time{'s' * (times != 1)}" if times else "never"
    last = f", last {notes.format_day(use.last_access)}" if use.last_access else ""
    yield "used", f"{use.accesses} time{'s' * (use.accesses != 1)}{last}" if use.accesses else "never"


def _render_why(text: str, shown: Sequence[str]) -> Markup:
    """What the note says between its title and its boxes, without the texts that the sides show."""
    body = _TITLE.sub("", frontmatter.parse(text).body)
    box = _BOX.search(body)
    said = body[: box.start()] if box else body
    if shown:
        said = without_compared(said)
    return render_markdown("\n".join(line for line in said.splitlines() if line.strip("> ") not in shown))


def _tell_doubt(memory: Memory, question: Question, decision: Decision | None, edits: Sequence[Edit]) -> str:
    if stranger := _tell_stranger(question, decision):
        return stranger
    changed = [edit.rel_path for edit in edits if files.read_note(memory.root, edit.rel_path) != edit.before]
    if changed:
        return f"{changed[0]} has changed since this was asked. What still fits is done, else the question stays."
    return ""


def _tell_stranger(question: Question, decision: Decision | None) -> str:
    """Why this machine cannot carry out an acceptance by itself. A conflict and a dispute say all of it themselves."""
    if decision is not None or question.kind in {CONFLICT, DISPUTE}:
        return ""
    return "Another machine has asked this: an acceptance is carried out there, or when a night here proposes it again."


# -- what was answered -----------------------------------------------------------------------------------------------


def _list_answered(
    memory: Memory, found: Sequence[Question], decisions: Mapping[str, Decision | None]
) -> Iterator[Answered]:
    """Yield the answered questions, each with the commit that an undo takes back."""
    answered = [(question, question.answer) for question in found if question.answer is not None]
    paths = {question.rel_path for question, _ in answered}
    commits = memory.git.log(paths=sorted(paths), limit=-1) if paths else []
    newest = {path: commit for commit in reversed(commits) for path in commit.files}
    saved = paths.difference(memory.git.uncommitted()) if paths else paths
    for question, answer in answered:
        commit = newest.get(question.rel_path) if question.rel_path in saved else None
        is_review = commit is not None and "review" in commit.trailers.get(TASK, ())
        remark = _tell_stranger(question, decisions[question.key]) if answer == "yes" else ""
        yield Answered(question, ANSWERS[answer].label, commit if is_review else None, remark)
