"""A conversation -> its episode, and what a model learns from it, in one commit.

The model is prompted between reading and writing, without the lock: first the episode is drafted, then the model reads
its new turns, then episode, facts, entities, snippets and journal are planned on the memory as it is then, and written
together. When no model answers, the episode alone is written and stays pending.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, NamedTuple

from quaid import errors
from quaid.capture import episode_note, extraction, facts
from quaid.capture.conversation_reader import BuiltPrompt, ConversationReader, ConversationReading, HostAnswer
from quaid.capture.entities import EntityNames
from quaid.capture.episode_note import NOTE_SPEAKER
from quaid.capture.extraction import Extraction, Learned
from quaid.capture.facts import FactsPlan
from quaid.capture.other_names import name_speakers, owner_of, read_people
from quaid.capture.prompt_pieces import NumberedTurn, read_material, states_nothing
from quaid.capture.relations import plan_words
from quaid.capture.replacements import find_confirmed, find_replaced
from quaid.capture.transcripts import read_conversations
from quaid.capture.writer import WritePlan, Writer, WriteResult, make_key, naming_broken_note
from quaid.config import own_names
from quaid.local.locks import extracting
from quaid.local.runs import EmptyReadings
from quaid.local.session_notes import SessionNotes
from quaid.model import Conversation, Edit, Message, Turn, name_key, note_name
from quaid.open_vault import OpenVault
from quaid.place import LOCAL_FILE
from quaid.redaction import admit
from quaid.text.zones import local_now, localise
from quaid.vault import core_notes, files, frontmatter, layout
from quaid.vault.agent_notes import find_lock
from quaid.vault.notes import render_time, split_body

TRIGGER = "Session"
"""The occasion that snippets and journal name by default."""
ATTEMPTS = 3
Source = str | os.PathLike[str] | IO[bytes] | Sequence[Turn]
"""A transcript file, an open stream, or turns."""


class ExtractOptions(NamedTuple):
    """Options of an extraction. Without `facts` no model is prompted; with an `answer` none needs to be."""

    facts: bool = True
    dry_run: bool = False
    trigger: str = TRIGGER
    answer: HostAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractResult(Learned):
    """The result of an extraction from one conversation.

    It is `waiting` until a model has read all of it; `problem` is the failure of one. `quarantined` is the file with
    the statements that were left out.
    """

    session: str
    path: str
    turns: int = 0
    new_turns: int = 0
    waiting: bool = True
    skipped: dict[str, int] = field(default_factory=dict)
    redacted: tuple[str, ...] = ()
    snippets: dict[str, int] = field(default_factory=dict)
    journal: tuple[str, ...] = ()
    quarantined: str | None = None
    problem: errors.QuaidError | None = None


class _Draft(NamedTuple):
    """An episode as it will be: the `text` of its note, the `edit` that writes it, None when it is on disk already.
    `noted` are the ids of the queued notes to self that go into it.
    """

    session: str
    path: str
    text: str
    edit: Edit | None = None
    new_turns: int = 0
    noted: tuple[int, ...] = ()


class _EpisodeChangedError(Exception):
    """The episode is no longer the one that was read: it was added to or edited in between."""


class Extractor:
    """One vault's way from conversations to memories."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._settings = vault.settings
        self._people = read_people(vault.settings.capture.people)
        self._writer = Writer(vault)
        self._queue = SessionNotes(vault.state / LOCAL_FILE)
        self.reader = ConversationReader(vault)

    def extract(self, conversation: Conversation, options: ExtractOptions, *, is_lasting: bool) -> ExtractResult:
        """Store the new turns of a conversation, with the notes to self that are queued for it, and learn from them.

        One that is not `is_lasting`, a stream, is stored before a model is prompted: it could not be given again.
        """
        safe, redacted = _admit(name_speakers(conversation, self._people), self._settings.timezone)
        with extracting(self._vault.state):
            store_first = options.facts and not (is_lasting or options.dry_run or self._is_facts_only)
            runs = [options._replace(facts=False), options] if store_first else [options]
            results = [self._learn(safe, make_key("extract", safe.session, safe.turns, how), how) for how in runs]
        first, done = results[0], results[-1]
        return replace(
            done,
            turns=len(safe.turns),
            new_turns=first.new_turns,
            commit=done.commit or first.commit,
            skipped=dict(safe.skipped),
            redacted=redacted,
        )

    def extract_stored(self, path: str, options: ExtractOptions) -> ExtractResult:
        """Learn from the stored episode at `path`. A missing or broken one is a `problem`: others are pending too."""
        try:
            with extracting(self._vault.state):
                return self._learn(path, make_key("extract", path), options)
        except (errors.NoteNotFoundError, errors.NoteBrokenError) as error:
            return ExtractResult(session=note_name(path), path=path, problem=error)

    def store_overdue_notes(self, now: datetime) -> int:
        """Store the notes to self that no conversation has taken up as one of their own, and return how many they were:
        where no hook takes in conversations, none would ever come. Where conversations are not stored, they wait on.
        """
        stored = 0
        with extracting(self._vault.state):
            for session, since in () if self._is_facts_only else self._queue.list_overdue(now):
                lone = Conversation((), session or f"notes-{since:%Y-%m-%d}", started=since, title="Notes to self")
                key = make_key("extract", lone.session, since)
                stored += self._learn(lone, key, ExtractOptions(facts=False)).new_turns
        return stored

    def extract_one(self, source: Source, session: str | None, **how: Any) -> ExtractResult:
        """Extract the one conversation of a transcript. BadInputError: it holds several."""
        conversations = (conversation for conversation in read_conversations(source, session) if conversation.turns)
        first = list(islice(conversations, 2))
        if len(first) > 1:
            raise errors.BadInputError("It holds several conversations, not one. Take each with Memory.extract_each.")
        (done,) = self._extract_all(first, ExtractOptions(**how), is_lasting=isinstance(source, (str, os.PathLike)))
        return done

    def extract_each(self, source: Source, session: str | None, **how: Any) -> Iterator[ExtractResult]:
        """Extract every conversation of a transcript. Once no model answers, none is prompted."""
        conversations, is_lasting = read_conversations(source, session), isinstance(source, (str, os.PathLike))
        return self._extract_all(conversations, ExtractOptions(**how), is_lasting=is_lasting)

    def _extract_all(
        self, conversations: Iterable[Conversation], options: ExtractOptions, *, is_lasting: bool
    ) -> Iterator[ExtractResult]:
        self.reader.begin_run()
        is_empty = True
        for conversation in conversations:
            if conversation.turns:
                is_empty = False
                done = self.extract(conversation, options, is_lasting=is_lasting)
                yield done
                if isinstance(done.problem, errors.TROUBLE_FOR_ALL):
                    options = options._replace(facts=False)
        if is_empty:
            raise errors.NothingSaidError
        self._vault.catch_up()

    def extract_waiting(self, paths: Iterable[str], **how: Any) -> Iterator[ExtractResult]:
        """Learn from the stored episodes at `paths`."""
        self.reader.begin_run()
        for path in paths:
            yield self.extract_stored(path, ExtractOptions(**how))
        self._vault.catch_up()

    def build_prompt(self, path: str) -> BuiltPrompt | None:
        """Return the prompt about the stored episode at `path`, for a model that Quaid cannot reach.

        Raises:
            NoteNotFoundError, NoteBrokenError
        """
        return self.reader.build_prompt(self._draft(path).text)

    def _learn(self, source: Conversation | str, key: str, options: ExtractOptions) -> ExtractResult:
        """Draft the episode of a conversation or at a path, read it, plan and write."""
        for _ in range(ATTEMPTS):
            draft = self._draft(source)
            try:
                reading = self._read(draft, options)
            except Exception as error:  # whatever a model's client raises, the conversation is stored
                is_of_note = isinstance(error, errors.NoteBrokenError)
                if not (is_of_note or options.dry_run or options.answer or self._is_facts_only):
                    self._writer.write(key, self._plan, source, None, options)
                raise
            if self._is_facts_only and (reading is None or reading.extraction is None):
                raise (reading and reading.problem) or errors.BadInputError(
                    "capture.episodes is facts-only and no model is there to draw facts: nothing was kept. "
                    "Keep conversations with: quaid config capture.episodes keep"
                )
            try:
                if options.dry_run:
                    plan = self._plan(source, reading, options)
                else:
                    plan = self._writer.write(key, self._plan, source, reading, options)
            except _EpisodeChangedError:
                continue
            found = (reading and reading.extraction) or Extraction()
            if not options.dry_run:
                self._queue.remove(plan.details["noted"])
                if plan.travels and reading is not None:
                    read = EmptyReadings(self._vault.state / LOCAL_FILE)
                    read.add(f"{_now():%Y-%m-%d}", draft.session, len(reading.material.turns), found.model)
            return ExtractResult(
                session=plan.written.id,
                path=plan.written.path,
                turns=plan.details["turns"],
                new_turns=plan.details["new_turns"],
                waiting=plan.details["waiting"],
                snippets={file: len(lines) for file, lines in found.snippets.items()},
                journal=tuple(found.journal),
                quarantined=reading.quarantined if reading else None,
                problem=reading.problem if reading else None,
                **extraction.learned_fields(plan, found),
                is_dry_run=options.dry_run,
            )
        raise errors.LockedError(f"The conversation {draft.session} keeps being added to")

    def _read(self, draft: _Draft, options: ExtractOptions) -> ConversationReading | None:
        """Return what a model learns from the episode; None where there is something to learn and no model for it."""
        material = read_material(draft.text, everything=self._is_facts_only)
        is_idle = bool(material.turns) and states_nothing(material)
        if not options.facts and not is_idle:
            return None
        is_able = options.facts and (options.answer is not None or self.reader.is_able())
        if is_able:
            self._vault.embedding.warm()
            mark = self._plan_mark(draft, 0)  # a head that cannot be marked fails before anything is paid for
            for locked in find_lock(self._vault.root, [mark]).items():
                raise errors.NoteLockedError(*locked)
        if options.answer is not None:
            return self.reader.accept_answer(options.answer, draft.text, everything=self._is_facts_only)
        return self.reader.read(draft.text, everything=self._is_facts_only) if is_able or is_idle else None

    @property
    def _is_facts_only(self) -> bool:
        """Whether the text of conversations is not stored."""
        return self._settings.capture.episodes == "facts-only"

    # -- the episode ---------------------------------------------------------------------------------------------

    def _draft(self, source: Conversation | str) -> _Draft:
        if isinstance(source, str):
            data = files.read_note(self._vault.root, source)
            if data is None:
                raise errors.NoteNotFoundError(source)
            with naming_broken_note(source):
                text = data.decode("utf-8")
            return _Draft(read_material(text).session or note_name(source), source, text)
        index, finder = self._vault.whole_index(), self._writer.finder
        sessions = [source.session] if source.session is not None else episode_note.candidate_sessions(source)
        for session in sessions:
            stored = finder.find_episode(index, session)
            if stored is None or source.session is not None or episode_note.continues(stored, source):
                break
        fork = None
        started = source.started or next((turn.at for turn in source.turns if turn.at), None)
        if stored is None and started is not None:
            # A session that another one left, whose turns it repeats, began at the same time.
            others = finder.find_episodes(index, started, session)
            with naming_broken_note(session):
                forks = [found for other in others if (found := episode_note.find_fork(other, source))]
            fork = max(forks, key=lambda fork: fork.turns, default=None)
        queued, now = self._queue.waiting(session), local_now(self._settings.timezone)
        # A crash can come between the commit and the queue: a note that is in the episode is not added again.
        present = {turn.text for turn in stored.turns if turn.speaker == NOTE_SPEAKER} if queued and stored else set()
        own = [text for _, text in queued if text not in present]
        people = {turn.speaker for turn in source.turns if name_key(turn.speaker) != "assistant"}
        owners = {owner_of(speaker, self._people, self._settings.owner) for speaker in people}
        owner = owners.pop() if len(owners) == 1 else self._settings.owner
        with naming_broken_note(stored.rel_path if stored else session):
            path, edit, new_turns = episode_note.plan_episode(
                session, source, stored, now, own, owner, fork, self._vault.layout
            )
        data = edit.after if edit else stored.data if stored else None
        text = (data or b"").decode("utf-8", errors="replace")
        path = fork.parent if fork and not edit else path  # the fork has no turns yet
        return _Draft(session, path, text, edit, new_turns, tuple(note_id for note_id, _ in queued))

    # -- the plan ------------------------------------------------------------------------------------------------

    def _plan(
        self, source: Conversation | str, reading: ConversationReading | None, options: ExtractOptions
    ) -> WritePlan:
        draft = self._draft(source)
        everything = read_material(draft.text, everything=True).turns
        details = {"turns": len(everything), "new_turns": draft.new_turns, "noted": list(draft.noted)}
        stored = errors.count(draft.new_turns or len(read_material(draft.text).turns), "turn")
        storing = Message(f"keep: {stored} of session {draft.session}", trailers=(("Quaid-Session", draft.session),))
        is_read = reading is not None and reading.extraction is not None
        if reading is not None and is_read:
            through = options.answer.through if options.answer else None
            now = read_material(draft.text, everything=self._is_facts_only, through=through)
            if now.fingerprint != reading.material.fingerprint:
                raise _EpisodeChangedError
            is_marked = not draft.text or "extracted" in frontmatter.parse(draft.text).fields
            is_read = bool(reading.material.turns) or draft.edit is not None or not is_marked
        if reading is None or reading.extraction is None or not is_read:
            edit = draft.edit
            if edit is not None and edit.before is not None and edit.after is not None:  # it has grown: pending again
                pending = frontmatter.set_fields(edit.after.decode("utf-8"), {"extracted": None})
                edit = replace(edit, after=pending.encode())
            details["waiting"] = bool(read_material(draft.text).turns)
            written = WriteResult(draft.session, draft.path, "kept" if edit else "unchanged")
            named: tuple[Edit, ...] = ()
            if edit is not None and self._settings.capture.facts:  # what people call each other shows without a model
                names = self._plan_names(everything, _now())
                names.learn((), turns=[turn.text for turn in everything])
                named = names.edits
            return WritePlan(written, (edit, *named) if edit else (), storing, details)
        material, found = reading.material, reading.extraction
        when = material.ended or local_now(self._settings.timezone)
        finder, turns = self._writer.finder, (*material.earlier, *material.turns)
        index = self._vault.whole_index()
        episode_name = None if self._is_facts_only else note_name(draft.path)
        new = [
            replace(fact, owner=owner_of(fact.speaker, self._people, self._settings.owner))
            for fact in extraction.cite_episode(found, material.session, self._settings.owner, episode_name)
        ]
        names = self._plan_names(turns, when)
        same, texts = finder.find_duplicates(index, new), [turn.text for turn in turns]
        root, own = self._vault.root, own_names(self._vault.root, self._settings)
        owners = own | {key for key, called in names.called.items() if len(called) == 1 and called[0] in own}
        same = [same[place] or find_confirmed(index, root, fact) for place, fact in enumerate(new)]
        new = [replace(fact, id=None) for fact in new]
        replaced = find_replaced(index, root, new, same, owners, when)
        planned = facts.plan_facts(new, same, names, when, things=found.names, turns=texts, replaced=replaced)
        words = plan_words(root, self._vault.layout, found.words)
        learned = (*planned.edits, *words, *self._plan_core(found, options.trigger, when))
        details["waiting"] = not self._is_facts_only and any(turn.number > material.last for turn in everything)
        return WritePlan(
            WriteResult(draft.session, draft.path, "kept"),
            (self._plan_mark(draft, material.last), *learned),
            commit_message(reading, planned) if learned else storing,
            {**details, **planned.details},
            travels=not learned,
        )

    def _plan_names(self, turns: Iterable[NumberedTurn], when: datetime) -> EntityNames:
        said = [(turn.speaker, turn.text) for turn in turns if not turn.is_note]
        return self._writer.finder.entity_names(self._vault.visible_index(), when, turns=said)

    def _plan_mark(self, draft: _Draft, last: int) -> Edit:
        """Return the edit that marks the episode as read up to `last`; where only facts are stored, without turns."""
        mark: dict[str, frontmatter.Value | None] = {"extracted": render_time(_now()), "extracted_turns": None}
        text = split_body(draft.text)[0] if self._is_facts_only else draft.text
        if not self._is_facts_only:
            mark["extracted_turns"] = last
            if any(turn.number > last for turn in read_material(draft.text, everything=True).turns):
                mark["extracted"] = None
        with naming_broken_note(draft.path):
            marked = frontmatter.set_fields(text, mark)
        before = draft.edit.before if draft.edit else draft.text.encode()
        return Edit(draft.path, before, marked.encode())

    def _plan_core(self, found: Extraction, trigger: str, when: datetime) -> Iterator[Edit]:
        changes = [(layout.side_path(core, "snippets"), found.snippets[core], True) for core in found.snippets]
        changes += [(layout.side_path(core, "journal"), found.journal[core], False) for core in found.journal]
        for rel_path, lines, is_snippet in changes:
            path = self._vault.layout.place(rel_path)
            data = files.read_note(self._vault.root, path)
            with naming_broken_note(path):
                text = None if data is None else data.decode("utf-8")
                if is_snippet:
                    after = core_notes.add_observations(text, trigger, when, lines).encode()
                else:
                    after = core_notes.add_entry(text, trigger, when, "\n\n".join(lines)).encode()
            if after != data:
                yield Edit(path, data, after)


