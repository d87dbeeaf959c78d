"""The journal distilled: what the entries of some weeks come to goes into the core note, those into the archive.

Nothing of an entry is lost or reworded. Entries that no theme rests on stay, and are read again beside new ones; where
none of them comes to anything, all are archived. It is done when the oldest new entry has lain for a week.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from quaid.janitor.decision import Decision
from quaid.janitor.evidence import refused_evidence, remember_evidence
from quaid.janitor.model_questions import ask, judge_all, list_refused, numbered_lines, set_aside_keys
from quaid.janitor.model_text import find_unsupported, is_safe_line, statement_problem
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer, ItemProblem
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import evidence_key
from quaid.model import CORE_FILES, Edit
from quaid.vault import core_notes, headings, layout, notes
from quaid.vault.journal import JournalEntry, archive_path, insert_entry, parse_entries, remove_entries

TASK = "journal"
MIN_DAYS = 7
MIN_ENTRIES = 3
MAX_THEMES = 5
_INPUT_TOKENS = 16_000


@dataclass(frozen=True, slots=True)
class _DueJournal:
    """The due part of one core note's journal: `entries` in the order they stand there."""

    core: str
    before: bytes | None
    text: str
    journal: bytes
    entries: tuple[JournalEntry, ...]

    def hashes_of(self, entries: Sequence[JournalEntry]) -> list[str]:
        text = self.journal.decode("utf-8")
        return list(dict.fromkeys(headings.text_key(text[entry.start : entry.end]) for entry in entries))


def plan(context: TaskContext) -> Iterator[Decision]:
    """One decision for each core note whose journal is due."""
    refused = refused_evidence(context)
    for core in CORE_FILES:
        due = _read_due(context, core, refused)
        decision = _decide(context, due) if due is not None else None
        if decision is not None:
            yield decision


def _read_due(context: TaskContext, core: str, refused: set[str]) -> _DueJournal | None:
    data, note = context.read(context.layout.place(layout.journal_path(core))), context.read_core(core)
    if data is None or note is None or core_notes.is_long(note[1]):
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    today = context.now.date()  # to an entry of today more may be added
    entries = tuple(
        entry
        for entry in parse_entries(text)
        if entry.day < today and entry.paragraphs and headings.text_key(text[entry.start : entry.end]) not in refused
    )
    due = _DueJournal(core, *note, data, entries)
    read = {hashed: _read_key(core, due.before, hashed) for hashed in due.hashes_of(entries)}
    known = context.judgements.known(list(read.values()))
    new = [entry.day for entry in entries if not known.keys() & {read[hashed] for hashed in due.hashes_of([entry])}]
    is_due = len(new) >= MIN_ENTRIES and min(new) <= today - timedelta(days=MIN_DAYS)
    return due if is_due else None


def _read_key(core: str, note: bytes | None, entry_hash: str) -> str:
    """The key under which is kept that an entry came to nothing beside this note."""
    return evidence_key(f"{TASK} read", core, notes.content_hash(note or b""), entry_hash)


def _decide(context: TaskContext, due: _DueJournal) -> Decision | None:
    core = due.core
    judgement_key = evidence_key(TASK, core, notes.content_hash(due.before or b""), *due.hashes_of(due.entries))
    kept = context.judgements.known([judgement_key]).get(judgement_key)
    if kept is None:
        if context.models is None:
            return None
        distilled = _distil(context, due)
        if distilled is None:
            return None
        kept = json.dumps(distilled, ensure_ascii=False)
        context.judgements.add(TASK, {judgement_key: kept})
    judgement = json.loads(kept)
    themes = [str(theme["text"]) for theme in judgement["themes"]]
    after = due.text
    for theme in judgement["themes"]:
        after = core_notes.add_bullets(after, theme["section"], [theme["text"]])
    if core_notes.is_long(after) or not judgement["is_usable"]:
        return None
    carried = {hashed for theme in judgement["themes"] for hashed in theme["entries"]}
    carried |= set() if themes else {*due.hashes_of(due.entries)} - {*judgement.get("unread", ())}
    done = [entry for entry in due.entries if carried.intersection(due.hashes_of([entry]))]
    left = due.hashes_of([entry for entry in due.entries if entry not in done])
    hashes = due.hashes_of(done)
    key = evidence_key(TASK, core, *hashes)
    remember_evidence(context, TASK, key, hashes)
    context.judgements.add(TASK, {_read_key(core, after.encode(), hashed): "read" for hashed in left})
    edits = _archive(context, due, done)
    if edits is None:
        return None
    if after != due.text:
        edits.insert(0, Edit(core, due.before, after.encode()))
    count = f"{len(done):,} journal entr{'ies' if len(done) > 1 else 'y'}"
    days = [notes.format_day(entry.day.isoformat()) for entry in sorted(done, key=lambda entry: entry.day)]
    span = f"{count} of {' to '.join(dict.fromkeys((days[0], days[-1])))}"
    if themes:
        why = f"What {span} came to was added to {core}. journal/archive/ has the words now."
    else:
        why = f"{core} should say nothing of {span} for good. journal/archive/ has the words now."
    return Decision(
        task=TASK,
        kind="distil",
        key=key,
        edits=tuple(edits),
        subject=f"distil {count} into {core}" if themes else f"archive {count} of {core}",
        why=why,
        model=judgement["model"],
        prompt=judgement["prompt"],
        detail="\n".join(f"- {theme}" for theme in themes),
    )


