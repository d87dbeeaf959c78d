"""A file -> questions to the model, piece by piece, and its answers -> facts that say where in the file they stand.

A file is read like a conversation in which its parts are the turns: pieces, and what is checked of an answer, are those
of `capture`. Only that a model names places, and not turns, is different.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from quaid.capture import extraction
from quaid.capture.extraction import Extraction, details_of
from quaid.capture.files.source_file import SourceFile
from quaid.capture.prompt_pieces import Material, NumberedTurn, Piece, split_material
from quaid.capture.storing import NewFact
from quaid.vault.headings import without_control

PROMPT = "analyze"
NOWHERE = 0
"""The turn of facts that name no place of the file."""

_NUMBER = re.compile(r"\d+")
_UNLINKABLE = re.compile(r"[\[\]|#^\n]")


@dataclass(frozen=True, slots=True)
class FilePiece:
    """One question to the model."""

    piece: Piece
    file: SourceFile
    focus: str

    def inputs(self, so_far: str) -> Mapping[str, str]:
        """One text for each slot of the prompt `analyze`; `so_far` sums up the pieces before."""
        file = self.file
        lines = [f"name: {file.path.name}", f"title: {file.title or 'not known'}", f"kind: {file.media}"]
        lines += [f"pages: {file.pages}"] if file.pages else []
        lines += [f"project: {self.piece.material.project}"] if self.piece.material.project else []
        return {
            "file": "\n".join(lines),
            "focus": self.focus or "(everything that matters)",
            "so_far": so_far or "(nothing)",
            "earlier": _shown(self.piece.earlier),
            "text": _shown(self.piece.turns),
        }

    def read(self, value: Mapping[str, Any]) -> Extraction:
        """The part of an answer that may be kept. A fact's turn is the number of the part it stands in."""
        places = _places(self.piece.turns)
        facts = [
            {**fact, "source": "import", "turns": [f"t{_find_place(fact.get('place'), places)}"]}
            for fact in value["facts"]
        ]
        # A turn that gives orders is one person's; a page with such words is not, and is not looked at for them.
        silent = tuple(NumberedTurn(turn.number, "", "") for turn in (NumberedTurn(NOWHERE, "", ""), *self.piece.turns))
        return extraction.read_answer({"facts": facts}, Piece(self.piece.material, silent))


def split_file(file: SourceFile, limit_tokens: int, focus: str = "", project: str | None = None) -> list[FilePiece]:
    """The questions about a file, each of at most about `limit_tokens` tokens of it, overlapping a little."""
    turns = tuple(
        NumberedTurn(number, f"[{part.place}]" if part.place else "", part.text)
        for number, part in enumerate(file.parts, NOWHERE + 1)
    )
    material = Material(session="", source=file.media, project=project, started=None, turns=turns)
    return [FilePiece(piece, file, focus) for piece in split_material(material, limit_tokens)]


def new_facts(found: Extraction, file: SourceFile, note: str, owner: str, project: str | None) -> list[NewFact]:
    """The facts of `found`, pending, with a link to the source note `note` that shows the place."""
    return [
        NewFact(
            fact.text,
            replace(
                details_of(fact, owner, project or fact.project),
                source="import",
                document=_link(note, file, fact.turns),
            ),
        )
        for fact in found.facts
    ]


def clean_summary(text: str) -> str:
    """A model's summary as one line of prose."""
    return " ".join(without_control(text).split()).lstrip("-*+#>| ")


def _link(note: str, file: SourceFile, turns: Sequence[int]) -> str:
    place = next((file.parts[turn - 1].place for turn in turns if turn != NOWHERE), "")
    shown = " ".join(_UNLINKABLE.sub(" ", place).split())
    return f"[[{note}|{shown}]]" if shown else f"[[{note}]]"


def _shown(turns: Sequence[NumberedTurn]) -> str:
    """The parts, each place named once above its text."""
    groups = [(place, [turn.text for turn in found]) for place, found in groupby(turns, lambda turn: turn.speaker)]
    return "\n\n".join("\n\n".join([place, *texts] if place else texts) for place, texts in groups) or "(none)"


def _places(turns: Sequence[NumberedTurn]) -> dict[str, int]:
    """Each place, and its last heading alone, by the number of its first part."""
    found: dict[str, int] = {}
    for turn in turns:
        found.setdefault(_key(turn.speaker), turn.number)
    for turn in turns:
        found.setdefault(_key(turn.speaker.rpartition(" > ")[2]), turn.number)
    found.pop("", None)
    return found


def _find_place(named: str | None, places: Mapping[str, int]) -> int:
    """The number of a part; `page 3`, `[Page 3]`, `p. 3`, `Setup > Linux` and `Linux` are understood."""
    named = named or ""
    number = _NUMBER.search(named)
    readings = (_key(named), _key(named.rpartition(" > ")[2]), f"page {int(number[0])}" if number else "")
    return next((places[key] for key in readings if key in places), NOWHERE)


def _key(place: str) -> str:
    return " ".join(place.strip("[]# \n").casefold().split())
