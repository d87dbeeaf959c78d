"""Core notes: four kinds of edits that a model proposes for the notes an agent reads before every conversation.

`snippets` merges observations, `journal` distils entries, `promotion` adds important facts, `workspace` shortens a
note that has grown too long. Each is a prompt with its items and checks, and a decision that edits the note. The
owner's lines stay; only `workspace` proposes to change them, and always asks. What leaves the snippets or the journal
does so in the same commit, so that undoing it brings everything back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from quaid.claims import problem_of
from quaid.index.documents import Document
from quaid.janitor.judging import Judgement, ModelQuestion, by_number, numbered_lines, set_aside_keys
from quaid.janitor.model_text import (
    clean_reason,
    find_unsupported,
    is_safe_line,
    plain_line,
    quote,
    statement_problem,
    without_empty,
)
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer, ItemProblem
from quaid.local.runs import Decision, evidence_key
from quaid.model import CORE_FILES, Edit, Use, name_key, note_name
from quaid.recall import scoring
from quaid.recall.visibility import list_cut
from quaid.text import endings
from quaid.text.quoting import neutralise
from quaid.vault import core_notes, headings, layout, markdown, notes, replacements
from quaid.vault.core_notes import DatedSection, archive_path, insert_entry, parse_entries, remove_entries
from quaid.vault.replacements import ChangeProblem, Replacement

T = TypeVar("T")
SNIPPETS, JOURNAL, PROMOTION, WORKSPACE = "snippets", "journal", "promotion", "workspace"
READ = "journal read"
"""The task that stores that an entry came to nothing."""
SUSPICIOUS = 10
"""An answer that drops all of this many observations is refused."""
MIN_JOURNAL_DAYS, MIN_ENTRIES, MAX_THEMES = 7, 3, 5
"""A journal is distilled when it has this many new entries and the oldest of them is this many days old."""
MIN_AGE_DAYS = 7.0
MAX_OFFERED = 50
"""The most important facts, those that a core note already has included: so that the list is stable."""
MAX_PROMOTED = 5
MIN_IMPORTANCE = 1.2
"""More than full confidence: a fact that nobody has used, confirmed or marked is not promoted."""
BONUS_PER_ACCESS, MAX_ACCESS_BONUS = 0.05, 0.5
BONUS_PER_CONFIRMATION, MAX_CONFIRMATION_BONUS = 0.1, 0.3
MAX_STRENGTH_BONUS = 0.2
MARKED_BONUS = 0.5
MAX_LINE_CHARACTERS = 240
MAX_SECTION_CHARACTERS = 60
MIN_LEFT = core_notes.MAX_CHARACTERS // 2
"""Characters that a shortened note must keep, or half of the note if that is less: a larger cut is careless."""
_SECTION_MARKS = "#[]|^<>%*`\\"


@dataclass(frozen=True, slots=True)
class _CoreNote:
    """A core note that may be edited; `before` is None where there is none yet."""

    path: str
    before: bytes | None
    text: str

    def edit(self, after: str) -> list[Edit]:
        return [Edit(self.path, self.before, after.encode())] if after != self.text else []


class _CoreQuestion(ModelQuestion[T]):
    """A question about one core note and items for it."""

    slot = ""
    """The slot of the prompt that shows the items."""

    def __init__(self, context: TaskContext, note: _CoreNote) -> None:
        super().__init__(context)
        self.note = note

    def inputs(self, batch: Sequence[T]) -> dict[str, str]:
        sections = json.dumps(core_notes.section_titles(self.note.text), ensure_ascii=False)
        items = numbered_lines(map(self.show, batch))
        return {"name": self.note.path, "note": self.note.text, "sections": sections, self.slot: items}

    def key(self, task: str, *evidence: str) -> str:
        """The key of a judgement made next to the note as it is."""
        return evidence_key(task, self.note.path, notes.content_hash(self.note.before or b""), *evidence)


def _list_notes(context: TaskContext) -> Iterator[_CoreNote]:
    """Yield the core notes that may be edited: none that is pinned, verified, in the middle of a merge, or not text."""
    for path in CORE_FILES:
        data = context.read(path)
        try:
            text = (data or b"").decode("utf-8")
        except UnicodeDecodeError:
            continue
        note = notes.parse_note(path, data or b"", place=context.layout)
        if not (note.pinned or note.verified or markdown.has_conflict_markers(text)):
            yield _CoreNote(path, data, text)


def _read_text(context: TaskContext, path: str) -> tuple[bytes, str]:
    """Return a file's bytes and text; empty where there is none, or where it is not text."""
    data = context.read(path) or b""
    try:
        return data, data.decode("utf-8")
    except UnicodeDecodeError:
        return data, ""


