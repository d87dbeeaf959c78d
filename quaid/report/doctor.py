"""Everything Quaid needs on this machine, checked: `quaid doctor`.

A check returns the level and the sentence of a finding, and the next step where there is one. `CHECKS` has those of a
vault by name, in the order in which they are shown. A check that raises is a finding too.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.agents.installation import our_command
from quaid.embed import resolve
from quaid.errors import QuaidError, WeightsMissingError
from quaid.history import commit_hook, index_lock
from quaid.history.repository import KEEP_DETACHED, NEXT_STEPS, find_repository
from quaid.history.vault_history import History
from quaid.index import contents, documents
from quaid.index.sqlite import database
from quaid.index.sqlite.reader import IndexReader
from quaid.llm import Models
from quaid.local import hook_failures
from quaid.model import Finding, Level
from quaid.place import DOCS_FILE, INDEX_FILE, state_folder
from quaid.recall.visibility import may_see, visible_paths
from quaid.report.attention import MISPLACED_STEP, WAITING_STEP, list_long_core_notes
from quaid.report.language import STEP, propose_model
from quaid.report.merging import check_merging
from quaid.report.outbound import describe_outbound, list_outbound
from quaid.resident.listener import find_listening, why_nobody_can_listen
from quaid.sync.follow import find_watcher
from quaid.trust import make_state_folder
from quaid.vault import files, layout, transaction
from quaid.vault.notes import NOT_MADE
from quaid.vault.transaction import list_uncommitted

if TYPE_CHECKING:
    from quaid.docs.registry import Project
    from quaid.memory import Memory

MIN_GIT = (2, 30)
MIN_FREE_BYTES = 200_000_000
MAX_UNFINISHED = 5
OBSIDIAN_GIT = ".obsidian/plugins/obsidian-git/data.json"


Outcome = tuple[Level, str] | tuple[Level, str, str]
"""The level, the sentence and the next step of a finding."""


def examine(root: Path) -> tuple[Finding, ...]:
    """Return all findings about the vault at `root`, which need not be one."""
    from quaid.memory import Memory

    checks: dict[str, Callable[[], Outcome]] = {"git": check_git, "sqlite": check_sqlite}
    try:
        memory = Memory.open(root)
    except QuaidError as error:
        return _run(checks | {"vault": partial(check_vault, root, error)})
    with memory:
        checks["vault"] = partial(check_vault, root, memory.problem)
        return _run(checks | {name: partial(check, memory) for name, check in CHECKS.items()})


def _run(checks: Mapping[str, Callable[[], Outcome]]) -> tuple[Finding, ...]:
    findings = []
    for name, check in checks.items():
        try:
            findings.append(Finding(name, *check()))
        except (QuaidError, OSError, subprocess.SubprocessError) as error:
            findings.append(Finding(name, "error", str(error)))
    return tuple(findings)


def check_git() -> Outcome:
    """Check that git is there and new enough."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True, timeout=10).stdout
    except FileNotFoundError:
        return "error", "git is not installed or not on the PATH.", "install git 2.30 or newer"
    except (OSError, subprocess.SubprocessError) as error:
        return "error", f"git could not be started ({error}).", "see what keeps it from starting"
    found = re.search(r"(?<!\d)(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < MIN_GIT:
        return "error", f"{said.strip()} is too old.", "install git 2.30 or newer"
    return "ok", said.strip()


def check_sqlite() -> Outcome:
    """Check that SQLite has full-text search and can load the vector extension."""
    try:
        connection = database.make_in_memory()
        row = connection.execute("SELECT vec_version()").fetchone()
        connection.close()
    except (database.DatabaseError, ImportError, OSError) as error:
        return "error", f"The index cannot be made: {error}.", "reinstall apsw and sqlite-vec"
    return "ok", f"SQLite {database.sqlite_version()} with FTS5 and vec0 {row[0] if row else ''}"


def check_vault(root: Path, problem: QuaidError | None) -> Outcome:
    """Check that the folder is a vault and that its settings can be read; `problem` says why not."""
    if problem is not None:
        sentence, _, step = str(problem).partition(". ")
        since = "".join(f" Hooks have met this since {each.since[:16]}." for each in hook_failures.read(root)[:1])
        return "error", f"{sentence}.{since}", step
    return "ok", f"{root}"


def check_repository(memory: Memory) -> Outcome:
    """Check that the vault is in a git repository with no operation in progress."""
    if History.find_repository(memory.root) is None:
        return "error", "The vault is not in a git repository.", f"git init {memory.root}"
    state = memory.git.state()
    if state.operation:
        return "warning", f"A {state.operation} is in progress; writes wait for it.", NEXT_STEPS[state.operation]
    if state.detached:
        return "warning", "HEAD is detached; commits belong to no branch.", KEEP_DETACHED
    return "ok", f"On branch {state.branch}" + ("" if state.head else ", no commit yet")


def check_git_hook(memory: Memory) -> Outcome:
    """Check that the hook against secrets, where it is set up, runs this Quaid."""
    if find_repository(memory.root) is None:
        return "ok", "Without a repository there is no hook"
    hook = commit_hook.find(memory.root)
    if hook.holder == "owner calling quaid":
        return "ok", f"{hook.path} calls Quaid before each commit"
    if hook.holder != "quaid":
        return "ok", "Commits of yours are not checked for secrets; to have that: quaid install git-hook"
    if not hook.runs(our_command()):
        return "warning", f"{hook.path} does not run this Quaid: commits may be unchecked.", "quaid install git-hook"
    return "ok", "Commits of yours are checked for new secrets"


def check_git_lock(memory: Memory) -> Outcome:
    """Check that no crashed git left its lock."""
    repository = find_repository(memory.root)
    lock = repository.index_lock if repository else None
    try:
        age_s = time.time() - lock.stat().st_mtime if lock else None
    except OSError:
        age_s = None
    if age_s is None:
        return "ok", "No lock is left behind"
    if repository and index_lock.is_abandoned(repository):
        sentence = f"{lock} was left by a killed write of Quaid."
        return "warning", sentence, "the next write finishes it and removes that file"
    sentence = f"{lock} has been there for {age_s:.0f} s; writes wait for it."
    return "warning", sentence, "if no git is running, remove that file"


def check_state(memory: Memory) -> Outcome:
    """Check that the state folder is there and private."""
    return "ok", f"{make_state_folder(memory.root)}"


def check_writes(memory: Memory) -> Outcome:
    """Check that no write is left unfinished or uncommitted."""
    if waiting := list_uncommitted(memory.root):
        count = f"{len(waiting)} {'change' if len(waiting) == 1 else 'changes'}"
        return "error", f"{count} not committed since {waiting[0].since}: {waiting[-1].reason}", WAITING_STEP
    left = [
        f"{unfinished.reason} (kept in {unfinished.folder})" for unfinished in transaction.list_unfinished(memory.root)
    ]
    if left:
        step = "use what is kept there, then delete the folder"
        return "warning", " ".join(left[:MAX_UNFINISHED]), step
    if transaction.needs_recovery(memory.root):
        return "warning", "A write was interrupted.", "the next write finishes it"
    return "ok", "No write is left unfinished"


def check_index(memory: Memory) -> Outcome:
    """Check that the index can be read and is of this version."""
    reader = IndexReader(state_folder(memory.root) / INDEX_FILE, memory.owners)
    try:
        connection = reader.open()
        if connection is None:
            return "warning", "There is no index yet.", "quaid sync"
        version, notes = connection.schema_version(), documents.count(connection)
    except database.DatabaseError as error:
        return "warning", f"The index cannot be read ({error}).", "quaid reindex"
    finally:
        reader.close()
    if version != contents.SCHEMA_VERSION:
        return "warning", f"The index is of version {version}; it will be rebuilt.", "quaid sync"
    return "ok", f"Version {version}, {notes:,} notes"


def check_weights(memory: Memory) -> Outcome:
    """Check that the embedding model is on this machine, unless it is switched off."""
    settings = memory.settings.embedding
    if settings.provider == "none":
        step = "quaid config embedding.provider local"
        return "warning", "Embedding is switched off; recall uses words and graph only.", step
    if memory.embedding.embedder() is None:
        problem = memory.embedding.problem
        step = problem.next_step if isinstance(problem, WeightsMissingError) else "quaid doctor --fetch"
        return "error", f"{problem}", step
    with closing(IndexReader(state_folder(memory.root) / INDEX_FILE)) as reader, suppress(database.DatabaseError):
        connection = reader.open()
        if connection is not None and (proposal := propose_model(connection, settings)):
            return "warning", f"{proposal}.", STEP
    return "ok", f"{settings.provider}: {resolve(settings).model}"


def check_embedding(memory: Memory) -> Outcome:
    """Embed one question and time it."""
    embedder = memory.embedding.embedder()
    if embedder is None:
        return "ok", "Not tried: no embedding model"
    started = time.perf_counter()
    embedder.is_patient = True  # what failed a moment ago may be repaired
    vector, _ = embedder.embed(["Does embedding work?", "It does."])  # where no vector can be used, that is an error
    took_ms = (time.perf_counter() - started) * 1000
    return "ok", f"A vector of {len(vector)} numbers in {took_ms:.0f} ms, loading included"


def check_models(memory: Memory) -> Outcome:
    """Name the language models that are asked, and why. None of them is asked for it."""
    settings = memory.settings.models
    if settings.provider == "none":
        return "ok", "Switched off (models.provider is none)"
    found = Models(settings).describe()
    if found.provider is None:
        return "warning", f"{found.why[:1].upper()}{found.why[1:]}.", found.next_step
    return "ok", f"{found.provider}: deep {found.deep}, fast {found.fast} ({found.why})"


def check_outbound(memory: Memory) -> Outcome:
    """Tell what leaves this machine, where to and since when."""
    settings = memory.settings
    return "ok", describe_outbound(list_outbound(settings), offline=settings.offline)


def check_watcher(memory: Memory) -> Outcome:
    """Check that a watcher that left a heartbeat is alive."""
    now = datetime.now(UTC)
    heartbeat = find_watcher(state_folder(memory.root), now)
    if heartbeat is None:
        return "ok", "Not running; every read checks for itself"
    if not heartbeat.is_alive(now):
        return "warning", f"Process {heartbeat.pid} died without a word.", "quaid watch"
    if heartbeat.problem:
        return "warning", heartbeat.problem, "see its output"
    return "ok", f"Process {heartbeat.pid} ({heartbeat.what}) follows by {heartbeat.mode}"


def check_resident(memory: Memory) -> Outcome:
    """Tell which process answers for others, and check that one could."""
    if memory.settings.resident == "off":
        return "ok", "Off; every call opens the memory itself"
    if (listening := find_listening(memory.root)) is not None:
        return "ok", f"Process {listening.pid} ({listening.what}) answers for others, in {listening.memory_mb:,} MB"
    if (problem := why_nobody_can_listen(memory.root)) is not None:
        step = "name another folder for the states with QUAID_STATE_DIR, or: quaid config resident off"
        return "warning", f"No process can answer for others: {problem}.", step
    return "ok", "Not running; the next recall or hook starts one"


def check_janitor(memory: Memory) -> Outcome:
    """Check that the janitor has run as planned."""
    from quaid.janitor.news import overdue_in
    from quaid.janitor.schedule import describe

    planned = describe(memory.root)
    late = overdue_in(state_folder(memory.root), memory.git, datetime.now(UTC))
    if late:
        sentence, _, step = late.partition(" Run it with: ")
        return "warning", sentence, step
    return ("ok", (planned or "Runs when you say so; every night with: quaid janitor install").rstrip("."))


def check_hooks(memory: Memory) -> Outcome:
    """Check that the hooks of agents' programs answer, and tell how quickly."""
    from quaid.local import hook_log, queue

    if failures := hook_failures.read(memory.root):
        return "warning", f"{'; '.join(map(str, failures))}.", "quaid doctor --hooks"
    state = state_folder(memory.root)
    calls = hook_log.read(state)
    waiting = len(queue.waiting(state))
    if not calls:
        return "ok", "No program has called yet; connect one with: quaid install"
    last = calls[-1]
    if last.problem:
        return "warning", f"At {last.at}, {last.event}: {last.problem}", "quaid doctor --hooks"
    slowest = max(calls, key=lambda call: call.took_ms)
    told = f"Last {last.event} at {last.at}; the slowest of {len(calls)} took {slowest.took_ms} ms"
    return "ok", f"{told}; {waiting} queued" if waiting else told


def check_queue(memory: Memory) -> Outcome:
    """Check that no conversation of an agent was given up."""
    from quaid.local import queue

    state = state_folder(memory.root)
    given_up = queue.failed(state)
    if not given_up:
        return "ok", "No conversation was given up"
    first = f"{given_up[0].transcript}: {given_up[0].problem}"
    sentence = f"Conversations that could not be taken in: {len(given_up)}, among them {first}"
    return "warning", sentence, queue.next_step(state)


def check_projects(memory: Memory) -> Outcome:
    """Check that the source roots of projects are here and that no document of theirs holds secrets."""
    from quaid.docs.registry import read_projects

    projects = [project for project in read_projects(memory.root) if project.state == "active"]
    if not projects:
        return "ok", "None yet; make one with: quaid project create NAME --root PATH"
    for project in projects:
        if project.problems:
            return "warning", f"{project.path}: {project.problems[0]}.", "repair it in an editor"
        if found := _check_roots(memory.root, project):
            return found
    problems = _list_problems(memory, DOCS_FILE)
    secrets = [path for path, why in problems if "secrets" in why]
    if secrets:
        return "warning", f"{secrets[0]} holds secrets.", "keep them out of documents"
    for path, why in problems[:1]:
        return "warning", f"{path}: {why}.", "repair it, or exclude it in PROJECT.md"
    return "ok", f"{len(projects)}, their source roots are here"


def _check_roots(vault: Path, project: Project) -> Outcome | None:
    from quaid.docs.source_roots import check_roots, next_step

    for root in check_roots(vault, project.source_roots):
        if root.problem:
            sentence = f"The documents of {project.name} cannot be checked: {root.written} {root.problem}."
            return "warning", sentence, next_step(project.name, root)
        if not root.folder.is_dir():
            sentence = f"{root.folder}, a source root of {project.name}, is not on this machine."
            return "warning", sentence, f"mount it, or change {project.path}"
    return None


def _list_problems(memory: Memory, index: str) -> list[tuple[str, str]]:
    """(path, problem) of what one of the indexes holds, as it is, without the notes that others keep private."""
    notes, path = state_folder(memory.root) / INDEX_FILE, state_folder(memory.root) / index
    with (
        closing(IndexReader(path)) as reader,
        closing(IndexReader(notes)) as whole,
        closing(IndexReader(notes, memory.owners)) as seen,
    ):
        try:
            connection, everything, visible = reader.open(), whole.open(), seen.open()
            found = documents.list_problems(connection) if connection else []
            if not (found and everything and visible):
                return found
            shown = set(visible_paths((path for path, _ in found), everything, visible))
            return [(path, problem) for path, problem in found if path in shown]
        except database.DatabaseError:
            return []


def check_obsidian_git(memory: Memory) -> Outcome:
    """Check that Obsidian's git plugin does not commit Quaid's notes."""
    try:
        settings = json.loads(files.read_file(memory.root / OBSIDIAN_GIT))
        minutes = float(settings.get("autoSaveInterval") or 0)
    except (OSError, ValueError, TypeError, AttributeError):
        return "ok", "Not installed, or it commits nothing by itself"
    if minutes > 0:
        sentence = f"The plugin commits everything every {minutes:g} min, Quaid's notes under the plugin's message too."
        step = "set its auto commit-and-sync interval to 0, or raise it"
        return "warning", sentence, step
    return "ok", "Its auto-commit is off"


def check_conflict_copies(memory: Memory) -> Outcome:
    """Check that no sync tool left copies of notes that two devices changed."""
    place, owners = layout.Layout.of(memory.settings.vault), memory.owners
    copies = files.find_named(memory.root, lambda name: layout.is_note_name(name) and layout.is_conflict_copy(name))
    found = [path.relative_to(memory.root).as_posix() for path in copies]
    seen = [path for path in found if may_see(path, files.read_note(memory.root, path) or b"", owners, place)]
    if not seen:
        return "ok", "None"
    shown = ", ".join(sorted(seen)[:3]) + (" …" if len(seen) > 3 else "")
    sentence = f"{len(seen)} left by a sync tool and not indexed: {shown}."
    return "warning", sentence, "merge each into its note by hand, then delete it"


def check_folders(memory: Memory) -> Outcome:
    """Check that Quaid's folders hold no notes of the owner's."""
    own = [path for path, problem in _list_problems(memory, INDEX_FILE) if problem == NOT_MADE]
    if not own:
        return "ok", "Quaid's folders hold only its own notes"
    shown = ", ".join(own[:3]) + (" …" if len(own) > 3 else "")
    sentence = f"Notes in Quaid's folders that Quaid did not make are searched as your own: {len(own):,} ({shown})."
    return "warning", sentence, MISPLACED_STEP


def check_core_notes(memory: Memory) -> Outcome:
    """Check that a session's context has room for the core notes."""
    if cut := list_long_core_notes(memory):
        said = ", ".join(f"{note} ({over:,} characters too long)" for note, over, _ in cut)
        return "warning", f"A session shows these core notes in part, their newest lines: {said}.", cut[0][2]
    return "ok", "A session shows them whole"


def check_disk(memory: Memory) -> Outcome:
    """Check that the disk has room."""
    folder = next(path for path in (memory.root, *memory.root.parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        return "warning", f"Only {free / 1e6:,.0f} MB are free.", "free some space"
    return "ok", f"{free / 1e9:,.1f} GB free"


CHECKS: dict[str, Callable[[Memory], Outcome]] = {
    "repository": check_repository,
    "git lock": check_git_lock,
    "merging": check_merging,
    "git hook": check_git_hook,
    "state": check_state,
    "writes": check_writes,
    "index": check_index,
    "embedding": check_weights,
    "vectors": check_embedding,
    "models": check_models,
    "outbound": check_outbound,
    "watcher": check_watcher,
    "resident": check_resident,
    "janitor": check_janitor,
    "hooks": check_hooks,
    "queue": check_queue,
    "projects": check_projects,
    "folders": check_folders,
    "obsidian-git": check_obsidian_git,
    "conflict copies": check_conflict_copies,
    "core notes": check_core_notes,
    "disk": check_disk,
}
