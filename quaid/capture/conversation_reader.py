"""Prompting the deep model about a conversation, piece by piece. Unusable answers are quarantined.

Where an agent's host has a model and Quaid has none, `build_prompt` makes the prompt for it and `accept_answer` reads
its answer.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.capture import extraction, relations
from quaid.capture.extraction import Extraction, LeftOut
from quaid.capture.note_finder import show_known_names
from quaid.capture.prompt_pieces import (
    Material,
    Piece,
    first_piece,
    read_material,
    single_piece,
    split_material,
    split_piece,
    states_nothing,
)
from quaid.config import person_of
from quaid.errors import BadInputError, ModelAnswerError, ModelError, ModelRefusedError, QuaidError
from quaid.index import graph
from quaid.model import Edge, ModelUsage
from quaid.place import LOCAL_FILE
from quaid.redaction import admit, admit_all
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection
    from quaid.llm import Models
    from quaid.llm.exchange import FailedItem
    from quaid.open_vault import OpenVault

MAX_REFUSALS = 20
"""After so many refusals and no answer, the model is the cause and not the text."""
RELATIONS_PROMPT = "relations"
RELATIONS_TIMEOUT_S = 20.0
_MAX_NEW_RELATIONS = 60
_MAX_KNOWN_RELATIONS = 200


class ConversationReading(NamedTuple):
    """The extraction from `material`. Without one there is a `problem`: nothing was learned, and the material is
    pending. `quarantined` is the file with the answer that could not be used.
    """

    material: Material
    extraction: Extraction | None = None
    problem: QuaidError | None = None
    quarantined: str | None = None


class BuiltPrompt(NamedTuple):
    """A prompt for a model that Quaid cannot reach. `through` is the last turn in it."""

    session: str
    text: str
    through: int


class HostAnswer(NamedTuple):
    """The answer of such a model, whose name is `by`, to a prompt with the turns up to `through`, None for all."""

    value: Mapping[str, Any]
    by: str
    through: int | None = None


class ConversationReader:
    """Reads one vault's conversations, with models that are opened when first used."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._state = vault.state
        self._settings = vault.settings
        self._owner = person_of(vault.root, vault.settings)
        self._run: Models | None = None

    def begin_run(self) -> None:
        """Reset what counts towards the caps of a run."""
        self._run = None

    @property
    def models(self) -> Models:
        """The models, with the caps of the run that has begun."""
        if self._run is None:
            self._run = self._vault.models.start_run()
        return self._run

    def is_able(self) -> bool:
        """Return True when there is a model to prompt. One selected by name counts always: its failure is shown."""
        capture, provider = self._settings.capture, self._settings.models.provider
        if provider in {"", "none"} or not (capture.facts or self._settings.systems.journal):
            return False
        return provider != "auto" or self.models.describe().provider is not None

    def read(self, text: str, *, everything: bool = False) -> ConversationReading:
        """Return what the model learns from the new turns of an episode note, or from `everything` in it.

        Pieces that were read before cost nothing. No model is prompted about a conversation that states nothing.
        Trouble with the model is a problem of the reading, never raised.
        """
        material = read_material(text, everything=everything)
        if states_nothing(material):
            return ConversationReading(material, Extraction())
        try:
            parts, quarantined = self._ask_all(material)
        except ModelError as error:
            raw = error.raw if isinstance(error, ModelAnswerError | ModelRefusedError) else ""
            where = self._quarantine(material, str(error), raw) if raw else None
            return ConversationReading(material, problem=error, quarantined=where)
        found = name_relations(self.models, self._merge(parts), self._vault.visible_index())
        return ConversationReading(material, found, quarantined=quarantined)

    def build_prompt(self, text: str) -> BuiltPrompt | None:
        """Return the prompt about as much of the episode note `text` as fits; None when nothing in it is new."""
        material = read_material(text)
        if not material.turns:
            return None
        piece = first_piece(material, extraction.PIECE_TOKENS)
        prompt = self.models.prompt(extraction.PROMPT)
        # Quaid's model has nothing but this prompt; a host's has tools, and the text could make it use them.
        inputs = {slot: neutralise(text) for slot, text in self._inputs(piece).items()}
        return BuiltPrompt(material.session, f"{prompt.system}\n\n{prompt.fill(inputs)}", piece.material.last)

    def accept_answer(self, answer: HostAnswer, text: str, *, everything: bool = False) -> ConversationReading:
        """Return what an answer to `build_prompt` states. No model is prompted."""
        from quaid.llm.drafts import read_value

        material = read_material(text, everything=everything, through=answer.through)
        if not material.turns:
            return ConversationReading(material, Extraction())
        prompt, piece = self.models.prompt(extraction.PROMPT), single_piece(material)
        given: Any = admit_all(dict(answer.value))[0]
        draft = read_value(given, prompt.schema, lambda value: extraction.find_problems(value, piece))
        value = draft.value
        if value is None or (value["facts"] and len(extraction.find_problems(value, piece)) == len(value["facts"])):
            raise BadInputError(
                f"The answer about session {material.session} cannot be used: {'; '.join(draft.complaints)}. "
                "Mend that and give it again with this session."
            )
        part = Extraction(model=answer.by, prompt=prompt.label)
        part, quarantined = self._read_answer(part, value, piece, draft.failed)
        return ConversationReading(material, self._merge([part]), quarantined=quarantined)

    def _merge(self, parts: Sequence[Extraction]) -> Extraction:
        capture = self._settings.capture
        found = extraction.merge(parts)
        return replace(
            found,
            facts=found.facts if capture.facts else (),
            snippets=found.snippets if self._settings.systems.journal else {},
            journal=found.journal if self._settings.systems.journal else {},
        )

    def _inputs(self, piece: Piece) -> Mapping[str, str]:
        known = show_known_names(self._vault.visible_index(), piece.text)
        inputs = piece.inputs(self._owner, known, datetime.now(UTC).date())
        # An episode's owner may have written secrets into it that no transcript would have brought.
        return {slot: admit(text).text for slot, text in inputs.items()}

    def _ask_all(self, material: Material) -> tuple[list[Extraction], str | None]:
        """Return the extraction from each piece, and the quarantine file. A refused piece is split by turns; a refused
        turn, and a piece without a usable answer, is left out by name and quarantined.

        Raises:
            ModelError: as `Models.ask`; there is no answer about any piece.
        """
        parts: list[Extraction] = []
        refused: list[tuple[Piece, ModelRefusedError | ModelAnswerError]] = []
        pending = deque(split_material(material, extraction.PIECE_TOKENS))
        count, refusals, quarantined = len(pending), 0, None
        while pending:
            if count > 1:
                self._vault.show_progress(f"Reading {material.session}", max(0, count - len(pending)), count)
            piece = pending.popleft()
            try:
                part, where = self._ask(piece)
                parts, quarantined = [*parts, part], where or quarantined
            except (ModelRefusedError, ModelAnswerError) as error:
                refusals += 1
                smaller = split_piece(piece) if isinstance(error, ModelRefusedError) else []
                if not parts and (refusals == MAX_REFUSALS or not (smaller or pending)):
                    raise
                pending.extendleft(reversed(smaller))
                refused += [] if smaller else [(piece, error)]
        for piece, problem in refused:
            turns = f"turns {min(piece.numbers)} to {max(piece.numbers)}"
            part = replace(parts[-1], facts=(), names=(), snippets={}, journal={}, usage=ModelUsage())
            part = replace(part, left_out=(LeftOut(turns, str(problem)),))
            quarantined = self._quarantine(material, f"{turns}: {problem}", problem.raw, part)
            parts.append(part)
        # The caller may cancel before anything is written.
        self._vault.show_progress(f"Reading {material.session}", count, count)
        return parts, quarantined

    def _ask(self, piece: Piece) -> tuple[Extraction, str | None]:
        from quaid.llm.drafts import CUT_OFF

        prompt = self.models.prompt(extraction.PROMPT)
        answer = self.models.ask(
            prompt, self._inputs(piece), check=lambda value: extraction.find_problems(value, piece)
        )
        part = Extraction(model=answer.model, prompt=answer.prompt, usage=answer.usage)
        problem = f"the answer cannot be read to its end: {CUT_OFF}" if CUT_OFF in answer.problems else ""
        return self._read_answer(part, admit_all(answer.value)[0], piece, answer.failed, problem)

    def _read_answer(
        self, part: Extraction, value: Any, piece: Piece, failed: Sequence[FailedItem], problem: str = ""
    ) -> tuple[Extraction, str | None]:
        """Add the usable part of an answer to `part`; the rest and its `failed` items are quarantined."""
        found = extraction.read_answer(value, piece)
        left_out = (*found.left_out, *extraction.list_failed(failed))
        part = replace(found, left_out=left_out, model=part.model, prompt=part.prompt, usage=part.usage)
        if not (left_out or failed or problem):
            return part, None
        safe = admit_all({"failed": [{"value": item.value, "items": item.items} for item in failed]})[0]
        raw = json.dumps({**value, **(safe if failed else {})}, ensure_ascii=False)
        return part, self._quarantine(piece.material, problem or "some of it was left out", raw, part)

    def _quarantine(self, material: Material, problem: str, raw: str, part: Extraction | None = None) -> str | None:
        """Write an answer to a file and return its path, None where it cannot be written."""
        from quaid.local import quarantine

        part = part or Extraction()
        found = quarantine.Quarantined(
            at=datetime.now(UTC).isoformat(),
            about=material.session,
            problem=problem,
            model=part.model or "",
            prompt=part.prompt or "",
            raw=raw,
            left_out=tuple((item.text, item.reason) for item in part.left_out),
        )
        try:
            return str(quarantine.put(self._state, found))
        except OSError:
            return None


