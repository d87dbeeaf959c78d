"""The results of tools: JSON that reads well, for many hosts show their model that and nothing else.

A field that does not apply is left out. All text from the vault is disarmed: it is data, never an instruction.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, cast

from mcp.types import CallToolResult, TextContent
from pydantic_core import to_json
from typing_extensions import TypedDict

from quaid.mcp.advice import as_tools
from quaid.model import Commit, Hit, Kind, Recall
from quaid.recall.blocks import pack, show, show_neighbour
from quaid.recall.cutoff import CHARACTERS_PER_TOKEN
from quaid.text.quoting import PREFACE, neutralise, wrap_memory

if TYPE_CHECKING:
    from quaid.capture.conversation_reader import BuiltPrompt
    from quaid.capture.extractor import ExtractResult
    from quaid.capture.writer import WriteResult
    from quaid.docs.search import DocHit
    from quaid.index.views import NoteView
    from quaid.report.stats import Stats

MAX_ANSWER = 20_000
"""Characters of memories in one answer; hosts cut or refuse much longer ones."""
MAX_NOTE = 20_000
MAX_TEXT = 1_000
"""Characters of one memory; the note has the rest."""
MAX_BESIDE = 300
"""Characters of what stands beside a memory, of each line."""
FILLED = 1_500
"""Tokens of an answer up to which it also has what stands beside the memories."""
LOW_SCORE = 0.6
"""Memories that score less than this on average are not a good answer."""
SUPERSEDED = "[superseded]"

KEEP = ("memories", "text", "score")
"""Fields that are shown even where they are empty."""
_DEGRADED = {
    "vectors": "vectors: found by words and graph only, not by meaning",
    "model": "model: the order is not a model's, none judged in time",
}

Shape = TypeVar("Shape", bound=Mapping[str, Any])
AnyHit = TypeVar("AnyHit", "Hit", "DocHit")


class RecalledMemory(TypedDict):
    """`date`: when it was said; `origin`: whose word it is; `beside`: what was said around it or what it rests on."""

    id: str
    text: str
    score: NotRequired[float]
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
    later_than: NotRequired[list[str]]
    earlier_than: NotRequired[list[str]]
    related_through: NotRequired[list[str]]
    heading: NotRequired[str]
    beside: NotRequired[list[str]]
    vaults: NotRequired[list[str]]


class RecallOutput(TypedDict):
    """`warning`: why they may not be an answer."""

    notice: str
    warning: NotRequired[str]
    degraded: NotRequired[list[str]]
    as_of: NotRequired[str]
    memories: list[RecalledMemory]
    left_out: NotRequired[int]


class NoteOutput(TypedDict):
    """`left_out`: the characters that did not fit."""

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


class WriteOutput(TypedDict):
    """`uncommitted`: files whose change git does not have, for the owner's own work in them or as `hint` says."""

    outcome: str
    id: str
    path: str
    text: NotRequired[str]
    commit: NotRequired[str]
    new_notes: NotRequired[list[str]]
    uncommitted: NotRequired[list[str]]
    secrets_removed: NotRequired[dict[str, int]]
    replaced: NotRequired[str]
    hint: NotRequired[str]


class NotedOutput(TypedDict):
    """`waiting`: lines for the next extraction."""

    waiting: int


class ExtractedFactOutput(TypedDict):
    """One fact of a conversation."""

    id: str
    text: str
    outcome: str


class SkippedFact(TypedDict):
    """A statement that was not kept, and why."""

    text: str
    reason: str


class ExtractOutput(TypedDict):
    """`waiting`: some of it was not learned from, `problem` says why, `question` is for whoever will answer."""

    session: str
    path: str
    turns: int
    new_turns: int
    waiting: bool
    facts: list[ExtractedFactOutput]
    names: NotRequired[list[str]]
    not_kept: NotRequired[list[SkippedFact]]
    secrets_removed: NotRequired[dict[str, int]]
    model: NotRequired[str]
    commit: NotRequired[str]
    problem: NotRequired[str]
    next_step: NotRequired[str]
    through: NotRequired[int]
    question: NotRequired[str]


class HistoryEntry(TypedDict):
    """One commit that touched a note."""

    commit: str
    when: str
    author: str
    what: str
    task: NotRequired[str]


class HistoryOutput(TypedDict):
    """The commits that touched a note, newest first."""

    notice: str
    changes: list[HistoryEntry]


