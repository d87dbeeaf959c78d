"""Core notes: what a model proposes for the notes an agent reads before every conversation.

`snippets` asks one question about all of them: what becomes of observations, of journal entries, of lines whose facts
were replaced, and which important facts get a line. `workspace` shortens what their owner wrote. The owner's lines
stay; where one would change, they are asked. What leaves the snippets or the journal does so in the same commit, so
that undoing it brings everything back.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from quaid.claims import find_lost_words, is_same_claim, problem_of
from quaid.index import documents, graph
from quaid.index.documents import Document, list_living
from quaid.index.port import IndexConnection
from quaid.janitor import model_text
from quaid.janitor.decision import fact_evidence
from quaid.janitor.judging import Judgement, ModelQuestion, by_number, numbered_lines
from quaid.janitor.model_text import clean_reason, is_safe_line, quote
from quaid.janitor.questions import list_questions
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
from quaid.vault.core_notes import DatedSection, list_bullets
from quaid.vault.replacements import ChangeProblem, Replacement

SNIPPETS, WORKSPACE = "snippets", "workspace"
SUSPICIOUS = 10
"""An answer that drops all of this many observations is refused."""
MIN_JOURNAL_DAYS, MIN_ENTRIES = 7, 3
"""A journal is read when it has this many new entries and the oldest of them is this many days old."""
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
MIN_LEFT = core_notes.MAX_CHARACTERS // 2
"""Characters that a shortened note must keep, or half of the note if that is less: a larger cut is careless."""


def _text(note: Edit) -> str:
    """Return the text of a core note, which is an edit from the bytes on disk to that text."""
    return (note.after or b"").decode("utf-8")


def _edit(note: Edit, after: str) -> list[Edit]:
    return [replace(note, after=after.encode())] if after != _text(note) else []


def _list_notes(context: TaskContext) -> Iterator[Edit]:
    """Yield the core notes that may be edited: none that is pinned, verified, in the middle of a merge, or not text."""
    for path in CORE_FILES:
        data = context.read(path)
        try:
            text = (data or b"").decode("utf-8")
        except UnicodeDecodeError:
            continue
        note = notes.parse_note(path, data or b"", place=context.layout)
        if not (note.pinned or note.verified or markdown.has_conflict_markers(text)):
            yield Edit(path, data, data or b"")


def _read_text(context: TaskContext, path: str) -> tuple[bytes, str]:
    """Return a file's bytes and text; empty where there is none, or where it is not text."""
    data = context.read(path) or b""
    try:
        return data, data.decode("utf-8")
    except UnicodeDecodeError:
        return data, ""


def _remove_file_if_empty(path: str, before: bytes, rest: str) -> Edit:
    return Edit(path, before, rest.encode() if rest.removeprefix("\ufeff").strip() else None)


# -- one question ----------------------------------------------------------------------------------------------------


class Item(NamedTuple):
    """What is asked about the core note `file`. `source` is the note that has the `text`: observations, a journal, a
    fact. A line of the core note comes with what is true `now`; its `source` is the fact that it will link to, if any.
    """

    file: str
    text: str
    source: str
    now: str = ""

    @property
    def is_entry(self) -> bool:
        return self.source.endswith(".journal.md")

    @property
    def is_fact(self) -> bool:
        return not (self.now or self.is_entry or self.source.endswith(".snippets.md"))

    @property
    def evidence(self) -> str:
        return evidence_key("line", self.file, self.text, self.now) if self.now else headings.text_key(self.text)