def _remove_file_if_empty(path: str, before: bytes, rest: str) -> Edit:
    return Edit(path, before, rest.encode() if rest.removeprefix("\ufeff").strip() else None)


def _store_evidence(context: TaskContext, task: str, key: str, evidence: Collection[str]) -> None:
    """Store what the decision `key` rests on. With a sixth observation, a decision about five has another key: what a
    refused decision rested on is not proposed again in other company.
    """
    context.judgements.add(task, {evidence_key("evidence", key): " ".join(sorted(evidence))})


def _read_refused_evidence(context: TaskContext) -> set[str]:
    """Return the evidence of all decisions that the owner has undone or refused."""
    keys = {*context.vetoed, *(veto.key for veto in context.vetoes)}
    known = context.judgements.known([evidence_key("evidence", key) for key in keys])
    return {part for parts in known.values() for part in parts.split()}


# -- snippets --------------------------------------------------------------------------------------------------------


class _Snippets(_CoreQuestion[str]):
    """Asks what becomes of observations, one line each."""

    prompt = SNIPPETS
    items = "observations"
    slot = "observations"
    output_tokens = 150

    def show(self, item: str) -> dict[str, str]:
        return {"text": item}

    def find_problems(self, item: str, given: Mapping[str, Any]) -> Iterator[str]:
        if given["verdict"] != "rewrite":
            return
        text = given.get("text")
        if not text:
            yield "it has no text"
            return
        unsafe = "" if is_safe_line(text) else "it hides or orders something"
        # It may name the owner, whom an observation is about without naming them.
        found = (statement_problem(text), problem_of(text, [item], self.context.settings.owner_name), unsafe)
        yield from filter(None, found)

    def find_carelessness(self, batch: Sequence[str], given: Sequence[Mapping[str, Any]]) -> str:
        drops_all = sum(item["verdict"] == "discard" for item in given) >= len(batch) >= SUSPICIOUS
        return f"it lets go of all {len(batch)} observations" if drops_all else ""

    def read(self, item: str, given: Mapping[str, Any], answer: Answer) -> Judgement:
        # Without a usable rewording, the observation is added as it is.
        is_reworded = given["verdict"] == "rewrite" and not list(self.find_problems(item, given))
        return Judgement(
            given["verdict"],
            clean_reason(given["reason"]),
            str(given["text"]) if is_reworded else "",
            given.get("section") or core_notes.LEARNED,
            model=answer.model,
            prompt=answer.prompt,
        )


