"""Asking the deep model about a conversation, piece by piece, and keeping aside what it says that cannot be used.

Where the host of an agent has a model and Quaid has none, `build_prompt` makes the question for it and
`accept_answer` takes what it says.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.capture import extraction
from quaid.capture.extraction import Extraction, LeftOut
from quaid.capture.known_names import show_known_names
from quaid.capture.nothing_to_learn import states_nothing
from quaid.capture.prompt_pieces import (
    Material,
    Piece,
    first_piece,
    read_material,
    single_piece,
    split_material,
    split_piece,
)
from quaid.capture.relation_naming import name_relations
from quaid.config import person_of
from quaid.errors import BadInputError, ModelAnswerError, ModelError, ModelRefusedError, QuaidError
from quaid.model import ModelUsage
from quaid.place import LOCAL_FILE
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quaid.llm import Models
    from quaid.llm.exchange import FailedItem
    from quaid.open_vault import OpenVault


MAX_REFUSALS = 20
"""After so many refusals and no answer, the model is the cause and not what was said."""


@dataclass(frozen=True, slots=True)
class ConversationReading:
    """Without an `extraction` there is a `problem`: nothing was learned, and the material waits.

    `renamed` are relations that go by another name (see `storing.plan_facts`), `quarantined` is the file that has what
    could not be kept, `degraded` names what was missing.
    """

    material: Material
    extraction: Extraction | None = None
    renamed: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    model: str | None = None
    prompt: str | None = None
    usage: ModelUsage = field(default_factory=ModelUsage)
    problem: QuaidError | None = None
    quarantined: str | None = None
    degraded: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return self.extraction.left_out if self.extraction else ()


@dataclass(frozen=True, slots=True)
class BuiltPrompt:
    """A prompt for a model that Quaid cannot reach: `text` is all of it, `through` the last turn in it."""

    session: str
    text: str
    through: int


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The answer of such a model, `by` its name. It was shown the turns up to `through`, None for all."""

    value: Mapping[str, Any]
    by: str
    through: int | None = None


