"""A file -> facts: it is read, the model is asked piece by piece, facts and source note are written in one commit.

The model is asked before the lock is taken, and the plan is made on what the memory is by then.
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
from quaid.capture.extraction import ExtractedFact, Extraction, LeftOut
from quaid.capture.files import file_pieces, source_note
from quaid.capture.files.file_pieces import FilePiece
from quaid.capture.files.source_file import SourceFile, read_file
from quaid.capture.files.source_note import AnalysisOutcome, AnalysisRequest, SourceNote
from quaid.capture.relation_naming import name_relations
from quaid.capture.storing import FactsPlan, KnownFact, StoredFact, stored_fields
from quaid.capture.writer import WritePlan, Writer, WriteResult, naming_broken_note
from quaid.errors import BadInputError, ModelAnswerError, ModelRefusedError
from quaid.index import documents
from quaid.local import quarantine
from quaid.local.quarantine import Quarantined
from quaid.model import Kind, Message, ModelUsage, note_name
from quaid.place import state_folder
from quaid.vault import files, frontmatter, notes
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection
    from quaid.llm import Answer, Models, Prompt
    from quaid.open_vault import OpenVault

"""Folders of the vault whose notes are memories already."""


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    """Options of an analysis. `again` asks the model even when neither file nor question has changed."""

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
    """The result for one file. `outcome` is analyzed, or unchanged: then nothing was asked and nothing written.

    `missing` are facts that an earlier state of the file held, `degraded` names what was missing.
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
class _FileReading:
    """The model's reading of a file."""

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

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._root = vault.root
        self._settings = vault.settings
        self._writer = Writer(vault)
        self._reader = ConversationReader(vault)
        self._finder = self._writer.finder

    def analyze(self, path: Path, options: AnalyzeOptions) -> AnalyzeResult:
        """Learn from a text, markdown or PDF file, if it or the question has changed since the last time.

        Raises:
            BadInputError: it cannot be read, or is a memory itself.
            ModelError: no model answered. What it has answered so far is kept and not asked again.
            NoteBrokenError: the file's source note cannot be edited.
        """
        if self._is_memory(path):
            raise BadInputError(f"{path} is a memory already. Give a file that is not one of Quaid's own notes.")
        file = read_file(path)
        focus = " ".join(_safe(options.focus).split())
        request = AnalysisRequest(file, self._vault.git.find_checkout(path, file.data), focus, options.project)
        kept = self._find_note(request)[1]
        models = self._models(options)
        prompt = models.prompt(file_pieces.PROMPT)
        if kept is not None and kept.is_current(request, prompt.label) and not options.again:
            return AnalyzeResult(request, kept.rel_path, "unchanged", prompt=prompt.label)
        found = self._read(request, models)
        named = name_relations(models, found.extraction, self._vault.index())
        found = replace(found, renamed=named.renamed, usage=found.usage + named.usage, degraded=named.degraded)
        if options.dry_run:
            plan = self._plan(request, found)
        else:
            call = ("analyze", request.repository, request.path, request.file.checksum, request.focus, prompt.label)
            key = hashlib.sha256(repr(call).encode()).hexdigest()
            plan = self._writer.write(key, lambda: self._plan(request, found))
        return AnalyzeResult(
            request,
            plan.written.path,
            "analyzed",
            found.summary,
            **stored_fields(plan.details),
            missing=tuple(MissingFact(*fact) for fact in plan.details["missing"]),
            left_out=tuple(LeftOut(*item) for item in plan.details["left_out"]),
            pieces=found.pieces,
            model=found.model,
            prompt=found.prompt,
            usage=found.usage,
            degraded=found.degraded,
            commit=plan.written.commit,
            left=plan.written.left,
            is_dry_run=options.dry_run,
        )

    def _find_note(self, request: AnalysisRequest) -> tuple[str, SourceNote | None]:
        """Return the path of a file's source note, and the note, None when it has to be made."""
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
        return self._reader.models.without_answers()

    def _read(self, request: AnalysisRequest, models: Models) -> _FileReading:
        """Ask the model about each piece of the file. Pieces read before, with the same before them, cost nothing."""
        from quaid.redaction import admit_all

        prompt = models.prompt(file_pieces.PROMPT)
        pieces = file_pieces.split_file(
            request.file, self._settings.capture.piece_tokens, request.focus, request.project
        )
        parts: list[Extraction] = []
        summary, model, usage = "", "", ModelUsage()
        for number, piece in enumerate(pieces):
            if len(pieces) > 1:
                self._vault.show_progress(f"Reading {request.file.path.name}", number, len(pieces))
            answer = self._ask(models, prompt, piece, summary)
            model, usage = answer.model, usage + answer.usage
            safe: Any = admit_all(answer.value)[0]
            part = piece.read(safe)
            parts.append(replace(part, left_out=(*part.left_out, *extraction.list_failed(answer.failed))))
            summary = file_pieces.clean_summary(safe["summary"]) or summary
        found = extraction.keep_at_most(extraction.merge(parts), self._settings.capture.max_facts)
        return _FileReading(found, summary, len(pieces), model, prompt.label, usage)

    def _ask(self, models: Models, prompt: Prompt, piece: FilePiece, so_far: str) -> Answer:
        try:
            return models.ask(prompt, piece.inputs(so_far))
        except (ModelAnswerError, ModelRefusedError) as error:
            about = files.printable(str(piece.file.path))
            entry = Quarantined(
                datetime.now(UTC).isoformat(), about, str(error), prompt=prompt.label, raw=_safe(error.raw)
            )
            with suppress(OSError):  # what it wrote is worth a look, and no second trouble
                quarantine.put(state_folder(self._root), entry)
            raise

    # -- the plan ------------------------------------------------------------------------------------------------

    def _plan(self, request: AnalysisRequest, found: _FileReading) -> WritePlan:
        index, now = self._vault.whole_index(), datetime.now(UTC)
        rel_path, kept = self._find_note(request)
        named = [*kept.facts, *kept.former] if kept else []
        earlier = {name: next(iter(documents.find_by_reference(index, name)), None) for name in named}
        found = self._without_forgotten(found, [name for name in earlier if earlier[name] is None])
        stored = self._plan_facts(index, request, found, note_name(rel_path), earlier, now)
        names = list(dict.fromkeys(note_name(fact.path) for fact in stored.stored))
        outcome = AnalysisOutcome(names, found.summary, found.prompt, found.model)
        with naming_broken_note(rel_path):
            living = [name for name in earlier if earlier[name]]
            edit, gone = source_note.plan_note(rel_path, request, kept, outcome, living, now, self._settings.owner)
        visible = self._vault.visible_index()
        missing = [
            MissingFact(document.id, text)
            for document in map(earlier.get, gone)
            if document is not None and (text := documents.text_of(visible, document.doc_id))
        ]
        details = {
            **stored.details,
            "missing": [[fact.id, fact.text] for fact in missing],
            "left_out": [[item.text, item.reason] for item in found.extraction.left_out],
        }
        message = _message(request, found, stored, missing)
        return WritePlan(WriteResult(rel_path, rel_path, "kept"), (*stored.edits, edit), message, details)

    def _plan_facts(
        self,
        index: IndexConnection,
        request: AnalysisRequest,
        found: _FileReading,
        note: str,
        earlier: Collection[str],
        now: datetime,
    ) -> FactsPlan:
        new = file_pieces.new_facts(found.extraction, request.file, note, self._settings.owner, request.project)
        speakers = [fact.details.speaker for fact in new if fact.details.speaker]
        names = self._finder.entity_names(self._vault.visible_index(), now, speakers)
        duplicates = self._finder.find_duplicates(index, new)
        for place, duplicate in enumerate(duplicates):
            if isinstance(duplicate, KnownFact):
                # This file confirms a fact once. `plan_facts` tells that by the session, and facts of files have none.
                session = None if note_name(duplicate.rel_path) in earlier else duplicate.session or "none"
                duplicates[place] = replace(duplicate, session=session)
        return storing.plan_facts(new, duplicates, names, now, found.renamed)

    def _is_memory(self, path: Path) -> bool:
        """Return whether a file is one of Quaid's notes in the vault."""
        real, root = path.resolve(), self._root.resolve()
        if real == root or not real.is_relative_to(root) or not real.is_file():
            return False
        head = frontmatter.parse(real.read_bytes().decode("utf-8", "replace"))
        kind = Layout.of(self._settings.vault).kind_of(real.relative_to(root).as_posix(), head.fields)
        is_source = kind is Kind.DOC and head.fields.get("type") == "source"
        return is_source or kind not in {Kind.NOTE, Kind.DOC, Kind.CORE}

    def _without_forgotten(self, found: _FileReading, names: Iterable[str]) -> _FileReading:
        """Leave out the facts that one of the removed notes `names` stated: what was forgotten is not learned again."""
        forgotten: dict[str, str] = {}
        for name in names:
            removed = self._vault.git.find_removed(name.rpartition("-")[2])
            if removed is not None:
                note = notes.parse_fact(removed[1], removed[2])
                forgotten[note.text_hash or ""] = note.id
        kept: list[ExtractedFact] = []
        left_out = list(found.extraction.left_out)
        for fact in found.extraction.facts:
            if note_id := forgotten.get(notes.text_hash(fact.text)):
                left_out.append(LeftOut(fact.text, f"it was forgotten; bring it back with: quaid restore {note_id}"))
            else:
                kept.append(fact)
        extracted = replace(found.extraction, facts=tuple(kept), left_out=tuple(left_out))
        return replace(found, extraction=extracted)


def _safe(text: str) -> str:
    from quaid.redaction import admit

    return admit(text).text


def _message(
    request: AnalysisRequest, found: _FileReading, stored: FactsPlan, missing: Sequence[MissingFact]
) -> Message:
    """`analyze: 12 facts from lease.pdf`, and what they are."""
    new, confirmed = stored.with_outcome("created"), stored.with_outcome("confirmed")
    name = files.printable(request.file.path.name)
    body = [f"{request.path}, read by {found.model}."]
    body += listed("New", [fact.text for fact in new])
    body += listed("Confirmed", [fact.text for fact in confirmed])
    body += listed("No longer in the file", [fact.text for fact in missing])
    body += listed("New names", stored.entities)
    trailers = [("Quaid-Task", "analyze"), ("Quaid-Model", found.model), ("Quaid-Prompt", found.prompt)]
    trailers += [("Quaid-Fact", fact.id) for fact in (*new, *confirmed)]
    subject = f"analyze: {len(new) or 'no new'} {'fact' if len(new) == 1 else 'facts'} from {name}"
    return Message(subject, "\n\n".join(body), tuple(trailers))