def plan_snippets(context: TaskContext) -> Iterator[Decision]:
    """Yield one decision for each core note that has observations; a second one, which asks, for more lines than a run
    may add.
    """
    refused = _read_refused_evidence(context)
    for note in _list_notes(context):
        path = context.layout.place(layout.snippets_path(note.path))
        snippets, text = _read_text(context, path)
        texts = {
            headings.text_key(line): line for section in core_notes.parse_observations(text) for line in section.texts
        }
        asked_keys = {evidence_key("asked about", note.path, observation): observation for observation in texts}
        asked = context.judgements.known(list(asked_keys))
        settled = refused | {asked_keys[key] for key, about in asked.items() if context.is_asked(about, ("fold",))}
        texts = {key: line for key, line in texts.items() if key not in settled and is_safe_line(line)}
        if not texts or core_notes.is_long(note.text):
            continue
        question = _Snippets(context, note)
        keys = {question.key(SNIPPETS, observation): observation for observation in texts}
        judged = question.judge({key: texts[observation] for key, observation in keys.items()})
        judgements = {keys[key]: judgement for key, judgement in judged}
        adding = [key for key in texts if key in judgements and judgements[key].says != "discard"]
        is_carried_out = context.settings.janitor.policies.fold == "auto"
        more = {key: texts.pop(key) for key in adding[core_notes.MAX_LINES_A_RUN :] if is_carried_out}
        first = _fold(question, Edit(path, snippets, None), texts, judgements)
        if first is None:
            continue
        yield first
        after = {edit.rel_path: edit.after for edit in first.edits}
        core, rest = after.get(note.path, note.before), after[path]
        if not more or core is None or rest is None:
            continue
        left = _Snippets(context, _CoreNote(note.path, core, core.decode("utf-8")))
        second = _fold(left, Edit(path, rest, None), more, judgements)
        if second is not None:
            about = {evidence_key("asked about", note.path, key): second.key for key in more}
            context.judgements.add(SNIPPETS, about)
            yield replace(second, always_asks=True)


def _fold(
    question: _Snippets, snippets: Edit, texts: Mapping[str, str], judgements: Mapping[str, Judgement]
) -> Decision | None:
    """Return the decision on observations, by key; None where nothing is added or dropped."""
    context, note, after = question.context, question.note, question.note.text
    judged = {key: judgements[key] for key in texts if key in judgements}
    dropped = [key for key, judgement in judged.items() if judgement.says == "discard"]
    added: list[str] = []
    too_long: list[str] = []
    for key in (key for key in judged if key not in dropped):
        longer = core_notes.add_bullets(after, judged[key].section, [judged[key].text or texts[key]])
        if core_notes.is_long(longer):
            too_long.append(key)
        else:
            after = longer
            added.append(key)
    gone = [*added, *dropped]
    if not gone:
        return None
    # Observations that do not fit are judged next to the note as it is going to be: they are not asked about again.
    changed = _Snippets(context, _CoreNote(note.path, after.encode(), after))
    context.judgements.add(SNIPPETS, {changed.key(SNIPPETS, key): judged[key].render() for key in too_long})
    key = evidence_key(SNIPPETS, note.path, *gone)
    _store_evidence(context, SNIPPETS, key, gone)
    lines = []
    for one in gone:
        reworded = f" as {quote(judged[one].text, 200)}" if judged[one].text and one in added else ""
        verb = "folded" if one in added else "let go"
        lines.append(f"- {verb}: {quote(texts[one], 200)}{reworded}. {judged[one].reason}")
    before = snippets.before or b""
    rest = core_notes.remove_observations(before.decode("utf-8"), [texts[one] for one in gone])
    edits = (*note.edit(after), _remove_file_if_empty(snippets.rel_path, before, rest))
    count = f"{len(added or dropped):,} observation{'s' * (len(added or dropped) != 1)}"
    also = f", drop {len(dropped):,}" if dropped else ""
    subject = f"add {count} to {note.path}{also}" if added else f"drop {count} about {note.path}"
    why = f"Observations were held against {note.path}: what is new and lasting goes into it, the rest is let go."
    by = judged[gone[0]].model, judged[gone[0]].prompt
    return Decision(SNIPPETS, "fold", key, edits, subject, why, (), *by, detail="\n".join(lines))


# -- journal ---------------------------------------------------------------------------------------------------------