class ConversationReader:
    """Reads one vault's conversations, with models that are opened when the first is asked."""

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
        """Return True when a model is to be asked. One chosen by name always is: its failure is shown."""
        capture, provider = self._settings.capture, self._settings.models.provider
        if provider in {"", "none"} or not (capture.facts or capture.snippets or capture.journal):
            return False
        return provider != "auto" or self.models.describe().provider is not None

    def read(self, text: str, *, everything: bool = False) -> ConversationReading:
        """Return what the model learns from the episode note `text`; pieces that were read before cost nothing.

        With `everything` also what was learned from before. No model is asked about a conversation that states nothing.
        Trouble with the model is in the reading, never raised.
        """
        reading = ConversationReading(read_material(text, everything=everything))
        if states_nothing(reading.material):
            return replace(reading, extraction=Extraction())
        try:
            reading, parts = self._ask_all(reading)
        except ModelError as error:
            raw = error.raw if isinstance(error, ModelAnswerError | ModelRefusedError) else ""
            where = self._set_aside(reading, str(error), raw) if raw else reading.quarantined
            return replace(reading, problem=error, quarantined=where)
        extraction = self._kept(parts)
        named = name_relations(self.models, extraction, self._vault.visible_index())
        return replace(
            reading,
            extraction=extraction,
            renamed=named.renamed,
            usage=reading.usage + named.usage,
            degraded=named.degraded,
        )

    def build_prompt(self, text: str) -> BuiltPrompt | None:
        """Return the question about the episode note `text`, as much of it as fits into one; None when all of it
        was learned from.
        """
        material = read_material(text)
        if not material.turns:
            return None
        piece = first_piece(material, self._settings.capture.piece_tokens)
        prompt = self.models.prompt(extraction.PROMPT)
        # A model that Quaid asks has nothing but this question; a host's has tools, and what it is told may use them.
        inputs = {slot: neutralise(text) for slot, text in self._inputs(piece).items()}
        asked = f"{prompt.system}\n\n{prompt.fill(inputs)}"
        return BuiltPrompt(material.session, asked, piece.material.last)

    def accept_answer(self, answer: HostAnswer, text: str, *, everything: bool = False) -> ConversationReading:
        """Return what an answer to `build_prompt` says. No model is asked.

        Raises:
            BadInputError: the answer, or none of its facts, fits the schema and the conversation.
        """
        from quaid.llm.drafts import read_value
        from quaid.redaction import admit_all

        reading = ConversationReading(read_material(text, everything=everything, through=answer.through))
        if not reading.material.turns:
            return replace(reading, extraction=Extraction())
        prompt, piece = self.models.prompt(extraction.PROMPT), single_piece(reading.material)
        given: Any = admit_all(dict(answer.value))[0]
        draft = read_value(given, prompt.schema, lambda value: extraction.find_problems(value, piece))
        value = draft.value
        if value is None or (value["facts"] and len(extraction.find_problems(value, piece)) == len(value["facts"])):
            raise BadInputError(
                f"The answer about session {reading.material.session} cannot be used: {'; '.join(draft.complaints)}. "
                "Mend that and give it again with this session."
            )
        reading = replace(reading, model=answer.by, prompt=prompt.label)
        reading, part = self._read_answer(reading, value, piece, draft.failed)
        return replace(reading, extraction=self._kept([part]))

    def _kept(self, parts: list[Extraction]) -> Extraction:
        capture = self._settings.capture
        found = extraction.keep_at_most(extraction.merge(parts), capture.max_facts)
        return replace(
            found,
            facts=found.facts if capture.facts else (),
            snippets=found.snippets if capture.snippets else {},
            journal=found.journal if capture.journal else {},
        )

    def _inputs(self, piece: Piece) -> Mapping[str, str]:
        from quaid.redaction import admit

        known = show_known_names(self._vault.visible_index(), piece.text)
        inputs = piece.inputs(self._owner, known, datetime.now(UTC).date())
        # An episode's owner may have written into it what no transcript would have brought.
        return {slot: admit(text).text for slot, text in inputs.items()}

    def _ask_all(self, reading: ConversationReading) -> tuple[ConversationReading, list[Extraction]]:
        """Return what the model learns from each piece. What it refuses is split by turns; a turn that it refuses, and
        a piece about which it answers nothing usable, is left out, named and set aside.

        Raises:
            ModelError: as `Models.ask`; it answers about no piece at all.
        """
        parts: list[Extraction] = []
        refused: list[tuple[Piece, ModelRefusedError | ModelAnswerError]] = []
        waiting = deque(split_material(reading.material, self._settings.capture.piece_tokens))
        count, refusals = len(waiting), 0
        while waiting:
            if count > 1:
                self._vault.show_progress(f"Reading {reading.material.session}", max(0, count - len(waiting)), count)
            piece = waiting.popleft()
            try:
                reading, part = self._ask(reading, piece)
                parts.append(part)
            except (ModelRefusedError, ModelAnswerError) as error:
                refusals += 1
                smaller = split_piece(piece) if isinstance(error, ModelRefusedError) else []
                if not parts and (refusals == MAX_REFUSALS or not (smaller or waiting)):
                    raise
                waiting.extendleft(reversed(smaller))
                refused += [] if smaller else [(piece, error)]
        for piece, problem in refused:
            said = f"turns {min(piece.numbers)} to {max(piece.numbers)}"
            part = Extraction(left_out=(LeftOut(said, str(problem)),))
            where = self._set_aside(reading, f"{said}: {problem}", problem.raw, part)
            reading, parts = replace(reading, quarantined=where), [*parts, part]
        # The caller may cancel before anything is written.
        self._vault.show_progress(f"Reading {reading.material.session}", count, count)
        return reading, parts

    def _ask(self, reading: ConversationReading, piece: Piece) -> tuple[ConversationReading, Extraction]:
        from quaid.llm.drafts import CUT_OFF
        from quaid.redaction import admit_all

        prompt = self.models.prompt(extraction.PROMPT)
        answer = self.models.ask(
            prompt, self._inputs(piece), check=lambda value: extraction.find_problems(value, piece)
        )
        reading = replace(reading, model=answer.model, prompt=answer.prompt, usage=reading.usage + answer.usage)
        problem = f"the answer cannot be read to its end: {CUT_OFF}" if CUT_OFF in answer.problems else ""
        return self._read_answer(reading, admit_all(answer.value)[0], piece, answer.failed, problem)

    def _read_answer(
        self, reading: ConversationReading, value: Any, piece: Piece, failed: Sequence[FailedItem], problem: str = ""
    ) -> tuple[ConversationReading, Extraction]:
        """What is kept of an answer without its `failed` items; the rest is set aside."""
        from quaid.redaction import admit_all

        part = extraction.read_answer(value, piece)
        safe = admit_all({"failed": [{"value": item.value, "items": item.items} for item in failed]})[0]
        part = replace(part, left_out=(*part.left_out, *extraction.list_failed(failed)))
        if part.left_out or failed or problem:
            raw = json.dumps({**value, **(safe if failed else {})}, ensure_ascii=False)
            where = self._set_aside(reading, problem or "some of it was left out", raw, part)
            reading = replace(reading, quarantined=where)
        return reading, part

    def _set_aside(
        self, reading: ConversationReading, problem: str, raw: str, part: Extraction | None = None
    ) -> str | None:
        """The path of the file that has the answer now; None where it could not be written."""
        from quaid.local import quarantine

        found = quarantine.Quarantined(
            at=datetime.now(UTC).isoformat(),
            about=reading.material.session,
            problem=problem,
            model=reading.model or "",
            prompt=reading.prompt or "",
            raw=raw,
            left_out=tuple((item.text, item.reason) for item in part.left_out) if part else (),
        )
        try:
            return str(quarantine.put(self._state, found))
        except OSError:
            return None


def queue_note(state: Path, text: str, session: str | None) -> int:
    """Queue a line that the next reading of `session` (or of any) takes along; how many are waiting.

    Raises:
        BadInputError: the line is empty.
    """
    from quaid.local.session_notes import SessionNotes
    from quaid.redaction import admit

    line = " ".join(admit(text).text.split())
    if not line:
        raise BadInputError("There is nothing to note. Give the line in quotes: quaid note 'call Maya back'")
    queue = SessionNotes(state / LOCAL_FILE)
    queue.add(line, session, datetime.now(UTC))
    return queue.count()
