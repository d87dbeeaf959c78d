"""Memory: the one façade that the command line, MCP and hooks call. It wires the rooms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from quaid import trust
from quaid.config import ignored_settings, load_settings, parse_value, settings_for_reading
from quaid.errors import SettingError, VaultExistsError, VaultNotFoundError
from quaid.history import vault_guard
from quaid.index.references import NoteView, view_note
from quaid.model import Commit, Edge, Recall
from quaid.open_vault import OpenVault
from quaid.place import CONFIG_FILE, state_folder
from quaid.recall.answers import Answers
from quaid.recall.options import RecallOptions
from quaid.sync.derived_index import SyncOptions, SyncReport, Verification, verify
from quaid.sync.watcher import WATCH, Follower
from quaid.text.invisible import whole
from quaid.text.zones import local_now
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.capture.extractor import Extractor, ExtractResult, Source
    from quaid.capture.files.analyzer import AnalyzeResult
    from quaid.capture.importer import ImportResult
    from quaid.capture.importers.programs import Program
    from quaid.capture.notes import Notes
    from quaid.capture.writer import Writer, WriteResult
    from quaid.docs.documentation import Documentation
    from quaid.history.creation import Created
    from quaid.janitor.janitor import Janitor
    from quaid.recall.provenance import Provenance
    from quaid.remotes.exchange import Exchange
    from quaid.timeline.timeline import Timeline


class Memory(OpenVault):
    """A vault, opened, with everything that can be done with it. Use it as a context manager."""

    remarks: tuple[str, ...] = ()
    """Sentences on how the vault was opened."""

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, owner: str | None = None) -> Self:
        """Open the vault at `path`, else `$QUAID_HOME`, else the one around the working folder, else `~/quaid`.

        Raises:
            VaultNotFoundError: no vault there.
            UntrustedVaultError, ForeignVaultError, QuaidError: there is one that may not be read.
            ConfigError: the user's own config cannot be read.
        """
        root, remark = trust.locate_vault(path)
        vault_guard.check(root)
        settings, problem = settings_for_reading(root)
        memory = cls(root, replace(settings, owner=owner) if owner else settings, problem)
        memory.embedding.resume()
        memory.remarks = tuple(filter(None, (remark, *(() if problem else ignored_settings(root)))))
        return memory

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], owner_names: Sequence[str] = (), folder: str | None = None
    ) -> tuple[Self, Created]:
        """Make `path` a vault, Quaid's folders in `folder`. One with notes is adopted: files are added, none changes.

        `owner_names` are the name of the owner, who gets a note, and other names of the same person. VaultExistsError:
        it is one already; BadInputError: `folder` cannot hold notes, or the first of `owner_names` means any owner.
        """
        from quaid.capture.owner_note import plan_vault
        from quaid.history.creation import fill_vault

        if ((root := Path(path).expanduser().absolute()) / CONFIG_FILE).exists():
            raise VaultExistsError(root)
        made = cls(root, load_settings(root))
        plan = plan_vault(root, owner_names, folder)
        created = fill_vault(root, made.git, made.settings.git.wait_s, made.notify, plan)
        return cls(root, load_settings(root)), created

    def warm(self) -> None:
        """Begin to load the embedding model in the background."""
        self.embedding.warm()

    def close(self) -> None:
        super().close()
        if "answers" in self.__dict__:
            self.answers.close()
        if "documentation" in self.__dict__:
            self.documentation.close()
        if self.settings.git.sync == "auto":
            from quaid.remotes.contact import schedule_exchange

            schedule_exchange(self.root, self.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading -------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        limit: int | None = None,
        *,
        as_of: str | None = None,
        session: str | None = None,
        door: str = "python",
        keep: bool = True,
        **options: Any,
    ) -> Recall:
        """Return the memories that answer `query`, best first.

        `as_of` is a revision or a day. `options` are the fields of `RecallOptions`. `session` and `door` say in the
        recall log who asked; with `keep` False nothing is logged. RevisionError: no such revision, or none that early.
        """
        usual = {"depth": self.settings.recall.depth, "limit": limit, "now": local_now(self.settings.timezone)}
        wanted = RecallOptions(**{**usual, **whole(options)})
        query, as_of, session = whole((query, as_of, session))
        return self.answers.recall(
            query, wanted, as_of=as_of, session=session, door=door, keep=keep, progress=self._progress
        )

    def search(self, query: str, limit: int | None = None, **options: Any) -> Recall:
        """Keywords only: no model, no graph."""
        return self.recall(query, limit, keyword_only=True, **options)

    def get(self, reference: str) -> NoteView:
        """Return the note, turn or section that `reference` means; NoteNotFoundError, AmbiguousReferenceError."""
        return self.answers.view(reference)

    def history(self, reference: str, limit: int = 20) -> list[Commit]:
        """The commits that touched a note, newest first, across renames."""
        document = self.get(reference).document
        life = self.git.note_history(document.path, None if document.id == document.path else document.id)
        return self.answers.visible_commits().of_parts(revision.commit for revision in life[:limit])

    def why(self, reference: str) -> Provenance:
        """Return where a memory comes from, as far as files and history tell. `recall` never asks git, this does."""
        from quaid.recall.provenance import explain

        retries = self.index_retries()
        while True:
            with retries:
                index, answers, git = self.index(), self.answers, self.settings.git
                view, visible = view_note(index, reference, self.settings.timezone), answers.visible_commits()
                return explain(view, index, self.git, self.root, git, visible, answers.owner_names)

    def context(self, tokens: int | None = None, longest: int | None = None, cwd: str | None = None) -> str:
        """Return what an agent should know before it works in the folder `cwd`, in `tokens` and `longest` at most."""
        from quaid.agents.session_context import build_session_context as build

        most = self.settings.hooks.context_tokens if tokens is None else tokens
        retries, now = self.index_retries(), local_now(self.settings.timezone)
        while True:
            with retries:
                return build(self.root, self.index(), self.owners, most, longest, cwd, place=self.layout, now=now)

    # -- writing -------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, replaces: str | None = None, by_owner: bool = False, **details: Any
    ) -> WriteResult:
        """Store a fact, or confirm the one that says it; the one that it `replaces` (an id, or its words) holds no
        longer. `details` are the fields of `NewFact`. FactTooShortError, NothingToReplaceError. The commit is
        Quaid's, or `by_owner` in the owner's name, here as below.
        """
        from quaid.capture.facts import NewFact

        fact = NewFact(whole(text), **{"owner": self.settings.owner, **whole(details)})
        return self.writer.remember(fact, whole(replaces), by_owner=by_owner)

    def link(self, subject: str, relation: str, target: str) -> WriteResult:
        """Put `subject -relation-> target` into the graph, normalised, with entity notes made on the way."""
        return self.writer.link(Edge(*whole((subject, relation, target))))

    def forget(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Take a fact, an entity, an episode or one turn out; git keeps it. NotOursError: the note is its owner's."""
        return self.writer.forget(reference, by_owner=by_owner)

    def restore(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Bring back what was forgotten, as it was, or let a fact that was replaced hold again."""
        return self.writer.restore(reference, by_owner=by_owner)

    def configure(self, key: str, raw: str) -> WriteResult:
        """Set one key of quaid.toml or of the user's own config, as typed in a shell. ConfigError: it does not fit."""
        value = parse_value(key, whole(raw))
        self.problem = None if isinstance(self.problem, SettingError) else self.problem  # this may repair it
        return self.writer.configure(key, value)

    def note(self, text: str, session: str | None = None) -> int:
        """Queue a line for the next extraction of `session` (or of any), and return how many are waiting."""
        from quaid.capture.conversation_reader import queue_note

        if not self.indexer.is_there():
            raise VaultNotFoundError(self.root)
        return queue_note(state_folder(self.root), *whole((text, session)))

    def extract(self, source: Source, *, session: str | None = None, **how: Any) -> ExtractResult:
        """Keep a conversation (a transcript file, an open stream, or turns) and learn from what is new in it.

        `how` are the fields of `ExtractOptions`. That a model could not be asked is a `problem` of the result.
        BadInputError: it is not a transcript Quaid knows, or holds several conversations.
        """
        return self.extractor.extract_one(source, session, **how)

    def extract_each(self, source: Source, *, session: str | None = None, **how: Any) -> Iterator[ExtractResult]:
        """Do the same for every conversation of an archive that has turns. Once nobody answers, no model is asked.
        BadInputError: it is not a transcript Quaid knows, or nobody says anything in any of it.
        """
        return self.extractor.extract_each(source, session, **how)

    def list_waiting(self) -> tuple[str, ...]:
        """Return the paths of the episodes that no model has drawn facts from, oldest first."""
        from quaid.capture.note_finder import list_waiting

        return list_waiting(self.root, self.index())

    def extract_waiting(self, **how: Any) -> Iterator[ExtractResult]:
        """Learn from the conversations that no model has drawn facts from, oldest first. `how` as for `extract`."""
        return self.extractor.extract_waiting(self.list_waiting(), **how)

    def analyze(self, path: str | os.PathLike[str], **how: Any) -> AnalyzeResult:
        """Learn from a file if it has changed. `how` as for `FileAnalyzer.analyze`.
        BadInputError: it cannot be read, or is a memory itself; ModelError: no model answered.
        """
        from quaid.capture.files.analyzer import FileAnalyzer

        done = FileAnalyzer(self).analyze(Path(path), **how)
        self.catch_up()
        return done

    def import_from(self, source: str | os.PathLike[str] | IO[bytes] | Program, **options: Any) -> ImportResult:
        """Take in another memory, `options` as the fields of `ImportOptions`. BadInputError: Quaid does not know it."""
        from quaid.capture.importer import ImportOptions, import_from

        wanted = ImportOptions(**{"owner": self.settings.owner, **options})
        given = Path(source).expanduser().absolute() if isinstance(source, (str, os.PathLike)) else source
        imported = import_from(self, given, wanted)
        if imported.commit:
            self.catch_up()
        return imported

    def export(self, kinds: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Each note as a line of an export: what it says of itself, and the whole file."""
        from quaid.capture.export import export_notes

        return export_notes(self.root, self.owners, kinds)

    # -- the index -----------------------------------------------------------------------------------------------

    def reindex(self) -> SyncReport:
        """Build the index from nothing; embeddings come from the cache."""
        return self.sync(SyncOptions(rebuild=True, accept_removals=True))

    def verify(self) -> Verification:
        """Compare the index, brought up to date, with one built from nothing."""
        return verify(self.indexer, self.whole_index())

    def follow(self, report: Callable[[SyncReport], None], what: str | None = None) -> Follower:
        """Return the follower of `quaid watch`, or of the command `what` in the background, not yet started."""

        def report_synced(done: SyncReport) -> None:
            report(done)
            self.carry_out_ticks()

        return Follower(self.indexer, self.settings.sync, report_synced, self.notify, what or WATCH)

    def carry_out_ticks(self) -> None:
        """Carry out the questions in review/ that the owner has answered in an editor."""
        folder = self.root / self.layout.place("review")
        if any(b"[x]" in (files.read_note(folder, page.name) or b"").lower() for page in folder.glob("*.md")):
            self.janitor.carry_out_answers()

    # -- wiring --------------------------------------------------------------------------------------------------

    @cached_property
    def answers(self) -> Answers:
        return Answers(self)

    @cached_property
    def writer(self) -> Writer:
        from quaid.capture.writer import Writer

        return Writer(self)

    @property
    def notes(self) -> Notes:
        """The notes of this vault for agents, one by one."""
        from quaid.capture.notes import Notes

        return Notes(self)

    @cached_property
    def extractor(self) -> Extractor:
        from quaid.capture.extractor import Extractor

        return Extractor(self)

    @cached_property
    def documentation(self) -> Documentation:
        """The projects of this vault and their documents."""
        from quaid.docs.documentation import Documentation

        return Documentation(self, self.answers)

    @property
    def remotes(self) -> Exchange:
        """The remotes that this vault is exchanged with."""
        from quaid.janitor.settling import settle_merges
        from quaid.remotes.exchange import Exchange

        return Exchange(self, settle_merges)

    @property
    def janitor(self) -> Janitor:
        """The janitor of this vault."""
        from quaid.janitor.janitor import Janitor

        return Janitor(self, self.documentation)

    @property
    def timeline(self) -> Timeline:
        """The history of this vault: changes in words, undo, branches."""
        from quaid.timeline.timeline import Timeline

        return Timeline(self, self.answers)
