"""Notes -> index.db. `quaid sync`, `reindex`, `watch` and the freshness check all come through here."""

import json
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from quaid.errors import MassRemovalError, QuaidError, VaultNotFoundError
from quaid.index import contents, documents
from quaid.index.port import IndexConnection
from quaid.local import claimed
from quaid.model import Kind, Note
from quaid.place import CONFIG_FILE, INDEX_FILE, process_exists
from quaid.settings import MAX_NOTE_BYTES, Settings
from quaid.sync import diff
from quaid.sync.derived_index import DerivedIndex, SyncOptions, SyncReport, list_known
from quaid.sync.embedding import Embedding, Progress
from quaid.vault import files, layout
from quaid.vault.layout import Layout

_CLAIMED = "claimed"
"""The fact of an index that lists the ids of those notes whose marks are somebody else's claim."""


class Indexer(DerivedIndex):
    """Keeps index.db equal to the notes of the vault at `root`, each under its path."""

    noun = "notes"

    def __init__(self, root: Path, settings: Settings, embedding: Embedding) -> None:
        self._layout = Layout.of(settings.vault)
        super().__init__(root, INDEX_FILE, embedding, made_with=repr(self._layout))
        self._settings = settings
        self._claimed: frozenset[str] = frozenset()

    def is_there(self) -> bool:
        """Return whether the vault is: an unmounted disk leaves an empty folder behind, which is not an empty vault."""
        return (self.root / CONFIG_FILE).exists()

    def is_fresh(self, reader: IndexConnection, about: Collection[str] | None = None) -> bool:
        """Compare the index with a stat sweep, nothing read and nothing written. With `about` only these files are
        compared.
        """
        if reader.schema_version() != contents.SCHEMA_VERSION or not self.is_made_with(reader):
            return False
        if about is None and json.loads(contents.get_meta(reader, _CLAIMED) or "[]") != sorted(claimed.read(self.root)):
            return False
        folders = files.FolderDigests(contents.list_folders(reader))
        listed = self.list_files(about, folders if folders.known else None)
        is_same = not any(diff.compare(listed.notes, list_known(reader, listed, folders, about)))
        return is_same and (about is not None or listed.passed_over == documents.list_passed_over(reader))

    def sync(self, options: SyncOptions | None = None, progress: Progress | None = None) -> SyncReport:
        """Bring the index up to date with the notes, as every `DerivedIndex` does.

        Raises:
            VaultNotFoundError: there is no vault.
            MassRemovalError: too many notes vanished at once. They stay in the index; all else is up to date.
            LockedError, UnwritableError
        """
        remove_stale_cookies(self.root)
        if not self.is_there():
            raise VaultNotFoundError(self.root)
        return super().sync(options, progress)

    def list_files(self, only: Collection[str] | None, folders: files.FolderDigests | None = None) -> files.NoteListing:
        if only is not None:
            return files.list_some(self.root, only)
        try:
            return files.list_notes(self.root, folders)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise VaultNotFoundError(self.root) from error

    def read_file(self, key: str) -> bytes | None:
        with suppress(PermissionError):
            return files.read_note(self.root, key)
        return b""

    def parse_file(self, key: str, data: bytes) -> Note:
        from quaid.vault import notes  # not above: a read that finds nothing new parses nothing

        note = notes.parse_note(key, data, MAX_NOTE_BYTES, self._layout)
        if note.kind is Kind.FACT and note.id in self._claimed:
            note = replace(note, pinned=False, verified=False, confirmations=0, source=claimed.OTHER_PERSON)
        return note

    def list_outdated(self, connection: IndexConnection, is_whole: bool) -> Collection[str]:
        """Return the facts that have become somebody else's word, or the owner's, since they were indexed."""
        self._claimed = frozenset(claimed.read(self.root))
        changed = self._claimed.symmetric_difference(json.loads(contents.get_meta(connection, _CLAIMED) or "[]"))
        if changed and is_whole:
            contents.set_meta(connection, _CLAIMED, json.dumps(sorted(self._claimed)))
        where = "id IN (SELECT value FROM json_each(?))"
        return {each.path for each in documents.find_documents(connection, where, (json.dumps(list(changed)),))}

    def is_emptied(self, connection: IndexConnection, key: str, size: int) -> bool:
        known = documents.list_sized_texts(connection, key)
        if not known or size >= known[0][0]:
            return False
        from quaid.vault import notes  # not above: see parse_file

        body = notes.split_body((self.read_file(key) or b"").decode("utf-8", "replace"))[1]
        return diff.is_emptied(" ".join(text for _, text in known), body)

    def refuse_removals(self, connection: IndexConnection, gone: Sequence[str], known: int) -> QuaidError | None:
        """Return an error when so many notes vanished, or were emptied, that a lost mount or a stray `rm -r` may be the
        cause. What git itself removed does not count, nor what another note of the same name still says.
        """
        if not diff.looks_like_accident(gone, known):
            return None
        from quaid.history.vault_history import History

        missing = set(gone) - contents.find_copied(connection, gone)
        with suppress(QuaidError):  # git cannot say why: then nothing says that they are gone for good
            history = History(self.root, self._settings.git)
            until = time.monotonic() + self._settings.git.wait_s
            while history.state().locked and time.monotonic() < until:  # a checkout moves HEAD when all files are there
                time.sleep(0.1)
            missing = history.tracked_missing(sorted(missing))
            if emptied := {path for path in missing if files.is_file_in(self.root, path)}:
                missing -= emptied.difference(history.uncommitted())
        is_refused = diff.looks_like_accident(missing, known)
        return MassRemovalError(len(missing), known, self.root) if is_refused else None


def remove_stale_cookies(root: Path) -> None:
    """Remove the cookies of processes that were killed."""
    for cookie in (root / layout.COOKIE_DIR).glob("cookie-*-*"):
        pid = cookie.name.split("-")[1]
        if pid.isdigit() and not process_exists(int(pid)):
            with suppress(OSError):
                cookie.unlink(missing_ok=True)
