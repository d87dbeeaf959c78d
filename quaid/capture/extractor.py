"""A conversation -> its episode, and what a model learns from it, in one commit.

The model is asked between reading and writing, without the lock: first the episode is planned as it will
be, then the model reads what is new in it, then episode, facts, entities, snippets and journal are planned on what the
memory is by then, and written together. When no model answers, the episode alone is written and waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quaid.capture import episode_note, storing
from quaid.capture.commit_message import commit_message
from quaid.capture.conversation_reader import BuiltPrompt, ConversationReader, ConversationReading, HostAnswer
from quaid.capture.episode_note import NOTE_SPEAKER
from quaid.capture.extraction import Extraction, LeftOut, new_facts
from quaid.capture.nothing_to_learn import states_nothing
from quaid.capture.prompt_pieces import read_material
from quaid.capture.storing import FactsPlan, StoredFact, stored_fields
from quaid.capture.writer import WritePlan, Writer, WriteResult, naming_broken_note
from quaid.errors import BadInputError, LockedError, NoteBrokenError, NoteNotFoundError, QuaidError
from quaid.local.empty_readings import EmptyReading, EmptyReadings
from quaid.local.locks import extracting
from quaid.local.session_notes import SessionNotes
from quaid.model import Conversation, Edit, Message, ModelUsage, Turn, note_name
from quaid.place import LOCAL_FILE, state_folder
from quaid.vault import files, frontmatter, journal, layout, snippets
from quaid.vault.notes import render_time, split_body

if TYPE_CHECKING:
    from quaid.open_vault import OpenVault

TRIGGER = "Session"
"""The occasion that snippets and journal name by default."""
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """Options of an extraction. Without `facts` no model is asked; with an `answer` none needs to be."""

    facts: bool = True
    dry_run: bool = False
    trigger: str = TRIGGER
    answer: HostAnswer | None = None


@dataclass(frozen=True, slots=True)
class ExtractResult:
    """The result of an extraction from one conversation.

    `waiting` says that there is something in it that no model has drawn facts from; `problem` why not, where one was
    asked. `left_out` are statements that were not kept, `quarantined` is the file with the answer they were in,
    `degraded` names what was missing: relations.
    """

    session: str
    path: str
    turns: int
    new_turns: int
    waiting: bool = True
    commit: str | None = None
    left: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)
    redacted: tuple[str, ...] = ()
    facts: tuple[StoredFact, ...] = ()
    entities: tuple[str, ...] = ()
    edges: int = 0
    snippets: dict[str, int] = field(default_factory=dict)
    journal: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    quarantined: str | None = None
    model: str | None = None
    prompt: str | None = None
    usage: ModelUsage = field(default_factory=ModelUsage)
    problem: QuaidError | None = None
    degraded: tuple[str, ...] = ()
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Draft:
    """An episode as it will be: `text` is what the note says then, `edit` what makes it so, None when it does."""

    session: str
    path: str
    text: str
    edit: Edit | None
    new_turns: int = 0
    noted: tuple[int, ...] = ()

    @property
    def is_unmarked(self) -> bool:
        """True for an episode that does not say that facts were drawn from it."""
        return bool(self.text) and "extracted" not in frontmatter.parse(self.text).fields


class _EpisodeChangedError(Exception):
    """The episode is no longer the one that was read: it was added to or edited meanwhile."""


class Extractor:
    """One vault's way from conversations to memories."""

    def __init__(
        self,
        vault: OpenVault,
    ) -> None:
        self._vault = vault
        self._writer = Writer(vault)
        self._root = vault.root
        self._settings = vault.settings
        self._layout = vault.layout
        self.reader = ConversationReader(vault)

    def extract(self, conversation: Conversation, options: ExtractOptions, *, is_lasting: bool) -> ExtractResult:
        """Keep what is new in a conversation that has turns, with the notes to self that wait for it, and learn from
        it. One that is not `is_lasting`, a stream, is kept before a model is asked: it could not be given again.

        Raises:
            BadInputError: the settings leave nothing to do.
        """
        safe, redacted = _without_secrets(conversation)
        state = state_folder(self._root)
        queue = SessionNotes(state / LOCAL_FILE)
        with extracting(state):
            keep_first = options.facts and not (is_lasting or options.dry_run or self._keeps_no_text)
            kept = self._keep_and_learn(safe, replace(options, facts=False), queue) if keep_first else None
            done = self._keep_and_learn(safe, options, queue)
        new_turns, commit = (kept.new_turns, done.commit or kept.commit) if kept else (done.new_turns, done.commit)
        return replace(
            done,
            turns=len(safe.turns),
            new_turns=new_turns,
            commit=commit,
            skipped=dict(safe.skipped),
            redacted=redacted,
        )

    def extract_kept(self, path: str, options: ExtractOptions) -> ExtractResult:
        """Learn from the kept episode at `path`. That it is gone or broken is its `problem`: others wait behind it."""
        try:
            with extracting(state_folder(self._root)):
                return self._learn(lambda: self._kept_draft(path), _key(path), options)[0]
        except (NoteNotFoundError, NoteBrokenError) as error:
            return ExtractResult(note_name(path), path, turns=0, new_turns=0, problem=error)

    def build_prompt(self, path: str) -> BuiltPrompt | None:
        """Return the question about the kept episode at `path`, for a model that Quaid cannot reach.

        Raises:
            NoteNotFoundError, NoteBrokenError
        """
        return self.reader.build_prompt(self._kept_draft(path).text)

    def _keep_and_learn(
        self, conversation: Conversation, options: ExtractOptions, queue: SessionNotes
    ) -> ExtractResult:
        key = _key(conversation.session, conversation.turns, options)
        done, noted = self._learn(lambda: self._draft(conversation, queue), key, options)
        if not options.dry_run:
            queue.remove(noted)
        return done

    # -- the order of things -------------------------------------------------------------------------------------

    def _learn(
        self, draft_now: Callable[[], _Draft], key: str, options: ExtractOptions
    ) -> tuple[ExtractResult, list[int]]:
        """Return what was done, and the ids of the notes to self that went into the episode."""
        for _ in range(ATTEMPTS):
            draft = draft_now()
            try:
                reading = self._read(draft, options) if options.facts or self._states_nothing(draft) else None
            except Exception as error:  # whatever a model's client does, the conversation is stored
                is_of_note = isinstance(error, NoteBrokenError)
                if not (is_of_note or options.dry_run or options.answer or self._keeps_no_text):
                    self._write(draft_now, None, key, options)
                raise
            if self._keeps_no_text and (reading is None or reading.extraction is None):
                raise (reading and reading.problem) or BadInputError(
                    "capture.episodes is facts-only and no model is there to draw facts: nothing was kept. "
                    "Keep conversations with: quaid config capture.episodes keep"
                )
            try:
                plan = (
                    self._plan(draft, reading, options)
                    if options.dry_run
                    else self._write(draft_now, reading, key, options)
                )
            except _EpisodeChangedError:
                continue
            if plan.travels and reading is not None and not options.dry_run:
                read = EmptyReading(f"{_now():%Y-%m-%d}", draft.session, len(reading.material.turns), reading.model)
                EmptyReadings(state_folder(self._root) / LOCAL_FILE).add(read)
            return _result(plan, reading, is_dry_run=options.dry_run), plan.details["noted"]
        raise LockedError(f"The conversation {draft.session} keeps being added to")

    def _read(self, draft: _Draft, options: ExtractOptions) -> ConversationReading | None:
        """Return what a model learns from the episode; None where there is something to learn and no model to ask."""
        is_able = options.facts and (options.answer is not None or self.reader.is_able())
        if is_able:
            self._vault.embedding.warm()
            self._plan_mark(draft, 0)  # a head that cannot be marked fails before anything is paid for
        if options.answer is not None:
            return self.reader.accept_answer(options.answer, draft.text, everything=self._keeps_no_text)
        if not is_able and not self._states_nothing(draft):
            return None
        return self.reader.read(draft.text, everything=self._keeps_no_text)

    def _states_nothing(self, draft: _Draft) -> bool:
        material = read_material(draft.text, everything=self._keeps_no_text)
        return bool(material.turns) and states_nothing(material)

    def _write(
        self, draft_now: Callable[[], _Draft], reading: ConversationReading | None, key: str, options: ExtractOptions
    ) -> WritePlan:
        return self._writer.write(key, lambda: self._plan(draft_now(), reading, options))

    @property
    def _keeps_no_text(self) -> bool:
        return self._settings.capture.episodes == "facts-only"

    # -- the episode ---------------------------------------------------------------------------------------------

    def _draft(self, conversation: Conversation, queue: SessionNotes) -> _Draft:
        session, kept = self._find_session(conversation)
        waiting = queue.waiting(session)
        # A crash can come between the commit and the queue: what is in the episode is not taken along again.
        there = {turn.text for turn in kept.turns if turn.speaker == NOTE_SPEAKER} if waiting and kept else set()
        own = [text for _, text in waiting if text not in there]
        with naming_broken_note(kept.rel_path if kept else session):
            fork = None if kept else self._find_fork(session, conversation)
            planned = episode_note.plan_episode(
                session, conversation, kept, _now(), own, self._settings.owner, fork, self._layout
            )
        data = planned.edit.after if planned.edit else kept.data if kept else None
        text = (data or b"").decode("utf-8", errors="replace")
        noted = tuple(note_id for note_id, _ in waiting)
        path = fork.parent if fork and not planned.edit else planned.rel_path  # nothing is said in the fork yet
        return _Draft(session, path, text, planned.edit, planned.new_turns, noted)

    def _kept_draft(self, path: str) -> _Draft:
        data = files.read_note(self._root, path)
        if data is None:
            raise NoteNotFoundError(path)
        with naming_broken_note(path):
            text = data.decode("utf-8")
        return _Draft(read_material(text).session or note_name(path), path, text, None)

    def _find_session(self, conversation: Conversation) -> tuple[str, episode_note.KeptEpisode | None]:
        index = self._vault.whole_index()
        find = self._writer.finder.find_episode
        if conversation.session is not None:
            return conversation.session, find(index, conversation.session)
        for session in episode_note.candidate_sessions(conversation):
            kept = find(index, session)
            if kept is None or episode_note.continues(kept, conversation):
                return session, kept
        raise AssertionError("unreachable")

    def _find_fork(self, session: str, conversation: Conversation) -> episode_note.Fork | None:
        """The session that this one left, whose turns it repeats: they began in the same moment."""
        started = conversation.started or next((turn.at for turn in conversation.turns if turn.at), None)
        if started is None:
            return None
        others = self._writer.finder.find_episodes(self._vault.whole_index(), render_time(started), session)
        forks = [fork for kept in others if (fork := episode_note.find_fork(kept, conversation))]
        return max(forks, key=lambda fork: fork.turns, default=None)

    # -- the plan ------------------------------------------------------------------------------------------------

    def _plan(self, draft: _Draft, reading: ConversationReading | None, options: ExtractOptions) -> WritePlan:
        if reading is None or reading.extraction is None:
            return _plan_keeping(draft)
        material = reading.material
        through = options.answer.through if options.answer else None
        if (
            read_material(draft.text, everything=self._keeps_no_text, through=through).fingerprint
            != material.fingerprint
        ):
            raise _EpisodeChangedError
        if not material.turns and draft.edit is None and not draft.is_unmarked:
            return _plan_keeping(draft)
        when = material.ended or _now()
        stored = self._plan_facts(draft, reading, reading.extraction, when)
        learned = (*stored.edits, *self._plan_core(reading.extraction, options.trigger, when))
        details = {
            **_details_of(draft),
            "waiting": self._is_rest(draft, material.last),
            **stored.details,
        }
        return WritePlan(
            WriteResult(draft.session, draft.path, "kept"),
            (self._plan_mark(draft, material.last), *learned),
            commit_message(reading, stored) if learned else _keeping_message(draft),
            details,
            travels=not learned,
        )

    def _plan_facts(self, draft: _Draft, reading: ConversationReading, found: Extraction, when: datetime) -> FactsPlan:
        index = self._vault.whole_index()
        finder = self._writer.finder
        material = reading.material
        new = new_facts(found, material, self._settings.owner, None if self._keeps_no_text else note_name(draft.path))
        said = (*material.earlier, *material.turns)
        names = finder.entity_names(self._vault.visible_index(), when, [turn.speaker for turn in said])
        return storing.plan_facts(
            new,
            finder.find_duplicates(index, new),
            names,
            when,
            reading.renamed,
            things=found.names,
            turns=[turn.text for turn in said],
        )

    def _plan_mark(self, draft: _Draft, last: int) -> Edit:
        """The episode, marked as learned from; without what was said where that is not to be kept."""
        text = split_body(draft.text)[0] if self._keeps_no_text else draft.text
        when = None if self._is_rest(draft, last) else render_time(_now())
        mark = {"extracted": when, "extracted_turns": None if self._keeps_no_text else last}
        with naming_broken_note(draft.path):
            marked = frontmatter.set_fields(text, mark)
        before = draft.edit.before if draft.edit else draft.text.encode()
        return Edit(draft.path, before, marked.encode())

    def _is_rest(self, draft: _Draft, last: int) -> bool:
        """Return True when turns after `last` wait to be learned from."""
        if self._keeps_no_text:
            return False
        return any(turn.number > last for turn in read_material(draft.text, everything=True).turns)

    def _plan_core(self, found: Extraction, trigger: str, when: datetime) -> Iterator[Edit]:
        """Snippets and journal, file by file."""
        for core, bullets in found.snippets.items():
            path = self._layout.place(layout.snippets_path(core))
            yield from self._changed(path, snippets.add_bullets, trigger, when, bullets)
        for core, paragraphs in found.journal.items():
            path = self._layout.place(layout.journal_path(core))
            yield from self._changed(path, journal.add_entry, trigger, when, "\n\n".join(paragraphs))

    def _changed(self, path: str, add: Callable[..., str], *added: object) -> Iterator[Edit]:
        data = files.read_note(self._root, path)
        with naming_broken_note(path):
            after = add(None if data is None else data.decode("utf-8"), *added).encode()
        if after != data:
            yield Edit(path, data, after)


