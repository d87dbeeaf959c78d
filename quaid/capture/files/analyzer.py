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

from quaid.capture import extraction, storing
from quaid.capture.commit_message import listed
from quaid.capture.conversation_reader import ConversationReader
from quaid.capture.entity_names import EntityNames
from quaid.capture.extraction import Extraction, LeftOut
from quaid.capture.files import file_pieces, source_note
from quaid.capture.files.file_pieces import FilePiece
from quaid.capture.files.source_file import SourceFile, read_file
from quaid.capture.files.source_note import AnalysisOutcome, AnalysisRequest, SourceNote, SourceNotePlan
from quaid.capture.relation_naming import name_relations
from quaid.capture.storing import Duplicate, FactsPlan, KnownFact, StoredFact
from quaid.capture.writer import WritePlan, WriteResult
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
class AnalyzeOptions:
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
class AnalyzeResult:
    """What became of one file. `outcome` is analyzed, or unchanged: then nothing was asked and nothing written.

    `missing` are facts that an earlier state of the file held, `degraded` names what had to be done without.
    """

    request: AnalysisRequest
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
        return self.request.file


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


class FileAnalyzer:
    """Analyzes files for one vault."""

    def __init__(
        self, dependencies: Dependencies, writer: Writer, reader: ConversationReader, progress: Progress | None = None
    ) -> None:
        self._dependencies = dependencies
        self._root = dependencies.root
        self._settings = dependencies.settings
        self._writer = writer
        self._reader = reader
        self._finder = writer.finder
        self._progress = progress

    def analyze(self, path: Path, options: AnalyzeOptions) -> AnalyzeResult:
        """Learn from a text, markdown or PDF file, if it or the question has changed since the last time.

        Raises:
            BadInputError: it cannot be read, or is a memory itself.
            ModelError: no model answered. What it has answered so far is kept and not asked again.
            NoteBrokenError: the file's source note cannot be edited.
        """
        self._refuse_memories(path)
        file = read_file(path)
        focus = " ".join(_safe(options.focus).split())
        request = AnalysisRequest(
            file, self._dependencies.history().find_checkout(path, file.data), focus, options.project
        )
        kept = self._find_note(request)[1]
        models = self._models(options)
        prompt = models.prompt(file_pieces.PROMPT)
        if kept is not None and kept.is_current(request, prompt.label) and not options.again:
            return AnalyzeResult(request, kept.rel_path, "unchanged", prompt=prompt.label)
        found = self._read(request, models)
        named = name_relations(models, found.extraction, self._dependencies.seen_index())
        found = replace(found, renamed=named.renamed, usage=found.usage + named.usage, degraded=named.degraded)
        if options.dry_run:
            plan = self._plan(request, found)
        else:
            plan = self._writer.write(_key(request, prompt.label), lambda: self._plan(request, found))
        return _analyzed(request, found, plan, is_dry_run=options.dry_run)

    def _refuse_memories(self, path: Path) -> None:
        real, root = path.resolve(), self._root.resolve()
        if real.is_relative_to(root) and real.relative_to(root).parts[:1] and real.relative_to(root).parts[0] in _OURS:
            raise BadInputError(f"{path} is a memory already. Give a file that is not one of Quaid's own notes.")

    def _find_note(self, request: AnalysisRequest) -> tuple[str, SourceNote | None]:
        """Where the source note of a file is, or is to be, and what is there."""
        for rel_path in request.note_paths():
            data = files.read_note(self._root, rel_path)
            kept = SourceNote.of(rel_path, data) if data is not None else None
            if kept is None or kept.is_of(request):
                return rel_path, kept
        raise AssertionError("unreachable")

    # -- the model -----------------------------------------------------------------------------------------------

    def _models(self, options: AnalyzeOptions) -> Models:
        if not options.again:
            return self._reader.models
        # Kept answers would be the same again.
        settings = replace(self._settings, models=replace(self._settings.models, cache_days=0))
        return ConversationReader(self._root, settings, self._dependencies.seen_index, None).models

    def _read(self, request: AnalysisRequest, models: Models) -> _Found:
        """What the model makes of the file. Pieces that it has read before, with the same before them, cost nothing."""
        from quaid.redaction import admit_all

        prompt = models.prompt(file_pieces.PROMPT)
        pieces = file_pieces.split_file(
            request.file, self._settings.capture.piece_tokens, request.focus, request.project
        )
        parts: list[Extraction] = []
        summary, model, usage = "", "", ModelUsage()
        for number, piece in enumerate(pieces):
            if self._progress and len(pieces) > 1:
                self._progress(f"Reading {request.file.path.name}", number, len(pieces))
            answer = self._ask(models, prompt, piece, summary)
            model, usage = answer.model, usage + answer.usage
            safe: Any = admit_all(answer.value)[0]
            parts.append(piece.read(safe))
            summary = file_pieces.clean_summary(safe["summary"]) or summary
        found = extraction.keep_at_most(extraction.merge(parts), self._settings.capture.max_facts)
        return _Found(found, summary, len(pieces), model, prompt.label, usage)

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

    def _plan(self, request: AnalysisRequest, found: _Found) -> WritePlan:
        index, now = self._dependencies.fresh_index(), datetime.now(UTC)
        visible = self._dependencies.visible_index()
        rel_path, kept = self._find_note(request)
        drawn = _drawn(index, [*kept.facts, *kept.former]) if kept else {}
        forgotten = self._forgotten([name for name, document in drawn.items() if document is None])
        extraction, left_out = _without(found.extraction, forgotten)
        found = replace(found, extraction=extraction)
        stored = self._plan_facts(index, request, found, note_name(rel_path), drawn, now)
        names = list(dict.fromkeys(note_name(fact.path) for fact in stored.stored))
        analysis = AnalysisOutcome(names, found.summary, found.prompt, found.model)
        planned = _plan_note(rel_path, request, kept, analysis, [name for name in drawn if drawn[name]], now)
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
        message = _message(request, found, stored, missing)
        return WritePlan(WriteResult(rel_path, rel_path, "kept"), (*stored.edits, planned.edit), message, told)

    def _plan_facts(
        self,
        index: apsw.Connection,
        request: AnalysisRequest,
        found: _Found,
        note: str,
        drawn: Collection[str],
        now: datetime,
    ) -> FactsPlan:
        settings = self._settings
        new = file_pieces.new_facts(found.extraction, request.file, note, settings.owner, request.project)
        visible = self._dependencies.visible_index()
        names = EntityNames.of(
            graph.entity_names(visible),
            lambda name: self._finder.find_entity(visible, name),
            now,
            speakers=[fact.details.speaker for fact in new if fact.details.speaker],
            owner=settings.owner_name,
        )
        same = [_as_witness(duplicate, drawn) for duplicate in self._finder.find_duplicates(index, new)]
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
    found = {name: documents.find_called(index, name) for name in names}
    return {name: notes_of[0] if notes_of else None for name, notes_of in found.items()}