class _Question(ModelQuestion[Item]):
    """Asks what becomes of all items of all core notes."""

    prompt = SNIPPETS
    items = "observations"
    bare = ("discard", {"verdict": "discard"})
    input_tokens = 16_000
    output_tokens = 60

    def __init__(
        self, context: TaskContext, core: Sequence[Edit], items: Collection[Item], facts: Mapping[Item, Document]
    ) -> None:
        super().__init__(context)
        self._core = core
        self._facts = facts
        self._entries = [item for item in items if item.is_entry]
        self._bullets = [
            (note.rel_path, words)
            for note in core
            for bullets in [{_text(note)[start:end].strip(): words for start, end, words in list_bullets(_text(note))}]
            for words in [bullets.get(line.strip(), "") for line in _text(note).split("\n")]
        ]
        """The list item in each line of the notes; empty for a line that has none."""

    def show(self, item: Item) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "file": item.file,
            "text": model_text.plain_line(item.text) if item.now else item.text,
            "now": item.now,
        }
        shown |= {"from": "journal"} if item.is_entry else {}
        if item.is_fact:
            fact = self._facts[item]
            since = {"said": (fact.created or "")[:10], "since": fact.valid_from, "speaker": fact.speaker}
            shown |= {"from": "facts", "category": fact.type, **since}
        return model_text.without_empty(shown)

    def inputs(self, batch: Sequence[Item]) -> dict[str, str]:
        shown: list[str] = []
        count = 0
        for note in self._core:
            head = {"file": note.rel_path, "sections": core_notes.section_titles(_text(note))}
            lines = _text(note).split("\n")
            shown.append(json.dumps(head, ensure_ascii=False))
            shown += [f"{n}\t{line.rstrip()}" for n, line in enumerate(lines, count + 1)]
            count += len(lines)
        return {"note": "\n".join(shown), "observations": numbered_lines(map(self.show, batch))}

    def find_problems(self, item: Item, given: Mapping[str, Any]) -> Iterator[str]:
        if len(self._find_replaced(item, given)) < len(given.get("replaces") or ()):
            yield f"`replaces` has a number that is no list item of {item.file}"
        if given["verdict"] != "rewrite":
            return
        text = given.get("text")
        if not text:
            yield "it has no text"
            return
        unsafe = "" if is_safe_line(text) else "it hides or orders something"
        length = f"it is longer than {MAX_LINE_CHARACTERS} characters" if len(text) > MAX_LINE_CHARACTERS else ""
        yield from filter(None, (model_text.statement_problem(text), self._find_addition(item, text), unsafe, length))

    def _find_addition(self, item: Item, text: str) -> str:
        """Return what the new wording of an item says that it may not say."""
        if not (item.now or item.is_entry or item.is_fact):  # it may name the owner, whom an observation is about
            return problem_of(text, [item.text], self.context.settings.owner_name) or ""
        sources: list[str] = [*item]
        if item.is_entry:
            sources = [f"{entry.text} {notes.format_day(entry.text[:10])}" for entry in self._entries]
            sources += [_text(note) for note in self._core]
        elif item.is_fact:
            fact, lines = self._facts[item], [line for note in self._core for line in _text(note).splitlines()]
            if headings.text_key(text) in {headings.text_key(model_text.plain_line(line)) for line in lines}:
                return "a core note says that already"
            sources = [item.text, fact.speaker or ""]
            sources += [notes.format_day(day) for day in (fact.created, fact.valid_from, fact.valid_until) if day]
        # A theme is worded freely: only its numbers can be checked against the entries.
        added = model_text.find_unsupported(text, sources)
        added = [new for new in added if not item.is_entry or any(map(str.isdigit, new))]
        return f"it says {', '.join(added)}, which neither the text nor `now` does" if added else ""

    def find_carelessness(self, batch: Sequence[Item], given: Sequence[Mapping[str, Any]]) -> str:
        observed = [one["verdict"] for item, one in by_number(given, batch) if item.source.endswith(".snippets.md")]
        drops_all = len(observed) >= SUSPICIOUS and {*observed} == {"discard"}
        return f"it lets go of all {len(observed)} observations" if drops_all else ""

    def read(self, item: Item, given: Mapping[str, Any], answer: Answer) -> Judgement:
        # Without a usable rewording, a text stays as it is and where it is.
        is_reworded = given["verdict"] == "rewrite" and not list(self.find_problems(item, given))
        is_unusable = given["verdict"] == "rewrite" and not is_reworded
        return Judgement(
            ("discard" if item.is_fact else "fold") if is_unusable else given["verdict"],
            clean_reason(given.get("reason") or "", ""),
            str(given["text"]) if is_reworded else "",
            given.get("section") or core_notes.LEARNED,
            replaces=self._find_replaced(item, given),
            model=answer.model,
            prompt=answer.prompt,
        )

    def _find_replaced(self, item: Item, given: Mapping[str, Any]) -> list[str]:
        """Return the list items of the same core note that `given` says an observation replaces."""
        numbers = [n for n in given.get("replaces") or () if n <= len(self._bullets) and not item.now]
        return [words for path, words in (self._bullets[n - 1] for n in numbers) if words and path == item.file]


