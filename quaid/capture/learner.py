"""A conversation -> its episode, and what a model learns from it, in one commit.

The model is asked between reading and writing, while nobody is kept waiting: first the episode is planned as it will
be, then the model reads what is new in it, then episode, facts, entities, snippets and journal are planned on what the
memory is by then, and written together. When no model answers, the episode alone is written and waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quaid.capture import episode, storing
from quaid.capture.extract import Extraction, LeftOut
from quaid.capture.lesson import Lesson, commit_message, new_facts
from quaid.capture.naming import Names
from quaid.capture.pieces import NOTE_SPEAKER, material_of
from quaid.capture.reader import Answered, Posed, Reader
from quaid.capture.storing import FactsPlan, StoredFact
from quaid.capture.writer import Plan, Writer, Written
from quaid.errors import BadInputError, LockedError, NoteBrokenError, NoteNotFoundError, QuaidError
from quaid.index import graph
from quaid.local.locks import extracting
from quaid.local.session_notes import SessionNotes
from quaid.model import Conversation, Edit, Message, ModelUsage, Turn, note_name
from quaid.place import LOCAL_FILE, state_folder
from quaid.vault import files, frontmatter, journal, layout, snippets
from quaid.vault.notes import render_time, split_body

if TYPE_CHECKING:
    from quaid.capture.writer import Dependencies
    from quaid.llm import Models
    from quaid.sync.embedding import Progress

TRIGGER = "Session"
"""What snippets and journal name as their occasion, where nobody names another."""
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class TakeIn:
    """How a conversation is taken in. Without `facts` no model is asked; with `answered` none need be."""

    facts: bool = True
    dry_run: bool = False
    trigger: str = TRIGGER
    answered: Answered | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
    """What `extract` did with one conversation.

    `waiting` says that there is something in it that no model has drawn facts from; `problem` why not, where one was
    asked. `left_out` are statements that were not kept, `quarantined` is the file with the answer they were in,
    `degraded` what had to be done without: relations.
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
        """Whether there is an episode that does not say that it was learned from."""
        return bool(self.text) and "extracted" not in frontmatter.parse(self.text).fields


class _MovedOnError(Exception):
    """The episode is no longer the one that was read: somebody else has added to it or edited it meanwhile."""


