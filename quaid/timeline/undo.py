"""Undo of any change that Quaid made: found by name, planned as edits, with a message that later nights read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from shlex import quote

from quaid.errors import BadInputError, QuaidError
from quaid.history.merge import revert_change
from quaid.history.revisions import TreeFile
from quaid.history.vault_history import History, VaultCommit
from quaid.index import documents
from quaid.janitor.questions import read_question, tick
from quaid.janitor.vetoes import DECISION, REVERTS, REVIEW, RUN, TASK, asks, is_by_quaid, trailers_of_undoing
from quaid.model import Commit, Edit, Message
from quaid.open_vault import OpenVault
from quaid.place import CONFIG_FILE
from quaid.timeline.changes import MemoryChange, Span, Versions, list_spans
from quaid.timeline.log import PULL, UNDO
from quaid.vault import files, frontmatter, notes
from quaid.vault.transaction import DEFERRED_TRAILER

NIGHT = ("night", "last night")
"""How the last run of the janitor is referenced."""
_FIRST_LOOK = 50
"""Commits among which the last change is looked for first."""


class ChangeNotFoundError(BadInputError):
    """No run of the janitor's and no commit of the owner's branch has this name."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"No run and no commit is called {reference!r}. See them with: quaid log")


@dataclass(frozen=True, slots=True)
class Undone:
    """The commits that an undo took back, newest first, and the commit that does; None where nothing was left to undo,
    or nothing was to be done yet. `changes` is what it does to the memory. `kept` are the lines by path that were
    changed since and so stay. `left` are paths whose change is on disk and not committed.
    """

    commits: tuple[Commit, ...]
    commit: str | None
    changes: tuple[MemoryChange, ...] = ()
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left: tuple[str, ...] = ()


class Present:
    """The vault as it is, compared with the commits that are `undone`."""

    def __init__(self, vault: OpenVault, undone: Sequence[VaultCommit]) -> None:
        self._vault, self._undone = vault, undone

    def read(self, path: str) -> bytes | None:
        return files.read_note(self._vault.root, path)

    def find_moved(self, path: str, data: bytes) -> str | None:
        """Return the path of the note that has the id which `data` has; None if that is `path`."""
        note_id = notes.parse_note(path, data, place=self._vault.layout).id
        found = documents.find_documents(self._vault.whole_index(), "id = ?", (note_id,))
        return found[0].path if note_id != path and found else None

    @cached_property
    def edited(self) -> frozenset[str]:
        """The paths that somebody other than the janitor has changed since."""
        git = self._vault.git
        later = git.log_changes("--no-merges", f"{self._undone[-1].commit.id}..HEAD")
        trailers = [(change.path, logged.commit.trailers) for logged in later for change in logged.changes]
        edited = {path for path, each in trailers if RUN not in each and REVIEW not in each.get(TASK, ())}
        return frozenset(edited.union(git.uncommitted()))


def find_commits(history: History, reference: str) -> list[VaultCommit]:
    """Return the referenced commits, oldest first: those of a run, or one. A run is found by its name, which a rebase
    leaves as it is; `night` is the last that changed anything.

    Raises:
        BadInputError: there is no such run or commit.
    """
    of_runs = history.log_changes(f"--grep=^{RUN}: ", "HEAD") if history.state().head else []

    def runs_of(commits: Iterable[VaultCommit]) -> list[str]:
        return [run for logged in commits for run in logged.commit.trailers.get(RUN, ())]

    runs: list[str] = []
    chosen: list[VaultCommit] = []
    if reference.lower() in NIGHT:
        runs = runs_of(logged for logged in of_runs if logged.changes)
    elif len(reference) >= 4:
        runs = [run for run in runs_of(of_runs) if run.startswith(reference) or run.endswith(reference)]
    if not runs:
        with suppress(QuaidError):
            commit_id = history.revisions.find(reference).id
            chosen = history.read_commits([commit_id]) if history.has_adopted(commit_id) else []
            runs = runs_of(logged for logged in of_runs if logged.commit.id == commit_id and not logged.changes)
    if runs:
        chosen = [logged for logged in of_runs if runs[-1] in logged.commit.trailers.get(RUN, ())]
    found = [logged for logged in chosen if logged.changes]
    if not found:
        raise ChangeNotFoundError(reference)
    return found