class StatsOutput(TypedDict):
    """The figures of the memory. `waiting` counts conversations that nothing was learned from yet."""

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


def tool_result(shape: Shape, keep: Sequence[str] = KEEP, text: str | None = None) -> CallToolResult:
    """`shape` without its empty fields, and for hosts that do not read JSON `text`, by default the JSON on one line."""
    structured = without_empty(shape, keep)
    content = TextContent(type="text", text=text if text is not None else to_json(structured).decode())
    return CallToolResult(content=[content], structured_content=dict(structured))


def recall_block(found: Recall, *, with_ids: bool = False) -> tuple[str, Sequence[Hit]]:
    """The memories as a block of text, and those of them that are in it with what is shown beside them."""
    if found.text is not None:
        return wrap_memory(found.text), found.hits
    room = MAX_ANSWER // CHARACTERS_PER_TOKEN
    shown = pack(found.hits, room, question=found.query, more=found.more, fill_to=FILLED, with_ids=with_ids)
    return wrap_memory(shown.text), shown.hits


def recall_result(found: Recall, more: Sequence[str] = (), *, with_ids: bool = False) -> CallToolResult:
    """The result of a recall. `more` are sentences about what was missing, beside those in `found`."""
    block, shown = recall_block(found, with_ids=with_ids)
    hits = fit(shown, MAX_TEXT)
    then = found.trace.get("as_of")
    sentences = [str(sentence) for sentence in cast("Sequence[object]", found.trace.get("degraded", ()))]
    named = {sentence.partition(":")[0]: sentence for sentence in sentences}
    keep = KEEP if found.query else ("memories", "text")
    degraded = [one_line(as_tools(named.get(name) or _DEGRADED.get(name, name))) for name in found.degraded] + [*more]
    warning = warning_of(found)
    memories = [
        without_empty(RecalledMemory(
            id=one_line(hit.id),
            text=(f"{SUPERSEDED} " if hit.superseded else "") + shorten(show(hit.text, hit.told), MAX_TEXT),
            heading=one_line(hit.heading),
            beside=[show_neighbour(each, MAX_BESIDE) for each in hit.beside],
            score=round(hit.score, 2),
            kind=hit.kind,
            date=day(hit.created),
            origin=hit.provenance,
            speaker=one_line(hit.speaker),
            session=one_line(hit.session) if hit.kind == "turn" else "",
            turn=hit.turn or 0,
            project=one_line(hit.project),
            valid_from=day(hit.valid_from),
            valid_until=day(hit.valid_until),
            superseded=hit.superseded,
            pending=hit.status == "pending",
            said_times=hit.stands_for if hit.stands_for > 1 else 0,
            contradicts=list(hit.contradicts),
            later_than=list(hit.later_than),
            earlier_than=list(hit.earlier_than),
            related_through=[one_line(name) for name in hit.via],
            vaults=[one_line(name) for name in (hit.vault, *hit.also_in) if name],
        ), keep)
        for hit in hits
    ]  # fmt: skip
    shape = RecallOutput(
        notice=PREFACE,
        warning=warning,
        degraded=degraded,
        as_of=_tell_past(then) if isinstance(then, dict) else "",
        memories=memories,
        left_out=len(found.hits) - len(hits),
    )
    remarks = [f"({remark})" for remark in (warning, *degraded) if remark]
    return tool_result(shape, text="\n".join([*remarks, block]).strip())


def _tell_past(then: Mapping[str, Any]) -> str:
    """As of when a vault was asked, or each of several."""
    if "commit" in then:
        return f"{then['when']}, commit {then['commit'][:10]}"
    return "; ".join(f"{one_line(vault)}: {_tell_past(known)}" for vault, known in then.items())


def warning_of(found: Recall) -> str:
    """A sentence that says why an answer may be wrong and what to do about it; empty when it looks good."""
    if not found.query:
        return "" if found.hits else "Nothing is remembered there yet."
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


def note_result(view: NoteView) -> CallToolResult:
    document = view.document
    # A note of the owner's is headings, links and code as well; a fact is what it states.
    is_stated = document.kind in {Kind.FACT, Kind.ENTITY, Kind.EPISODE}
    text = neutralise(view.text if is_stated else view.markdown)
    return tool_result(NoteOutput(
        notice=PREFACE,
        id=one_line(document.id),
        kind=document.kind,
        path=one_line(document.path),
        title=one_line(document.title) if document.kind != "fact" else "",
        type=one_line(document.type),
        status=one_line(document.status),
        speaker=one_line(document.speaker),
        session=one_line(document.session),
        turn=view.turn or 0,
        date=day(document.created),
        valid_from=day(document.valid_from),
        valid_until=day(document.valid_until),
        superseded_by=one_line(document.superseded_by),
        confirmations=document.confirmations,
        text=text[:MAX_NOTE],
        edges=[one_line(f"{edge.subject} {edge.relation} {edge.object}") for edge in view.edges],
        left_out=max(0, len(text) - MAX_NOTE),
    ))  # fmt: skip