def plan_snippets(context: TaskContext) -> Iterator[Decision]:
    """Yield a decision for each core note that has observations, due journal entries, lines whose facts were replaced,
    or more lines of the janitor's than a session shows; one more where lines of the owner's would change, which asks;
    and one for each of at most five facts that get a line.
    """
    # With a sixth observation, a decision about five has another key. What one rested on that was refused, or is asked
    # about, is not proposed again in other company.
    asked = {each.key for each in list_questions(context.root, context.layout) if each.answer is None}
    keys = {*context.vetoed, *(veto.key for veto in context.vetoes), *asked}
    stored = context.judgements.known([evidence_key("evidence", key) for key in keys])
    settled = {part for parts in stored.values() for part in parts.split()}
    replaced = list_replaced(context.index, context.day)
    core = list(_list_notes(context))
    facts = _list_important(context, core)
    found: dict[str, Item] = {}
    judged: dict[Item, Judgement] = {}
    for note in core:
        outdated = _find_outdated(note, replaced)
        items = list(outdated)
        if not _find_excess(context, note.rel_path, _without_own(context, note)):
            path = context.layout.place(layout.side_path(note.rel_path, "snippets"))
            text = _read_text(context, path)[1] if context.settings.systems.journal else ""
            lines = [line for section in core_notes.parse_observations(text) for line in section.texts]
            items += {headings.text_key(line): Item(note.rel_path, line, path) for line in lines}.values()
            items += [item for item in facts if item.file == note.rel_path]
            found |= _list_entries(context, note, settled)
        for item in items:
            judgement = outdated.get(item)
            if item.evidence in settled or not is_safe_line(item.text):
                continue
            if judgement is not None:
                judged[item] = judgement
            else:
                changing = "" if item.now or item.is_fact else notes.content_hash(note.before or b"")
                found[evidence_key(SNIPPETS, *item, changing)] = item
    judged_before = context.judgements.known(list(found))
    asked_about = {item.file for key, item in found.items() if key not in judged_before}
    question = _Question(context, [note for note in core if note.rel_path in asked_about], found.values(), facts)
    judged |= {found[key]: judgement for key, judgement in question.judge(found)}
    for note in core:
        mine = {
            item: judgement for item, judgement in judged.items() if item.file == note.rel_path and not item.is_fact
        }
        own = _list_own(context, note)
        owners = {item for item, judgement in mine.items() if not own.issuperset(_list_changed(item, judgement))}
        yield from _fold(context, note.rel_path, {item: mine[item] for item in mine if item not in owners})
        if owners:
            yield from _fold(context, note.rel_path, {item: mine[item] for item in owners})
    promoted = [item for item, judgement in judged.items() if item.is_fact and judgement.says != "discard"]
    for item in promoted[:MAX_PROMOTED]:
        yield from _promote(context, facts[item], item, judged[item])


def _list_entries(context: TaskContext, note: Edit, settled: Collection[str]) -> dict[str, Item]:
    """Return the entries of a journal by the key of their judgement, if they are due, or were judged next to this note.

    An entry that comes to nothing yet is read again with new ones; one of today may still grow.
    """
    path = context.layout.place(layout.side_path(note.rel_path, "journal"))
    text = _read_text(context, path)[1] if context.settings.systems.journal else ""
    texts = [_render_entry(entry) for entry in core_notes.parse_entries(text) if entry.texts]
    items = [Item(note.rel_path, text, path) for text in dict.fromkeys(texts) if text[:10] < context.day]
    items = [item for item in items if item.evidence not in settled]
    company = evidence_key("entries", notes.content_hash(note.before or b""), *(item.text for item in items))
    found = {evidence_key(SNIPPETS, *item, company): item for item in items}
    known = context.judgements.known([*found, *(evidence_key("read", *item) for item in items)] if items else [])
    new = [item.text[:10] for item in items if evidence_key("read", *item) not in known]
    due = (context.now - timedelta(days=MIN_JOURNAL_DAYS)).date().isoformat()
    is_due = len(new) >= MIN_ENTRIES and min(new) <= due
    return found if is_due or found.keys() <= known.keys() else {}


def _render_entry(entry: DatedSection) -> str:
    return "\n\n".join([entry.day.isoformat(), *entry.texts])


def _list_changed(item: Item, judgement: Judgement) -> Sequence[str]:
    """Return the lines of its core note that a judgement of `item` changes."""
    return judgement.replaces if not item.now else [item.text] if judgement.says != "fold" else []


def _list_own(context: TaskContext, note: Edit) -> set[str]:
    """Return the list items of a core note that the janitor wrote, and that nobody has changed or accepted since."""
    if context.ranking is None:
        return set()
    foreign = context.ranking.list_foreign(note.rel_path)
    return {words for start, end, words in list_bullets(_text(note)) if _text(note)[start:end].strip() not in foreign}