def _distil(context: TaskContext, due: _DueJournal) -> dict[str, Any] | None:
    """The themes of the entries, as they are kept; not usable where themes were proposed and none of them can stand.
    None where an entry is still to be read by a later run.
    """
    themes: list[dict[str, Any]] = []
    is_any_proposed = False
    model = prompt = ""
    unread = {hashed: entry for entry in due.entries for hashed in due.hashes_of([entry])}
    for batch, answer in judge_all(
        context,
        TASK,
        {evidence_key(TASK, due.core, hashed): entry for hashed, entry in unread.items()},
        lambda batch: (batch, _ask(context, due, batch)),
        lambda entry: estimate_tokens("\n".join(entry.paragraphs)) + 20,
        lambda entry: f"{due.core}, {entry.day.isoformat()}: {entry.paragraphs[0]}",
        input_limit=_INPUT_TOKENS,
    ):
        for hashed in due.hashes_of(batch):
            del unread[hashed]
        model, prompt = answer.model, answer.prompt
        proposed = answer.value["themes"][:MAX_THEMES]
        is_any_proposed = is_any_proposed or bool(proposed)
        themes += [
            {
                "text": str(theme["text"]),
                "section": str(theme.get("section") or core_notes.LEARNED),
                "entries": due.hashes_of([batch[n - 1] for n in theme["entries"]]),
            }
            for theme in proposed
            if not _problems(theme, batch, due.text)
        ]
    if not {evidence_key(TASK, due.core, hashed) for hashed in unread} <= set_aside_keys(context):
        return None
    is_usable = bool(themes) or (bool(model) and not is_any_proposed)
    return {"themes": themes, "is_usable": is_usable, "model": model, "prompt": prompt, "unread": list(unread)}


def _ask(context: TaskContext, due: _DueJournal, batch: Sequence[JournalEntry]) -> Answer:
    inputs = {
        "name": due.core,
        "note": due.text,
        "sections": json.dumps(core_notes.section_titles(due.text), ensure_ascii=False),
        "refused": list_refused(context),
        "entries": numbered_lines(
            {"day": entry.day.isoformat(), "text": "\n\n".join(entry.paragraphs)} for entry in batch
        ),
    }
    return ask(
        context,
        TASK,
        inputs,
        lambda value: [
            ItemProblem("themes", place, problem)
            for place, theme in enumerate(value["themes"])
            for problem in _problems(theme, batch, due.text)
        ],
    )


def _problems(theme: Mapping[str, Any], batch: Sequence[JournalEntry], note: str) -> list[str]:
    """Return why a theme cannot go into the core note."""
    rests_on = [batch[n - 1] for n in theme["entries"] if n <= len(batch)]
    if not rests_on or len(rests_on) < len(theme["entries"]):
        return ["it rests on entries that are not there"]
    text = theme["text"]
    problems = [problem for problem in (statement_problem(text),) if problem]
    days = [entry.day.isoformat() for entry in rests_on]
    said = [
        f"{day} {notes.format_day(day)} {' '.join(entry.paragraphs)}" for day, entry in zip(days, rests_on, strict=True)
    ]
    # A theme is worded freely: of what it says, only the numbers can be held against the entries.
    added = [new for new in find_unsupported(text, [*said, note]) if any(map(str.isdigit, new))]
    problems += [f"no entry says {new!r}" for new in added]
    return problems if is_safe_line(text) else [*problems, "it hides or orders something"]


def _archive(context: TaskContext, due: _DueJournal, entries: Sequence[JournalEntry]) -> list[Edit] | None:
    """Take `entries` out of the journal and into the archive of their month; None where an archive cannot be read."""
    text, path = due.journal.decode("utf-8"), context.layout.place(layout.journal_path(due.core))
    archives: dict[str, tuple[bytes | None, str]] = {}
    for entry in reversed(entries):
        archive = archive_path(path, entry.day)
        if archive not in archives:
            data = context.read(archive)
            try:
                archives[archive] = (data, (data or b"").decode("utf-8"))
            except UnicodeDecodeError:
                return None
        before, archived = archives[archive]
        archives[archive] = (before, insert_entry(archived, text[entry.start : entry.end]))
    rest = remove_entries(text, entries)
    moved = [Edit(name, before, after.encode()) for name, (before, after) in archives.items()]
    return [
        Edit(path, due.journal, rest.encode() if rest.removeprefix("\ufeff").strip() else None),
        *(edit for edit in moved if edit.before != edit.after),
    ]