class _Journal(_CoreQuestion[DatedSection]):
    """Asks for the themes of journal entries."""

    prompt = JOURNAL
    items = "themes"
    slot = "entries"
    input_tokens = 16_000
    needs_all = False

    def label(self, item: DatedSection) -> str:
        return f"{self.note.path}, {item.day.isoformat()}: {item.texts[0]}"

    def show(self, item: DatedSection) -> dict[str, str]:
        return {"day": item.day.isoformat(), "text": "\n\n".join(item.texts)}

    def check(self, batch: Sequence[DatedSection], value: Mapping[str, Any]) -> list[str | ItemProblem]:
        return [
            ItemProblem("themes", place, problem)
            for place, theme in enumerate(value["themes"])
            for problem in self.find_theme_problems(theme, batch)
        ]

    def find_theme_problems(self, theme: Mapping[str, Any], batch: Sequence[DatedSection]) -> list[str]:
        """Return why a theme cannot go into the core note."""
        cited = [batch[n - 1] for n in theme["entries"] if n <= len(batch)]
        if not cited or len(cited) < len(theme["entries"]):
            return ["it rests on entries that are not there"]
        text = theme["text"]
        problems = list(filter(None, [statement_problem(text)]))
        days = [entry.day.isoformat() for entry in cited]
        sources = [
            f"{day} {notes.format_day(day)} {' '.join(entry.texts)}" for day, entry in zip(days, cited, strict=True)
        ]
        # A theme is worded freely: only its numbers can be checked against the entries.
        added = [new for new in find_unsupported(text, [*sources, self.note.text]) if any(map(str.isdigit, new))]
        problems += [f"no entry says {new!r}" for new in added]
        return problems if is_safe_line(text) else [*problems, "it hides or orders something"]


def plan_journal(context: TaskContext) -> Iterator[Decision]:
    """Yield one decision for each core note whose journal is due: its themes go into the note, its entries into the
    archive, word for word.

    Entries that no theme rests on stay and are read again with new ones; if no theme comes of any, all are archived.
    """
    refused = _read_refused_evidence(context)
    today = context.now.date()  # an entry of today may still grow
    for note in _list_notes(context):
        path = context.layout.place(layout.journal_path(note.path))
        data, text = _read_text(context, path)
        entries: dict[str, DatedSection] = {}
        for entry in parse_entries(text):
            key = headings.text_key(text[entry.start : entry.end])
            if entry.day < today and entry.texts and key not in refused:
                entries.setdefault(key, entry)
        question = _Journal(context, note)
        read = {key: question.key(READ, key) for key in entries} if entries else {}
        known = context.judgements.known(list(read.values()))
        new = [entry.day for key, entry in entries.items() if read[key] not in known]
        is_due = len(new) >= MIN_ENTRIES and min(new) <= today - timedelta(days=MIN_JOURNAL_DAYS)
        if is_due and not core_notes.is_long(note.text):
            yield from _distil(question, path, data, entries)