def name_relations(models: Models, found: Extraction, index: IndexConnection) -> Extraction:
    """Let the model find the usual name of relations that neither the tables nor the graph know.

    Without an answer they keep their own, and `degraded` shows it.
    """
    edges = [edge for fact in found.facts for edge in fact.edges]
    new, known = list_new_relations(edges, graph.relations(index))
    if not new:
        return found
    try:
        prompt = models.prompt(RELATIONS_PROMPT)
        answer = models.ask(prompt, relation_inputs(new, known), deadline_s=RELATIONS_TIMEOUT_S)
    except ModelError:
        return replace(found, degraded=("relations",))
    return replace(found, renamed=read_relations(answer.value, new, known), usage=found.usage + answer.usage)


def list_new_relations(edges: Sequence[Edge], in_use: Sequence[str]) -> tuple[list[Edge], list[str]]:
    """Return (an example for each new relation, the known relations); `in_use` are the graph's, most frequent first."""
    new: dict[str, Edge] = {}
    for edge in edges:
        if not relations.is_known(edge.relation) and edge.relation not in in_use:
            new.setdefault(edge.relation, edge)
    known = list(dict.fromkeys((*sorted(relations.CANONICAL), *in_use)))
    return list(new.values())[:_MAX_NEW_RELATIONS], known[:_MAX_KNOWN_RELATIONS]