class Learner:
    """One vault's way from conversations to memories."""

    def __init__(
        self,
        dependencies: Dependencies,
        writer: Writer,
        models: Callable[[], Models],
        progress: Progress | None = None,
    ) -> None:
        self._dependencies = dependencies
        self._writer = writer
        self._root = dependencies.root
        self._settings = dependencies.settings
        self.reader = Reader(dependencies.root, dependencies.settings, models, dependencies.visible_index, progress)

    def take_in(self, conversation: Conversation, how: TakeIn, *, is_lasting: bool) -> Extracted:
        """Keep what is new in a conversation that has turns, with the notes to self that wait for it, and learn from
        it. One that is not `is_lasting`, a stream, is kept before a model is asked: nobody could give it again.

        Raises:
            BadInputError: the settings leave nothing to do.
        """
        safe, redacted = _admitted(conversation)
        state = state_folder(self._root)
        queue = SessionNotes(state / LOCAL_FILE)
        with extracting(state):
            keep_first = how.facts and not (is_lasting or how.dry_run or self._keeps_no_text)
            kept = self._take_in(safe, replace(how, facts=False), queue) if keep_first else None
            done = self._take_in(safe, how, queue)
        new_turns, commit = (kept.new_turns, done.commit or kept.commit) if kept else (done.new_turns, done.commit)
        return replace(
            done,
            turns=len(safe.turns),
            new_turns=new_turns,
            commit=commit,
            skipped=dict(safe.skipped),
            redacted=redacted,
        )

    def work_off(self, path: str, how: TakeIn) -> Extracted:
        """Learn from the kept episode at `path`. That it is gone or broken is its `problem`: others wait behind it."""
        try:
            with extracting(state_folder(self._root)):
                return self._learn(lambda: self._kept_draft(path), _key(path), how)[0]
        except (NoteNotFoundError, NoteBrokenError) as error:
            return Extracted(note_name(path), path, turns=0, new_turns=0, problem=error)

    def pose(self, path: str) -> Posed | None:
        """What there is to ask about the kept episode at `path`, for a model that Quaid cannot reach.

        Raises:
            NoteNotFoundError, NoteBrokenError
        """
        return self.reader.pose(self._kept_draft(path).text)

    def _take_in(self, conversation: Conversation, how: TakeIn, queue: SessionNotes) -> Extracted:
        key = _key(conversation.session, conversation.turns, how)
        done, noted = self._learn(lambda: self._draft(conversation, queue), key, how)
        if not how.dry_run:
            queue.remove(noted)
        return done

    # -- the order of things -------------------------------------------------------------------------------------

    def _learn(self, draft_now: Callable[[], _Draft], key: str, how: TakeIn) -> tuple[Extracted, list[int]]:
        """What was done, and the notes to self that it took along."""
        is_able = how.facts and (how.answered is not None or self.reader.is_able())
        if is_able:
            self._dependencies.embedding.warm()
        for _ in range(ATTEMPTS):
            draft = draft_now()
            if is_able:
                self._plan_mark(draft, 0)  # a head that could not be marked is told before anything is paid for
            lesson = self._read(draft, how) if is_able else None
            if self._keeps_no_text and (lesson is None or lesson.extraction is None):
                raise _nothing_to_do(lesson)
            try:
                plan = self._plan(draft, lesson, how) if how.dry_run else self._write(draft_now, lesson, key, how)
            except _MovedOnError:
                continue
            return _extracted(plan, lesson, is_dry_run=how.dry_run), plan.told["noted"]
        raise LockedError(f"The conversation {draft.session} keeps being added to")

    def _read(self, draft: _Draft, how: TakeIn) -> Lesson:
        if how.answered is not None:
            return self.reader.accept(how.answered, draft.text, everything=self._keeps_no_text)
        return self.reader.read(draft.text, everything=self._keeps_no_text)

    def _write(self, draft_now: Callable[[], _Draft], lesson: Lesson | None, key: str, how: TakeIn) -> Plan:
        return self._writer.write(key, lambda: self._plan(draft_now(), lesson, how))

    @property
    def _keeps_no_text(self) -> bool:
        return self._settings.capture.episodes == "facts-only"

    # -- the episode ---------------------------------------------------------------------------------------------

    def _draft(self, conversation: Conversation, queue: SessionNotes) -> _Draft:
        session, kept = self._find_session(conversation)
        waiting = queue.waiting(session)
        # A crash can come between the commit and the queue: what is in the episode is not taken along again.
        there = _notes_in(kept) if waiting and kept else frozenset()
        own = [text for _, text in waiting if text not in there]
        try:
            fork = None if kept else self._find_fork(session, conversation)
            planned = episode.plan_episode(session, conversation, kept, _now(), own, self._settings.owner, fork)
        except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError) as error:
            raise _broken(kept.rel_path if kept else session, error) from error
        data = planned.edit.after if planned.edit else kept.data if kept else None
        text = (data or b"").decode("utf-8", errors="replace")
        noted = tuple(note_id for note_id, _ in waiting)
        path = fork.parent if fork and not planned.edit else planned.rel_path  # nothing is said in the fork yet
        return _Draft(session, path, text, planned.edit, planned.new_turns, noted)

    def _kept_draft(self, path: str) -> _Draft:
        data = files.read_note(self._root, path)
        if data is None:
            raise NoteNotFoundError(path)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _broken(path, error) from error
        return _Draft(material_of(text).session or note_name(path), path, text, None)

    def _find_session(self, conversation: Conversation) -> tuple[str, episode.KeptEpisode | None]:
        index = self._dependencies.fresh_index()
        find = self._writer.lookups.find_episode
        if conversation.session is not None:
            return conversation.session, find(index, conversation.session)
        for session in episode.candidate_sessions(conversation):
            kept = find(index, session)
            if kept is None or episode.continues(kept, conversation):
                return session, kept
        raise AssertionError("unreachable")

    def _find_fork(self, session: str, conversation: Conversation) -> episode.Fork | None:
        """The session that this one left, whose turns it repeats: they began in the same moment."""
        started = conversation.started or next((turn.at for turn in conversation.turns if turn.at), None)
        if started is None:
            return None
        others = self._writer.lookups.find_episodes(self._dependencies.fresh_index(), render_time(started), session)
        forks = [fork for kept in others if (fork := episode.find_fork(kept, conversation))]
        return max(forks, key=lambda fork: fork.turns, default=None)

    # -- the plan ------------------------------------------------------------------------------------------------

    def _plan(self, draft: _Draft, lesson: Lesson | None, how: TakeIn) -> Plan:
        if lesson is None or lesson.extraction is None:
            return _plan_keeping(draft)
        material = lesson.material
        through = how.answered.through if how.answered else None
        if material_of(draft.text, everything=self._keeps_no_text, through=through).fingerprint != material.fingerprint:
            raise _MovedOnError
        if not material.turns and draft.edit is None and not draft.is_unmarked:
            return _plan_keeping(draft)
        when = material.ended or _now()
        stored = self._plan_facts(draft, lesson, lesson.extraction, when)
        edits = (
            self._plan_mark(draft, material.last),
            *stored.edits,
            *self._plan_core(lesson.extraction, how.trigger, when),
        )
        told = {
            **_told_of(draft),
            "waiting": self._is_rest(draft, material.last),
            "facts": [[fact.id, fact.path, fact.text, fact.outcome] for fact in stored.stored],
            "entities": list(stored.entities),
            "edges": stored.edges,
        }
        return Plan(Written(draft.session, draft.path, "kept"), edits, commit_message(lesson, stored), told)

    def _plan_facts(self, draft: _Draft, lesson: Lesson, found: Extraction, when: datetime) -> FactsPlan:
        index = self._dependencies.fresh_index()
        lookups = self._writer.lookups
        material = lesson.material
        new = new_facts(found, material, self._settings.owner, None if self._keeps_no_text else note_name(draft.path))
        visible = self._dependencies.visible_index()
        names = Names.of(
            graph.entity_names(visible),
            lambda name: lookups.find_entity(visible, name),
            when,
            speakers=[turn.speaker for turn in (*material.earlier, *material.turns)],
            owner=self._settings.owner_name,
        )
        return storing.plan_facts(new, lookups.find_same(index, new), names, when, lesson.renamed)

    def _plan_mark(self, draft: _Draft, last: int) -> Edit:
        """The episode, marked as learned from; without what was said where that is not to be kept."""
        text = split_body(draft.text)[0] if self._keeps_no_text else draft.text
        when = None if self._is_rest(draft, last) else render_time(_now())
        mark = {"extracted": when, "extracted_turns": None if self._keeps_no_text else last}
        try:
            marked = frontmatter.set_fields(text, mark)
        except frontmatter.FrontmatterBrokenError as error:
            raise _broken(draft.path, error) from error
        before = draft.edit.before if draft.edit else draft.text.encode()
        return Edit(draft.path, before, marked.encode())

    def _is_rest(self, draft: _Draft, last: int) -> bool:
        """Whether something was said after the turn `last` that waits to be learned from."""
        if self._keeps_no_text:
            return False
        return any(turn.number > last for turn in material_of(draft.text, everything=True).turns)

    def _plan_core(self, found: Extraction, trigger: str, when: datetime) -> Iterator[Edit]:
        """Snippets and journal, file by file."""
        for core, bullets in found.snippets.items():
            path = layout.snippets_path(core)
            yield from self._changed(path, _with(snippets.add_bullets, trigger, when, bullets))
        for core, paragraphs in found.journal.items():
            path = layout.journal_path(core)
            yield from self._changed(path, _with(journal.add_entry, trigger, when, "\n\n".join(paragraphs)))

    def _changed(self, path: str, change: Callable[[str | None], str]) -> Iterator[Edit]:
        data = files.read_note(self._root, path)
        try:
            after = change(None if data is None else data.decode("utf-8")).encode()
        except UnicodeDecodeError as error:
            raise _broken(path, error) from error
        if after != data:
            yield Edit(path, data, after)