def _distil(question: _Journal, path: str, data: bytes, entries: Mapping[str, DatedSection]) -> Iterator[Decision]:
    """Yield the decision about the due `entries` of the journal `data` at `path`, if there is one."""
    context, note = question.context, question.note
    judgement_key = question.key(JOURNAL, *entries)
    stored = context.judgements.known([judgement_key]).get(judgement_key)
    if stored is None:
        found = _find_themes(question, entries)
        if found is None:
            return
        stored = json.dumps(found, ensure_ascii=False)
        context.judgements.add(JOURNAL, {judgement_key: stored})
    judgement = json.loads(stored)
    themes = [str(theme["text"]) for theme in judgement["themes"]]
    after = note.text
    for theme in judgement["themes"]:
        after = core_notes.add_bullets(after, theme["section"], [theme["text"]])
    if core_notes.is_long(after) or not judgement["is_usable"]:
        return
    used = {key for theme in judgement["themes"] for key in theme["entries"]}
    used |= set() if themes else entries.keys() - {*judgement.get("unread", ())}
    done = {key: entry for key, entry in entries.items() if key in used}
    key = evidence_key(JOURNAL, note.path, *done)
    _store_evidence(context, JOURNAL, key, done)
    changed = _Journal(context, _CoreNote(note.path, after.encode(), after))
    left = entries.keys() - done.keys()
    context.judgements.add(JOURNAL, {changed.key(READ, key): "read" for key in left})
    archived = _archive(context, path, data, list(done.values()))
    if archived is None:
        return
    count = f"{len(done):,} journal entr{'ies' if len(done) > 1 else 'y'}"
    days = [notes.format_day(entry.day.isoformat()) for entry in sorted(done.values(), key=lambda entry: entry.day)]
    span = f"{count} of {' to '.join(dict.fromkeys((days[0], days[-1])))}"
    if themes:
        why = f"What {span} came to was added to {note.path}. journal/archive/ has the words now."
    else:
        why = f"{note.path} should say nothing of {span} for good. journal/archive/ has the words now."
    subject = f"distil {count} into {note.path}" if themes else f"archive {count} of {note.path}"
    edits, by = (*note.edit(after), *archived), (judgement["model"], judgement["prompt"])
    yield Decision(JOURNAL, "distil", key, edits, subject, why, (), *by, detail="\n".join(f"- {t}" for t in themes))


def _find_themes(question: _Journal, entries: Mapping[str, DatedSection]) -> dict[str, Any] | None:
    """Return the themes of the entries, as they are stored: not usable where themes were proposed and none of them can
    be used. None where a later run has to read an entry.
    """
    themes: list[dict[str, Any]] = []
    has_proposals = False
    model = prompt = ""
    keys = {evidence_key(JOURNAL, question.note.path, key): key for key in entries}
    unread = dict(keys)
    for batch, answer in question.ask_all({item: entries[key] for item, key in keys.items()}):
        for item, _ in batch:
            del unread[item]
        model, prompt = answer.model, answer.prompt
        proposed = answer.value["themes"][:MAX_THEMES]
        has_proposals = has_proposals or bool(proposed)
        themes += [
            {
                "text": str(theme["text"]),
                "section": str(theme.get("section") or core_notes.LEARNED),
                "entries": [keys[batch[n - 1][0]] for n in theme["entries"]],
            }
            for theme in proposed
            if not question.find_theme_problems(theme, [entry for _, entry in batch])
        ]
    if not unread.keys() <= set_aside_keys(question.context):
        return None
    is_usable = bool(themes) or (bool(model) and not has_proposals)
    unread_keys = list(unread.values())
    return {"themes": themes, "is_usable": is_usable, "model": model, "prompt": prompt, "unread": unread_keys}


def _archive(context: TaskContext, path: str, data: bytes, entries: Sequence[DatedSection]) -> list[Edit] | None:
    """Move `entries` from the journal to the archive of their month; None where an archive cannot be read."""
    text = data.decode("utf-8")
    archives: dict[str, tuple[bytes | None, str]] = {}
    for entry in reversed(entries):
        archive = archive_path(path, entry.day)
        if archive not in archives:
            before = context.read(archive)
            try:
                archives[archive] = (before, (before or b"").decode("utf-8"))
            except UnicodeDecodeError:
                return None
        before, archived = archives[archive]
        archives[archive] = (before, insert_entry(archived, text[entry.start : entry.end]))
    moved = [Edit(name, before, after.encode()) for name, (before, after) in archives.items()]
    rest = _remove_file_if_empty(path, data, remove_entries(text, entries))
    return [rest, *(edit for edit in moved if edit.before != edit.after)]


# -- promotion -------------------------------------------------------------------------------------------------------


