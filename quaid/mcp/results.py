"""The results of tools: JSON that reads well, because many hosts show their model nothing else.

A field that does not apply is left out. All text from the vault is disarmed: it is data, never an instruction.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic_core import to_json
from typing_extensions import TypedDict

from quaid.agents.prompt_evidence import AskedWords
from quaid.model import Commit, Hit, Kind, Recall
from quaid.recall.blocks import pack, show, show_neighbour
from quaid.recall.cutoff import CHARACTERS_PER_TOKEN, fit_shapes, tokens
from quaid.recall.trace import list_degraded
from quaid.text.quoting import PREFACE, neutralise, shorten, wrap_memory

if TYPE_CHECKING:
    from quaid.capture.conversation_reader import BuiltPrompt
    from quaid.capture.extractor import ExtractResult
    from quaid.capture.writer import WriteResult
    from quaid.docs.search import DocHit
    from quaid.index.references import NoteView

MAX_ANSWER = 20_000
"""Characters of memories in one answer; hosts cut or refuse much longer ones."""
MAX_NOTE = 20_000
MAX_TEXT = 1_000
"""Characters of one memory; the note has the rest."""
MIN_ROOM = 20
"""Tokens of memories in the smallest budget."""
MAX_NEIGHBOUR = 300
"""Characters of each line of context around a memory."""
CONTEXT_TOKENS = 1_500
"""Tokens of an answer up to which it also has context around the memories."""
SUPERSEDED = "[superseded]"
_MULTILINE = frozenset({"text", "notice", "beside", "question", "next_step"})
"""Fields whose texts are disarmed where they are made, and may have several lines."""

ListOf: Any = list
"""Of a schema that `output` made."""

AnyHit = TypeVar("AnyHit", "Hit", "DocHit")
_TOOLS = {
    "recall": "memory_recall",
    "search": "memory_recall",
    "get": "memory_get",
    "remember": "memory_store",
    "note": "memory_note",
    "forget": "memory_forget",
    "extract": "memory_extract",
    "restore": "memory_restore",
    "link": "memory_create_edge",
    "undo": "memory_undo",
    "stats": "memory_stats",
    "docs search": "docs_search",
    "docs list": "docs_list",
    "docs register": "docs_register",
    "project list": "docs_list",
    "project create": "project_create",
}
"""Commands, each with the equivalent tool."""
_COMMAND = re.compile(r"\bquaid ((?:docs |project )?[a-z]+)\b(?! (?:is|was|has|does)\b)")
_SHELL_COMMAND = re.compile(
    r"\b(?:quaid [a-z]+|git (?:-C|add|commit|init|checkout|merge|rebase|restore|switch|stash)|chown)\b"
)
_ASIDE = "; see what there is with: quaid log"
FOR_OWNER = "That is for the owner to do: tell them, and do not do it yourself."
ALWAYS = frozenset({"memory_recall", "memory_get", "memory_store", "memory_note", "memory_forget", "memory_extract"})
"""The tools that every server offers."""


def output(name: str, about: str, required: Mapping[Any, str], optional: Mapping[Any, str]) -> Any:
    """Return the schema of an output, from the names of its fields by type."""
    fields = {field: kind for kind, names in required.items() for field in names.split()}
    fields |= {field: NotRequired[kind] for kind, names in optional.items() for field in names.split()}
    make: Any = TypedDict
    made = make(name, fields)
    made.__doc__ = about
    return made


MEMORY = output(
    "RecalledMemory",
    "`date`: when it was said; `origin`: whose word it is; `beside`: what was said around it or what it rests on.",
    {str: "id text kind origin"},
    {
        str: "heading date speaker session project valid_from valid_until",
        float: "score confidence",
        int: "turn said_times",
        bool: "superseded pending",
        list[str]: "beside contradicts later_than earlier_than marks related_through vaults",
    },
)
RECALL = output(
    "RecallOutput",
    "`warning`: why they may not be an answer.",
    {str: "notice", ListOf[MEMORY]: "memories"},
    {str: "warning as_of", list[str]: "degraded", int: "left_out"},
)
NOTE = output(
    "NoteOutput",
    "`left_out`: the characters that did not fit. `known`: what is true now of a person or thing.",
    {str: "notice id kind path text"},
    {
        str: "title type status speaker session date valid_from valid_until superseded_by",
        int: "turn confirmations left_out",
        list[str]: "edges known",
    },
)
WRITE = output(
    "WriteOutput",
    "`uncommitted`: files whose change git does not have, for the owner's own work in them or as `hint` says.",
    {str: "outcome id path"},
    {str: "text commit replaced hint", list[str]: "new_notes uncommitted", dict[str, int]: "secrets_removed"},
)
NOTE_WRITE = output(
    "NoteWriteOutput",
    "`hash`: of the note as it is now, to give as `expected`.",
    {str: "outcome path"},
    {str: "commit hash hint", list[str]: "uncommitted", dict[str, int]: "secrets_removed"},
)
NOTES = output("NotesOutput", "The paths of notes.", {list[str]: "paths"}, {int: "left_out"})
NOTE_TEXT = output(
    "NoteTextOutput",
    "`left_out`: the characters that did not fit.",
    {str: "notice path text hash"},
    {int: "left_out"},
)
NOTED = output("NotedOutput", "`waiting`: lines for the next extraction.", {int: "waiting"}, {})
EXTRACTED_FACT = output("ExtractedFactOutput", "One fact of a conversation.", {str: "id text outcome"}, {})
SKIPPED_FACT = output("SkippedFact", "A statement that was not kept, and why.", {str: "text reason"}, {})
EXTRACT = output(
    "ExtractOutput",
    "`waiting`: some of it was not learned from, `problem` says why, `question` is for whoever will answer.",
    {str: "session path", int: "turns new_turns", bool: "waiting", ListOf[EXTRACTED_FACT]: "facts"},
    {
        str: "model commit problem next_step question",
        int: "through",
        list[str]: "names",
        ListOf[SKIPPED_FACT]: "not_kept",
        dict[str, int]: "secrets_removed",
    },
)
UNDONE = output(
    "UndoneOutput",
    "`undone`: what was taken back; `kept`: the notes that were changed since; `commit`: the undo itself.",
    {list[str]: "undone"},
    {str: "commit", list[str]: "kept left"},
)
HISTORY_ENTRY = output(
    "HistoryEntry", "One commit that touched a note.", {str: "commit when author what"}, {str: "task"}
)
HISTORY = output(
    "HistoryOutput",
    "The commits that touched a note, newest first.",
    {str: "notice", ListOf[HISTORY_ENTRY]: "changes"},
    {},
)
STATS = output(
    "StatsOutput",
    "The figures of the memory. `waiting` counts conversations that nothing was learned from yet.",
    {
        str: "vault",
        int: "notes entities edges chunks embedded waiting",
        dict[str, int]: "kinds types statuses speakers",
    },
    {str: "oldest newest"},
)
QUESTION = output(
    "QuestionOutput",
    "`answer`: what was ticked already and could not be carried out yet.",
    {str: "id question", list[str]: "answers"},
    {str: "answer"},
)
QUESTIONS = output(
    "QuestionsOutput",
    "The questions that wait, by their path.",
    {str: "notice", ListOf[QUESTION]: "questions"},
    {int: "left_out"},
)


def shape(output: Any, record: object = None, /, **values: Any) -> dict[str, Any]:
    """Return `record`, of which `values` replace some attributes, for a schema: disarmed, without empty optional fields
    other than numbers with a fraction.
    """
    found = {name: values.get(name, getattr(record, name, None)) for name in output.__annotations__}
    return {
        name: value if name in _MULTILINE else _disarm(value)
        for name, value in found.items()
        if value or isinstance(value, float) or name in output.__required_keys__
    }


def tool_result(output: Any, record: object = None, /, *, shown: str | None = None, **values: Any) -> CallToolResult:
    """Return the result of a tool, and for hosts that do not read JSON `shown`, by default the JSON on one line."""
    structured = shape(output, record, **values)
    content = TextContent(type="text", text=to_json(structured).decode() if shown is None else shown)
    return CallToolResult(content=[content], structured_content=structured)


def recall_block(found: Recall, *, with_ids: bool = False) -> tuple[str, Sequence[Hit]]:
    """Return the memories as a block of text, and the hits that are in it with the context that is shown."""
    if found.text is not None:
        return wrap_memory(found.text), found.hits
    budget = MAX_ANSWER // CHARACTERS_PER_TOKEN
    shown = pack(found.hits, budget, question=found.query, more=found.more, fill_to=CONTEXT_TOKENS, with_ids=with_ids)
    return wrap_memory(shown.text), shown.hits


def recall_result(
    found: Recall, more: Sequence[str] = (), *, with_ids: bool = False, budget: int | None = None
) -> CallToolResult:
    """Return the result of a recall, the text and the memories each in `budget` tokens. `more` are sentences about what
    was missing, in addition to those in `found`.
    """
    past = found.trace.get("as_of")
    degraded = [one_line(as_tools(each)) for each in list_degraded(found.degraded, found.trace)] + [*more]
    warning = warning_of(found)
    remarks = [f"({remark})" for remark in (warning, *degraded) if remark]
    if budget is not None and found.text is not None:
        room = max(MIN_ROOM, budget - tokens("\n".join([*remarks, wrap_memory(" ")])))
        packed = pack(found.hits, room, question=found.query, more=found.more, with_ids=with_ids)
        found = replace(found, text=packed.text)
    block, shown = recall_block(found, with_ids=with_ids)
    hits = fit(shown, MAX_TEXT)
    memories = [
        shape(
            MEMORY,
            hit,
            text=(f"{SUPERSEDED} " if hit.superseded else "") + shorten(show(hit.text, hit.stated_at), MAX_TEXT),
            beside=[show_neighbour(each, MAX_NEIGHBOUR) for each in hit.beside],
            score=round(hit.score, 2) if found.query else None,
            date=day(hit.created),
            origin=hit.provenance,
            session=hit.session if hit.kind == "turn" else None,
            valid_from=day(hit.valid_from),
            valid_until=day(hit.valid_until),
            pending=hit.status == "pending",
            said_times=hit.stands_for if hit.stands_for > 1 else 0,
            related_through=hit.via,
            vaults=[name for name in (hit.vault, *hit.also_in) if name],
        )
        for hit in hits
    ]
    about: dict[str, Any] = {"notice": PREFACE, "warning": warning, "degraded": degraded, "left_out": len(found.hits)}
    about["as_of"] = _describe_past(past) if isinstance(past, dict) else ""
    if budget is not None:
        memories = fit_shapes(memories, budget - tokens(to_json(shape(RECALL, memories=[], **about)).decode()))
    about["left_out"] -= len(memories)
    return tool_result(RECALL, shown="\n".join([*remarks, block]).strip(), memories=memories, **about)


def _describe_past(past: Mapping[str, Any]) -> str:
    """Return the commit that was queried, or that of each vault."""
    if "commit" in past:
        return f"{past['when']}, commit {past['commit'][:10]}"
    return "; ".join(f"{one_line(vault)}: {_describe_past(known)}" for vault, known in past.items())


def warning_of(found: Recall) -> str:
    """Return why an answer may be wrong and what to do about it; empty when it looks good."""
    if not found.query:
        return "" if found.hits else "Nothing is remembered there yet."
    if not found.hits:
        return (
            "Nothing relevant was found. Ask again with names, other words or no dates; else say that you do not know."
        )
    asked = AskedWords(found.query, found.scale)
    if found.doubt is None and any(asked.weigh(hit).is_enough for hit in found.hits):
        return ""
    why = found.doubt or "none of the memories has much of the words or of the meaning of the question"
    return (
        f"In doubt: {why}. These may not answer the question; ask again with names and topics before relying on them."
    )


def note_result(view: NoteView) -> CallToolResult:
    document = view.document
    # A note of the owner's is headings, links and code as well; a fact is what it states.
    is_stated = document.kind in {Kind.FACT, Kind.ENTITY, Kind.EPISODE}
    text = neutralise(view.text if is_stated else view.markdown)
    return tool_result(
        NOTE,
        document,
        notice=PREFACE,
        title=document.title if document.kind != "fact" else "",
        turn=view.turn,
        date=day(document.created),
        valid_from=day(document.valid_from),
        valid_until=day(document.valid_until),
        text=text[:MAX_NOTE],
        edges=[f"{edge.subject} {edge.relation} {edge.object}" for edge in view.edges],
        known=[neutralise(one_line(fact))[:MAX_TEXT] for fact in view.known],
        left_out=max(0, len(text) - MAX_NOTE),
    )


def write_result(written: WriteResult, shape_of: Any = WRITE, **more: str) -> CallToolResult:
    return tool_result(
        shape_of,
        written,
        **more,
        text=one_line(written.text)[:MAX_TEXT],
        new_notes=written.created,
        uncommitted=written.left,
        secrets_removed=Counter(written.redacted),
        hint=as_tools(written.hint or ""),
    )


def extract_result(extracted: ExtractResult, prompt: BuiltPrompt | None) -> CallToolResult:
    """Return the result of an extraction, with the question for the host's model where `prompt` is given."""
    asked: dict[str, Any] = {}
    if prompt is not None:
        next_step = (
            "Answer `question` yourself, in the form it asks for, and call memory_extract with session "
            f"{prompt.session!r}, through {prompt.through} and your answer."
        )
        asked = {"through": prompt.through, "question": prompt.text, "next_step": next_step}
    return tool_result(
        EXTRACT,
        extracted,
        facts=[shape(EXTRACTED_FACT, fact) for fact in extracted.facts],
        names=extracted.entities,
        not_kept=[shape(SKIPPED_FACT, item, reason=as_tools(item.reason)) for item in extracted.left_out],
        secrets_removed=Counter(extracted.redacted),
        problem=as_tools(str(extracted.problem or "")),
        **asked,
    )


