"""Everything Quaid needs on this machine, checked: `quaid doctor`.

A check is a function Context -> Finding; `CHECKS` is all of them in the order they are shown. A check never raises:
what it cannot find out is a finding too.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import QuaidError
from quaid.history import index_lock
from quaid.history.repository import find_repository
from quaid.history.vault_history import History
from quaid.index import database, documents
from quaid.index.reader import IndexReader
from quaid.llm import Models
from quaid.model import Finding
from quaid.place import DOCS_FILE, INDEX_FILE, state_folder
from quaid.report.outbound import describe_outbound
from quaid.sync.follow import read_heartbeat
from quaid.trust import make_state_folder
from quaid.vault import files, layout, transaction

if TYPE_CHECKING:
    from quaid.docs.registry import Project
    from quaid.memory import Memory

OLDEST_GIT = (2, 30)
LEAST_FREE_BYTES = 200_000_000
MAX_UNFINISHED = 5
OBSIDIAN_GIT = ".obsidian/plugins/obsidian-git/data.json"


@dataclass(frozen=True, slots=True)
class Context:
    """What the checks look at. `memory` is None when the vault could not be opened, for `problem`."""

    root: Path
    memory: Memory | None
    problem: QuaidError | None = None


def examine(root: Path) -> tuple[Finding, ...]:
    """All findings about the vault at `root`, which need not be one."""
    from quaid.memory import Memory

    try:
        memory = Memory.open(root)
    except QuaidError as error:
        return _run(Context(root, None, error))
    with memory:
        return _run(Context(root, memory))


def check_git(_: Context) -> Finding:
    """There is a git, and it is new enough."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True, timeout=10).stdout
    except FileNotFoundError:
        return Finding("git", "error", "git is not installed or not on the PATH.", "install git 2.30 or newer")
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("git", "error", f"git could not be started ({error}).", "see what keeps it from starting")
    found = re.search(r"(?<!\d)(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < OLDEST_GIT:
        return Finding("git", "error", f"{said.strip()} is too old.", "install git 2.30 or newer")
    return Finding("git", "ok", said.strip())


def check_sqlite(_: Context) -> Finding:
    """SQLite has full-text search and can load the vector extension."""
    try:
        connection = database.make_in_memory()
        row = connection.execute("SELECT vec_version()").fetchone()
        connection.close()
    except (database.DatabaseError, ImportError, OSError) as error:
        return Finding("sqlite", "error", f"The index cannot be made: {error}.", "reinstall apsw and sqlite-vec")
    return Finding("sqlite", "ok", f"SQLite {database.sqlite_version()} with FTS5 and vec0 {row[0] if row else ''}")


def check_vault(context: Context) -> Finding:
    """The folder is a vault and its settings can be read."""
    problem = context.problem or (context.memory.problem if context.memory else None)
    if problem is not None:
        sentence, _, step = str(problem).partition(". ")
        return Finding("vault", "error", f"{sentence}.", step)
    return Finding("vault", "ok", f"{context.root}")


def check_repository(context: Context) -> Finding:
    """The vault is in a git repository that is in the middle of nothing."""
    if History.find_repository(context.root) is None:
        return Finding("repository", "error", "The vault is in no git repository.", f"git init {context.root}")
    if context.memory is None:
        return Finding("repository", "ok", "The folder is in a git repository")
    state = context.memory.git.state()
    if state.operation:
        return Finding("repository", "warning", f"A {state.operation} is in progress; writes wait for it.", "end it")
    if state.detached:
        sentence = "HEAD is detached; commits belong to no branch."
        return Finding("repository", "warning", sentence, "git switch BRANCH")
    return Finding("repository", "ok", f"On branch {state.branch}" + ("" if state.head else ", no commit yet"))


def check_git_lock(context: Context) -> Finding:
    """No crashed git left its lock."""
    repository = find_repository(context.root)
    lock = repository.index_lock if repository else None
    try:
        age_s = time.time() - lock.stat().st_mtime if lock else None
    except OSError:
        age_s = None
    if age_s is None:
        return Finding("git lock", "ok", "No lock is left behind")
    if repository and index_lock.is_abandoned(repository):
        sentence = f"{lock} was left by a killed write of Quaid."
        return Finding("git lock", "warning", sentence, "the next write finishes it and removes that file")
    sentence = f"{lock} has been there for {age_s:.0f} s; writes wait for it."
    return Finding("git lock", "warning", sentence, "if no git is running, remove that file")


def check_state(context: Context) -> Finding:
    """What only this machine knows lies where nobody else can enter."""
    return Finding("state", "ok", f"{make_state_folder(context.root)}")


def check_writes(context: Context) -> Finding:
    """What killed writes began is finished."""
    left = [
        f"{unfinished.reason} (kept in {unfinished.folder})" for unfinished in transaction.list_unfinished(context.root)
    ]
    if left:
        step = "use what is kept there, then delete the folder"
        return Finding("writes", "warning", " ".join(left[:MAX_UNFINISHED]), step)
    if transaction.needs_recovery(context.root):
        return Finding("writes", "warning", "A write was interrupted.", "the next write finishes it")
    return Finding("writes", "ok", "No write is left unfinished")


def check_index(context: Context) -> Finding:
    """The index can be read and is of this version."""
    reader = IndexReader(state_folder(context.root) / INDEX_FILE)
    try:
        connection = reader.open()
        if connection is None:
            return Finding("index", "warning", "There is no index yet.", "quaid sync")
        version, notes = database.schema_version(connection), documents.count(connection)
    except database.DatabaseError as error:
        return Finding("index", "warning", f"The index cannot be read ({error}).", "quaid reindex")
    finally:
        reader.close()
    if version != database.SCHEMA_VERSION:
        return Finding("index", "warning", f"The index is of version {version}; it will be rebuilt.", "quaid sync")
    return Finding("index", "ok", f"Version {version}, {notes:,} notes")


def check_weights(context: Context) -> Finding:
    """The embedding model is on this machine, or configured away."""
    settings = _memory(context).settings.embedding
    if settings.provider == "none":
        step = "quaid config embedding.provider local"
        return Finding("embedding", "warning", "Embedding is switched off; recall uses words and graph only.", step)
    if _memory(context).embedding.embedder() is None:
        problem = _memory(context).embedding.problem
        return Finding("embedding", "error", f"{problem}", "quaid doctor --fetch")
    return Finding("embedding", "ok", f"{settings.provider}: {settings.model}")


def check_embedding(context: Context) -> Finding:
    """One real embedding, timed."""
    embedder = _memory(context).embedding.embedder()
    if embedder is None:
        return Finding("vectors", "ok", "Not tried: no embedding model")
    started = time.perf_counter()
    vector = embedder.embed_query("Does embedding work?")
    took_ms = (time.perf_counter() - started) * 1000
    return Finding("vectors", "ok", f"A vector of {len(vector)} numbers in {took_ms:.0f} ms, loading included")


def check_models(context: Context) -> Finding:
    """Which language models are asked, and why. None of them is asked for it."""
    settings = _memory(context).settings.models
    if settings.provider == "none":
        return Finding("models", "ok", "Switched off (models.provider is none)")
    found = Models(settings).describe()
    if found.provider is None:
        return Finding("models", "warning", f"{found.why[:1].upper()}{found.why[1:]}.", found.next_step)
    return Finding("models", "ok", f"{found.provider}: deep {found.deep}, fast {found.fast} ({found.why})")


def check_outbound(context: Context) -> Finding:
    """Tell what leaves this machine, where to and since when."""
    return Finding("outbound", "ok", describe_outbound(_memory(context).settings))


def check_watcher(context: Context) -> Finding:
    """A watcher that left a heartbeat is alive."""
    heartbeat = read_heartbeat(state_folder(context.root))
    if heartbeat is None:
        return Finding("watcher", "ok", "Not running; every read checks for itself")
    if not heartbeat.is_alive(datetime.now(UTC)):
        return Finding("watcher", "warning", f"Process {heartbeat.pid} died without a word.", "quaid watch")
    if heartbeat.problem:
        return Finding("watcher", "warning", heartbeat.problem, "see its output")
    return Finding("watcher", "ok", f"Process {heartbeat.pid} follows by {heartbeat.mode}")


def check_janitor(context: Context) -> Finding:
    """The janitor runs by itself, and has run."""
    from quaid.janitor.news import overdue_in
    from quaid.janitor.schedule import describe

    planned = describe(context.root)
    late = overdue_in(state_folder(context.root), datetime.now(UTC))
    if late:
        sentence, _, step = late.partition(" Run it with: ")
        return Finding("janitor", "warning", sentence, step)
    return Finding(
        "janitor", "ok", (planned or "Runs when you say so; every night with: quaid janitor install").rstrip(".")
    )


def check_hooks(context: Context) -> Finding:
    """The hooks of agents' programs answer, quickly, and what they left is worked off."""
    from quaid.local import hook_log, queue

    state = state_folder(context.root)
    calls = hook_log.read(state)
    waiting = len(queue.waiting(state))
    if not calls:
        return Finding("hooks", "ok", "No program has called yet; connect one with: quaid install")
    last = calls[-1]
    if last.problem:
        return Finding("hooks", "warning", f"At {last.at}, {last.event}: {last.problem}", "quaid doctor --hooks")
    slowest = max(calls, key=lambda call: call.took_ms)
    told = f"Last {last.event} at {last.at}; the slowest of {len(calls)} took {slowest.took_ms} ms"
    return Finding("hooks", "ok", f"{told}; {waiting} queued" if waiting else told)


def check_queue(context: Context) -> Finding:
    """No conversation of an agent was given up."""
    from quaid.local import queue

    state = state_folder(context.root)
    given_up = queue.failed(state)
    if not given_up:
        return Finding("queue", "ok", "No conversation was given up")
    first = f"{given_up[0].transcript}: {given_up[0].problem}"
    sentence = f"Conversations that could not be taken in: {len(given_up)}, among them {first}"
    return Finding("queue", "warning", sentence, queue.next_step(state))


def check_projects(context: Context) -> Finding:
    """The source roots of projects are here, and no document of theirs holds secrets."""
    from quaid.docs.registry import read_projects

    projects = [project for project in read_projects(context.root) if project.state == "active"]
    if not projects:
        return Finding("projects", "ok", "None yet; make one with: quaid project create NAME --root PATH")
    for project in projects:
        if project.problems:
            return Finding("projects", "warning", f"{project.path}: {project.problems[0]}.", "repair it in an editor")
        if found := _check_roots(context.root, project):
            return found
    reader = IndexReader(state_folder(context.root) / DOCS_FILE)
    try:
        connection = reader.open()
        problems = documents.list_problems(connection) if connection else []
    except database.DatabaseError:
        problems = []
    finally:
        reader.close()
    secrets = [path for path, why in problems if "secrets" in why]
    if secrets:
        return Finding("projects", "warning", f"{secrets[0]} holds secrets.", "keep them out of documents")
    for path, why in problems[:1]:
        return Finding("projects", "warning", f"{path}: {why}.", "repair it, or exclude it in PROJECT.md")
    return Finding("projects", "ok", f"{len(projects)}, their source roots are here")


def _check_roots(vault: Path, project: Project) -> Finding | None:
    from quaid.docs.source_roots import check_roots, next_step

    for root in check_roots(vault, project.source_roots):
        if root.problem:
            sentence = f"The documents of {project.name} cannot be checked: {root.written} {root.problem}."
            return Finding("projects", "warning", sentence, next_step(project.name, root))
        if not root.folder.is_dir():
            sentence = f"{root.folder}, a source root of {project.name}, is not on this machine."
            return Finding("projects", "warning", sentence, f"mount it, or change {project.path}")
    return None


def check_obsidian_git(context: Context) -> Finding:
    """Obsidian's git plugin does not commit behind Quaid's back."""
    try:
        settings = json.loads(files.read_file(context.root / OBSIDIAN_GIT))
        minutes = float(settings.get("autoSaveInterval") or 0)
    except (OSError, ValueError, TypeError, AttributeError):
        return Finding("obsidian-git", "ok", "Not installed, or it commits nothing by itself")
    if minutes > 0:
        sentence = f"The plugin commits everything every {minutes:g} min, Quaid's notes under the plugin's message too."
        step = "set its auto commit-and-sync interval to 0, or raise it"
        return Finding("obsidian-git", "warning", sentence, step)
    return Finding("obsidian-git", "ok", "Its auto-commit is off")


def check_conflict_copies(context: Context) -> Finding:
    """No sync tool left copies of notes two devices disagreed about."""
    copies = [
        path.relative_to(context.root).as_posix()
        for path in context.root.rglob("*.md")
        if layout.is_conflict_copy(path.name)
        and not any(map(layout.skips_folder, path.relative_to(context.root).parts))
    ]
    if not copies:
        return Finding("conflict copies", "ok", "None")
    shown = ", ".join(sorted(copies)[:3]) + (" …" if len(copies) > 3 else "")
    sentence = f"{len(copies)} left by a sync tool and not indexed: {shown}."
    return Finding("conflict copies", "warning", sentence, "merge each into its note by hand, then delete it")


def check_disk(context: Context) -> Finding:
    """There is room to write."""
    folder = next(path for path in (context.root, *context.root.parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        return Finding("disk", "warning", f"Only {free / 1e6:,.0f} MB are free.", "free some space")
    return Finding("disk", "ok", f"{free / 1e9:,.1f} GB free")


Check = Callable[[Context], Finding]
ALWAYS: tuple[Check, ...] = (check_git, check_sqlite, check_vault)
"""Asked even where there is no vault."""
OF_A_VAULT: tuple[Check, ...] = (
    check_repository,
    check_git_lock,
    check_state,
    check_writes,
    check_index,
    check_weights,
    check_embedding,
    check_models,
    check_outbound,
    check_watcher,
    check_janitor,
    check_hooks,
    check_queue,
    check_projects,
    check_obsidian_git,
    check_conflict_copies,
    check_disk,
)
CHECKS = ALWAYS + OF_A_VAULT


def _run(context: Context) -> tuple[Finding, ...]:
    checks = ALWAYS if context.memory is None else CHECKS
    return tuple(_guarded(check, context) for check in checks)


def _guarded(check: Check, context: Context) -> Finding:
    try:
        return check(context)
    except (QuaidError, OSError, subprocess.SubprocessError) as error:
        return Finding(check.__name__.removeprefix("check_").replace("_", " "), "error", str(error))


def _memory(context: Context) -> Memory:
    assert context.memory is not None
    return context.memory
