"""Asking the deep model about a conversation, piece by piece, and keeping aside what it says that cannot be used.

Where the host of an agent has a model and Quaid has none, `pose` is the question for it and `accept` takes its answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.capture import arbitration, extract
from quaid.capture.extract import Extraction
from quaid.capture.lesson import Lesson, wanted
from quaid.capture.pieces import Piece, first_that_fit, material_of, split_material, whole
from quaid.errors import BadInputError, ModelAnswerError, ModelError, ModelRefusedError
from quaid.index import graph
from quaid.model import ModelUsage
from quaid.place import LOCAL_FILE, state_folder
from quaid.settings import Settings
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    import apsw

    from quaid.llm import Models
    from quaid.sync.embedding import Progress


@dataclass(frozen=True, slots=True)
class Named:
    """What relations are called elsewhere (see `storing.plan_facts`), and what asking took."""

    renamed: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    usage: ModelUsage = field(default_factory=ModelUsage)
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Posed:
    """What to ask a model that Quaid cannot reach: `text` is the whole prompt, `through` the last turn in it."""

    session: str
    text: str
    through: int


@dataclass(frozen=True, slots=True)
class Answered:
    """What such a model has answered, and `by` which one. It was shown the turns up to `through`, None for all."""

    value: Mapping[str, Any]
    by: str
    through: int | None = None


def name_relations(models: Models, found: Extraction, index: apsw.Connection) -> Named:
    """Relations that neither the tables nor the graph know get the name that the model finds for them; without an
    answer they keep their own, and `degraded` says so.
    """
    edges = [edge for fact in found.facts for edge in fact.edges]
    question = arbitration.ask_about(edges, graph.relations(index))
    if question is None:
        return Named()
    try:
        prompt = models.prompt(arbitration.PROMPT)
        answer = models.ask(prompt, question.inputs, deadline_s=arbitration.LIMIT_S)
    except ModelError:
        return Named(degraded=("relations",))
    return Named(question.read(answer.value), answer.usage)


class Reader:
    """Reads one vault's conversations, with models that are opened when the first is asked."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        models: Callable[[], Models],
        index: Callable[[], apsw.Connection],
        progress: Progress | None,
    ) -> None:
        self._root = root
        self._state = state_folder(root)
        self._settings = settings
        self._index = index
        self._progress = progress
        self._open_models = models
        self._run: Models | None = None

    def begin_run(self) -> None:
        """From here on the caps of a run count anew."""
        self._run = None

    @property
    def models(self) -> Models:
        """The models, with the caps of the run that has begun."""
        if self._run is None:
            self._run = self._open_models().start_run()
        return self._run

    def is_able(self) -> bool:
        """Whether a model is to be asked. One that was chosen by name is, even where it cannot be: that is loud."""
        capture, provider = self._settings.capture, self._settings.models.provider
        if provider in {"", "none"} or not (capture.facts or capture.snippets or capture.journal):
            return False
        return provider != "auto" or self.models.describe().provider is not None

    def read(self, text: str, *, everything: bool = False) -> Lesson:
        """What is learned from the episode note `text`; pieces that were read before cost nothing.

        With `everything` also what was learned from before. Trouble with the model is in the lesson, never raised.
        """
        lesson = Lesson(material_of(text, everything=everything))
        if not lesson.material.turns:
            return replace(lesson, extraction=Extraction())
        parts: list[Extraction] = []
        pieces = split_material(lesson.material, self._settings.capture.piece_tokens)
        try:
            for number, piece in enumerate(pieces):
                if self._progress and len(pieces) > 1:
                    self._progress(f"Reading {lesson.material.session}", number, len(pieces))
                lesson, part = self._ask(lesson, piece)
                parts.append(part)
            if self._progress:  # whoever has lost interest may say so before anything is written
                self._progress(f"Reading {lesson.material.session}", len(pieces), len(pieces))
        except ModelError as error:
            raw = error.raw if isinstance(error, ModelAnswerError | ModelRefusedError) else ""
            where = self._set_aside(lesson, str(error), raw) if raw else lesson.quarantined
            return replace(lesson, problem=error, quarantined=where)
        extraction = self._kept(parts)
        named = name_relations(self.models, extraction, self._index())
        return replace(
            lesson,
            extraction=extraction,
            renamed=named.renamed,
            usage=lesson.usage + named.usage,
            degraded=named.degraded,
        )

    def pose(self, text: str) -> Posed | None:
        """What there is to ask about the episode note `text`, as much as fits into one question; None when all of it
        was learned from.
        """
        material = material_of(text)
        if not material.turns:
            return None
        piece = first_that_fit(material, self._settings.capture.piece_tokens)
        prompt = self.models.prompt(extract.PROMPT)
        # A model that Quaid asks has nothing but this question; a host's has tools, and what it is told may use them.
        inputs = {slot: neutralise(text) for slot, text in self._inputs(piece).items()}
        asked = f"{prompt.system}\n\n{prompt.fill(inputs)}"
        return Posed(material.session, asked, piece.material.last)

    def accept(self, answered: Answered, text: str, *, everything: bool = False) -> Lesson:
        """What an answer to `pose` teaches. No model is asked.

        Raises:
            BadInputError: it does not fit; whoever gave it may mend it.
        """
        from quaid.llm.schema import violations
        from quaid.redaction import admit_all

        lesson = Lesson(material_of(text, everything=everything, through=answered.through))
        if not lesson.material.turns:
            return replace(lesson, extraction=Extraction())
        prompt, piece = self.models.prompt(extract.PROMPT), whole(lesson.material)
        value: Any = admit_all(dict(answered.value))[0]
        problems = violations(value, prompt.schema) or extract.find_problems(value, piece)
        if problems:
            raise BadInputError(
                f"The answer about session {lesson.material.session} cannot be used: {'; '.join(problems)}. "
                "Mend that and give it again with this session."
            )
        lesson = replace(lesson, model=answered.by, prompt=prompt.label)
        part = extract.read_answer(value, piece)
        if part.left_out:
            where = self._set_aside(lesson, "some of it was left out", json.dumps(value, ensure_ascii=False), part)
            lesson = replace(lesson, quarantined=where)
        return replace(lesson, extraction=self._kept([part]))

    def _kept(self, parts: list[Extraction]) -> Extraction:
        capture = self._settings.capture
        return wanted(extract.keep_at_most(extract.merge(parts), capture.max_facts), capture)

    def _inputs(self, piece: Piece) -> Mapping[str, str]:
        from quaid.redaction import admit

        # An episode's owner may have written into it what no transcript would have brought.
        return {slot: admit(text).text for slot, text in piece.inputs(self._settings.owner_name).items()}

    def _ask(self, lesson: Lesson, piece: Piece) -> tuple[Lesson, Extraction]:
        from quaid.redaction import admit_all

        prompt = self.models.prompt(extract.PROMPT)
        answer = self.models.ask(prompt, self._inputs(piece), check=lambda value: extract.find_problems(value, piece))
        lesson = replace(lesson, model=answer.model, prompt=answer.prompt, usage=lesson.usage + answer.usage)
        safe: Any = admit_all(answer.value)[0]
        part = extract.read_answer(safe, piece)
        if part.left_out:
            where = self._set_aside(lesson, "some of it was left out", json.dumps(safe, ensure_ascii=False), part)
            lesson = replace(lesson, quarantined=where)
        return lesson, part

    def _set_aside(self, lesson: Lesson, problem: str, raw: str, part: Extraction | None = None) -> str | None:
        """The path of the file that has the answer now; None where it could not be written."""
        from quaid.local import quarantine

        found = quarantine.Quarantined(
            at=datetime.now(UTC).isoformat(),
            about=lesson.material.session,
            problem=problem,
            model=lesson.model or "",
            prompt=lesson.prompt or "",
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
        BadInputError: there is nothing in it.
    """
    from quaid.local.session_notes import SessionNotes
    from quaid.redaction import admit

    line = " ".join(admit(text).text.split())
    if not line:
        raise BadInputError("There is nothing to note. Give the line in quotes: quaid note 'call Maya back'")
    queue = SessionNotes(state / LOCAL_FILE)
    queue.add(line, session, datetime.now(UTC))
    return queue.count()