def history_result(commits: Sequence[Commit]) -> CallToolResult:
    changes = [
        shape(
            HISTORY_ENTRY,
            commit,
            commit=commit.id[:10],
            what=commit.subject,
            task=" ".join(commit.trailers.get("Quaid-Task", ())),
        )
        for commit in commits
    ]
    return tool_result(HISTORY, notice=PREFACE, changes=changes)


def fit(hits: Sequence[AnyHit], longest: int) -> Sequence[AnyHit]:
    """Return the first hits that fit into an answer, at least one, with `longest` characters shown of each text."""
    ends = accumulate(min(len(hit.text), longest) for hit in hits)
    return hits[: max(1, bisect(list(ends), MAX_ANSWER))]


def one_line(text: str | None) -> str:
    """Return a text from the vault on one line, disarmed."""
    return " ".join(neutralise(text or "").split())


def day(moment: str | None) -> str:
    """Return the day of a moment in ISO 8601."""
    return one_line(moment)[:10]


def _disarm(value: Any) -> Any:
    """Return `value` with all its texts on one line, disarmed."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {one_line(key): item if key in _MULTILINE else _disarm(item) for key, item in value.items()}
    return [_disarm(item) for item in value] if isinstance(value, (list, tuple)) else value


def as_tools(text: str, offered: Collection[str] = ALWAYS) -> str:
    """Return `text` with an offered tool in place of each command that has one. Other commands are for the owner to
    run, and the text says so.
    """

    def tool(command: re.Match[str]) -> str:
        name = _TOOLS.get(command[1], "")
        return name if name in offered else command[0]

    advice = _COMMAND.sub(tool, text.replace(_ASIDE, ""))
    return f"{advice.rstrip().removesuffix('.')}. {FOR_OWNER}" if _SHELL_COMMAND.search(advice) else advice