def _without_own(context: TaskContext, note: Edit) -> str:
    return core_notes.change_bullets(_text(note), dict.fromkeys(_list_own(context, note), ""))


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
    words = {line: set(find_words(model_text.plain_line(line))) - STOP_WORDS for line in lines}
    linked = {line: {name_key(note_name(target)) for target in markdown.links(line)} for line in lines}
    weights = dict.fromkeys(lines, UNKNOWN_IMPORTANCE)
    facts = context.find_facts("status = 'active' AND owner = ?", context.settings.owner)
    uses = context.records.strengths([fact.id for fact in facts])
    for fact in facts:
        name, fact_words = name_key(note_name(fact.path)), set(find_words(fact.text))
        use = uses.get(fact.id, scoring.NEVER_USED)
        weight = importance(fact, use, scoring.confidence(fact, use, context.now))
        weight *= 0.5 if fact.type in endings.HAPPENED else 1.0
        for line, line_words in words.items():
            if len(line_words & fact_words) > SAME_WORDS * len(line_words) or name in linked[line]:
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


def _find_outdated(note: Edit, replaced: Sequence[tuple[Document, Document | None]]) -> dict[Item, Judgement | None]:
    """Return the lines of a core note that rest on a fact which is not true any more: that link to it, or say what it
    says and its successor does not. A line that says the same as the fact needs no model: it comes with its judgement.
    """
    found: dict[Item, Judgement | None] = {}
    lines = {words: set(find_words(model_text.plain_line(words))) for *_, words in list_bullets(_text(note))}
    for old, new in replaced if lines else ():
        name, fact_words = name_key(note_name(old.path)), set(find_words(old.text)) - STOP_WORDS
        for line, words in lines.items():
            is_linked = name in {name_key(note_name(target)) for target in markdown.links(line)}
            is_same = is_same_claim(model_text.plain_line(line).removesuffix(" (fact)"), old.text)
            is_about = len(words & fact_words) >= SAME_WORDS * min(len(words - STOP_WORDS), len(fact_words))
            if new is not None and is_about and not (is_linked or is_same):
                lost, gained = find_lost_words(new.text, old.text), find_lost_words(old.text, new.text)
                is_about = not words.isdisjoint(lost) and not (gained and words.issuperset(gained))
            if not (is_linked or is_same or (new is not None and is_about)):
                continue
            now = new.text if new is not None else f"It was true until {notes.format_day(old.valid_until or '')}."
            item = Item(note.rel_path, line, new.path if new is not None and is_linked else note.rel_path, now)
            why = "Its fact was replaced." if new is not None else "Its fact has ended."
            verdict = Judgement("rewrite" if new is not None else "discard", why, now.rstrip("."))
            found[item] = verdict if is_same and (new is None or is_safe_line(now)) else None
    return found