def _without_secrets(conversation: Conversation) -> tuple[Conversation, tuple[str, ...]]:
    """The conversation without its secrets, and what kinds they were."""
    from quaid.redaction import admit

    turns: list[Turn] = []
    redacted: list[str] = []
    before = ""
    for turn in conversation.turns:
        said = admit(turn.text, after=before)
        before = turn.text
        # Only the queue brings notes to self: a transcript that claims to have some is only a transcript.
        speaker = "User" if " ".join(turn.speaker.split()) == NOTE_SPEAKER else admit(turn.speaker).text
        is_same = (speaker, said.text) == (turn.speaker, turn.text)
        turns.append(turn if is_same else replace(turn, speaker=speaker, text=said.text))
        redacted += said.redacted
    session = conversation.session and admit(conversation.session).text
    return replace(conversation, turns=tuple(turns), session=session), tuple(redacted)


def _plan_keeping(draft: _Draft) -> WritePlan:
    """The episode alone; one that has grown waits again."""
    edit = draft.edit
    if edit is not None and edit.before is not None and edit.after is not None:
        waits = frontmatter.set_fields(edit.after.decode("utf-8"), {"extracted": None})
        edit = replace(edit, after=waits.encode())
    written = WriteResult(draft.session, draft.path, "kept" if edit else "unchanged")
    return WritePlan(written, (edit,) if edit else (), _keeping_message(draft), _details_of(draft))


