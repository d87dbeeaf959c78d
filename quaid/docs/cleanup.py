"""Documents that have grown by being added to again and again, counted from the commits that changed them, and the cuts
that shorten one and take nothing from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from quaid.docs.catalogue import Doc
from quaid.docs.prompt_inputs import excerpt, show_refused, today
from quaid.docs.updater import message_of
from quaid.docs.updates import MAX_DOC, DocUpdate, fit_edits
from quaid.docs.validation import faults, find_added_words
from quaid.history.messages import render
from quaid.llm.exchange import ItemProblem
from quaid.model import Edit, SourceEdit
from quaid.vault import headings, replacements
from quaid.vault.replacements import Replacement

if TYPE_CHECKING:
    from quaid.llm import Models

PROMPT = "docs_cleanup"
RECENT = timedelta(days=90)
HALF_A_YEAR = timedelta(days=182)
LARGE = 20_000
"""Bytes: one in ten of 304 READMEs that packages bring along is as large. A smaller document is read whole."""
MANY_CHANGES = 12
"""In `RECENT`: one a week, as a document is changed with nearly every piece of work on its subject."""
MUCH_GROWTH = 1.5
"""Times what it was: whatever was added replaced nothing."""


@dataclass(frozen=True, slots=True)
class Churn:
    """`changes` in the last 90 days; `size` in bytes now; `was` what that is compared with: the size half a year ago,
    or at its first commit if that is 90 days ago or more; None for a younger document, which is still being written.
    """

    changes: int
    size: int
    was: int | None

    @property
    def growth(self) -> float | None:
        """Times its former size; None without one."""
        return self.size / max(1, self.was) if self.was is not None else None


@dataclass(frozen=True, slots=True)
class GrownDoc:
    """A document that shortening is worth asking about."""

    doc: Doc
    data: bytes
    churn: Churn

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")


def measure_churn(commits: Sequence[tuple[datetime, int]], now: datetime) -> Churn:
    """Measure the churn of a document by (when, size in bytes then) of each commit that changed it, in any order."""
    sized = sorted(commits)
    older = [size for when, size in sized if when <= now - HALF_A_YEAR]
    first = [size for when, size in sized[:1] if when <= now - RECENT]
    return Churn(
        changes=sum(now - RECENT < when <= now for when, _ in sized),
        size=sized[-1][1] if sized else 0,
        was=next(iter(older[-1:] or first), None),
    )


def is_bloated(churn: Churn) -> bool:
    """Return whether shortening is worth asking about: large, much changed, and much larger than it was."""
    growth = churn.growth
    return churn.size >= LARGE and churn.changes >= MANY_CHANGES and growth is not None and growth >= MUCH_GROWTH


def ask_cleanup(models: Models, path: str, text: str, refused: Sequence[str] = ()) -> DocUpdate | None:
    """Cuts that shorten the document `text` at `path` and take nothing from it; None where there is nothing to cut.

    Raises:
        ModelError: as `Models.ask`.
    """
    body = text.replace("\r\n", "\n")[headings.text_start(text) :]

    def fault_of(_find: str, new: str) -> str:
        words = find_added_words(new, body)
        return f"`replace` says {words[0]!r}, which the doc does not" if words else ""

    def check(value: Mapping[str, Any]) -> tuple[list[Replacement], Sequence[str | ItemProblem]]:
        edits, problems = fit_edits(text, value["edits"], fault_of)
        return edits, problems or (_problems(text, edits) if edits else [])

    inputs = {
        "today": today(),
        "grown_path": headings.one_line(path),
        "grown_doc": excerpt(text, (), MAX_DOC),
        "undone_edits": show_refused(refused),
    }
    answer = models.ask(models.prompt(PROMPT), inputs, check=lambda value: check(value)[1])
    # Each cut is independent: those that are possible are made, if the document stays valid with them.
    edits, _ = check(answer.value)
    if not edits or _problems(text, edits):
        return None
    shorter = len(text) - len(replacements.apply(text, edits))
    return DocUpdate.of(text, edits, f"{shorter:,} of {len(text):,} characters can go", answer)


def _problems(text: str, edits: Sequence[Replacement]) -> list[str]:
    before, after = (side.replace("\r\n", "\n") for side in (text, replacements.apply(text, edits)))
    size, left = (len(side) - headings.text_start(side) for side in (before, after))
    problems = list(faults(before, after))
    if not size <= 2 * left < 2 * size:
        problems.append(f"the doc must get shorter, and keep at least {size // 2:,} characters")
    return problems


def cleanup_edit(grown: GrownDoc, cuts: DocUpdate) -> Edit | SourceEdit:
    """Return the edit that shortens a document that has grown."""
    doc, after = grown.doc, cuts.after.encode("utf-8", "surrogateescape")
    if doc.is_in_vault:
        return Edit(doc.rel_path, grown.data, after)
    message = render(message_of("shorten", doc, cuts, PROMPT))
    return SourceEdit(str(doc.folder), doc.rel_path, grown.data, after, message)
