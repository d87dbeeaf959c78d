"""A file -> facts and its source note, in one commit.

A file is read like a conversation whose turns are its parts. The model is prompted before the lock is taken, and the
plan is made on the memory as it is then.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from quaid.capture import extraction, facts
from quaid.capture.extraction import Extraction, Learned, LeftOut
from quaid.capture.facts import NewFact, StoredFact
from quaid.capture.files import source_note
from quaid.capture.files.source_file import SourceFile, read_file
from quaid.capture.files.source_note import AnalysisRequest, SourceNote
from quaid.capture.piece_reader import PieceReader
from quaid.capture.prompt_pieces import Material, NumberedTurn, Piece, split_material
from quaid.capture.writer import WritePlan, Writer, WriteResult, make_key, naming_broken_note
from quaid.errors import BadInputError, ModelError
from quaid.history.source_repository import find_checkout
from quaid.index import documents
from quaid.llm import Models
from quaid.model import Kind, note_name
from quaid.open_vault import OpenVault
from quaid.redaction import admit
from quaid.vault import files, frontmatter, notes
from quaid.vault.headings import without_control

NO_PLACE = 0
"""The turn of facts that name no place of the file."""

_NUMBER = re.compile(r"\d+")
_UNLINKABLE = re.compile(r"[\[\]|#^\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeResult(Learned):
    """The result for one file. `outcome` is analyzed, or unchanged: then no model was prompted and nothing written.

    `missing` are facts that the file no longer states; they stay, and their owner decides.
    """

    request: AnalysisRequest
    note: str
    outcome: str
    summary: str = ""
    missing: tuple[StoredFact, ...] = ()
    pieces: int = 0

    @property
    def file(self) -> SourceFile:
        return self.request.file


class FileReader(PieceReader):
    """Reads one file; `summary` is of the pieces so far."""

    prompt = "analyze"
    units = "parts"

    def __init__(self, vault: OpenVault, models: Models, request: AnalysisRequest) -> None:
        super().__init__(vault, models)
        self._request = request
        self.summary = ""

    def inputs(self, piece: Piece) -> Mapping[str, str]:
        file = self._request.file
        lines = [f"name: {file.path.name}", f"title: {file.title or 'not known'}", f"kind: {file.media}"]
        lines += [f"pages: {file.pages}"] if file.pages else []
        lines += [f"project: {piece.material.project}"] if piece.material.project else []
        return {
            "file": "\n".join(lines),
            "focus": self._request.focus or "(everything that matters)",
            "so_far": self.summary or "(nothing)",
            "earlier": _show(piece.earlier),
            "text": _show(piece.turns),
        }

    def extract(self, value: Mapping[str, Any], piece: Piece) -> Extraction:
        """Return what may be stored of an answer. A fact's turn is the number of the part that it is in."""
        self.summary = " ".join(without_control(value["summary"]).split()).lstrip("-*+#>| ") or self.summary
        places: dict[str, int] = {}
        for turn in piece.turns:
            places.setdefault(_key(turn.speaker), turn.number)
        for turn in piece.turns:
            places.setdefault(_key(turn.speaker.rpartition(" > ")[2]), turn.number)
        places.pop("", None)
        found: list[dict[str, Any]] = []
        for fact in value["facts"]:
            # `page 3`, `[Page 3]`, `p. 3`, `Setup > Linux` and `Linux` are understood.
            named = fact.get("place") or ""
            number = _NUMBER.search(named)
            keys = (_key(named), _key(named.rpartition(" > ")[2]), f"page {int(number[0])}" if number else "")
            place = next((places[key] for key in keys if key in places), NO_PLACE)
            found.append({**fact, "source": "import", "turns": [f"t{place}"]})
        # Facts are not checked for orders in their part: unlike a turn, a page with such words is not one person's.
        silent = (NumberedTurn(NO_PLACE, "", ""), *(NumberedTurn(turn.number, "", "") for turn in piece.turns))
        return extraction.read_answer({"facts": found}, Piece(piece.material, silent))


