"""A file -> facts: it is read, the model is asked piece by piece, facts and source note are written in one commit.

The model is asked before anybody is kept waiting, and the plan is made on what the memory is by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.capture import extract, storing
from quaid.capture.extract import Extraction, LeftOut
from quaid.capture.files import analysis, source_note
from quaid.capture.files.analysis import FilePiece
from quaid.capture.files.source_file import SourceFile, read_file
from quaid.capture.files.source_note import Analysis, Inquiry, KeptNote, NotePlan
from quaid.capture.lesson import listed
from quaid.capture.naming import Names
from quaid.capture.reader import Reader, name_relations
from quaid.capture.storing import FactsPlan, KnownFact, Same, StoredFact
from quaid.capture.writer import Plan, Written
from quaid.errors import BadInputError, ModelAnswerError, ModelRefusedError, NoteBrokenError
from quaid.index import documents, graph
from quaid.local import quarantine
from quaid.local.quarantine import Quarantined
from quaid.model import Message, ModelUsage, note_name
from quaid.place import state_folder
from quaid.vault import files, frontmatter, notes

if TYPE_CHECKING:
    import apsw

    from quaid.capture.writer import Dependencies, Writer
    from quaid.llm import Answer, Models, Prompt
    from quaid.sync.embedding import Progress

_OURS = ("facts", "entities", "episodes", "snippets", "journal", "review", "sources")
"""Folders of the vault whose notes are memories already."""


@dataclass(frozen=True, slots=True)
class HowTo:
    """How a file is analyzed. `again` asks the model even when neither file nor question has changed."""

    focus: str = ""
    project: str | None = None
    again: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class MissingFact:
    """A fact that the file said before and does not say now. It is kept; its owner decides."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What became of one file. `outcome` is analyzed, or unchanged: then nothing was asked and nothing written.

    `missing` are facts that an earlier state of the file held, `degraded` names what had to be done without.
    """

    inquiry: Inquiry
    note: str
    outcome: str
    summary: str = ""
    facts: tuple[StoredFact, ...] = ()
    missing: tuple[MissingFact, ...] = ()
    entities: tuple[str, ...] = ()
    edges: int = 0
    left_out: tuple[LeftOut, ...] = ()
    pieces: int = 0
    model: str | None = None
    prompt: str | None = None
    usage: ModelUsage = field(default_factory=ModelUsage)
    degraded: tuple[str, ...] = ()
    commit: str | None = None
    left: tuple[str, ...] = ()
    is_dry_run: bool = False

    @property
    def file(self) -> SourceFile:
        return self.inquiry.file


@dataclass(frozen=True, slots=True)
class _Found:
    """What the model made of a file."""

    extraction: Extraction
    summary: str
    pieces: int
    model: str
    prompt: str
    usage: ModelUsage
    renamed: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()


class Analyst:
    """Analyzes files for one vault."""

    def __init__(
        self, dependencies: Dependencies, writer: Writer, reader: Reader, progress: Progress | None = None
    ) -> None:
        self._dependencies = dependencies
        self._root = dependencies.root
        self._settings = dependencies.settings
        self._writer = writer
        self._reader = reader
        self._lookups = writer.lookups
        self._progress = progress

    def analyze(self, path: Path, how: HowTo) -> Analyzed:
        """Learn from a text, markdown or PDF file, if it or the question has changed since the last time.

        Raises:
            BadInputError: it cannot be read, or is a memory itself.
            ModelError: no model answered. What it has answered so far is kept and not asked again.
            NoteBrokenError: the file's source note cannot be edited.
        """
        self._refuse_memories(path)
        file = read_file(path)
        focus = " ".join(_safe(how.focus).split())
        inquiry = Inquiry(file, self._dependencies.history().find_checkout(path, file.data), focus, how.project)
        kept = self._find_note(inquiry)[1]
        models = self._models(how)
        prompt = models.prompt(analysis.PROMPT)
        if kept is not None and kept.is_current(inquiry, prompt.label) and not how.again:
            return Analyzed(inquiry, kept.rel_path, "unchanged", prompt=prompt.label)
        found = self._read(inquiry, models)
        named = name_relations(models, found.extraction, self._dependencies.seen_index())
        found = replace(found, renamed=named.renamed, usage=found.usage + named.usage, degraded=named.degraded)
        if how.dry_run:
            plan = self._plan(inquiry, found)
        else:
            plan = self._writer.write(_key(inquiry, prompt.label), lambda: self._plan(inquiry, found))
        return _analyzed(inquiry, found, plan, is_dry_run=how.dry_run)

    def _refuse_memories(self, path: Path) -> None:
        real, root = path.resolve(), self._root.resolve()
        if real.is_relative_to(root) and real.relative_to(root).parts[:1] and real.relative_to(root).parts[0] in _OURS:
            raise BadInputError(f"{path} is a memory already. Give a file that is not one of Quaid's own notes.")

    def _find_note(self, inquiry: Inquiry) -> tuple[str, KeptNote | None]:
        """Where the source note of a file is, or is to be, and what is there."""
        for rel_path in inquiry.note_paths():
            data = files.read_note(self._root, rel_path)
            kept = KeptNote.of(rel_path, data) if data is not None else None
            if kept is None or kept.is_of(inquiry):
                return rel_path, kept
        raise AssertionError("unreachable")

    # -- the model -----------------------------------------------------------------------------------------------

    def _models(self, how: HowTo) -> Models:
        if not how.again:
            return self._reader.models
        # Kept answers would be the same again.
        return self._reader.models.without_answers()

    def _read(self, inquiry: Inquiry, models: Models) -> _Found:
        """What the model makes of the file. Pieces that it has read before, with the same before them, cost nothing."""
        from quaid.redaction import admit_all

        prompt = models.prompt(analysis.PROMPT)
        pieces = analysis.split_file(inquiry.file, self._settings.capture.piece_tokens, inquiry.focus, inquiry.project)
        parts: list[Extraction] = []
        summary, model, usage = "", "", ModelUsage()
        for number, piece in enumerate(pieces):
            if self._progress and len(pieces) > 1:
                self._progress(f"Reading {inquiry.file.path.name}", number, len(pieces))
            answer = self._ask(models, prompt, piece, summary)
            model, usage = answer.model, usage + answer.usage
            safe: Any = admit_all(answer.value)[0]
            parts.append(piece.read(safe))
            summary = analysis.clean_summary(safe["summary"]) or summary
        extraction = extract.keep_at_most(extract.merge(parts), self._settings.capture.max_facts)
        return _Found(extraction, summary, len(pieces), model, prompt.label, usage)

    def _ask(self, models: Models, prompt: Prompt, piece: FilePiece, so_far: str) -> Answer:
        try:
            return models.ask(prompt, piece.inputs(so_far))
        except (ModelAnswerError, ModelRefusedError) as error:
            about = files.shown(str(piece.file.path))
            entry = Quarantined(
                datetime.now(UTC).isoformat(), about, str(error), prompt=prompt.label, raw=_safe(error.raw)
            )
            with suppress(OSError):  # what it wrote is worth a look, and no second trouble
                quarantine.put(state_folder(self._root), entry)
            raise

    # -- the plan ------------------------------------------------------------------------------------------------

    def _plan(self, inquiry: Inquiry, found: _Found) -> Plan:
        index, now = self._dependencies.fresh_index(), datetime.now(UTC)
        visible = self._dependencies.visible_index()
        rel_path, kept = self._find_note(inquiry)
        drawn = _drawn(index, [*kept.facts, *kept.former]) if kept else {}
        forgotten = self._forgotten([name for name, document in drawn.items() if document is None])
        extraction, left_out = _without(found.extraction, forgotten)
        found = replace(found, extraction=extraction)
        stored = self._plan_facts(index, inquiry, found, note_name(rel_path), drawn, now)
        names = list(dict.fromkeys(note_name(fact.path) for fact in stored.stored))
        analysis = Analysis(names, found.summary, found.prompt, found.model)
        planned = _plan_note(rel_path, inquiry, kept, analysis, [name for name in drawn if drawn[name]], now)
        missing = [
            MissingFact(document.id, text)
            for document in map(drawn.get, planned.missing)
            if document is not None and (text := documents.text_of(visible, document.doc_id))
        ]
        told = {
            "facts": [[fact.id, fact.path, fact.text, fact.outcome] for fact in stored.stored],
            "missing": [[fact.id, fact.text] for fact in missing],
            "entities": list(stored.entities),
            "edges": stored.edges,
            "left_out": [[item.text, item.reason] for item in (*extraction.left_out, *left_out)],
        }
        message = _message(inquiry, found, stored, missing)
        return Plan(Written(rel_path, rel_path, "kept"), (*stored.edits, planned.edit), message, told)

    def _plan_facts(
        self,
        index: apsw.Connection,
        inquiry: Inquiry,
        found: _Found,
        note: str,
        drawn: Collection[str],
        now: datetime,
    ) -> FactsPlan:
        settings = self._settings
        new = analysis.new_facts(found.extraction, inquiry.file, note, settings.owner, inquiry.project)
        visible = self._dependencies.visible_index()
        names = Names.of(
            graph.entity_names(visible),
            lambda name: self._lookups.find_entity(visible, name),
            now,
            speakers=[fact.details.speaker for fact in new if fact.details.speaker],
            owner=settings.owner_name,
        )
        same = [_as_witness(twin, drawn) for twin in self._lookups.find_same(index, new)]
        return storing.plan_facts(new, same, names, now, found.renamed)

    def _forgotten(self, names: Iterable[str]) -> dict[str, str]:
        """What notes said that are gone, as hash of the text -> id: what was forgotten is not learned anew."""
        said: dict[str, str] = {}
        for name in names:
            removed = self._dependencies.history().find_removed(name.rpartition("-")[2])
            if removed is not None:
                note = notes.parse_note(removed[1], removed[2])
                said[note.text_hash or ""] = note.id
        return said


def _safe(text: str) -> str:
    from quaid.redaction import admit

    return admit(text).text


def _drawn(index: apsw.Connection, names: Sequence[str]) -> dict[str, documents.Document | None]:
    """The notes of facts that were drawn before, None where one is gone."""
    found = {name: documents.find_by_reference(index, name) for name in names}
    return {name: notes_of[0] if notes_of else None for name, notes_of in found.items()}


def _without(found: Extraction, forgotten: Mapping[str, str]) -> tuple[Extraction, list[LeftOut]]:
    left_out = [
        LeftOut(fact.text, f"it was forgotten; bring it back with: quaid restore {note_id}")
        for fact in found.facts
        if (note_id := forgotten.get(notes.text_hash(fact.text)))
    ]
    facts = tuple(fact for fact in found.facts if notes.text_hash(fact.text) not in forgotten)
    return replace(found, facts=facts), left_out


def _as_witness(twin: Same, drawn: Collection[str]) -> Same:
    """A known fact, made such that this file confirms it once: not when its name is among those it has given before.

    `plan_facts` tells that by the session, and facts of files have none.
    """
    if not isinstance(twin, KnownFact):
        return twin
    return replace(twin, session=None if note_name(twin.rel_path) in drawn else twin.session or "none")


def _plan_note(
    rel_path: str, inquiry: Inquiry, kept: KeptNote | None, analysis: Analysis, living: Sequence[str], now: datetime
) -> NotePlan:
    try:
        return source_note.plan_note(rel_path, inquiry, kept, analysis, living, now)
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError) as error:
        problem = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise NoteBrokenError(rel_path, problem) from error


def _message(inquiry: Inquiry, found: _Found, stored: FactsPlan, missing: Sequence[MissingFact]) -> Message:
    """`analyze: 12 facts from lease.pdf`, and what they are."""
    new = [fact for fact in stored.stored if fact.outcome == "created"]
    confirmed = [fact for fact in stored.stored if fact.outcome == "confirmed"]
    name = files.shown(inquiry.file.path.name)
    body = [f"{inquiry.path}, read by {found.model}."]
    body += listed("New", [fact.text for fact in new])
    body += listed("Confirmed", [fact.text for fact in confirmed])
    body += listed("No longer in the file", [fact.text for fact in missing])
    body += listed("New names", stored.entities)
    trailers = [("Quaid-Task", "analyze"), ("Quaid-Model", found.model), ("Quaid-Prompt", found.prompt)]
    trailers += [("Quaid-Fact", fact.id) for fact in (*new, *confirmed)]
    subject = f"analyze: {len(new) or 'no new'} {'fact' if len(new) == 1 else 'facts'} from {name}"
    return Message(subject, "\n\n".join(body), tuple(trailers))


def _analyzed(inquiry: Inquiry, found: _Found, plan: Plan, *, is_dry_run: bool) -> Analyzed:
    told = plan.told
    return Analyzed(
        inquiry,
        plan.written.path,
        "analyzed",
        found.summary,
        facts=tuple(StoredFact(*fact) for fact in told["facts"]),
        missing=tuple(MissingFact(*fact) for fact in told["missing"]),
        entities=tuple(told["entities"]),
        edges=told["edges"],
        left_out=tuple(LeftOut(*item) for item in told["left_out"]),
        pieces=found.pieces,
        model=found.model,
        prompt=found.prompt,
        usage=found.usage,
        degraded=found.degraded,
        commit=plan.written.commit,
        left=plan.written.left,
        is_dry_run=is_dry_run,
    )


def _key(inquiry: Inquiry, prompt: str) -> str:
    parts = ("analyze", inquiry.repository, inquiry.path, inquiry.file.checksum, inquiry.focus, prompt)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