def _fold(context: TaskContext, path: str, judged: Mapping[Item, Judgement]) -> Iterator[Decision]:
    """Yield the decision about the core note at `path`, if it changes or an observation is let go."""
    # Notes are read again for each decision: the one before may have changed them.
    note = next((note for note in _list_notes(context) if note.rel_path == path), None)
    if note is None:
        return
    changes: dict[str, str] = {}
    added: dict[str, str] = {}
    lines: list[str] = []
    acts: Counter[str] = Counter()
    present = {words for *_, words in list_bullets(_text(note))}
    for item, judgement in judged.items():
        if item.is_entry and judgement.says == "fold":
            context.judgements.add(SNIPPETS, {evidence_key("read", *item): ""})
            continue
        new = "" if judgement.says == "discard" else judgement.text or item.text
        changed = [line for line in _list_changed(item, judgement) if line in present]
        if new and item.now and item.source != item.file:
            new = f"{new} ([[{note_name(item.source)}|fact]])"
        changes |= {line: new if line == changed[0] else "" for line in changed}
        lines += [f"- before: {quote(line, 200)}" for line in changed]
        if changed:
            lines.append(f"- after: {quote(new, 200) if new else 'nothing'}. {judgement.reason}".rstrip())
            acts["change" if new else "remove"] += 1
        elif not item.now:
            reworded = f" as {quote(new, 200)}" if judgement.text else ""
            verb = "added" if new else "let go"
            lines.append(f"- {verb}: {quote(item.text, 200)}{reworded}. {judgement.reason}".rstrip())
            acts["add" if new else "drop"] += 1
            added |= {new: judgement.section} if new else {}
    text, own = core_notes.change_bullets(_text(note), changes), _list_own(context, note)
    for new, section in added.items():
        text = core_notes.add_bullets(text, section, [new])
    own = (own - changes.keys()) | {changes[line] for line in own & changes.keys()} | added.keys()
    text, cut = _make_room(context, path, text, own)
    lines += [f"- no room for: {quote(line, 200)}" for line in cut]
    acts += Counter({"shorten by": len(cut)})
    if not lines:
        return
    done = [item for item, judgement in judged.items() if judgement.says != "fold" or not (item.now or item.is_entry)]
    evidence = [item.evidence for item in done]
    key = evidence_key(SNIPPETS, path, *evidence, *cut)
    context.judgements.add(SNIPPETS, {evidence_key("evidence", key): " ".join(sorted(evidence))})
    snippets = context.layout.place(layout.side_path(path, "snippets"))
    before, observed = _read_text(context, snippets)
    rest = core_notes.remove_observations(observed, [item.text for item in done if item.source == snippets])
    edits = [*_edit(note, text), *([_remove_file_if_empty(snippets, before, rest)] if rest != observed else [])]
    try:
        edits += _archive(context, path, {item.text for item in done if item.is_entry})
    except UnicodeDecodeError:
        return
    done_in_words = ", ".join(f"{verb} {number}" for verb, number in acts.items())
    why = f"{path} is read before every conversation: it has what is true, lasting and used, in the room that there is."
    model, prompt = next(((each.model, each.prompt) for each in judged.values() if each.model), (None, None))
    subject, detail = f"update {path}: {done_in_words}", "\n".join(lines)
    yield Decision(SNIPPETS, "fold", key, tuple(edits), subject, why, (), model, prompt, detail=detail)


def adds_outdated(edit: Edit, replaced: Sequence[tuple[Document, Document | None]]) -> bool:
    """Return whether an edit adds a line to a core note that rests on one of the facts which were `replaced`."""
    before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in (edit.before, edit.after))
    new = "\n".join(f"- {line.lstrip('-*+ ')}" for line in after if line not in before)
    return edit.rel_path in CORE_FILES and bool(_find_outdated(replace(edit, after=new.encode()), replaced))


def _archive(context: TaskContext, path: str, gone: Collection[str]) -> list[Edit]:
    """Move the entries `gone` from the journal of a core note to the archives of their months, word for word."""
    journal = context.layout.place(layout.side_path(path, "journal"))
    data, text = _read_text(context, journal)
    entries = [entry for entry in core_notes.parse_entries(text) if _render_entry(entry) in gone]
    moved: dict[str, Edit] = {}
    for entry in reversed(entries):
        archive = core_notes.archive_path(journal, entry.day)
        edit = moved.get(archive) or Edit(archive, before := context.read(archive), before)
        after = core_notes.insert_entry((edit.after or b"").decode("utf-8"), text[entry.start : entry.end])
        moved[archive] = Edit(archive, edit.before, after.encode())
    changed = [edit for edit in moved.values() if edit.before != edit.after]
    return [_remove_file_if_empty(journal, data, core_notes.remove_entries(text, entries)), *changed] if entries else []


# -- important facts -------------------------------------------------------------------------------------------------


def importance(fact: Document, use: Use, confidence: float) -> float:
    """Return a fact's current confidence (0 to 1) plus bonuses for its use, its confirmations and its owner's marks."""
    used = min(MAX_ACCESS_BONUS, BONUS_PER_ACCESS * use.accesses)
    confirmed = min(MAX_CONFIRMATION_BONUS, BONUS_PER_CONFIRMATION * fact.confirmations)
    strong = min(MAX_STRENGTH_BONUS, max(0.0, use.strength))
    return confidence + used + confirmed + strong + MARKED_BONUS * (fact.pinned or fact.verified)