def _keeping_message(draft: _Draft) -> Message:
    turns = draft.new_turns or len(read_material(draft.text).turns)
    return Message(
        f"keep: {turns} {'turn' if turns == 1 else 'turns'} of session {draft.session}",
        trailers=(("Quaid-Session", draft.session),),
    )


def _details_of(draft: _Draft) -> dict[str, Any]:
    return {
        "turns": len(read_material(draft.text, everything=True).turns),
        "new_turns": draft.new_turns,
        "noted": list(draft.noted),
        "waiting": bool(read_material(draft.text).turns),
    }


def _result(plan: WritePlan, reading: ConversationReading | None, *, is_dry_run: bool) -> ExtractResult:
    details = plan.details
    done = ExtractResult(
        session=plan.written.id,
        path=plan.written.path,
        turns=details["turns"],
        new_turns=details["new_turns"],
        waiting=details["waiting"],
        commit=plan.written.commit,
        left=plan.written.left,
        **stored_fields(details),
        is_dry_run=is_dry_run,
    )
    if reading is None:
        return done
    found = reading.extraction or Extraction()
    return replace(
        done,
        snippets={file: len(lines) for file, lines in found.snippets.items()},
        journal=tuple(found.journal),
        left_out=found.left_out,
        quarantined=reading.quarantined,
        model=reading.model,
        prompt=reading.prompt,
        usage=reading.usage,
        problem=reading.problem,
        degraded=reading.degraded,
    )


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(("extract", *parts)).encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)
