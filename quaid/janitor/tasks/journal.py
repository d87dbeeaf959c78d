"""The journal distilled: what the entries of some weeks come to goes into the core note, the entries into the archive.

Nothing of an entry is lost or reworded. It is done when the oldest entry has lain for a week: what was distilled has
left the journal, so a week has passed since the last time as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from quaid.janitor.decision import Decision
from quaid.janitor.folding import (
    list_refused,
    may_stand,
    numbered_lines,
    read_core,
    refused_evidence,
    remember_evidence,
)
from quaid.janitor.judging import fault_of, unsaid
from quaid.janitor.task_context import Context
from quaid.llm.batches import batches
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import key_of
from quaid.model import CORE_FILES, Edit
from quaid.vault import core_notes, layout, notes
from quaid.vault.journal import JournalEntry, archive_path, insert_entry, parse_entries, remove_entries

if TYPE_CHECKING:
    from quaid.llm.prompts import Prompt

TASK = "journal"
LEAST_DAYS = 7
LEAST_ENTRIES = 3
MOST_THEMES = 5
_INPUT_TOKENS = 16_000


@dataclass(frozen=True, slots=True)
class _Case:
    """What is due of one core note's journal: `entries` in the order they stand there."""

    core: str
    before: bytes | None
    text: str
    journal: bytes
    entries: tuple[JournalEntry, ...]

    @property
    def written(self) -> dict[str, str]:
        """Key of an entry -> its text with its heading."""
        text = self.journal.decode("utf-8")
        cut = [text[entry.start : entry.end] for entry in self.entries]
        return {notes.text_hash(entry): entry for entry in cut}

    @property
    def key(self) -> str:
        return key_of(TASK, self.core, *self.written)

    @property
    def verdict_key(self) -> str:
        return key_of(TASK, self.core, notes.content_hash(self.before or b""), *self.written)


def plan(context: Context) -> Iterator[Decision]:
    """One decision for each core note whose journal is due.

    Raises:
        ModelError: as `Models.ask`.
    """
    refused = refused_evidence(context)
    for core in CORE_FILES:
        case = _open_case(context, core, refused)
        if case is not None:
            decision = _decide(context, case)
            if decision is not None:
                yield decision


def _open_case(context: Context, core: str, refused: set[str]) -> _Case | None:
    data, note = context.read(layout.journal_path(core)), read_core(context, core)
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
        if entry.day < today and entry.paragraphs and notes.text_hash(text[entry.start : entry.end]) not in refused
    )
    is_due = len(entries) >= LEAST_ENTRIES and min(e.day for e in entries) <= today - timedelta(days=LEAST_DAYS)
    return _Case(core, *note, data, entries) if is_due else None


def _decide(context: Context, case: _Case) -> Decision | None:
    told = context.judgements.known([case.verdict_key]).get(case.verdict_key)
    if told is None:
        told = _distil(context, case)
    if told is None:
        return None
    verdict = json.loads(told)
    after = case.text
    for theme in verdict["themes"]:
        after = core_notes.add_bullets(after, theme["section"], [theme["text"]])
    if core_notes.is_long(after) or not verdict["is_usable"]:
        return None
    remember_evidence(context, TASK, case.key, case.written)
    edits = _archive(context, case)
    if edits is None:
        return None
    if after != case.text:
        edits.insert(0, Edit(case.core, case.before, after.encode()))
    entries, themes = f"{len(case.entries):,} journal entries", [str(theme["text"]) for theme in verdict["themes"]]
    return Decision(
        task=TASK,
        kind="distil",
        key=case.key,
        edits=tuple(edits),
        subject=f"distil {entries} into {case.core}" if themes else f"archive {entries} of {case.core}",
        why=_why(case, len(themes)),
        model=verdict["model"],
        prompt=verdict["prompt"],
        detail="\n".join(f"- {theme}" for theme in themes),
    )