class _Promotion(ModelQuestion[tuple[Document, Use]]):
    """Asks which of the most important facts belong in which core note."""

    prompt = PROMOTION
    items = "promotions"
    input_tokens = 16_000
    needs_all = False

    def __init__(self, context: TaskContext, core: Mapping[str, _CoreNote]) -> None:
        super().__init__(context)
        self._core = core

    def show(self, item: tuple[Document, Use]) -> dict[str, Any]:
        fact, use = item
        return without_empty(
            {
                "text": headings.one_line(fact.text),
                "category": fact.type,
                "durability": fact.durability,
                "speaker": fact.speaker,
                "told": (fact.created or "")[:10],
                "valid_from": fact.valid_from,
                "used": use.accesses,
                "said_again": fact.confirmations,
                "marked": fact.pinned or fact.verified,
            }
        )

    def inputs(self, batch: Sequence[tuple[Document, Use]]) -> dict[str, str]:
        shown = (
            {"file": note.path, "sections": core_notes.section_titles(note.text), "text": note.text}
            for note in self._core.values()
        )
        lines = "\n".join(json.dumps(note, ensure_ascii=False) for note in shown)
        return {"notes": lines, "facts": numbered_lines(map(self.show, batch))}

    def find_problems(self, item: tuple[Document, Use], given: Mapping[str, Any]) -> Iterator[str]:
        """Yield why a promotion cannot be proposed."""
        fact, note = item[0], self._core.get(given["file"])
        line, section = headings.one_line(given["line"]), headings.one_line(given["section"])
        if note is None:
            yield f"{given['file']} takes no lines now"
            return
        problem = statement_problem(line)
        if problem or len(line) > MAX_LINE_CHARACTERS or not is_safe_line(line):
            yield f"the line cannot be used: {problem or 'it is too long, or hides or orders something'}"
            return
        days = [notes.format_day(day) for day in (fact.created, fact.valid_from, fact.valid_until) if day]
        if added := find_unsupported(line, [fact.text, *days, fact.speaker or ""]):
            yield f"the line says {', '.join(added)}, which the fact does not"
        elif headings.text_key(line) in {headings.text_key(plain_line(known)) for known in note.text.splitlines()}:
            yield f"{note.path} says that already"
        elif (
            not 0 < len(section) <= MAX_SECTION_CHARACTERS
            or any(mark in section for mark in _SECTION_MARKS)
            or not is_safe_line(section)
        ):
            yield "the section is not a heading"


def plan_promotion(context: TaskContext) -> Iterator[Decision]:
    """Yield at most five proposals, each a line in a core note with a link to its fact."""
    if context.settings.janitor.policies.promote == "off" or context.models is None:
        return
    editable = (note for note in _list_notes(context) if note.before is not None and not core_notes.is_long(note.text))
    core = {note.path: note for note in editable}
    offered = _list_offered(context, core.values()) if core else {}
    question = _Promotion(context, core)
    promoted: set[str] = set()
    for batch, answer in question.ask_all(offered):
        chosen = by_number(answer.value["promotions"], batch)
        for (key, item), wanted in chosen[: MAX_PROMOTED - len(promoted)]:
            is_sound = not any(question.find_problems(item, wanted))
            decision = _promote(context, key, item[0], wanted, answer) if is_sound else None
            if decision is not None:
                promoted.add(key)
                yield decision
        left = [key for key, _ in batch if key not in promoted]
        context.judgements.add(PROMOTION, dict.fromkeys(left, "not for a core note"))


def importance(fact: Document, use: Use, confidence: float) -> float:
    """Return a fact's current confidence (0 to 1) plus bonuses for its use, its confirmations and its owner's marks."""
    used = min(MAX_ACCESS_BONUS, BONUS_PER_ACCESS * use.accesses)
    confirmed = min(MAX_CONFIRMATION_BONUS, BONUS_PER_CONFIRMATION * fact.confirmations)
    strong = min(MAX_STRENGTH_BONUS, max(0.0, use.strength))
    return confidence + used + confirmed + strong + MARKED_BONUS * (fact.pinned or fact.verified)


