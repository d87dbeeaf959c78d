"""Prompting the deep model about a source, piece by piece. Unusable answers are quarantined."""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from quaid.capture import extraction
from quaid.capture.cleaning import clean_line
from quaid.capture.extraction import Extraction, LeftOut
from quaid.capture.prompt_pieces import Piece, split_piece
from quaid.errors import ModelAnswerError, ModelError, ModelRefusedError
from quaid.llm import Models
from quaid.llm.drafts import CUT_OFF
from quaid.llm.exchange import AnswerItem
from quaid.local import quarantine
from quaid.open_vault import OpenVault
from quaid.redaction import admit, admit_all

MAX_REFUSALS = 20
"""After so many refusals and no answer, the model is the cause and not the text."""


class PieceReader:
    """Reads one kind of source, with models that are opened when first used."""

    prompt = ""
    """The name of the prompt about a piece."""
    units = ""
    """What the numbers of a piece count, such as turns."""

    def __init__(self, vault: OpenVault, models: Models | None = None) -> None:
        self._vault = vault
        self._run = models

    @property
    def models(self) -> Models:
        """The models, with the caps of the run that has begun."""
        if self._run is None:
            self._run = self._vault.models.start_run()
        return self._run

    def inputs(self, piece: Piece) -> Mapping[str, str]:
        """Return one text for each slot of the prompt."""
        raise NotImplementedError

    def extract(self, value: Mapping[str, Any], piece: Piece) -> Extraction:
        """Return what may be stored of an answer."""
        return extraction.read_answer(value, piece)

    def read_pieces(self, about: str, pieces: Sequence[Piece]) -> tuple[list[Extraction], str | None]:
        """Return the extraction from each piece, and the quarantine file. A refused piece is split; a refused single
        turn, and a piece without a usable answer, is left out by name and quarantined.

        Raises:
            ModelError: as `Models.ask`; there is no answer about any piece.
        """
        parts: list[Extraction] = []
        refused: list[tuple[Piece, ModelRefusedError | ModelAnswerError]] = []
        pending = deque(pieces)
        count, refusals, quarantined = len(pending), 0, None
        prompt = self.models.prompt(self.prompt)
        while pending:
            if count > 1:
                self._vault.show_progress(f"Reading {about}", max(0, count - len(pending)), count)
            piece = pending.popleft()
            try:
                check = partial(extraction.find_problems, piece=piece)
                answer = self.models.ask(prompt, self.inputs(piece), check=check)
            except (ModelRefusedError, ModelAnswerError) as error:
                refusals += 1
                smaller = split_piece(piece) if isinstance(error, ModelRefusedError) else []
                if not parts and (refusals == MAX_REFUSALS or not (smaller or pending)):
                    raise
                pending.extendleft(reversed(smaller))
                refused += [] if smaller else [(piece, error)]
                continue
            origin = Extraction(model=answer.model, prompt=answer.prompt, usage=answer.usage)
            problem = f"the answer cannot be read to its end: {CUT_OFF}" if CUT_OFF in answer.problems else ""
            value: Any = admit_all(answer.value)[0]
            part, where = self.accept(about, value, piece, origin, answer.failed, problem)
            parts, quarantined = [*parts, part], where or quarantined
        for piece, refusal in refused:
            named = f"{self.units} {min(piece.numbers)} to {max(piece.numbers)}"
            part = Extraction(left_out=(LeftOut(named, str(refusal)),), model=parts[-1].model, prompt=parts[-1].prompt)
            quarantined = self.quarantine(about, f"{named}: {refusal}", refusal.raw, part)
            parts.append(part)
        # The caller may cancel before anything is written.
        self._vault.show_progress(f"Reading {about}", count, count)
        return parts, quarantined

    def accept(
        self,
        about: str,
        value: Mapping[str, Any],
        piece: Piece,
        origin: Extraction,
        failed: Sequence[AnswerItem],
        problem: str = "",
    ) -> tuple[Extraction, str | None]:
        """Return the usable part of an answer of `origin`, and the quarantine file with the rest and `failed` items."""
        found = self.extract(value, piece)
        left_out = [*found.left_out]
        for item in failed:
            text = item.value.get("text") if isinstance(item.value, dict) else item.value
            shown = admit(clean_line(text)).text[: extraction.MAX_SHOWN] if isinstance(text, str) else ""
            if item.items == "facts":
                problem_of = f"it has not the form of a fact: {'; '.join(item.problems)}"
                left_out.append(LeftOut(shown or "(no text)", problem_of))
        part = replace(found, left_out=tuple(left_out), model=origin.model, prompt=origin.prompt, usage=origin.usage)
        if not (left_out or failed or problem):
            return part, None
        safe = admit_all({"failed": [{"value": item.value, "items": item.items} for item in failed]})[0]
        raw = json.dumps({**value, **(safe if failed else {})}, ensure_ascii=False)
        return part, self.quarantine(about, problem or "some of it was left out", raw, part)

    def quarantine(self, about: str, problem: str, raw: str, part: Extraction | None = None) -> str | None:
        """Write an answer to a file and return its path, None where it cannot be written."""
        part = part or Extraction()
        left_out = tuple((item.text, item.reason) for item in part.left_out)
        at = datetime.now(UTC).isoformat()
        source = part.model or "", part.prompt or ""
        try:
            return str(quarantine.put(self._vault.state, at, about, problem, *source, raw, left_out))
        except OSError:
            return None

    def quarantine_error(self, about: str, error: ModelError) -> str | None:
        """Write the unusable answer that an error has, if any, to a file and return its path."""
        raw = error.raw if isinstance(error, ModelAnswerError | ModelRefusedError) else ""
        return self.quarantine(about, str(error), raw) if raw else None
