"""What tools answer: shapes that are good to read as JSON, for many hosts show the model that and nothing else.

A field that does not apply is left out. All text from the vault is disarmed: it is data, and nobody's instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, cast

from mcp.types import CallToolResult, TextContent
from pydantic_core import to_json
from typing_extensions import TypedDict

from quaid.model import Commit, Edge, Hit, Recall
from quaid.text.quoting import MAX_TEXT, PREFACE, neutralise, render_memory_block

if TYPE_CHECKING:
    from quaid.capture.conversation_reader import BuiltPrompt
    from quaid.capture.extractor import ExtractResult
    from quaid.capture.writer import WriteResult
    from quaid.docs.search import DocHit
    from quaid.index.views import NoteView
    from quaid.report.stats import Stats

LONGEST_ANSWER = 20_000
"""Characters of memories in one answer; hosts cut or refuse much longer ones."""
LONGEST_NOTE = 20_000
LOW_SCORE = 0.6
"""Memories that score less than this on average are no good answer."""
SUPERSEDED = "[superseded]"

_DEGRADED = {
    "vectors": "vectors: found by words and graph only, not by meaning",
    "model": "model: the order is not a model's, none judged in time",
}

Shape = TypeVar("Shape", bound=Mapping[str, Any])
AnyHit = TypeVar("AnyHit", "Hit", "DocHit")


class Remembered(TypedDict):
    """A memory that was found. `date` is when it was said or written; `origin` whose word it is."""

    id: str
    text: str
    score: float
    kind: str
    date: NotRequired[str]
    origin: str
    speaker: NotRequired[str]
    session: NotRequired[str]
    turn: NotRequired[int]
    project: NotRequired[str]
    valid_from: NotRequired[str]
    valid_until: NotRequired[str]
    superseded: NotRequired[bool]
    pending: NotRequired[bool]
    said_times: NotRequired[int]
    contradicts: NotRequired[list[str]]
    related_through: NotRequired[list[str]]


class Recalled(TypedDict):
    """The memories that answer a question, best first; `warning` says why they may be no answer."""

    notice: str
    warning: NotRequired[str]
    degraded: NotRequired[list[str]]
    as_of: NotRequired[str]
    memories: list[Remembered]
    left_out: NotRequired[int]


class Note(TypedDict):
    """One note, or one turn of a conversation. `left_out` counts the characters that did not fit."""

    notice: str
    id: str
    kind: str
    path: str
    title: NotRequired[str]
    type: NotRequired[str]
    status: NotRequired[str]
    speaker: NotRequired[str]
    session: NotRequired[str]
    turn: NotRequired[int]
    date: NotRequired[str]
    valid_from: NotRequired[str]
    valid_until: NotRequired[str]
    superseded_by: NotRequired[str]
    confirmations: NotRequired[int]
    text: str
    edges: NotRequired[list[str]]
    left_out: NotRequired[int]


class Changed(TypedDict):
    """What a write did: `outcome` is created, confirmed, linked, known, forgotten, restored, made, registered or
    unchanged. `uncommitted` are files whose change is on disk but not in git, as their owner's own work is in them.
    """

    outcome: str
    id: str
    path: str
    text: NotRequired[str]
    commit: NotRequired[str]
    new_notes: NotRequired[list[str]]
    uncommitted: NotRequired[list[str]]
    secrets_removed: NotRequired[dict[str, int]]
    hint: NotRequired[str]


class Noted(TypedDict):
    """How many lines wait for the next extraction."""

    waiting: int


class LearnedFact(TypedDict):
    """A fact of a conversation: `outcome` is created, confirmed or known."""

    id: str
    text: str
    outcome: str


class NotKept(TypedDict):
    """A statement that was not kept, and why."""

    text: str
    reason: str


class Learned(TypedDict):
    """What was kept of a conversation and learned from it. Where `waiting` is true nothing was learned from some of it:
    `problem` says why, and `question` is the prompt for whoever will answer it.
    """

    session: str
    path: str
    turns: int
    new_turns: int
    waiting: bool
    facts: list[LearnedFact]
    names: NotRequired[list[str]]
    not_kept: NotRequired[list[NotKept]]
    secrets_removed: NotRequired[dict[str, int]]
    model: NotRequired[str]
    commit: NotRequired[str]
    problem: NotRequired[str]
    next_step: NotRequired[str]
    through: NotRequired[int]
    question: NotRequired[str]


class Change(TypedDict):
    """One commit that touched a note."""

    commit: str
    when: str
    author: str
    what: str
    task: NotRequired[str]


class History(TypedDict):
    """The commits that touched a note, newest first."""

    notice: str
    changes: list[Change]


class Numbers(TypedDict):
    """What the memory is made of. `waiting` counts conversations that nothing was learned from yet."""

    vault: str
    notes: int
    kinds: dict[str, int]
    types: dict[str, int]
    statuses: dict[str, int]
    speakers: dict[str, int]
    entities: int
    edges: int
    chunks: int
    embedded: int
    waiting: int
    oldest: NotRequired[str]
    newest: NotRequired[str]


def answer(shape: Mapping[str, Any], text: str | None = None) -> CallToolResult:
    """`shape` for hosts that read JSON, and for others `text`, or the same JSON on one line."""
    content = TextContent(type="text", text=text if text is not None else to_json(shape).decode())
    return CallToolResult(content=[content], structured_content=dict(shape))


def recalled(found: Recall, more: Sequence[str] = ()) -> CallToolResult:
    """An answer with what its reader must know of it; `more` are sentences about what was missing."""
    hits = fitting(found.hits, MAX_TEXT)
    warning, degraded = warn(found), [*list_degraded(found), *more]
    shape = bare(Recalled(
        notice=PREFACE,
        warning=warning,
        degraded=degraded,
        as_of=_as_of(found),
        memories=[remembered(hit) for hit in hits],
        left_out=len(found.hits) - len(hits),
    ))  # fmt: skip
    remarks = [f"({remark})" for remark in (warning, *degraded) if remark]
    block = render_memory_block([*hits], longest=2 * LONGEST_ANSWER)
    return answer(shape, "\n".join([*remarks, block]).strip())


def remembered(hit: Hit) -> Remembered:
    text = hit.text if len(hit.text) <= MAX_TEXT else f"{hit.text[:MAX_TEXT].rstrip()} …"
    return bare(Remembered(
        id=line(hit.id),
        text=f"{SUPERSEDED} {neutralise(text)}" if hit.superseded else neutralise(text),
        score=round(hit.score, 2),
        kind=hit.kind,
        date=day(hit.created),
        origin=hit.provenance,
        speaker=line(hit.speaker),
        session=line(hit.session) if hit.kind == "turn" else "",
        turn=hit.turn or 0,
        project=line(hit.project),
        valid_from=day(hit.valid_from),
        valid_until=day(hit.valid_until),
        superseded=hit.superseded,
        pending=hit.status == "pending",
        said_times=hit.stands_for if hit.stands_for > 1 else 0,
        contradicts=list(hit.contradicts),
        related_through=[line(name) for name in hit.via],
    ))  # fmt: skip


def warn(found: Recall) -> str:
    """Why an answer may be none, and what to do about it; empty when it looks good."""
    if not found.hits:
        return (
            "Nothing relevant was found. Ask again with names, other words or no dates; else say that you do not know."
        )
    average = sum(hit.score for hit in found.hits) / len(found.hits)
    if found.doubt is None and average >= LOW_SCORE:
        return ""
    why = found.doubt or f"the memories score {average:.2f} on average"
    return (
        f"In doubt: {why}. These may not answer the question; ask again with names and topics before relying on them."
    )


def list_degraded(found: Recall) -> list[str]:
    """One sentence for each thing that was missing."""
    told = [str(sentence) for sentence in cast("Sequence[object]", found.trace.get("degraded", ()))]
    named = {sentence.partition(":")[0]: sentence for sentence in told}
    return [line(named.get(name) or _DEGRADED.get(name, name)) for name in found.degraded]


def note(view: NoteView) -> CallToolResult:
    document = view.document
    text = neutralise(view.text)
    shape = bare(Note(
        notice=PREFACE,
        id=line(document.id),
        kind=document.kind,
        path=line(document.path),
        title=line(document.title) if document.kind != "fact" else "",
        type=line(document.type),
        status=line(document.status),
        speaker=line(document.speaker),
        session=line(document.session),
        turn=view.turn or 0,
        date=day(document.created),
        valid_from=day(document.valid_from),
        valid_until=day(document.valid_until),
        superseded_by=line(document.superseded_by),
        confirmations=document.confirmations,
        text=text[:LONGEST_NOTE],
        edges=[render_edge(edge) for edge in view.edges],
        left_out=max(0, len(text) - LONGEST_NOTE),
    ))  # fmt: skip
    return answer(shape)


def changed(written: WriteResult) -> CallToolResult:
    shape = bare(Changed(
        outcome=written.outcome,
        id=line(written.id),
        path=line(written.path),
        text=line(written.text)[:MAX_TEXT],
        commit=written.commit or "",
        new_notes=[line(path) for path in written.created],
        uncommitted=[line(path) for path in written.left],
        secrets_removed=dict(Counter(written.redacted)),
        hint=written.hint or "",
    ))  # fmt: skip
    return answer(shape)


def learned(done: ExtractResult, posed: BuiltPrompt | None, next_step: str) -> CallToolResult:
    shape = bare(Learned(
        session=line(done.session),
        path=line(done.path),
        turns=done.turns,
        new_turns=done.new_turns,
        waiting=done.waiting,
        facts=[LearnedFact(id=fact.id, text=line(fact.text), outcome=fact.outcome) for fact in done.facts],
        names=[line(name) for name in done.entities],
        not_kept=[NotKept(text=line(item.text), reason=item.reason) for item in done.left_out],
        secrets_removed=dict(Counter(done.redacted)),
        model=line(done.model),
        commit=done.commit or "",
        problem=str(done.problem or ""),
        next_step=next_step,
        through=posed.through if posed else 0,
        question=posed.text if posed else "",
    ), keep=("facts", "waiting", "turns", "new_turns"))  # fmt: skip
    return answer(shape)


def history(commits: Sequence[Commit]) -> CallToolResult:
    changes = [
        bare(Change(
            commit=commit.id[:10],
            when=commit.when,
            author=line(commit.author),
            what=line(commit.subject),
            task=line(" ".join(commit.trailers.get("Quaid-Task", ()))),
        ))
        for commit in commits
    ]  # fmt: skip
    return answer(History(notice=PREFACE, changes=changes))


def numbers(stats: Stats, waiting: int) -> CallToolResult:
    known = {key: value for key, value in asdict(stats).items() if key in Numbers.__annotations__}
    counted = {key: {line(name): number for name, number in known[key].items()} for key in ("types", "speakers")}
    return answer(bare(cast("Numbers", {**known, **counted, "waiting": waiting}), keep=(*known, "waiting")))


def render_edge(edge: Edge) -> str:
    return line(f"{edge.subject} {edge.relation} {edge.object}")


def fitting(hits: Sequence[AnyHit], longest: int) -> list[AnyHit]:
    """The first of `hits` that fit into an answer, one at least, when of each text `longest` characters are shown."""
    room = LONGEST_ANSWER
    fit: list[AnyHit] = []
    for hit in hits:
        room -= min(len(hit.text), longest)
        if room < 0 and fit:
            break
        fit.append(hit)
    return fit


def _as_of(found: Recall) -> str:
    then = found.trace.get("as_of")
    return f"{then['when']}, commit {then['commit'][:10]}" if isinstance(then, dict) else ""


def bare(shape: Shape, keep: Sequence[str] = ("memories", "text", "score")) -> Shape:
    """`shape` without the fields that say nothing, but for those to `keep`."""
    return cast("Shape", {key: value for key, value in shape.items() if value or key in keep})


def line(text: str | None) -> str:
    """A text from the vault on one line, disarmed."""
    return " ".join(neutralise(text or "").split())


def day(moment: str | None) -> str:
    """The day of a moment in ISO 8601."""
    return line(moment)[:10]