def _list_important(context: TaskContext, core: Iterable[Edit]) -> dict[Item, Document]:
    """Return the most important facts, the most important first, without those that a core note links to. One that does
    not name the owner is for the note about the world.
    """
    settings = context.settings
    if settings.janitor.policies.promote == "off" or not settings.systems.workspace or context.models is None:
        return {}
    lasting = []
    for fact in context.find_facts(
        "status = 'active' AND owner = ? AND NOT technical AND durability IN ('mutable', 'immutable') "
        "AND coalesce(source, 'user') <> 'tool'",
        settings.owner,
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
            scored.append((-score, fact.path, fact))
    scored.sort(key=lambda item: item[:2])
    linked = {name_key(note_name(target)) for note in core for target in markdown.links(_text(note))}
    names = graph.with_aliases(context.index, [settings.owner_name])
    found: dict[Item, Document] = {}
    for _, path, fact in scored[:MAX_OFFERED]:
        is_about_owner = not settings.owner_name or any({*name.split()} & {*find_words(fact.text)} for name in names)
        key = _promotion_key(fact)
        is_settled = key in context.vetoed or context.is_asked(key, ("promote",))
        if name_key(note_name(path)) not in linked and not is_settled:
            found[Item("USER.md" if is_about_owner else "MEMORY.md", fact.text, path)] = fact
    return found


def _promotion_key(fact: Document) -> str:
    return evidence_key("promotion", fact_evidence(fact))


def _promote(context: TaskContext, fact: Document, item: Item, judgement: Judgement) -> Iterator[Decision]:
    """Yield the decision to give `fact` a line, if its note would show it and has room for it."""
    # Notes are read again for each decision: the one before may have changed them.
    note = next((note for note in _list_notes(context) if note.rel_path == item.file), None)
    if note is None:
        return
    bullet = f"{(judgement.text or headings.one_line(fact.text)).rstrip('.')} ([[{note_name(fact.path)}|fact]])"
    after = core_notes.add_bullets(_text(note), judgement.section, [bullet])
    is_visible = note_name(fact.path) in markdown.links(notes.split_body(after)[1])  # not in code or a comment
    # The next run makes room for the line, if that is possible.
    without_own = core_notes.change_bullets(after, dict.fromkeys(_list_own(context, note), ""))
    if after != _text(note) and is_visible and not _find_excess(context, note.rel_path, without_own):
        why = clean_reason(judgement.reason, "The agent should always know it.")
        subject, edits = f"add {quote(fact.text, 28)} to {note.rel_path}", tuple(_edit(note, after))
        by, detail = (judgement.model, judgement.prompt), f"Added to {note.rel_path}:\n\n- {bullet}"
        yield Decision(SNIPPETS, "promote", _promotion_key(fact), edits, subject, why, (fact.id,), *by, detail=detail)


# -- workspace -------------------------------------------------------------------------------------------------------


class _Trim(ModelQuestion[str]):
    """Asks how to shorten a core note, by line numbers."""

    prompt = WORKSPACE
    items = "changes"
    needs_all = False

    def __init__(self, context: TaskContext, note: Edit, size: str) -> None:
        super().__init__(context)
        self.note = note
        self.head, self.body = notes.split_body(_text(note))
        self.length = size

    def label(self, item: str) -> str:
        return f"how to shorten {item}"

    def show(self, item: str) -> dict[str, str]:
        return {"name": item}

    def inputs(self, _: Sequence[str]) -> dict[str, str]:
        return {"name": self.note.rel_path, "note": replacements.number_lines(self.body), "size": self.length}

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
            invented = model_text.find_unsupported(new, [self.body])
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
        excess = _find_excess(context, note.rel_path, owners)
        if not note.before or not excess:
            continue
        size = f"{len(owners):,} characters in {owners.count(chr(10)) + 1:,} lines"
        room = max(0, len(markdown.text_of_note(owners)) - excess)
        size = f"{size}; sessions have room for {room:,} characters of it"
        question = _Trim(context, replace(note, after=owners.encode()), size)
        key = evidence_key(WORKSPACE, note.rel_path, notes.content_hash(owners.encode()))
        stored = context.judgements.known([key]).get(key)
        if stored is None:
            for _, answer in question.ask_all({key: note.rel_path}):
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
        for section in headings.top_sections(_text(note)):
            bullets = [words for *_, words in list_bullets(_text(note)[section.start : section.end]) if words in own]
            after = core_notes.add_bullets(after, section.title, bullets)
        subject = f"shorten {note.rel_path} from {len(owners):,} to {len(shorter):,} characters"
        why = f"{note.rel_path} is read before every conversation, and what you wrote there has {question.length}."
        detail = "\n".join(replacements.describe(question.body, trim) for trim in trims)
        edits, by = tuple(_edit(note, after)), (judgement["model"], judgement["prompt"])
        yield Decision(WORKSPACE, "trim", key, edits, subject, why, (), *by, always_asks=True, detail=detail)