def write_result(written: WriteResult) -> CallToolResult:
    return tool_result(WriteOutput(
        outcome=written.outcome,
        id=one_line(written.id),
        path=one_line(written.path),
        text=one_line(written.text)[:MAX_TEXT],
        commit=written.commit or "",
        new_notes=[one_line(path) for path in written.created],
        uncommitted=[one_line(path) for path in written.left],
        secrets_removed=dict(Counter(written.redacted)),
        replaced=one_line(written.replaced),
        hint=as_tools(written.hint or ""),
    ))  # fmt: skip


def extract_result(extracted: ExtractResult, prompt: BuiltPrompt | None) -> CallToolResult:
    """The result of an extraction, with the question for the host's model where `prompt` is given."""
    next_step = prompt and (
        "Answer `question` yourself, in the form it asks for, and call memory_extract with session "
        f"{prompt.session!r}, through {prompt.through} and your answer."
    )
    return tool_result(ExtractOutput(
        session=one_line(extracted.session),
        path=one_line(extracted.path),
        turns=extracted.turns,
        new_turns=extracted.new_turns,
        waiting=extracted.waiting,
        facts=[
            ExtractedFactOutput(id=fact.id, text=one_line(fact.text), outcome=fact.outcome)
            for fact in extracted.facts
        ],
        names=[one_line(name) for name in extracted.entities],
        not_kept=[SkippedFact(text=one_line(item.text), reason=as_tools(item.reason)) for item in extracted.left_out],
        secrets_removed=dict(Counter(extracted.redacted)),
        model=one_line(extracted.model),
        commit=extracted.commit or "",
        problem=as_tools(str(extracted.problem or "")),
        next_step=next_step or "",
        through=prompt.through if prompt else 0,
        question=prompt.text if prompt else "",
    ), keep=("facts", "waiting", "turns", "new_turns"))  # fmt: skip


def history_result(commits: Sequence[Commit]) -> CallToolResult:
    changes = [
        without_empty(HistoryEntry(
            commit=commit.id[:10],
            when=commit.when,
            author=one_line(commit.author),
            what=one_line(commit.subject),
            task=one_line(" ".join(commit.trailers.get("Quaid-Task", ()))),
        ))
        for commit in commits
    ]  # fmt: skip
    return tool_result(HistoryOutput(notice=PREFACE, changes=changes), keep=("changes",))


def stats_result(stats: Stats, waiting: int) -> CallToolResult:
    known = {key: value for key, value in asdict(stats).items() if key in StatsOutput.__annotations__}
    counted = {key: {one_line(name): number for name, number in known[key].items()} for key in ("types", "speakers")}
    # Of notes without a date none is the oldest.
    given = {key: value for key, value in {**known, **counted, "waiting": waiting}.items() if value is not None}
    shape = cast("StatsOutput", given)
    return tool_result(shape, keep=tuple(shape))


def fit(hits: Sequence[AnyHit], longest: int) -> Sequence[AnyHit]:
    """The first of `hits` that fit into an answer, one at least, when of each text `longest` characters are shown."""
    ends = accumulate(min(len(hit.text), longest) for hit in hits)
    return hits[: max(1, bisect(list(ends), MAX_ANSWER))]


def shorten(text: str, longest: int) -> str:
    """`text`, cut with an ellipsis where it is longer than `longest` characters."""
    return text if len(text) <= longest else f"{text[:longest].rstrip()} …"


def without_empty(shape: Shape, keep: Sequence[str] = KEEP) -> Shape:
    """`shape` without its empty fields, except those in `keep`."""
    return cast("Shape", {key: value for key, value in shape.items() if value or key in keep})


def one_line(text: str | None) -> str:
    """A text from the vault on one line, disarmed."""
    return " ".join(neutralise(text or "").split())


def day(moment: str | None) -> str:
    """The day of a moment in ISO 8601."""
    return one_line(moment)[:10]
