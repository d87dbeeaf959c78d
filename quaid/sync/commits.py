"""A commit of a bare repository -> the index of its vault, on a server that has no files of it.

A commit never changes, so no time or size is compared: the index records up to which commit it says what
the repository says, git names the notes in which another commit differs, and only these are read.
"""

from dataclasses import replace
from pathlib import Path, PurePosixPath

from quaid.history.git import Git
from quaid.history.repository import Repository
from quaid.history.revisions import Revisions
from quaid.index import contents, documents
from quaid.index.documents import KnownFile
from quaid.index.port import IndexConnection
from quaid.settings import MAX_NOTE_BYTES, Settings
from quaid.sync.as_of import CommitContents, list_contents
from quaid.sync.derived_index import SyncReport
from quaid.sync.embedding import Embedding, ignore_progress
from quaid.vault import notes
from quaid.vault.layout import Layout

ATTRIBUTES = ".gitattributes"
COMMIT = "commit"
MAX_PATH = 600
"""Characters of a path that any engine can look up."""
_MADE_WITH = "made_with"


def index_commit(
    index: IndexConnection, repository: Path, commit: str, settings: Settings, embedding: Embedding | None = None
) -> SyncReport:
    """Bring `index` to what the bare `repository` holds at `commit`, whatever it held before, in one transaction; then
    embed what has no vector yet.

    Raises:
        RevisionError: there is no such commit, or no vault at it.
        GitError: the repository cannot be read.
        LockedError: another process has been writing the index for too long.
    """
    revisions = Revisions(Git(Repository(repository, repository, repository, "")))
    point = revisions.find(commit)
    found = list_contents(revisions, point, commit)
    with index.transaction():
        report = _write_words(index, revisions, found, settings)
    if embedding is None:
        return report
    filled = embedding.fill(index, ignore_progress, budget_s=None, fetch=False)
    return replace(report, embedded=filled.embedded, pending=filled.pending, degraded=filled.degraded)


def _write_words(index: IndexConnection, revisions: Revisions, found: CommitContents, settings: Settings) -> SyncReport:
    layout = Layout.of(settings.vault)
    made_with = f"{contents.SCHEMA_VERSION} {MAX_NOTE_BYTES} {layout!r}"
    before = contents.get_meta(index, COMMIT)
    is_other = before is not None and contents.get_meta(index, _MADE_WITH) != made_with
    rebuilt = is_other or (before is not None and not revisions.has_commit(before))
    if rebuilt:
        index.clear()
        before = None
    listed = {file.rel_path: file for file in found.notes if len(file.rel_path) <= MAX_PATH}
    long = (file.rel_path[:MAX_PATH] for file in found.notes if len(file.rel_path) > MAX_PATH)
    too_long = dict.fromkeys(long, f"has a path of more than {MAX_PATH} characters")
    known = {path for path, _ in documents.list_known(index)}
    changed = {file.rel_path for files in revisions.compare(before, found.point.id) for file in files if file}
    if any(PurePosixPath(path).name == ATTRIBUTES for path in changed):  # which say how git hands out every file
        changed = set(listed)
    wanted = [listed[path] for path in sorted((listed.keys() - known) | changed) if path in listed]
    gone = sorted(known - listed.keys())
    for path in gone:
        documents.remove_document(index, path)
    for path, data in revisions.read_files(wanted):
        note = notes.parse_note(path, data, MAX_NOTE_BYTES, layout)
        put = documents.replace_document if path in known else documents.add_document
        put(index, note, KnownFile(len(data), 0, 0, 0, 0, note.content_hash))
    documents.replace_passed_over(index, {**found.passed_over, **too_long})
    contents.set_meta(index, COMMIT, found.point.id)
    contents.set_meta(index, _MADE_WITH, made_with)
    paths = [file.rel_path for file in wanted]
    return SyncReport(
        added=tuple(path for path in paths if path not in known),
        modified=tuple(path for path in paths if path in known),
        removed=tuple(gone),
        total=len(listed),
        rebuilt="it was of another history or other settings" if rebuilt else None,
    )