def _list_offered(context: TaskContext, core: Iterable[_CoreNote]) -> dict[str, tuple[Document, Use]]:
    """Return the most important facts by key, the most important first, without those that a core note links to or
    that were judged before.
    """
    lasting = []
    for fact in context.find_facts(
        "status = 'active' AND owner = ? AND NOT technical AND durability IN ('mutable', 'immutable') "
        "AND coalesce(source, 'user') <> 'tool'",
        context.settings.owner,
    ):
        age = scoring.days_since(fact.created, context.now)
        is_true = endings.find_end(fact) is None and endings.is_true_on(fact, context.day)
        # A text that gives orders to its reader has no place where every conversation begins.
        if age is not None and age >= MIN_AGE_DAYS and is_true and neutralise(fact.text) == fact.text:
            lasting.append(fact)
    uses = context.records.strengths([fact.id for fact in lasting])
    scored = []
    for fact in lasting:
        use = uses.get(fact.id, scoring.NEVER_USED)
        score = importance(fact, use, scoring.confidence(fact, use, context.now))
        if score >= MIN_IMPORTANCE:
            scored.append((-score, fact.path, (fact, use)))
    scored.sort(key=lambda item: item[:2])
    linked = {name_key(note_name(target)) for note in core for target in markdown.links(note.text)}
    offered = {
        evidence_key(PROMOTION, fact.content_hash): (fact, use)
        for _, path, (fact, use) in scored[:MAX_OFFERED]
        if name_key(note_name(path)) not in linked
    }
    settled = {*context.judgements.known(list(offered)), *context.vetoed}
    return {
        key: item for key, item in offered.items() if key not in settled and not context.is_asked(key, ("promote",))
    }


def _promote(
    context: TaskContext, key: str, fact: Document, wanted: Mapping[str, Any], answer: Answer
) -> Decision | None:
    """Return the decision; None where the line would not be visible in its note, or would make it too long."""
    # Notes are read again for each decision: the one before may have changed them.
    note = next((note for note in _list_notes(context) if note.path == wanted["file"]), None)
    if note is None or note.before is None:
        return None
    line, section = headings.one_line(wanted["line"]).rstrip("."), headings.one_line(wanted["section"])
    bullet = f"{line} ([[{note_name(fact.path)}|fact]])"
    titles = {name_key(headings.one_line(part.title)) for part in headings.top_sections(note.text)}
    if name_key(section) not in titles:
        after = headings.insert_block(note.text, len(note.text), f"## {section}\n\n- {bullet}")
    else:
        after = core_notes.add_bullets(note.text, section, [bullet])
        if name_key(section) not in map(name_key, core_notes.section_titles(note.text)):
            section = core_notes.LEARNED  # the wanted one takes no bullets
    body = notes.split_body(after)[1]
    visible = "\n".join(part.text for part in markdown.sections(body))
    is_visible = f"{line} (fact)" in visible and note_name(fact.path) in markdown.links(body)
    if core_notes.is_long(after) or not is_visible:
        return None
    why = clean_reason(wanted["reason"], "The agent should always know it.")
    subject, edits = f"add {quote(fact.text, 28)} to {note.path}", tuple(note.edit(after))
    detail, by = f"Below `{section}` in {note.path}:\n\n- {bullet}", (answer.model, answer.prompt)
    return Decision(PROMOTION, "promote", key, edits, subject, why, (fact.id,), *by, detail=detail)


# -- workspace -------------------------------------------------------------------------------------------------------


