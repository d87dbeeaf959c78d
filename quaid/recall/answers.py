"""A question and what it needs of other rooms: a fresh index, vectors, a model in doubt, and the records of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.config import person_of
from quaid.errors import NoteNotFoundError, PartNotFoundError, QuaidError, SettingError, VaultNotFoundError
from quaid.index import contents, vectors
from quaid.index.references import NoteView, view_note
from quaid.index.scope import list_hidden, visible_to
from quaid.index.sqlite.database import IndexReader
from quaid.index.vectors import VectorMatrix
from quaid.local import recall_trail
from quaid.model import OWNER_LABELS, Commit, Recall
from quaid.recall.options import RecallOptions
from quaid.recall.trace import with_degraded
from quaid.recall.visibility import read_core_notes
from quaid.settings import Settings
from quaid.sync.embedding import Progress
from quaid.vault import files
from quaid.vault.layout import is_note_path

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection
    from quaid.open_vault import OpenVault
    from quaid.recall.pipeline import Helpers
    from quaid.recall.records import RecallRecords
    from quaid.recall.rerank import Judge

_MAX_NAMED = 3
"""Notes that a sentence names."""


class Answers:
    """Answers the questions of one `Memory`. Opens the index, the records and the past when they are first needed."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._records: RecallRecords | None = None
        self._judge: Judge | None = None
        self.before_model: Callable[[], None] = lambda: None  # may refuse, by raising, that a model is asked

    def recall(
        self, query: str, options: RecallOptions, *, as_of: str | None = None, session: str | None = None,
        door: str = "python", keep: bool = True, progress: Progress | None = None,
    ) -> Recall:  # fmt: skip
        """Return the answer to `query`, and record it unless it is about the past or `keep` is False."""
        retries, answer = self._vault.index_retries(), None
        while answer is None:
            with retries:
                answer = self.answer(query, options, as_of=as_of, progress=progress)
        if not keep or as_of is not None or not query.strip():
            return answer
        return self.keep(answer, options, door=door, session=session)

    def answer(self, query: str, options: RecallOptions, *, as_of: str | None, progress: Progress | None) -> Recall:
        """Return the answer of the present index, or of the one as of a revision or day.

        Raises:
            VaultNotFoundError
            RevisionError: there is no such revision, or none that early.
        """
        from quaid.recall import pipeline
        from quaid.recall.retrieval import Sources

        options = replace(options, owners=options.owners or self._vault.owners)
        if as_of is not None:
            return self._answer_of_past(query, options, as_of, progress)
        connection, stale = self._vault.refresh()
        core_notes = (
            tuple(read_core_notes(self._vault.root, self._vault.owners, self._vault.layout)) if options.context else ()
        )
        if core_notes and options.budget is not None:
            core_notes, room = fit_core_notes(core_notes, options.budget)
            options = replace(options, budget=room)
        second = (
            connection if connection is self._vault.index_in_memory else self._vault.second_reader.open() or connection
        )
        embedder_of, cached = self._vault.embedding.embedder_of, self._vault.cache.of
        with contents.shared_snapshot(connection, second) as second:
            sources = Sources(
                connection, second, embedder_of, self._vault.matrix, self._vault.postings, self._vault.cache
            )
            answer = pipeline.answer(sources, query, self._vault.settings.recall, options, self.helpers())
        if options.recent:
            answer = replace(answer, hits=tuple(sorted(answer.hits, key=lambda hit: hit.created or "", reverse=True)))
        if core_notes:
            answer = replace(answer, context=core_notes)
        degraded = list(stale)
        if self._vault.problem is not None:
            reason = "these are all defaults, and no model is used, until it is repaired."
            if isinstance(self._vault.problem, SettingError):
                reason = "what cannot be used has its default until it is repaired."
            degraded.insert(0, f"config: {reason} {self._vault.problem}")
        degraded += cached(
            connection, ("conflicts", options.owners), lambda: self._list_conflicts(connection, options.owners)
        )
        if not options.keyword_only and self._vault.settings.embedding.provider != "none":
            waiting = cached(connection, "pending", lambda: vectors.count_missing(connection))
            if waiting and self._vault.embedding.embedder() is not None:
                degraded.append(f"pending: {waiting:,} chunks have no vector yet; finish with: quaid sync")
        return with_degraded(answer, degraded)

    def view(self, reference: str) -> NoteView:
        """Return the note, or the part of it, that `reference` means, as its file has it.

        Raises:
            NoteNotFoundError, AmbiguousReferenceError
        """
        retries, view = self._vault.index_retries(), None
        while view is None:
            with retries:
                view = view_note(self._vault.index(), reference)
        data = files.read_note(self._vault.root, view.document.path)
        if data is None:
            raise NoteNotFoundError(reference)
        return with_source(view, data)

    def keep(self, answer: Recall, options: RecallOptions, *, door: str, session: str | None) -> Recall:
        """Record the answer; what could not be recorded is named in `degraded`."""
        if door != "hook":  # which says itself what of it was given
            state, log, asker = self._vault.state, self._vault.settings.recall.log, self._vault.settings.owner
            recall_trail.add(state, log, answer, door=door, session=session or "", asker=asker, withheld={})
        records = self.records()
        problems = []
        if not (options.kinds or options.at or options.keyword_only):
            depth = options.depth
            problems.append(records.after_recall(answer, door=door, depth=depth, session=session, limit=options.limit))
        return with_degraded(answer, [problem for problem in problems if problem])

    def helpers(self) -> Helpers:
        """Return the helpers of a question: the judge, the usage and the owner's names."""
        from quaid.recall.pipeline import Helpers

        names = list_owner_names(self._vault.root, self._vault.settings, self._vault.owners)
        return Helpers(self._open_judge, lambda ids: self.records().strengths(ids), names)

    def see(self, commits: Iterable[Commit]) -> list[Commit]:
        """Return those of `commits` that the caller may see."""
        from quaid.recall.visibility import VisibleCommits

        found = list(commits)
        whole, _ = self._vault.refresh({path for commit in found for path in commit.files if is_note_path(path)})
        return VisibleCommits(
            whole, self._vault.visible_index(), self._vault.git, self._vault.owners, self._vault.layout
        ).of(found)

    def see_parts(self, commits: Iterable[Commit]) -> list[Commit]:
        """Return the same of commits that are given with a part of their files, as those of a note's life are."""
        from quaid.recall.visibility import see_parts

        return see_parts(commits, self._vault.git, self.see)

    def log(self, limit: int, **which: Any) -> list[Commit]:
        """Return the newest `limit` commits that the caller may see; `which` is as for `History.log`."""
        asked = limit
        while True:
            found = self._vault.git.log(limit=asked, **which)
            seen = self.see(found)
            if len(seen) >= limit or len(found) < asked:
                return seen[:limit]
            asked *= 4

    def records(self) -> RecallRecords:
        if self._records is None:
            from quaid.recall.records import RecallRecords

            self._records = RecallRecords(self._vault.root, self._vault.settings)
        return self._records

    def close(self) -> None:
        if self._records is not None:
            self._records.close()

    def _answer_of_past(self, query: str, options: RecallOptions, as_of: str, progress: Progress | None) -> Recall:
        from quaid.recall import pipeline
        from quaid.recall.retrieval import Sources

        past = self._vault.pasts.open(as_of, progress)
        reader = IndexReader(past.path)
        connection = reader.open()
        if connection is None:
            raise VaultNotFoundError(past.path)
        try:
            sources = Sources(connection, connection, self._vault.embedding.embedder_of, VectorMatrix())
            # Notes that have become private since then are hidden.
            options = replace(options, but_not=list_hidden(self._vault.refresh()[0], options.owners))
            answer = pipeline.answer(sources, query, self._vault.settings.recall, options, self.helpers())
        finally:
            reader.close()
        trace = {**answer.trace, "as_of": {"commit": past.commit, "when": past.when}}
        return with_degraded(replace(answer, trace=trace), past.degraded)

    def _list_conflicts(self, connection: IndexConnection, owners: Collection[str]) -> list[str]:
        """Return a sentence that names the notes in which a merge left its marks; none where there are none."""
        marked = contents.list_marked(connection, visible_to(connection, owners))
        left: set[str] = set()
        if marked:
            from quaid.history import merges

            with suppress(QuaidError):
                left = {each.path for each in merges.list_conflicts(self._vault.root)}
        if not (found := [path for path in marked if path in left]):
            return []
        more = f" and {len(found) - _MAX_NAMED:,} more" if len(found) > _MAX_NAMED else ""
        named = ", ".join(found[:_MAX_NAMED]) + more
        return [f"conflict: both sides of an unresolved merge are in {named}. Settle it with: quaid conflicts"]

    def _open_judge(self) -> Judge | None:
        if self._vault.settings.models.provider in {"", "none"}:
            return None
        self.before_model()
        if self._judge is None:
            from quaid.recall.rerank import ModelJudge

            models = self._vault.models
            if models.describe().provider is None:
                return None
            # A cached answer would store the question, in other words.
            self._judge = ModelJudge(models if self._vault.settings.recall.log == "text" else models.without_answers())
        return self._judge