class FileAnalyzer:
    """Analyzes files for one vault."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._writer = Writer(vault)

    def analyze(
        self, path: Path, *, focus: str = "", project: str | None = None, again: bool = False, dry_run: bool = False
    ) -> AnalyzeResult:
        """Learn from a file, if it or the focus has changed since the last time, or `again`.

        Raises:
            BadInputError: it cannot be read, or is a memory itself.
            ModelError: no model answered. Its answers so far are cached.
            NoteBrokenError: the file's source note cannot be edited.
        """
        if self._is_memory(path):
            raise BadInputError(f"{path} is a memory already. Give a file that is not one of Quaid's own notes.")
        file = read_file(path)
        focus = " ".join(admit(focus).text.split())
        request = AnalysisRequest(file, find_checkout(path, file.data), focus, project)
        note = self._find_note(request)[1]
        # The cached answers would be the same again.
        models = self._vault.models.start_run()
        reader = FileReader(self._vault, models.without_answers() if again else models, request)
        label = models.prompt(reader.prompt).label
        if note is not None and note.is_current(request, label) and not again:
            return AnalyzeResult(request=request, note=note.rel_path, outcome="unchanged", prompt=label)
        pieces = split_file(file, extraction.PIECE_TOKENS, project)
        try:
            parts, _ = reader.read_pieces(file.path.name, pieces)
        except ModelError as error:
            reader.quarantine_error(files.printable(str(file.path)), error)
            raise
        found = extraction.merge(parts)
        if dry_run:
            plan = self._plan(request, found, reader.summary)
        else:
            key = make_key("analyze", request.repository, request.path, file.checksum, request.focus, label)
            plan = self._writer.write(key, self._plan, request, found, reader.summary)
        return AnalyzeResult(
            request=request,
            note=plan.written.path,
            outcome="analyzed",
            summary=reader.summary,
            missing=tuple(StoredFact(*fact) for fact in plan.details["missing"]),
            pieces=len(pieces),
            **extraction.learned_fields(plan, found),
            is_dry_run=dry_run,
        )

    def _find_note(self, request: AnalysisRequest) -> tuple[str, SourceNote | None]:
        """Return the path of a file's source note, and the note, None when it does not exist."""
        for rel_path in request.note_paths():
            data = files.read_note(self._vault.root, rel_path)
            note = SourceNote(rel_path, data) if data is not None else None
            if note is None or note.is_of(request):
                return rel_path, note
        raise AssertionError("unreachable")

    def _plan(self, request: AnalysisRequest, found: Extraction, summary: str) -> WritePlan:
        index, now = self._vault.whole_index(), datetime.now(UTC)
        rel_path, note = self._find_note(request)
        named = [*note.facts, *note.former] if note else []
        earlier = {name: next(iter(documents.find_by_reference(index, name)), None) for name in named}
        found = self._without_forgotten(found, [name for name, document in earlier.items() if document is None])
        owner, document = self._vault.settings.owner, note_name(rel_path)
        new: list[NewFact] = []
        for fact in found.facts:
            place = next((request.file.parts[int(turn) - 1][0] for turn in fact.turns if int(turn) != NO_PLACE), "")
            place = " ".join(_UNLINKABLE.sub(" ", place).split())
            fact = extraction.as_project(fact, owner, request.project or fact.project)  # noqa: PLW2901 - of the vault
            new.append(replace(fact, turns=(), document=f"[[{document}|{place}]]" if place else f"[[{document}]]"))
        finder, visible = self._writer.finder, self._vault.visible_index()
        entities = finder.entity_names(visible, now, [fact.speaker for fact in new if fact.speaker])
        same = finder.find_duplicates(index, new)
        stored = facts.plan_facts(new, same, entities, now, known=earlier)
        names = list(dict.fromkeys(note_name(fact.path) for fact in stored.stored))
        with naming_broken_note(rel_path):
            living = [name for name, document in earlier.items() if document]
            source = (found.prompt, found.model)
            edit, gone = source_note.plan_note(rel_path, request, note, names, summary, source, living, now, owner)
        missing = [
            StoredFact(document.id, document.path, text, "missing")
            for document in map(earlier.get, gone)
            if document is not None and (text := documents.text_of(visible, document.doc_id))
        ]
        details = {**stored.details, "missing": missing, "left_out": found.left_out}
        number, name = len(stored.with_outcome("created")), files.printable(request.file.path.name)
        message = extraction.build_message(
            f"analyze: {number or 'no new'} {'fact' if number == 1 else 'facts'} from {name}",
            f"{request.path}, read by {found.model}.",
            replace(found, left_out=()),
            stored,
            [("Quaid-Task", "analyze")],
            [fact.text for fact in missing],
        )
        return WritePlan(WriteResult(rel_path, rel_path, "kept"), (*stored.edits, edit), message, details)

    def _is_memory(self, path: Path) -> bool:
        real, root = path.resolve(), self._vault.root.resolve()
        if real == root or not real.is_relative_to(root) or not real.is_file():
            return False
        head = frontmatter.parse(real.read_bytes().decode("utf-8", "replace"))
        kind = self._vault.layout.kind_of(real.relative_to(root).as_posix(), head.fields)
        is_source = kind is Kind.DOC and head.fields.get("type") == "source"
        return is_source or kind not in {Kind.NOTE, Kind.DOC, Kind.CORE}

    def _without_forgotten(self, found: Extraction, names: Sequence[str]) -> Extraction:
        """Leave out the facts of the removed notes `names`: a forgotten fact is not learned again."""
        forgotten: dict[str, str] = {}
        for name in names:
            removed = self._vault.git.find_removed(name.rpartition("-")[2])
            if removed is not None:
                note = notes.parse_fact(removed[1], removed[2])
                forgotten[note.text_hash or ""] = note.id
        ids = [(fact, forgotten.get(notes.text_hash(fact.text))) for fact in found.facts]
        left_out = [
            LeftOut(fact.text, f"it was forgotten; bring it back with: quaid restore {note_id}")
            for fact, note_id in ids
            if note_id
        ]
        stored = tuple(fact for fact, note_id in ids if not note_id)
        return replace(found, facts=stored, left_out=(*found.left_out, *left_out))


def split_file(file: SourceFile, limit_tokens: int, project: str | None = None) -> list[Piece]:
    """Return the pieces of a file, each of at most about `limit_tokens` tokens, overlapping a little."""
    turns = tuple(
        NumberedTurn(number, f"[{place}]" if place else "", text)
        for number, (place, text) in enumerate(file.parts, NO_PLACE + 1)
    )
    material = Material(session="", project=project, started=None, turns=turns)
    return split_material(material, limit_tokens)


def _key(place: str) -> str:
    return " ".join(place.strip("[]# \n").casefold().split())


def _show(turns: Sequence[NumberedTurn]) -> str:
    """Return the parts, each place named once above its text."""
    groups = [(place, [turn.text for turn in found]) for place, found in groupby(turns, lambda turn: turn.speaker)]
    return "\n\n".join("\n\n".join([place, *texts] if place else texts) for place, texts in groups) or "(none)"