def find_last(history: History, own: Collection[str]) -> str:
    """Return the newest commit of Quaid's on this branch that undoes nothing, brings nothing from another machine, and
    is not undone yet.

    Raises:
        BadInputError: there is none.
    """
    asked = _FIRST_LOOK
    while True:
        found = history.log(limit=asked, own_line=True)
        undone: set[str] = set()
        for commit in (commit for commit in found if _is_quaids(commit, own) and commit.files):
            if commit.id in undone or PULL in commit.trailers.get(TASK, ()):
                continue
            if REVERTS in commit.trailers or UNDO in commit.trailers.get(TASK, ()):
                undone.update(commit.trailers.get(REVERTS, ()))
            # An undo names a night by the ids of its decisions.
            elif RUN not in commit.trailers or undone.isdisjoint(
                logged.commit.id for logged in find_commits(history, commit.id)
            ):
                return commit.id
        if len(found) < asked:
            raise BadInputError("Quaid has made no change that is not undone. See what there is with: quaid log")
        asked *= 8


def find_of_note(history: History, path: str, note_id: str, own: Collection[str]) -> list[VaultCommit]:
    """Return the newest commit of Quaid's that changed the note at `path` and undoes nothing; of one that several
    decisions share only the decision about the note. Empty where there is none.
    """
    for logged in reversed(history.log_changes("--no-merges", path=path)):
        commit = logged.commit
        if _is_quaids(commit, own) and UNDO not in commit.trailers.get(TASK, ()):
            keys, facts = (commit.trailers.get(name, ()) for name in (DECISION, "Quaid-Fact"))
            if len(keys) < 2 or len(keys) != len(facts) or note_id not in facts:
                return history.read_commits([commit.id])
            trailers = {**commit.trailers, DECISION: (keys[facts.index(note_id)],)}
            return [replace(logged, commit=replace(commit, trailers=trailers))]
    return []


def _is_quaids(commit: Commit, own: Collection[str]) -> bool:
    return commit.email in own or is_by_quaid(commit, own)


def check_undoable(undone: Sequence[VaultCommit], own: Collection[str], boundary: Collection[str]) -> None:
    """Refuse what is not Quaid's to take back, or cannot be.

    Raises:
        BadInputError
    """
    for logged in undone:
        commit = logged.commit
        if commit.id in boundary:
            raise BadInputError(
                f"The history of this clone is cut off at {commit.id[:10]}: what it changed is not known. "
                "Fetch the rest with: git fetch --unshallow"
            )
        if own and not _is_quaids(commit, own):
            raise BadInputError(
                f"{commit.id[:10]} ({commit.subject}) is {commit.author}'s, not Quaid's: nothing was undone. "
                f"Undo it all the same with: quaid undo --any {commit.id[:10]}"
            )
        if any(change.path == CONFIG_FILE and change.befores[0] is None for change in logged.changes):
            raise BadInputError(
                f"{commit.id[:10]} ({commit.subject}) has made the vault itself: nothing was undone. "
                "See what came after with: quaid log"
            )


def changed_paths(undone: Sequence[VaultCommit]) -> dict[str, Span]:
    """Return path -> span over all of `undone`, oldest first, of each file that they were about, not of what only
    came along.
    """
    spans: dict[str, Span] = {}
    for logged in undone:
        travelled = logged.commit.trailers.get(DEFERRED_TRAILER, ())
        for path, (before, after) in list_spans(logged).items():
            if path not in travelled:
                spans[path] = (spans[path][0] if path in spans else before, after)
    about = {path for path in spans if not asks(path)}
    # With a run go the questions that it has put, and with an undo those that it has taken away.
    if not about or is_run(undone) or any(REVERTS in logged.commit.trailers for logged in undone):
        about |= {path for path in spans if asks(path)}
    return {path: span for path, span in spans.items() if path in about}


def read_versions(history: History, undone: Sequence[VaultCommit]) -> dict[str, Versions]:
    """Return path -> what each changed file held before and after, as a checkout would write it."""
    spans = changed_paths(undone)
    sides = []
    for side in (0, 1):
        wanted = [TreeFile(path, 0o100644, blob) for path, span in spans.items() if (blob := span[side])]
        sides.append(dict(history.revisions.read_files(wanted, filtered=True)))
    return {path: (sides[0].get(path), sides[1].get(path)) for path in spans}


def is_run(undone: Sequence[VaultCommit]) -> bool:
    """Return whether they are commits of the janitor's."""
    return any(RUN in logged.commit.trailers for logged in undone)


