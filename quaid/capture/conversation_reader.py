"""Reading conversations with a model.

Where an agent's host has a model and Quaid has none, `build_prompt` makes the prompt for it and `accept_answer` reads
its answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from quaid.capture import extraction, prompt_pieces
from quaid.capture.extraction import Extraction
from quaid.capture.note_finder import NoteFinder, show_known_names
from quaid.capture.piece_reader import PieceReader
from quaid.config import person_of
from quaid.errors import BadInputError, ModelError, QuaidError
from quaid.llm.drafts import read_value
from quaid.local.session_notes import SessionNotes
from quaid.model import is_owner_label, name_key
from quaid.open_vault import OpenVault
from quaid.place import LOCAL_FILE
from quaid.redaction import admit, admit_all
from quaid.text.quoting import neutralise
from quaid.text.zones import local_now

TERSE_CHARS = 200
"""Up to this length a turn is compared together with the one before it."""


class ConversationReading(NamedTuple):
    """The extraction from `material`. Without one there is a `problem`: nothing was learned, and the material is
    pending. `quarantined` is the file with the answer that could not be used.
    """

    material: prompt_pieces.Material
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


class ConversationReader(PieceReader):
    """Reads one vault's conversations."""

    prompt = extraction.PROMPT
    units = "turns"

    def __init__(self, vault: OpenVault) -> None:
        super().__init__(vault)
        self._finder = NoteFinder(vault)

    def begin_run(self) -> None:
        """Reset what counts towards the caps of a run."""
        self._run = None

    def is_able(self) -> bool:
        """Return True when there is a model to prompt. One selected by name counts always: its failure is shown."""
        settings = self._vault.settings
        provider = settings.models.provider
        if provider in {"", "none"} or not (settings.capture.facts or settings.systems.journal):
            return False
        return provider != "auto" or self.models.describe().provider is not None

    def read(self, text: str, *, everything: bool = False) -> ConversationReading:
        """Return what the model learns from the new turns of an episode note, or from `everything` in it.

        Pieces that were read before cost nothing. No model is prompted about a conversation that states nothing.
        Trouble with the model is a problem of the reading, never raised.
        """
        material = prompt_pieces.read_material(text, everything=everything)
        if prompt_pieces.states_nothing(material):
            return ConversationReading(material, Extraction())
        try:
            pieces = [*map(self._with_related, prompt_pieces.split_material(material, extraction.PIECE_TOKENS))]
            parts, quarantined = self.read_pieces(material.session, pieces)
        except ModelError as error:
            where = self.quarantine_error(material.session, error)
            return ConversationReading(material, problem=error, quarantined=where)
        return ConversationReading(material, self._merge(parts), quarantined=quarantined)

    def build_prompt(self, text: str) -> BuiltPrompt | None:
        """Return the prompt about as much of the episode note `text` as fits; None when nothing in it is new."""
        material = prompt_pieces.read_material(text)
        if not material.turns:
            return None
        piece = self._with_related(prompt_pieces.first_piece(material, extraction.PIECE_TOKENS))
        prompt = self.models.prompt(self.prompt)
        # Quaid's model has nothing but this prompt; a host's has tools, and the text could make it use them.
        inputs = {slot: neutralise(text) for slot, text in self.inputs(piece).items()}
        return BuiltPrompt(material.session, f"{prompt.system}\n\n{prompt.fill(inputs)}", piece.material.last)

    def accept_answer(self, answer: HostAnswer, text: str, *, everything: bool = False) -> ConversationReading:
        """Return what an answer to `build_prompt` states. No model is prompted."""
        material = prompt_pieces.read_material(text, everything=everything, through=answer.through)
        if not material.turns:
            return ConversationReading(material, Extraction())
        prompt, piece = self.models.prompt(self.prompt), self._with_related(prompt_pieces.first_piece(material))
        given: Any = admit_all(dict(answer.value))[0]
        draft = read_value(given, prompt.schema, partial(extraction.find_problems, piece=piece))
        value = draft.value
        if value is None or (value["facts"] and len(extraction.find_uncited(value, piece)) == len(value["facts"])):
            raise BadInputError(
                f"The answer about session {material.session} cannot be used: {'; '.join(draft.complaints)}. "
                "Mend that and give it again with this session."
            )
        origin = Extraction(model=answer.by, prompt=prompt.label)
        part, quarantined = self.accept(material.session, value, piece, origin, draft.failed)
        return ConversationReading(material, self._merge([part]), quarantined=quarantined)

    def inputs(self, piece: prompt_pieces.Piece) -> Mapping[str, str]:
        known = show_known_names(self._vault.visible_index(), piece.text)
        owner = person_of(self._vault.root, self._vault.settings)
        inputs = piece.inputs(owner, known, local_now(self._vault.settings.timezone).date())
        # An episode's owner may have written secrets into it that no transcript would have brought.
        return {slot: admit(text).text for slot, text in inputs.items()}

    def _with_related(self, piece: prompt_pieces.Piece) -> prompt_pieces.Piece:
        """Return `piece` with the stored facts that it may repeat or replace."""
        owner = name_key(person_of(self._vault.root, self._vault.settings))
        turns, said = (*piece.notes, *piece.turns), list[str]()
        for before, turn in zip((None, *turns), turns, strict=False):
            # What others say of themselves has no name in it; the name of the owner is in most facts.
            is_owner = is_owner_label(turn.speaker) or name_key(turn.speaker) in {owner, *owner.split()[:1]}
            text = turn.text if is_owner else f"{turn.speaker}: {turn.text}"
            # `No, on the 18th` answers a turn, of the assistant too.
            text = f"{before.text[-TERSE_CHARS:]} {text}" if before and len(text) < TERSE_CHARS else text
            said += [text] if turn.speaker != prompt_pieces.ASSISTANT else []
        return replace(piece, related=tuple(self._finder.find_related(self._vault.visible_index(), said)))

    def _merge(self, parts: Sequence[Extraction]) -> Extraction:
        found = extraction.merge(parts)
        facts = found.facts if self._vault.settings.capture.facts else ()
        if not self._vault.settings.systems.journal:
            found = replace(found, snippets={}, journal={})
        return replace(found, facts=facts)


def queue_note(state: Path, text: str, session: str | None) -> int:
    """Queue a line for the next reading of `session` (or of any), and return how many are pending."""
    line = " ".join(admit(text).text.split())
    if not line:
        raise BadInputError("There is nothing to note. Give the line in quotes: quaid note 'call Maya back'")
    queue = SessionNotes(state / LOCAL_FILE)
    queue.add(line, session, datetime.now(UTC))
    return queue.count()