class _Trim(_CoreQuestion[str]):
    """Asks how to shorten a core note, by line numbers."""

    prompt = WORKSPACE
    items = "changes"
    needs_all = False

    def __init__(self, context: TaskContext, note: _CoreNote, size: str) -> None:
        super().__init__(context, note)
        self.head, self.body = notes.split_body(note.text)
        self.length = size

    def label(self, item: str) -> str:
        return f"how to shorten {item}"

    def show(self, item: str) -> dict[str, str]:
        return {"name": item}

    def inputs(self, _: Sequence[str]) -> dict[str, str]:
        return {"name": self.note.path, "note": replacements.number_lines(self.body), "size": self.length}

    def check(self, _: Sequence[str], value: Mapping[str, Any]) -> list[str | ItemProblem]:
        trims, problems = self.fit(value["changes"])
        if problems:
            return [ItemProblem("changes", place, problem) for place, problem in problems]
        problem = self.find_result_problem(trims) if trims else ""
        return [problem] if problem else []

    def fit(self, changes: Sequence[Mapping[str, Any]]) -> tuple[list[Replacement], list[ChangeProblem]]:
        """Return the changes that can be made, and what is wrong with the others."""

        def find_problem(_: str, new: str) -> str:
            if not all(is_safe_line(line) for line in new.splitlines() if line not in self.body):
                return "`replace` hides or orders something"
            invented = find_unsupported(new, [self.body])
            return f"`replace` says {invented[0]!r}, which the note does not" if invented else ""

        trims, problems = replacements.fit_lines(self.body, changes, find_problem)
        return [replace(trim, reason=clean_reason(trim.reason)) for trim in trims], problems

    def find_result_problem(self, trims: Sequence[Replacement]) -> str:
        after, least = replacements.apply(self.body, trims), min(MIN_LEFT, len(self.body) // 2)
        if not least <= len(after) < len(self.body):
            return f"the note must get shorter, and keep at least {least:,} characters"
        if replacements.has_open_fence(after) and not replacements.has_open_fence(self.body):
            return "a block of code loses its last line and keeps its first"
        return ""


def plan_workspace(context: TaskContext) -> Iterator[Decision]:
    """Yield a question for each core note that is too long to be read before every conversation, or that a session can
    show only in part.
    """
    texts = {core: markdown.text_of_note((context.read(core) or b"").decode("utf-8", "replace")) for core in CORE_FILES}
    shown = tuple((core, text) for core, text in texts.items() if text)
    budgets = {core: len(texts[core]) - over for core, over in list_cut(shown, context.settings.hooks)}
    for note in _list_notes(context):
        if not note.before or not (note.path in budgets or core_notes.is_long(note.text)):
            continue
        size = f"{len(note.text):,} characters in {note.text.count(chr(10)) + 1:,} lines"
        budget = budgets.get(note.path, core_notes.MAX_CHARACTERS)
        if budget < core_notes.MAX_CHARACTERS:
            size = f"{size}; sessions have room for {budget:,} characters of it"
        else:
            size = f"{size}; {core_notes.MAX_CHARACTERS:,} and {core_notes.MAX_LINES:,} are a good maximum"
        question = _Trim(context, note, size)
        key = evidence_key(WORKSPACE, notes.content_hash(note.before))
        stored = context.judgements.known([key]).get(key)
        if stored is None:
            for _, answer in question.ask_all({key: note.path}):
                found = {"changes": answer.value["changes"], "model": answer.model, "prompt": answer.prompt}
                stored = json.dumps(found, ensure_ascii=False)
                context.judgements.add(WORKSPACE, {key: stored})
        if stored is None:
            continue
        judgement = json.loads(stored)
        trims, _ = question.fit(judgement["changes"])
        if not trims or question.find_result_problem(trims):
            continue
        after = question.head + replacements.apply(question.body, trims)
        subject = f"shorten {note.path} from {len(note.text):,} to {len(after):,} characters"
        why = f"{note.path} is read before every conversation and has grown to {question.length}."
        detail = "\n".join(replacements.describe(question.body, trim) for trim in trims)
        edits, by = tuple(note.edit(after)), (judgement["model"], judgement["prompt"])
        yield Decision(WORKSPACE, "trim", key, edits, subject, why, (), *by, always_asks=True, detail=detail)