def _distil(context: Context, case: _Case) -> str | None:
    """What the entries come to, as JSON, kept as a judgement; None where no model is there."""
    if context.models is None:
        return None
    prompt = context.models.prompt(TASK)
    themes: list[dict[str, str]] = []
    proposed, model = 0, ""
    for batch in batches(
        case.entries,
        tokens_of=lambda entry: estimate_tokens("\n".join(entry.paragraphs)) + 20,
        input_limit=_INPUT_TOKENS,
        output_per_item=0,
        output_limit=prompt.max_output_tokens,
    ):
        given, model = _ask(context, case, prompt, batch)
        proposed += len(given)
        themes += [_kept(theme) for theme in given if not _faults(theme, batch, case.text)]
    is_usable = bool(themes) or not proposed
    verdict = {"themes": themes, "is_usable": is_usable, "model": model, "prompt": prompt.label}
    told = json.dumps(verdict, ensure_ascii=False)
    context.judgements.add(TASK, {case.verdict_key: told})
    return told


def _ask(
    context: Context, case: _Case, prompt: Prompt, batch: Sequence[JournalEntry]
) -> tuple[Sequence[Mapping[str, Any]], str]:
    assert context.models is not None

    def check(value: Mapping[str, Any]) -> list[str]:
        return [
            f"{fault}: {theme['text']!r}" for theme in value["themes"] for fault in _faults(theme, batch, case.text)
        ]

    shown = ({"day": entry.day.isoformat(), "text": "\n\n".join(entry.paragraphs)} for entry in batch)
    inputs = {
        "name": case.core,
        "note": case.text,
        "sections": json.dumps(core_notes.section_titles(case.text), ensure_ascii=False),
        "refused": list_refused(context),
        "entries": numbered_lines(shown),
    }
    answer = context.models.ask(prompt, inputs, check=check)
    return answer.value["themes"][:MOST_THEMES], answer.model


def _faults(theme: Mapping[str, Any], batch: Sequence[JournalEntry], note: str) -> list[str]:
    """Why a theme cannot go into the core note."""
    rests_on = [batch[n - 1] for n in theme["entries"] if n <= len(batch)]
    if not rests_on or len(rests_on) < len(theme["entries"]):
        return ["it rests on entries that are not there"]
    text = theme["text"]
    faults = [fault for fault in (fault_of(text),) if fault]
    said = [
        f"{entry.day.isoformat()} {notes.format_day(entry.day.isoformat())} {' '.join(entry.paragraphs)}"
        for entry in rests_on
    ]
    # A theme is worded freely: of what it says, only the numbers can be held against the entries.
    faults += [f"no entry says {new!r}" for new in unsaid(text, [*said, note]) if any(map(str.isdigit, new))]
    return faults if may_stand(text) else [*faults, "it hides or orders something"]


def _kept(theme: Mapping[str, Any]) -> dict[str, str]:
    return {"text": str(theme["text"]), "section": str(theme.get("section") or core_notes.LEARNED)}


def _archive(context: Context, case: _Case) -> list[Edit] | None:
    """The entries out of the journal and into the archive of their month; None where an archive cannot be read."""
    text, path = case.journal.decode("utf-8"), layout.journal_path(case.core)
    archives: dict[str, tuple[bytes | None, str]] = {}
    for entry in reversed(case.entries):
        archive = archive_path(path, entry.day)
        if archive not in archives:
            data = context.read(archive)
            try:
                archives[archive] = (data, (data or b"").decode("utf-8"))
            except UnicodeDecodeError:
                return None
        before, archived = archives[archive]
        archives[archive] = (before, insert_entry(archived, text[entry.start : entry.end]))
    kept = remove_entries(text, case.entries)
    left = kept.encode() if kept.removeprefix("\ufeff").strip() else None
    changed = {name: (before, after.encode()) for name, (before, after) in archives.items()}
    moved = [Edit(name, before, after) for name, (before, after) in changed.items() if before != after]
    return [Edit(path, case.journal, left), *moved]


def _why(case: _Case, themes: int) -> str:
    first, *_, last = sorted(entry.day.isoformat() for entry in case.entries)
    span = f"{len(case.entries):,} entries from {notes.format_day(first)} to {notes.format_day(last)}"
    if not themes:
        return f"{span} hold nothing that {case.core} should say for good. They are in journal/archive/ now."
    return f"{span} come to what was added to {case.core}. They are in journal/archive/ now, word for word."