def _without(found: Extraction, forgotten: Mapping[str, str]) -> tuple[Extraction, list[LeftOut]]:
    left_out = [
        LeftOut(fact.text, f"it was forgotten; bring it back with: quaid restore {note_id}")
        for fact in found.facts
        if (note_id := forgotten.get(notes.text_hash(fact.text)))
    ]
    facts = tuple(fact for fact in found.facts if notes.text_hash(fact.text) not in forgotten)
    return replace(found, facts=facts), left_out


def _as_witness(duplicate: Duplicate, drawn: Collection[str]) -> Duplicate:
    """A known fact, made such that this file confirms it once: not when its name is among those it has given before.

    `plan_facts` tells that by the session, and facts of files have none.
    """
    if not isinstance(duplicate, KnownFact):
        return duplicate
    return replace(duplicate, session=None if note_name(duplicate.rel_path) in drawn else duplicate.session or "none")


def _plan_note(
    rel_path: str,
    request: AnalysisRequest,
    kept: SourceNote | None,
    analysis: AnalysisOutcome,
    living: Sequence[str],
    now: datetime,
) -> SourceNotePlan:
    try:
        return source_note.plan_note(rel_path, request, kept, analysis, living, now)
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError) as error:
        problem = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise NoteBrokenError(rel_path, problem) from error


def _message(request: AnalysisRequest, found: _Found, stored: FactsPlan, missing: Sequence[MissingFact]) -> Message:
    """`analyze: 12 facts from lease.pdf`, and what they are."""
    new = [fact for fact in stored.stored if fact.outcome == "created"]
    confirmed = [fact for fact in stored.stored if fact.outcome == "confirmed"]
    name = files.shown(request.file.path.name)
    body = [f"{request.path}, read by {found.model}."]
    body += listed("New", [fact.text for fact in new])
    body += listed("Confirmed", [fact.text for fact in confirmed])
    body += listed("No longer in the file", [fact.text for fact in missing])
    body += listed("New names", stored.entities)
    trailers = [("Quaid-Task", "analyze"), ("Quaid-Model", found.model), ("Quaid-Prompt", found.prompt)]
    trailers += [("Quaid-Fact", fact.id) for fact in (*new, *confirmed)]
    subject = f"analyze: {len(new) or 'no new'} {'fact' if len(new) == 1 else 'facts'} from {name}"
    return Message(subject, "\n\n".join(body), tuple(trailers))


def _analyzed(request: AnalysisRequest, found: _Found, plan: WritePlan, *, is_dry_run: bool) -> AnalyzeResult:
    told = plan.told
    return AnalyzeResult(
        request,
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


def _key(request: AnalysisRequest, prompt: str) -> str:
    parts = ("analyze", request.repository, request.path, request.file.checksum, request.focus, prompt)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
