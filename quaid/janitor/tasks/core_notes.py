"""Core notes: four kinds of edits that a model proposes for the notes an agent reads before every conversation.

`snippets` merges observations, `journal` distils entries, `promotion` adds important facts, `workspace` shortens a
note that has grown too long. Each is a prompt with its items and checks, and a decision that edits the note. The
owner's lines stay; only `workspace` proposes to change them, and always asks. What leaves the snippets or the journal
does so in the same commit, so that undoing it brings everything back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from quaid.claims import find_lost_words, is_same_claim, problem_of
from quaid.index import documents
from quaid.index.documents import Document, list_living
from quaid.index.port import IndexConnection
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
from quaid.text.stop_words import STOP_WORDS
from quaid.text.words import find_words
from quaid.vault import core_notes, headings, layout, markdown, notes, replacements
from quaid.vault.core_notes import (
    DatedSection,
    archive_path,
    insert_entry,
    list_bullets,
    parse_entries,
    remove_entries,
)
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
UNKNOWN_IMPORTANCE = 0.5
"""That of a line that rests on no fact."""
SAME_WORDS = 0.5
"""A line with more than this share of its words in a fact is about the same."""
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


Item = tuple[str, str, str, str]
"""A core note, a text, what became of the fact that it rests on, and the note of that fact's successor. With the third
the text is a line of the core note, without it an observation about it.
"""


class _Snippets(ModelQuestion[Item]):
    """Asks what becomes of observations, and of lines whose facts were replaced: one question for all core notes."""

    prompt = SNIPPETS
    items = "observations"
    output_tokens = 60

    def __init__(self, context: TaskContext, core: Sequence[_CoreNote]) -> None:
        super().__init__(context)
        self._core = core
        self._bullets = [
            (note.path, words)
            for note in core
            for bullets in [{note.text[start:end].strip(): words for start, end, words in list_bullets(note.text)}]
            for words in [bullets.get(line.strip(), "") for line in note.text.split("\n")]
        ]
        """The list item in each line of the notes; empty for a line that has none."""

    def show(self, item: Item) -> dict[str, str]:
        return without_empty({"file": item[0], "text": plain_line(item[1]) if item[2] else item[1], "now": item[2]})

    def inputs(self, batch: Sequence[Item]) -> dict[str, str]:
        shown: list[str] = []
        count = 0
        for note in self._core:
            head = {"file": note.path, "sections": core_notes.section_titles(note.text)}
            lines = note.text.split("\n")
            shown.append(json.dumps(head, ensure_ascii=False))
            shown += [f"{n}\t{line.rstrip()}" for n, line in enumerate(lines, count + 1)]
            count += len(lines)
        return {"note": "\n".join(shown), "observations": numbered_lines(map(self.show, batch))}

    def find_problems(self, item: Item, given: Mapping[str, Any]) -> Iterator[str]:
        if len(self._find_replaced(item, given)) < len(given.get("replaces") or ()):
            yield f"`replaces` has a number that is no list item of {item[0]}"
        if given["verdict"] != "rewrite":
            return
        text = given.get("text")
        if not text:
            yield "it has no text"
            return
        unsafe = "" if is_safe_line(text) else "it hides or orders something"
        if item[2]:
            added = find_unsupported(text, item)
            problem = f"it says {', '.join(added)}, which neither the line nor `now` does" if added else ""
        else:  # it may name the owner, whom an observation is about without naming them
            problem = problem_of(text, [item[1]], self.context.settings.owner_name) or ""
        yield from filter(None, (statement_problem(text), problem, unsafe))

    def find_carelessness(self, batch: Sequence[Item], given: Sequence[Mapping[str, Any]]) -> str:
        drops_all = sum(item["verdict"] == "discard" for item in given) >= len(batch) >= SUSPICIOUS
        return f"it lets go of all {len(batch)} observations" if drops_all else ""

    def read(self, item: Item, given: Mapping[str, Any], answer: Answer) -> Judgement:
        # Without a usable rewording, a text stays as it is.
        is_reworded = given["verdict"] == "rewrite" and not list(self.find_problems(item, given))
        return Judgement(
            "fold" if given["verdict"] == "rewrite" and not is_reworded else given["verdict"],
            clean_reason(given.get("reason") or "", ""),
            str(given["text"]) if is_reworded else "",
            given.get("section") or core_notes.LEARNED,
            replaces=self._find_replaced(item, given),
            model=answer.model,
            prompt=answer.prompt,
        )

    def _find_replaced(self, item: Item, given: Mapping[str, Any]) -> list[str]:
        """Return the list items of the same core note that `given` says an observation replaces."""
        numbers = [n for n in given.get("replaces") or () if n <= len(self._bullets) and not item[2]]
        return [words for path, words in (self._bullets[n - 1] for n in numbers) if words and path == item[0]]


def plan_snippets(context: TaskContext) -> Iterator[Decision]:
    """Yield a decision for each core note that has observations, lines whose facts were replaced, or more lines of the
    janitor's than a session shows; and one more where lines of the owner's would change, which asks.
    """
    refused = _read_refused_evidence(context)
    replaced = list_replaced(context.index, context.day)
    found: dict[str, Item] = {}
    judged: dict[Item, Judgement] = {}
    for note in _list_notes(context):
        snippets = _read_text(context, context.layout.place(layout.snippets_path(note.path)))[1]
        lines = [line for section in core_notes.parse_observations(snippets) for line in section.texts]
        outdated = _find_outdated(note, replaced)
        observed = {headings.text_key(line): (note.path, line, "", "") for line in lines}.values()
        items = [*outdated, *observed]
        asked = {evidence_key("asked about", _evidence(item)): item for item in items}
        known = context.judgements.known(list(asked))
        settled = {item for key, item in asked.items() if key in known and context.is_asked(known[key], ("fold",))}
        has_room = not _find_excess(context, note.path, _without_own(context, note))
        for item in items:
            judgement = outdated.get(item)
            if item in settled or _evidence(item) in refused or not is_safe_line(item[1]):
                continue
            if judgement is not None:
                judged[item] = judgement
            elif item[2] or has_room:
                found[evidence_key(SNIPPETS, *item, "" if item[2] else notes.content_hash(note.before or b""))] = item
    files = {item[0] for item in found.values()}
    question = _Snippets(context, [note for note in _list_notes(context) if note.path in files])
    judged |= {found[key]: judgement for key, judgement in question.judge(found)}
    for note in list(_list_notes(context)):
        mine = {item: judgement for item, judgement in judged.items() if item[0] == note.path}
        own = _list_own(context, note)
        owners = {item for item, judgement in mine.items() if not own.issuperset(_list_changed(item, judgement))}
        yield from _fold(context, note.path, {item: mine[item] for item in mine if item not in owners})
        if owners:
            yield from _fold(context, note.path, {item: mine[item] for item in owners})


def _evidence(item: Item) -> str:
    return evidence_key("line", item[0], item[1], item[2]) if item[2] else headings.text_key(item[1])


def _list_changed(item: Item, judgement: Judgement) -> Sequence[str]:
    """Return the lines of its core note that a judgement of `item` changes."""
    return judgement.replaces if not item[2] else [item[1]] if judgement.says != "fold" else []


def _list_own(context: TaskContext, note: _CoreNote) -> set[str]:
    """Return the list items of a core note that the janitor wrote, and that nobody has changed or accepted since."""
    if context.ranking is None:
        return set()
    foreign = context.ranking.list_foreign(note.path)
    return {words for start, end, words in list_bullets(note.text) if note.text[start:end].strip() not in foreign}


def _without_own(context: TaskContext, note: _CoreNote) -> str:
    return core_notes.change_bullets(note.text, dict.fromkeys(_list_own(context, note), ""))


def _find_excess(context: TaskContext, path: str, text: str) -> int:
    """Return how many characters too long the core note at `path` would be with `text`: for a session, which shows as
    much of it as the others leave.
    """
    texts = {core: text if core == path else _read_text(context, core)[1] for core in CORE_FILES}
    shown = {core: markdown.text_of_note(each) for core, each in texts.items()}
    cut = dict(list_cut([(core, each) for core, each in shown.items() if each], context.settings.hooks))
    return max(0, cut.get(path, 0), len(text) - core_notes.MAX_CHARACTERS)


def _make_room(context: TaskContext, path: str, text: str, own: Collection[str]) -> tuple[str, list[str]]:
    """Return `text` without as many of the janitor's `own` lines as a session has no room for, and these lines: those
    first whose facts matter least by use, confirmations and confidence. How new a line is does not count.
    """
    gone: list[str] = []
    if _find_excess(context, path, text):
        lines = [words for *_, words in reversed(list_bullets(text)) if words in own]
        weights = _weigh(context, lines)
        for line in sorted(lines, key=weights.__getitem__):
            if not _find_excess(context, path, text):
                break
            text = core_notes.change_bullets(text, {line: ""})
            gone.append(line)
    return text, gone


def _weigh(context: TaskContext, lines: Collection[str]) -> dict[str, float]:
    """Return how important each line of a core note is: as the most important fact that it links to or has the words
    of; half as much where that happened once.
    """
    words = {line: set(find_words(plain_line(line))) - STOP_WORDS for line in lines}
    linked = {line: {name_key(note_name(target)) for target in markdown.links(line)} for line in lines}
    weights = dict.fromkeys(lines, UNKNOWN_IMPORTANCE)
    facts = context.find_facts("status = 'active' AND owner = ?", context.settings.owner)
    uses = context.records.strengths([fact.id for fact in facts])
    for fact in facts:
        use, of_fact = uses.get(fact.id, scoring.NEVER_USED), set(find_words(fact.text))
        weight = importance(fact, use, scoring.confidence(fact, use, context.now))
        weight *= 0.5 if fact.type in endings.HAPPENED else 1.0
        for line, of_line in words.items():
            if len(of_line & of_fact) > SAME_WORDS * len(of_line) or name_key(note_name(fact.path)) in linked[line]:
                weights[line] = max(weights[line], weight)
    return weights


def list_replaced(index: IndexConnection, day: str) -> list[tuple[Document, Document | None]]:
    """Return the facts that are not true any more on `day`, each with the fact that replaced it; None if it ended."""
    living = {name_key(note_name(fact.path)): fact for fact in list_living(index)}
    ended = [(fact, None) for fact in living.values() if endings.is_over(fact, day)]
    old = documents.find_documents(index, "kind = 'fact' AND superseded_by IS NOT NULL")
    after = {name_key(note_name(fact.path)): name_key(note_name(fact.superseded_by or "")) for fact in old}
    chunks = documents.first_chunks(index, [fact.doc_id for fact in old])
    found: list[tuple[Document, Document | None]] = []
    for fact in documents.fetch_candidates(index, chunks).values():
        name, seen = name_key(note_name(fact.path)), set[str]()
        while name in after and name not in seen:
            seen.add(name)
            name = after[name]
        found += [(fact, living[name])] if name in living else []
    return [*ended, *found]


def _find_outdated(
    note: _CoreNote, replaced: Sequence[tuple[Document, Document | None]]
) -> dict[Item, Judgement | None]:
    """Return the lines of a core note that rest on a fact which is not true any more: that link to it, or say what it
    says and its successor does not. A line that says the same as the fact needs no model: it comes with its judgement.
    """
    found: dict[Item, Judgement | None] = {}
    lines = {words: set(find_words(plain_line(words))) for *_, words in list_bullets(note.text)}
    for old, new in replaced if lines else ():
        name, of_fact = name_key(note_name(old.path)), set(find_words(old.text)) - STOP_WORDS
        for line, words in lines.items():
            is_linked = name in {name_key(note_name(target)) for target in markdown.links(line)}
            is_same = is_same_claim(plain_line(line).removesuffix(" (fact)"), old.text)
            is_about = len(words & of_fact) >= SAME_WORDS * min(len(words - STOP_WORDS), len(of_fact))
            if new is not None and is_about and not (is_linked or is_same):
                lost, gained = find_lost_words(new.text, old.text), find_lost_words(old.text, new.text)
                is_about = not words.isdisjoint(lost) and not (gained and words.issuperset(gained))
            if not (is_linked or is_same or (new is not None and is_about)):
                continue
            now = new.text if new is not None else f"It was true until {notes.format_day(old.valid_until or '')}."
            item = (note.path, line, now, note_name(new.path) if new is not None and is_linked else "")
            why = "Its fact was replaced." if new is not None else "Its fact has ended."
            verdict = Judgement("rewrite" if new is not None else "discard", why, now.rstrip("."))
            found[item] = verdict if is_same and (new is None or is_safe_line(now)) else None
    return found


def _fold(context: TaskContext, path: str, judged: Mapping[Item, Judgement]) -> Iterator[Decision]:
    """Yield the decision about the core note at `path`, if it changes or an observation is let go."""
    # Notes are read again for each decision: the one before may have changed them.
    note = next((note for note in _list_notes(context) if note.path == path), None)
    if note is None:
        return
    changes: dict[str, str] = {}
    added: dict[str, str] = {}
    lines: list[str] = []
    acts: Counter[str] = Counter()
    present = {words for *_, words in list_bullets(note.text)}
    for item, judgement in judged.items():
        new, changed = judgement.text or item[1], [line for line in _list_changed(item, judgement) if line in present]
        if judgement.says == "discard":
            new = ""
        elif item[3]:
            new = f"{new} ([[{item[3]}|fact]])"
        changes |= {line: new if line == changed[0] else "" for line in changed}
        lines += [f"- before: {quote(line, 200)}" for line in changed]
        if changed:
            lines.append(f"- after: {quote(new, 200) if new else 'nothing'}. {judgement.reason}".rstrip())
            acts["change" if new else "remove"] += 1
        elif not item[2]:
            reworded = f" as {quote(new, 200)}" if judgement.text else ""
            lines.append(
                f"- {'added' if new else 'let go'}: {quote(item[1], 200)}{reworded}. {judgement.reason}".rstrip()
            )
            acts["add" if new else "drop"] += 1
            added |= {new: judgement.section} if new else {}
    text, own = core_notes.change_bullets(note.text, changes), _list_own(context, note)
    for new, section in added.items():
        text = core_notes.add_bullets(text, section, [new])
    own = (own - changes.keys()) | {changes[line] for line in own & changes.keys()} | added.keys()
    text, cut = _make_room(context, path, text, own)
    lines += [f"- no room for: {quote(line, 200)}" for line in cut]
    acts += Counter({"shorten by": len(cut)})
    if not lines:
        return
    done = [item for item, judgement in judged.items() if not item[2] or judgement.says != "fold"]
    evidence = [_evidence(item) for item in done]
    key = evidence_key(SNIPPETS, path, *evidence, *cut)
    _store_evidence(context, SNIPPETS, key, evidence)
    context.judgements.add(SNIPPETS, {evidence_key("asked about", each): key for each in evidence})
    snippets = context.layout.place(layout.snippets_path(path))
    before, observed = _read_text(context, snippets)
    rest = core_notes.remove_observations(observed, [item[1] for item in done if not item[2]])
    edits = [*note.edit(text), *([_remove_file_if_empty(snippets, before, rest)] if rest != observed else [])]
    done_in_words = ", ".join(f"{verb} {number}" for verb, number in acts.items())
    why = f"{path} is read before every conversation: it has what is true, lasting and used, in the room that there is."
    model, prompt = next(((each.model, each.prompt) for each in judged.values() if each.model), (None, None))
    subject, detail = f"update {path}: {done_in_words}", "\n".join(lines)
    yield Decision(SNIPPETS, "fold", key, tuple(edits), subject, why, (), model, prompt, detail=detail)


def adds_outdated(edit: Edit, replaced: Sequence[tuple[Document, Document | None]]) -> bool:
    """Return whether an edit adds a line to a core note that rests on one of the facts which were `replaced`."""
    before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in (edit.before, edit.after))
    new = "\n".join(f"- {line.lstrip('-*+ ')}" for line in after if line not in before)
    return edit.rel_path in CORE_FILES and bool(_find_outdated(_CoreNote(edit.rel_path, None, new), replaced))


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
        if is_due and not _find_excess(context, note.path, _without_own(context, note)):
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
    after, _ = _make_room(context, note.path, after, {*_list_own(context, note), *themes})
    if _find_excess(context, note.path, after) or not judgement["is_usable"]:
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
    core = {
        note.path: note
        for note in _list_notes(context)
        if note.before is not None and not _find_excess(context, note.path, _without_own(context, note))
    }
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
    # The next run makes room for the line, if that is possible.
    without_own = core_notes.change_bullets(after, dict.fromkeys(_list_own(context, note), ""))
    if _find_excess(context, note.path, without_own) or not is_visible:
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
    """Yield a question for each core note in which the owner's own text is longer than what a session shows of it."""
    for note in _list_notes(context):
        # The janitor's lines need no question: `snippets` makes room among them.
        owners = _without_own(context, note)
        excess = _find_excess(context, note.path, owners)
        if not note.before or not excess:
            continue
        size = f"{len(owners):,} characters in {owners.count(chr(10)) + 1:,} lines"
        room = max(0, len(markdown.text_of_note(owners)) - excess)
        size = f"{size}; sessions have room for {room:,} characters of it"
        question = _Trim(context, _CoreNote(note.path, note.before, owners), size)
        key = evidence_key(WORKSPACE, note.path, notes.content_hash(owners.encode()))
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
        shorter = question.head + replacements.apply(question.body, trims)
        after, own = shorter, _list_own(context, note)
        for section in headings.top_sections(note.text):
            bullets = [words for *_, words in list_bullets(note.text[section.start : section.end]) if words in own]
            after = core_notes.add_bullets(after, section.title, bullets)
        subject = f"shorten {note.path} from {len(owners):,} to {len(shorter):,} characters"
        why = f"{note.path} is read before every conversation, and what you wrote there has {question.length}."
        detail = "\n".join(replacements.describe(question.body, trim) for trim in trims)
        edits, by = tuple(note.edit(after)), (judgement["model"], judgement["prompt"])
        yield Decision(WORKSPACE, "trim", key, edits, subject, why, (), *by, always_asks=True, detail=detail)