def with_source(view: NoteView, data: bytes) -> NoteView:
    """Return `view` with what its file, which holds `data`, has of it: the whole note, the turn, or the section.

    Raises:
        PartNotFoundError: the file has no such section.
    """
    if view.turn is None and not view.heading:
        return replace(view, source=data)
    from quaid.vault import headings, markdown

    text = data.decode("utf-8", "replace")
    if view.turn is not None:
        return replace(view, source=headings.read_turn(text, view.turn).encode())
    section = headings.read_section(text, view.heading)
    if not section:
        raise PartNotFoundError(view.document.path, view.heading)
    return replace(view, source=section.encode(), text=markdown.plain(section))


def list_owner_names(root: Path, settings: Settings, owners: Collection[str]) -> tuple[str, ...]:
    """Return the names of the caller in notes. "User" is always the vault's own owner."""
    labels = sorted(OWNER_LABELS) if "default" in owners else []
    return (person_of(root, settings), *labels)


def fit_core_notes(core_notes: Iterable[tuple[str, str]], budget: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """Return the core notes in at most half of the budget, and what is left of it."""
    from quaid.recall import cutoff

    room = budget // 2
    fitted = []
    for path, text in core_notes:
        frame = cutoff.tokens(f"{path}\n\n\n")
        if trimmed := cutoff.trim(text, max(0, room - frame)):
            fitted.append((path, trimmed))
            room -= frame + cutoff.tokens(trimmed)
    return tuple(fitted), budget - (budget // 2 - room)