def plan_undo(
    versions: Mapping[str, Versions], now: Present, *, is_night: bool, reopens: bool = False
) -> tuple[tuple[Edit, ...], dict[str, list[str]]]:
    """Return the edits that take back what made each file's `after` of its `before`, none where all of it is undone
    already; and by path the lines that stay because they were changed since, none for a whole note. An answer that
    changed no note is open again, with `reopens` every answer.
    """
    reopens = reopens or all(map(asks, versions))
    edits: list[Edit] = []
    kept: dict[str, list[str]] = {}
    for path, version in sorted(versions.items()):
        if is_night and asks(path):
            # Of what comes along with decisions only questions that nobody has answered go.
            current, (before, after) = now.read(path), version
            if before is None and current is not None and current == after:
                edits.append(Edit(path, current, None))
            question = read_question(path, before) if reopens and before and after is current is None else None
            edits += [Edit(path, None, tick(question, None))] if question and question.answer else []
            continue
        edit, lines = _plan_note(path, version, now)
        if lines is not None:
            kept[edit.rel_path] = lines
        edits += [edit] if edit.before != edit.after else []
    return tuple(edits), kept


def _plan_note(path: str, version: Versions, now: Present) -> tuple[Edit, list[str] | None]:
    """The edit of one file, and the lines of it that stay."""
    before, after = version
    current = now.read(path)
    if current is None and (moved := now.find_moved(path, after or before or b"")):
        if after is None:  # it is back already, elsewhere
            return Edit(path, None, None), None
        path, current = moved, now.read(moved)
    if current in (before, after):
        return Edit(path, current, before), None
    if after is None or current is None:
        return Edit(path, current, current), []
    if before is None:
        # What a review has made of a note goes with the note; a confirmation or an edit of it does not.
        is_lost = _confirmations(after) == _confirmations(current) and path not in now.edited
        return (Edit(path, current, None), None) if is_lost else (Edit(path, current, current), [])
    wanted, lines = revert_change(before, after, current)
    texts = [line.decode(errors="replace").strip() for line in lines]
    return Edit(path, current, wanted), texts or None


def _confirmations(data: bytes) -> object:
    return frontmatter.parse(data.decode("utf-8", "replace")).fields.get("confirmations")


def undo_message(commits: Sequence[Commit], edits: Iterable[Edit], part: str = "") -> Message:
    """The message of the commit that takes back `commits`, newest first, by `edits`; or only what one of them did to
    the note `part`.
    """
    found = (read_question(edit.rel_path, edit.after) for edit in edits if edit.after and asks(edit.rel_path))
    trailers = trailers_of_undoing(commits[::-1], {question.key for question in found if question is not None})
    subject = commits[0].subject if len(commits) == 1 else f"{len(commits)} decisions of a night"
    if part:
        body = f"This takes back of commit {commits[0].id} what it did to {part}."
        return Message(f"undo: {subject}, of one", body, (*trailers, (TASK, UNDO)))
    body = "\n".join(f"This reverts commit {commit.id}." for commit in commits)
    return Message(f"undo: {subject}", body, (*((REVERTS, commit.id) for commit in commits), *trailers, (TASK, UNDO)))


def refusal_of(
    history: History, kept: Mapping[str, Sequence[str]], versions: Mapping[str, Versions], undone: Sequence[VaultCommit]
) -> BadInputError:
    """Return the error for an undo whose lines were all changed since. `kept` are those that the caller may see."""
    if not kept:
        return BadInputError(
            "What another owner keeps private was changed since: nothing was undone. Ask its owner, and see your own "
            "changes with: quaid log"
        )
    path, lines = next(iter(kept.items()))
    later = history.log_changes("--no-merges", f"{undone[-1].commit.id}..HEAD", path=path)
    by = f", first by {later[0].commit.id[:10]} ({later[0].commit.subject})" if later else ""
    is_new = not lines and path in versions and versions[path][0] is None
    step = f"Undo that first: quaid undo {later[0].commit.id[:10]}" if later else "See it with: quaid diff"
    more = f", or forget it: quaid forget {quote(path)}" if is_new else ""
    more += f", or single commits instead: quaid janitor show {undone[-1].commit.id[:10]}" if len(undone) > 1 else ""
    return BadInputError(f"{path} was changed since in the same lines{by}: nothing was undone. {step}{more}")