def _admitted(conversation: Conversation) -> tuple[Conversation, tuple[str, ...]]:
    """The conversation without its secrets, and what kinds they were."""
    from quaid.redaction import admit

    turns: list[Turn] = []
    redacted: list[str] = []
    before = ""
    for turn in conversation.turns:
        said = admit(turn.text, after=before)
        before = turn.text
        # Only the queue brings notes to self: a transcript that claims to have some is no more than a transcript.
        speaker = "User" if " ".join(turn.speaker.split()) == NOTE_SPEAKER else admit(turn.speaker).text
        is_same = (speaker, said.text) == (turn.speaker, turn.text)
        turns.append(turn if is_same else replace(turn, speaker=speaker, text=said.text))
        redacted += said.redacted
    session = conversation.session and admit(conversation.session).text
    return replace(conversation, turns=tuple(turns), session=session), tuple(redacted)


def _notes_in(kept: episode.KeptEpisode) -> frozenset[str]:
    turns = material_of(kept.data.decode("utf-8", errors="replace"), everything=True).turns
    return frozenset(turn.text for turn in turns if turn.is_note)


def _nothing_to_do(lesson: Lesson | None) -> QuaidError:
    return (lesson and lesson.problem) or BadInputError(
        "capture.episodes is facts-only and no model is there to draw facts: nothing was kept. "
        "Keep conversations with: quaid config capture.episodes keep"
    )


