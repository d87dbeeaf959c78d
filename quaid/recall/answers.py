"""A question and what it needs of other rooms: a fresh index, vectors, a model in doubt, and the records of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.config import person_of
from quaid.errors import NoteNotFoundError, PartNotFoundError, QuaidError, SettingError, VaultNotFoundError
from quaid.index import contents, vectors
from quaid.index.cache import AnswerCache
from quaid.index.fulltext import Postings
from quaid.index.references import NoteView, view_note
from quaid.index.scope import list_hidden, visible_to
from quaid.index.sqlite.database import IndexReader
from quaid.index.vectors import VectorMatrix
from quaid.local import recall_trail
from quaid.model import OWNER_LABELS, Commit, Recall
from quaid.recall import cutoff
from quaid.recall.options import RecallOptions
from quaid.recall.trace import with_degraded
from quaid.recall.visibility import VisibleCommits, read_core_notes
from quaid.settings import Settings
from quaid.sync.embedding import LEFT_OPEN, Progress, count_languages, propose_for_question
from quaid.vault import files
from quaid.vault.layout import is_note_path

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection
    from quaid.open_vault import OpenVault
    from quaid.recall.records import RecallRecords
    from quaid.recall.rerank import Judge

_MAX_NAMED = 3
"""Notes that a sentence names."""


class Answers:
    """Answers the questions of one `Memory`. Opens the records and the past when they are first needed."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault

    @cached_property
    def records(self) -> RecallRecords:
        from quaid.recall.records import RecallRecords

        return RecallRecords(self._vault.root, self._vault.settings)

    @cached_property
    def judge(self) -> Judge | None:
        """The model that judges in doubt."""
        from quaid.recall.rerank import Judge

        return None if self._vault.settings.models.provider in {"", "none"} else Judge(self._vault)

    @cached_property
    def owner_names(self) -> tuple[str, ...]:
        """The names that `my` refers to."""
        return list_owner_names(self._vault.root, self._vault.settings, self._vault.owners)

    def recall(
        self, query: str, options: RecallOptions, *, as_of: str | None = None, session: str | None = None,
        door: str = "python", keep: bool = True, progress: Progress | None = None,
    ) -> Recall:  # fmt: skip
        """Return the answer to `query` of the present index, or of the one as of a revision or day. Record it unless it
        is about the past or `keep` is False.

        Raises:
            VaultNotFoundError
            RevisionError: there is no such revision, or none that early.
        """
        options = replace(options, owners=options.owners or self._vault.owners)
        retries, answer = self._vault.index_retries(), None
        while answer is None:
            with retries:
                if as_of is not None:
                    return self._answer_of_past(query, options, as_of, progress)
                answer = self._answer(query, options)
        return self.keep(answer, options, door=door, session=session) if keep and query.strip() else answer

    def _answer(self, query: str, options: RecallOptions) -> Recall:
        vault = self._vault
        connection, stale = vault.refresh()
        core_notes: tuple[tuple[str, str], ...] = ()
        if options.context:
            core_notes = tuple(read_core_notes(vault.root, vault.owners, vault.layout))
        if core_notes and options.budget is not None:
            core_notes, room = fit_core_notes(core_notes, options.budget)
            options = replace(options, budget=room)
        second = connection if connection is vault.index_in_memory else vault.second_reader.open() or connection
        with contents.shared_snapshot(connection, second) as second:
            answer = self._ask(query, options, connection, second, vault.matrix, vault.postings, vault.cache)
        if core_notes:
            answer = replace(answer, context=core_notes)
        degraded = list(stale)
        if vault.problem is not None:
            reason = "these are all defaults, and no model is used, until it is repaired."
            if isinstance(vault.problem, SettingError):
                reason = "what cannot be used has its default until it is repaired."
            degraded.insert(0, f"config: {reason} {vault.problem}")
        degraded += vault.cache.of(connection, _list_conflicts, vault.root, options.owners)
        if not options.keyword_only and vault.settings.embedding.provider != "none":
            waiting = vault.cache.of(connection, vectors.count_missing)
            if waiting and vault.embedding.embedder() is not None:
                degraded.append(f"pending: {waiting:,} chunks have no vector yet; finish with: quaid sync")
            chosen = vault.settings.embedding.provider, vault.settings.embedding.model
            if chosen == LEFT_OPEN and query.strip():
                degraded += propose_for_question(vault.cache.of(connection, count_languages), query)
        return with_degraded(answer, degraded)

    def _answer_of_past(self, query: str, options: RecallOptions, as_of: str, progress: Progress | None) -> Recall:
        past = self._vault.pasts.open(as_of, progress)
        with closing(IndexReader(past.path)) as reader:
            connection = reader.open()
            if connection is None:
                raise VaultNotFoundError(past.path)
            # Notes that have become private since then are hidden.
            options = replace(options, but_not=list_hidden(self._vault.refresh()[0], options.owners))
            unused = VectorMatrix(), Postings(), AnswerCache()
            answer = self._ask(query, options, connection, connection, *unused)
        trace = {**answer.trace, "as_of": {"commit": past.commit, "when": past.when}}
        return with_degraded(replace(answer, trace=trace), past.degraded)

    def _ask(
        self, query: str, options: RecallOptions, one: IndexConnection, second: IndexConnection, matrix: VectorMatrix,
        words: Postings, cache: AnswerCache,
    ) -> Recall:  # fmt: skip
        from quaid.recall import pipeline
        from quaid.recall.search import Sources

        embedder_of, names = self._vault.embedding.embedder_of, self.owner_names
        sources = Sources(one, second, embedder_of, matrix, words, cache, self.judge, self.records, names)
        return pipeline.recall(sources, query, self._vault.settings.recall, options)

    def view(self, reference: str) -> NoteView:
        """Return the note, or the part of it, that `reference` means, as its file has it.

        Raises:
            NoteNotFoundError, AmbiguousReferenceError
        """
        retries, view = self._vault.index_retries(), None
        while view is None:
            with retries:
                view = view_note(self._vault.index(), reference, self._vault.settings.timezone)
        data = files.read_note(self._vault.root, view.document.path)
        if data is None:
            raise NoteNotFoundError(reference)
        return with_source(view, data)

    def keep(self, answer: Recall, options: RecallOptions, *, door: str, session: str | None) -> Recall:
        """Record the answer; what could not be recorded is named in `degraded`."""
        if door != "hook":  # which says itself what of it was given
            state, log, asker = self._vault.state, self._vault.settings.recall.log, self._vault.settings.owner
            recall_trail.add(state, log, answer, door=door, session=session or "", asker=asker, withheld={})
        if options.kinds or options.at or options.keyword_only:
            return answer
        depth, limit = options.depth, options.limit
        problem = self.records.after_recall(answer, door=door, depth=depth, session=session, limit=limit)
        return with_degraded(answer, [problem] if problem else [])

    def visible_commits(self, about: Collection[str] | None = None) -> VisibleCommits:
        """Return what hides commits from the caller, up to date with all files or at least with those in `about`."""
        from quaid.recall.visibility import VisibleCommits

        vault = self._vault
        whole, _ = vault.refresh(about)
        return VisibleCommits(whole, vault.visible_index(), vault.git, vault.owners, vault.layout)

    def see(self, commits: Iterable[Commit]) -> list[Commit]:
        """Return those of `commits` that the caller may see."""
        found = list(commits)
        return self.visible_commits({path for commit in found for path in commit.files if is_note_path(path)}).of(found)

    def log(self, limit: int, **which: Any) -> list[Commit]:
        """Return the newest `limit` commits that the caller may see; `which` is as for `History.log`."""
        asked = limit
        while True:
            found = self._vault.git.log(limit=asked, **which)
            seen = self.see(found)
            if len(seen) >= limit or len(found) < asked:
                return seen[:limit]
            asked *= 4

    def close(self) -> None:
        if "records" in self.__dict__:
            self.records.close()


def _list_conflicts(connection: IndexConnection, root: Path, owners: Collection[str]) -> list[str]:
    """Return a sentence that names the notes in which a merge left its marks; none where there are none."""
    marked = contents.list_marked(connection, visible_to(connection, owners))
    left: set[str] = set()
    if marked:
        from quaid.history import merges

        with suppress(QuaidError):
            left = {each.path for each in merges.list_conflicts(root)}
    if not (found := [path for path in marked if path in left]):
        return []
    more = f" and {len(found) - _MAX_NAMED:,} more" if len(found) > _MAX_NAMED else ""
    named = ", ".join(found[:_MAX_NAMED]) + more
    return [f"conflict: both sides of an unresolved merge are in {named}. Settle it with: quaid conflicts"]


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
    room = budget // 2
    fitted = []
    for path, text in core_notes:
        frame = cutoff.tokens(f"{path}\n\n\n")
        if trimmed := cutoff.trim(text, max(0, room - frame)):
            fitted.append((path, trimmed))
            room -= frame + cutoff.tokens(trimmed)
    return tuple(fitted), budget - (budget // 2 - room)