def relation_inputs(new: Sequence[Edge], known: Sequence[str]) -> dict[str, str]:
    """Return one text for each slot of the prompt `relations`."""
    lines = [
        json.dumps({"n": n, "subject": edge.subject, "relation": edge.relation, "object": edge.object})
        for n, edge in enumerate(new, 1)
    ]
    return {"relations": ", ".join(known), "edges": "\n".join(lines)}


def read_relations(value: Mapping[str, Any], new: Sequence[Edge], known: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Return relation -> (the known one for the same, whether subject and object change places)."""
    renamed: dict[str, tuple[str, bool]] = {}
    for choice in value["edges"]:
        if choice["n"] > len(new):
            continue
        edge = new[choice["n"] - 1]
        try:
            named = relations.normalise_edge(Edge(edge.subject, choice["relation"], edge.object))
        except BadInputError:
            continue
        is_turned = named.subject == edge.object
        if named.relation in known and named.relation != edge.relation:
            renamed[edge.relation] = (named.relation, bool(choice["flipped"]) != is_turned)
    return renamed


def queue_note(state: Path, text: str, session: str | None) -> int:
    """Queue a line for the next reading of `session` (or of any), and return how many are pending."""
    from quaid.local.session_notes import SessionNotes

    line = " ".join(admit(text).text.split())
    if not line:
        raise BadInputError("There is nothing to note. Give the line in quotes: quaid note 'call Maya back'")
    queue = SessionNotes(state / LOCAL_FILE)
    queue.add(line, session, datetime.now(UTC))
    return queue.count()