def _plan_keeping(draft: _Draft) -> Plan:
    """The episode alone; one that has grown waits again."""
    edit = draft.edit
    if edit is not None and edit.before is not None and edit.after is not None:
        waits = frontmatter.set_fields(edit.after.decode("utf-8"), {"extracted": None})
        edit = replace(edit, after=waits.encode())
    message = Message(
        f"keep: {draft.new_turns} turns of session {draft.session}", trailers=(("Quaid-Session", draft.session),)
    )
    written = Written(draft.session, draft.path, "kept" if edit else "unchanged")
    return Plan(written, (edit,) if edit else (), message, _told_of(draft))


def _told_of(draft: _Draft) -> dict[str, Any]:
    return {
        "turns": len(material_of(draft.text, everything=True).turns),
        "new_turns": draft.new_turns,
        "noted": list(draft.noted),
        "waiting": bool(material_of(draft.text).turns),
    }


def _extracted(plan: Plan, lesson: Lesson | None, *, is_dry_run: bool) -> Extracted:
    told = plan.told
    done = Extracted(
        session=plan.written.id,
        path=plan.written.path,
        turns=told["turns"],
        new_turns=told["new_turns"],
        waiting=told["waiting"],
        commit=plan.written.commit,
        left=plan.written.left,
        facts=tuple(StoredFact(*fact) for fact in told.get("facts", ())),
        entities=tuple(told.get("entities", ())),
        edges=told.get("edges", 0),
        is_dry_run=is_dry_run,
    )
    if lesson is None:
        return done
    found = lesson.extraction or Extraction()
    return replace(
        done,
        snippets={file: len(lines) for file, lines in found.snippets.items()},
        journal=tuple(found.journal),
        left_out=found.left_out,
        quarantined=lesson.quarantined,
        model=lesson.model,
        prompt=lesson.prompt,
        usage=lesson.usage,
        problem=lesson.problem,
        degraded=lesson.degraded,
    )


def _with(add: Callable[..., str], *given: object) -> Callable[[str | None], str]:
    return lambda text: add(text, *given)


def _broken(path: str, error: Exception) -> NoteBrokenError:
    return NoteBrokenError(path, "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error))


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(("extract", *parts)).encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)