def _admit(conversation: Conversation, timezone: str) -> tuple[Conversation, tuple[str, ...]]:
    """Return a conversation without secrets and in the zone of its speakers, and the kinds of its secrets."""
    turns: list[Turn] = []
    redacted: list[str] = []
    before = ""
    times = filter(None, (conversation.started, *(turn.at for turn in conversation.turns)))
    own = next((time.tzinfo for time in times if time.utcoffset()), None)
    for turn in conversation.turns:
        safe = admit(turn.text, after=before)
        before = turn.text
        # Only the queue brings notes to self: those that a transcript claims to have are part of the transcript.
        speaker = "User" if " ".join(turn.speaker.split()) == NOTE_SPEAKER else admit(turn.speaker).text
        turns.append(replace(turn, speaker=speaker, text=safe.text, at=turn.at and localise(turn.at, timezone, own)))
        redacted += safe.redacted
    session = conversation.session and admit(conversation.session).text
    started = conversation.started and localise(conversation.started, timezone, own)
    return replace(conversation, turns=tuple(turns), session=session, started=started), tuple(redacted)


def commit_message(reading: ConversationReading, stored: FactsPlan) -> Message:
    """Return the message of an extraction: `extract: 14 facts from session 2f1c9a`, and the facts."""
    session, found = reading.material.session, reading.extraction or Extraction()
    turns = sum(not turn.is_note for turn in reading.material.turns)
    new, confirmed = (len(stored.with_outcome(outcome)) for outcome in ("created", "confirmed"))
    learned = errors.count(new, "fact")
    if not new:
        is_observed = found.snippets or found.journal
        learned = (
            f"{errors.count(confirmed, 'fact')} confirmed" if confirmed else "observations" if is_observed else "names"
        )
    return extraction.build_message(
        f"extract: {learned} from session {session}",
        f"Learned from {errors.count(turns, 'turn')} by {found.model or 'no model'}.",
        found,
        stored,
        [("Quaid-Task", "extract"), ("Quaid-Session", session)],
    )


def _now() -> datetime:
    return datetime.now(UTC)
