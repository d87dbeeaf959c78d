"""The checks of a vault and of this machine, behind `quaid doctor` and what `quaid status` lists for attention.

A check yields the problems it found, or a result of level ok that says more than `CHECKS` does. A check that raises is
a problem too.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from quaid.agents.installation import our_command
from quaid.config import person_of
from quaid.docs.registry import read_projects
from quaid.docs.source_roots import check_roots, next_step
from quaid.embed import destination, open_reranker, resolve
from quaid.errors import QuaidError, SettingError, WeightsMissingError, count
from quaid.history import commit_folder, commit_hook, merge_driver
from quaid.history.merge_driver import ATTRIBUTE
from quaid.history.repository import KEEP_DETACHED, NEXT_STEPS, find_repository
from quaid.http import host_of
from quaid.index import contents, documents
from quaid.index.scope import list_unclaimed
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.janitor import schedule
from quaid.janitor.decision import SET_ASIDE
from quaid.janitor.news import overdue
from quaid.llm import Models
from quaid.local import hook_log, queue
from quaid.local.runs import Runs
from quaid.memory import Memory
from quaid.model import Finding, Level
from quaid.place import DOCS_FILE, LOCAL_FILE
from quaid.recall.cutoff import CHARACTERS_PER_TOKEN
from quaid.recall.visibility import list_cut, may_see, read_core_notes, visible_paths
from quaid.remotes.exchange import RemoteState
from quaid.report.audit import list_over_quota_since
from quaid.resident.finding import find_listening, why_nobody_can_listen
from quaid.settings import Settings
from quaid.sync.embedding import MULTILINGUAL_STEP, propose_model
from quaid.sync.watcher import find_watcher
from quaid.text.zones import order_key
from quaid.trust import make_state_folder
from quaid.vault import files, layout, transaction
from quaid.vault.files import printable, walk_files
from quaid.vault.notes import NOT_MADE
from quaid.vault.transaction import list_uncommitted

MIN_GIT = (2, 30)
MIN_FREE_BYTES = 200_000_000
MAX_UNFINISHED = 5
MAX_SHOWN_PATHS = 3
OBSIDIAN_GIT = ".obsidian/plugins/obsidian-git/data.json"
ATTRIBUTES_FILE = ".gitattributes"


class CheckResult(NamedTuple):
    """What a check found, without a full stop, and the next step, empty where `what` names it or none is needed."""

    what: str
    next_step: str = ""
    paths: tuple[str, ...] = ()
    level: Level = "warning"


def ok(what: str) -> CheckResult:
    """A result that needs no attention."""
    return CheckResult(what, level="ok")


def examine(root: Path) -> tuple[Finding, ...]:
    """Return all findings about the vault at `root`, which need not be one."""
    found = [("git", each) for each in collect(check_git())] + [("sqlite", each) for each in collect(check_sqlite())]
    try:
        memory = Memory.open(root)
    except QuaidError as error:
        found += [("vault", each) for each in collect(check_vault(root, error))]
    else:
        with memory:
            found += [("vault", each) for each in collect(check_vault(root, memory.problem))]
            for name, (check, is_well) in CHECKS.items():
                found += [(name, each) for each in collect(check(memory)) or [ok(is_well)]]
    findings = []
    for name, each in found:
        paths = ", ".join(each.paths[:MAX_SHOWN_PATHS]) + (" …" if len(each.paths) > MAX_SHOWN_PATHS else "")
        sentence = f"{each.what.removesuffix('.')}{f': {paths}' if paths else ''}."
        findings.append(Finding(name, each.level, each.what if each.level == "ok" else sentence, each.next_step))
    return tuple(findings)


def collect(results: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the results of a check; if it fails, its failure is the result."""
    try:
        return list(results)
    except (QuaidError, OSError, subprocess.SubprocessError) as error:
        return [CheckResult(str(error), level="error")]


# -- the machine -----------------------------------------------------------------------------------------------------


def check_git() -> Iterator[CheckResult]:
    """Check that git is there and new enough."""
    try:
        version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True, timeout=10).stdout
    except FileNotFoundError:
        step = "install git 2.30 or newer"
        yield CheckResult("git is not installed or not on the PATH", step, level="error")
        return
    except (OSError, subprocess.SubprocessError) as error:
        yield CheckResult(f"git could not be started ({error})", "see what keeps it from starting", level="error")
        return
    found = re.search(r"(?<!\d)(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < MIN_GIT:
        yield CheckResult(f"{version.strip()} is too old", "install git 2.30 or newer", level="error")
    else:
        yield ok(version.strip())


def check_sqlite() -> Iterator[CheckResult]:
    """Check that SQLite has full-text search and can load the vector extension."""
    try:
        connection = database.make_in_memory()
        row = connection.execute("SELECT sqlite_version(), vec_version()").fetchone()
        connection.close()
    except (database.DatabaseError, ImportError, OSError) as error:
        yield CheckResult(f"The index cannot be made: {error}", "reinstall apsw and sqlite-vec", level="error")
    else:
        yield ok("SQLite {} with FTS5 and vec0 {}".format(*row or ("", "")))


def check_disk(memory: Memory) -> Iterator[CheckResult]:
    """Check that the disk has room."""
    folder = next(path for path in (memory.root, *memory.root.parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        yield CheckResult(f"Only {free / 1e6:,.0f} MB are free", "free some space")
    else:
        yield ok(f"{free / 1e9:,.1f} GB free")


# -- the vault and its repository ------------------------------------------------------------------------------------


def check_vault(root: Path, problem: QuaidError | None) -> Iterator[CheckResult]:
    """Check that the folder is a vault and that its settings can be read; `problem` says why not."""
    if problem is None:
        yield ok(f"{root}")
        return
    sentence, _, step = str(problem).partition(". ")
    since = "".join(f". Hooks have met this since {each.since[:16]}" for each in hook_log.read_failures(root)[:1])
    yield CheckResult(f"{sentence.removesuffix('.')}{since}", step, level="error")


def check_settings(memory: Memory) -> Iterator[CheckResult]:
    """Check that the settings are the owner's and that local.db was never damaged."""
    if memory.problem is not None:
        some = "Settings that cannot be used are defaults, and nothing is written."
        prefix = some if isinstance(memory.problem, SettingError) else "All settings are defaults."
        yield CheckResult(f"{prefix} {memory.problem}")
    # All other databases that are set aside are made again from files.
    damaged = memory.state / f"{LOCAL_FILE}.damaged"
    if os.path.lexists(damaged):
        what = f"{LOCAL_FILE} was damaged: counters, queued lines and logs since its last daily copy may be missing"
        yield CheckResult(what, f"see what {damaged} holds, then remove it")


def check_state(memory: Memory) -> Iterator[CheckResult]:
    """Check that the state folder is there and private."""
    yield ok(f"{make_state_folder(memory.root)}")


def check_repository(memory: Memory) -> Iterator[CheckResult]:
    """Check that the vault is in a git repository with no operation in progress."""
    if find_repository(memory.root) is None:
        yield CheckResult("The vault is not in a git repository", f"git init {memory.root}", level="error")
        return
    state = memory.git.state()
    if state.operation:
        what = f"A {state.operation} is in progress: Quaid commits nothing until it has ended"
        yield CheckResult(what, NEXT_STEPS.get(state.operation, "end it, then try again"))
    elif state.detached:
        yield CheckResult("HEAD is detached: commits belong to no branch", KEEP_DETACHED)
    else:
        yield ok(f"On branch {state.branch}" + ("" if state.head else ", no commit yet"))


def check_git_lock(memory: Memory) -> Iterator[CheckResult]:
    """Check that no crashed git left its lock."""
    repository = find_repository(memory.root)
    if repository is None or not repository.index_lock.exists():
        return
    if commit_folder.is_abandoned(repository):
        yield CheckResult("A killed write of Quaid left index.lock", "the next write finishes it and removes that")
    else:
        step = f"wait for it; if none is running, remove {repository.index_lock}"
        yield CheckResult("Another git process holds index.lock", step)


def check_writes(memory: Memory) -> Iterator[CheckResult]:
    """Check that no write is uncommitted or unfinished."""
    if waiting := list_uncommitted(memory.root):
        paths = dict.fromkeys(edit.rel_path for each in waiting for edit in each.change.edits)
        what = f"{count(len(waiting), 'change')} not committed since {waiting[0].since}: {waiting[-1].reason}"
        step = "end that; the notes are in the vault, and the next write of Quaid commits them"
        yield CheckResult(what, step, tuple(paths), "error")
    for folder, reason in islice(transaction.list_unfinished(memory.root), MAX_UNFINISHED):
        yield CheckResult(reason, f"use what is kept in {folder}, then delete that folder")
    if transaction.needs_recovery(memory.root):
        yield CheckResult("A write was interrupted", "the next write finishes it; nothing is lost")


def check_git_hook(memory: Memory) -> Iterator[CheckResult]:
    """Check that the hook against secrets, where it is set up, runs this Quaid."""
    if find_repository(memory.root) is None:
        yield ok("Without a repository there is no hook")
        return
    hook = commit_hook.find(memory.root)
    if hook.holder == "owner calling quaid":
        yield ok(f"{hook.path} calls Quaid before each commit")
    elif hook.holder != "quaid":
        yield ok("Commits of yours are not checked for secrets; to have that: quaid install git-hook")
    elif not hook.runs(our_command()):
        yield CheckResult(f"{hook.path} does not run this Quaid: commits may be unchecked", "quaid install git-hook")
    else:
        yield ok("Commits of yours are checked for new secrets")


def check_merging(memory: Memory) -> Iterator[CheckResult]:
    """Check that git calls the merge driver for notes, and finds it."""
    data = files.read_note(memory.root, ATTRIBUTES_FILE) or b""
    if ATTRIBUTE.encode() not in data:
        yield ok(f"git merges the text of notes; to have Quaid do it, add to {ATTRIBUTES_FILE}: *.md {ATTRIBUTE}")
    elif not merge_driver.is_set_up(memory.root):
        yield CheckResult("git cannot call Quaid to merge notes, and merges their text", "quaid doctor")
    else:
        yield ok("git has Quaid merge notes by their parts")


def check_obsidian_git(memory: Memory) -> Iterator[CheckResult]:
    """Check that Obsidian's git plugin does not commit Quaid's notes."""
    minutes = 0.0
    with suppress(OSError, ValueError, TypeError, AttributeError):  # it is not installed
        settings = json.loads(files.read_file(memory.root / OBSIDIAN_GIT))
        minutes = float(settings.get("autoSaveInterval") or 0)
    if minutes > 0:
        what = f"The plugin commits everything every {minutes:g} min, Quaid's notes under the plugin's message too"
        yield CheckResult(what, "set its auto commit-and-sync interval to 0, or raise it")


# -- notes -----------------------------------------------------------------------------------------------------------


def list_note_problems(memory: Memory) -> list[tuple[str, str]]:
    """Return (path, problem) of the notes in the index, without those that others keep private."""
    with closing(IndexReader(memory.indexer.path, memory.owners)) as reader, suppress(database.DatabaseError):
        connection = reader.open()
        found = documents.list_problems(connection) if connection else []
        return [(path, problem) for path, problem in found if may_name(memory, path)]
    return []


def may_name(memory: Memory, path: str) -> bool:
    """Return whether the owner may see a path. One that is not indexed, such as a sync tool's copy or a removed note
    that is not committed, may be somebody's private note.
    """
    data = files.read_note(memory.root, path)
    if data is None:
        data = memory.git.read_at("HEAD", path)
    return may_see(path, data or b"", memory.owners, memory.layout)


def check_notes(memory: Memory) -> Iterator[CheckResult]:
    """Check that all notes could be read, and that no file is in a format that is not searched."""
    unread = [(path, problem) for path, problem in list_note_problems(memory) if problem != NOT_MADE]
    if unread:
        what = f"{count(len({path for path, _ in unread}), 'note')} with problems"
        step = "repair them in an editor; until then they are searched as plain text"
        yield CheckResult(what, step, tuple(f"{path}: {problem}" for path, problem in unread))
    found = (path for path in walk_files(memory.root) if layout.is_other_format(path.name))
    other = sorted(str(path.relative_to(memory.root)) for path in found)
    if other:
        what = f"{count(len(other), 'file')} in other formats than markdown: not searched"
        yield CheckResult(what, "save as markdown what is to be found", tuple(map(printable, other)))


def check_folders(memory: Memory) -> Iterator[CheckResult]:
    """Check that Quaid's folders hold no notes of the owner's."""
    own = tuple(path for path, problem in list_note_problems(memory) if problem == NOT_MADE)
    if own:
        what = f"{count(len(own), 'note')} in Quaid's folders that Quaid did not make: searched as your own"
        step = "move them elsewhere, or make their frontmatter count with: quaid config vault.hand_written managed"
        yield CheckResult(what, step, own)


def check_owners(memory: Memory) -> Iterator[CheckResult]:
    """Check that the owner's own notes are not hidden from them by what these state about owner and privacy."""
    mine = person_of(memory.root, memory.settings) or memory.settings.owner
    for owner, found in groupby(list_unclaimed(memory.whole_index(), memory.owners), itemgetter(0)):
        paths = tuple(printable(path) for _, path in found)
        what = f"{count(len(paths), 'note')} stated as private to {owner!r}, and so hidden from {mine!r}"
        yield CheckResult(what, f"if that is you, write owner: {mine} there", paths)


def check_core_notes(memory: Memory) -> Iterator[CheckResult]:
    """Check that a session's context has room for the core notes."""
    hooks = memory.settings.hooks
    cut = list_cut(tuple(read_core_notes(memory.root, memory.owners, memory.layout)), hooks)
    wanted = hooks.context_tokens + sum(2 * over for _, over in cut) // CHARACTERS_PER_TOKEN
    step = f"shorten it, or give sessions more room: quaid config hooks.context_tokens {-(-wanted // 100) * 100}"
    for note, over in cut:
        what = f"{note} is longer than a session has room for: {over:,} characters of it are left out"
        yield CheckResult(what, step)


def check_conflict_copies(memory: Memory) -> Iterator[CheckResult]:
    """Check that no sync tool left copies of notes that two devices changed."""
    paths = sorted(
        path.relative_to(memory.root).as_posix()
        for path in walk_files(memory.root)
        if layout.is_note_name(path.name) and layout.is_conflict_copy(path.name)
    )
    seen = tuple(
        path for path in paths if may_see(path, files.read_note(memory.root, path) or b"", memory.owners, memory.layout)
    )
    if seen:
        what = f"{len(seen)} left by a sync tool and not indexed"
        yield CheckResult(what, "merge each into its note by hand, then delete it", seen)


def check_quota(memory: Memory) -> Iterator[CheckResult]:
    """Check that no agent brought more facts today or yesterday than one may bring in a day."""
    limit = memory.settings.audit.facts_per_day
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for source, day, facts in list_over_quota_since(memory, yesterday) if limit else ():
        what = f"{source} brought {count(facts, 'fact')} on {day}, of {limit:,}"
        yield CheckResult(what, f"quaid audit --source {source}")


# -- index, embedding and models -------------------------------------------------------------------------------------


def check_index(memory: Memory) -> Iterator[CheckResult]:
    """Check that the index can be read and is of this version."""
    with closing(IndexReader(memory.indexer.path, memory.owners)) as reader:
        try:
            connection = reader.open()
            if connection is None:
                yield CheckResult("There is no index yet", "quaid sync")
                return
            version, notes = connection.schema_version(), documents.count(connection)
        except database.DatabaseError as error:
            yield CheckResult(f"The index cannot be read ({error})", "quaid reindex")
            return
    if version != contents.SCHEMA_VERSION:
        yield CheckResult(f"The index is of version {version}; it will be rebuilt", "quaid sync")
    else:
        yield ok(f"Version {version}, {notes:,} notes")


def check_weights(memory: Memory) -> Iterator[CheckResult]:
    """Check that the embedding model is on this machine, unless it is switched off, and the reranker, if one is set."""
    settings, reranker = memory.settings.embedding, memory.settings.recall.reranker
    if reranker:
        open_reranker(reranker)
    if settings.provider == "none":
        what = "Embedding is switched off; recall uses words and graph only"
        yield CheckResult(what, "quaid config embedding.provider local")
        return
    if memory.embedding.embedder() is None:
        problem = memory.embedding.problem
        step = problem.next_step if isinstance(problem, WeightsMissingError) else "quaid doctor --fetch"
        yield CheckResult(f"{problem}", step, level="error")
        return
    with closing(IndexReader(memory.indexer.path)) as reader, suppress(database.DatabaseError):
        connection = reader.open()
        if connection is not None and (proposal := propose_model(connection, settings)):
            yield CheckResult(proposal, MULTILINGUAL_STEP)
            return
    yield ok(f"{settings.provider}: {resolve(settings).model}")


def check_embedding(memory: Memory) -> Iterator[CheckResult]:
    """Embed one question and time it."""
    embedder = memory.embedding.embedder()
    if embedder is None:
        yield ok("Not tried: no embedding model")
        return
    started = time.perf_counter()
    embedder.is_patient = True  # what failed a moment ago may be repaired
    vector, _ = embedder.embed(["Does embedding work?", "It does."])  # raises where no vector can be used
    took_ms = (time.perf_counter() - started) * 1000
    yield ok(f"A vector of {len(vector)} numbers in {took_ms:.0f} ms, loading included")


def check_models(memory: Memory) -> Iterator[CheckResult]:
    """Name the language models that are used, and why. None of them is called."""
    settings = memory.settings.models
    if settings.provider == "none":
        yield ok("Switched off (models.provider is none)")
        return
    found = Models(settings).describe()
    if found.provider is None:
        yield CheckResult(f"{found.why[:1].upper()}{found.why[1:]}", found.next_step)
    else:
        yield ok(f"{found.provider}: deep {found.deep}, fast {found.fast} ({found.why})")


def check_set_aside(memory: Memory) -> Iterator[CheckResult]:
    """Check that the last run left nothing that no model would judge."""
    last = [run for run in Runs(memory.state / LOCAL_FILE).list(2) if run.outcome != "running"][:1]
    found = [one for run in last for one in run.decisions if one.get("kind") == SET_ASIDE]
    if found:
        what = f"{count(len(found), 'thing')} could not be judged by a model and will not be put to it again"
        step = "reword or forget it, or name another model with: quaid config models.deep NAME, or models.fast"
        yield CheckResult(what, step, tuple(f"{one.get('subject')}: {one.get('outcome')}" for one in found))


# -- what leaves the machine -----------------------------------------------------------------------------------------


def check_outbound(memory: Memory) -> Iterator[CheckResult]:
    """State what leaves this machine, where to and since when."""
    settings = memory.settings
    yield ok(describe_outbound(list_outbound(settings), offline=settings.offline))


def list_outbound(settings: Settings, remotes: Sequence[RemoteState] = ()) -> list[str]:
    """Return a phrase for each kind of data that goes to another machine. No model is called; a local Ollama may be
    probed.
    """
    phrases = []
    models = settings.models
    found = Models(models).describe() if models.provider not in {"", "none"} else None
    if found is not None and found.goes_to:
        since = f"since {models.agreed}" if models.agreed else "as models.provider says"
        phrases.append(f"conversations and notes for {found.provider} to {found.goes_to}, {since}")
    if host := destination(settings.embedding):
        phrases.append(f"every text and question for embedding to {host}")
    if settings.notifications.webhook:
        phrases.append(f"news to {host_of(settings.notifications.webhook)}")
    if settings.git.sync == "auto" and not settings.offline:
        phrases += [f"every commit to {remote.address}" for remote in remotes if remote.trust == "yes"]
    return phrases


def describe_outbound(phrases: Sequence[str], *, offline: bool) -> str:
    """Return the phrases of `list_outbound` in one line."""
    if offline:
        return "Nothing leaves this machine (offline is set)"
    return "; ".join(phrases) or "Nothing leaves this machine"


def check_remotes(remotes: Sequence[RemoteState]) -> Iterator[CheckResult]:
    """Check that every remote that was confirmed can be used as it was confirmed."""
    for remote in remotes:
        if remote.trust == "changed":
            what = f"The remote {remote.name} is not reached as it was when you confirmed it: {remote.address}"
            yield CheckResult(what, f"if that was you: quaid remote trust {remote.name}")
        if remote.problem:
            yield CheckResult(remote.problem)
        if remote.claims and remote.own is None:
            what = f"{count(remote.claims, 'fact')} that {remote.name} brought count as the word of others"
            step = f"say once who writes there: quaid remote trust {remote.name} --own (your own machines), or --shared"
            yield CheckResult(what, step)


# -- processes in the background -------------------------------------------------------------------------------------


def check_watcher(memory: Memory) -> Iterator[CheckResult]:
    """Check that a watcher that left a heartbeat is alive."""
    now = datetime.now(UTC)
    heartbeat = find_watcher(memory.state, now)
    if heartbeat is None:
        yield ok("Not running; every read checks for itself")
    elif not heartbeat.is_alive(now):
        yield CheckResult(f"The watcher (process {heartbeat.pid}) died", "quaid watch")
    elif heartbeat.problem:
        yield CheckResult(f"The watcher says: {heartbeat.problem}", "see its output, or run: quaid doctor")
    else:
        yield ok(f"Process {heartbeat.pid} ({heartbeat.what}) follows by {heartbeat.mode}")


def check_resident(memory: Memory) -> Iterator[CheckResult]:
    """Name the resident process, and check that one could listen."""
    if memory.settings.resident == "off":
        yield ok("Off; every call opens the memory itself")
    elif (listening := find_listening(memory.root)) is not None:
        yield ok(f"Process {listening.pid} ({listening.what}) answers for others, in {listening.memory_mb:,} MB")
    elif (problem := why_nobody_can_listen(memory.root)) is not None:
        step = "name another folder for the states with QUAID_STATE_DIR, or: quaid config resident off"
        yield CheckResult(f"No process can answer for others: {problem}", step)
    else:
        yield ok("Not running; the next recall or hook starts one")


def check_janitor(memory: Memory) -> Iterator[CheckResult]:
    """Check that the janitor has run as planned."""
    if late := overdue(memory.state, datetime.now(UTC), memory.git):
        sentence, _, step = late.partition(" Run it with: ")
        yield CheckResult(sentence.removesuffix("."), step)
    else:
        planned = schedule.describe(memory.root) or "Runs when you say so; every night with: quaid janitor install"
        yield ok(planned.rstrip("."))


def check_clock(memory: Memory) -> Iterator[CheckResult]:
    """Check that the clock has not been set back behind the newest commit and the newest run."""
    times = [run.started for run in Runs(memory.state / LOCAL_FILE).list(1)]
    with suppress(QuaidError):  # there is no commit yet
        times.append(memory.git.revisions.find("HEAD").when)
    newest = max(map(order_key, times), default="")
    if newest > (datetime.now(UTC) + timedelta(hours=1)).isoformat():  # clocks of several machines differ by less
        what = f"The clock of this machine is behind the newest change, of {newest[:16].replace('T', ' ')} UTC"
        yield CheckResult(f"{what}: what is new would be dated before it", "set the date and time of this machine")


def check_hook_failures(memory: Memory) -> Iterator[CheckResult]:
    """Check that no hook has failed since its last success."""
    yield from (CheckResult(str(failure), "quaid doctor --hooks") for failure in hook_log.read_failures(memory.root))


def check_hooks(memory: Memory) -> Iterator[CheckResult]:
    """Check that the hooks of agents' programs answer, and how quickly."""
    if failures := list(check_hook_failures(memory)):
        yield from failures
        return
    calls = hook_log.read(memory.state)
    if not calls:
        yield ok("No program has called yet; connect one with: quaid install")
        return
    last, slowest = calls[-1], max(calls, key=lambda call: call.took_ms)
    if last.problem:
        yield CheckResult(f"At {last.at}, {last.event}: {last.problem}", "quaid doctor --hooks")
        return
    what = f"Last {last.event} at {last.at}; the slowest of {len(calls)} took {slowest.took_ms} ms"
    queued = len(queue.waiting(memory.state))
    yield ok(f"{what}; {queued} queued" if queued else what)


def check_queue(memory: Memory) -> Iterator[CheckResult]:
    """Check that no conversation of an agent was given up."""
    state = memory.state
    if given_up := queue.failed(state):
        what = f"{count(len(given_up), 'conversation')} of agents could not be taken in"
        paths = tuple(f"{item.transcript}: {item.problem}" for item in given_up)
        yield CheckResult(what, queue.next_step(state), paths)


# -- projects --------------------------------------------------------------------------------------------------------


def check_projects(memory: Memory) -> Iterator[CheckResult]:
    """Check that the source roots of projects are here and that no document of theirs holds secrets."""
    projects = [project for project in read_projects(memory.root) if project.state == "active"]
    for project in projects:
        for problem in project.problems[:1]:
            yield CheckResult(f"{project.path}: {problem}", "repair it in an editor")
            return
        for root in check_roots(memory.root, project.source_roots):
            if root.problem:
                what = f"The documents of {project.name} cannot be checked: {root.written} {root.problem}"
                yield CheckResult(what, next_step(project.name, root))
                return
    if not projects:
        return
    problems: list[tuple[str, str]] = []
    with closing(IndexReader(memory.state / DOCS_FILE)) as reader, suppress(database.DatabaseError):
        connection = reader.open()
        found = documents.list_problems(connection) if connection else []
        # Without the notes that others keep private.
        shown = set(visible_paths((path for path, _ in found), memory.whole_index(), memory.visible_index()))
        problems = [(path, problem) for path, problem in found if path in shown]
    if secret := next((path for path, problem in problems if "secrets" in problem), None):
        yield CheckResult(f"{secret} holds secrets", "keep them out of documents")
    elif problems:
        yield CheckResult(f"{problems[0][0]}: {problems[0][1]}", "repair it, or exclude it in PROJECT.md")
    else:
        yield ok(f"{len(projects)}, their source roots are here")


def check_documents(memory: Memory) -> Iterator[CheckResult]:
    """Check that no document was stale at the last check."""
    if not read_projects(memory.root):
        return  # and nothing of documents is loaded
    stale = sorted(each.doc for each in memory.documentation.known() if each.is_stale)
    if stale := visible_paths(stale, memory.whole_index(), memory.visible_index()):
        what = f"{count(len(stale), 'document')} {'was' if len(stale) == 1 else 'were'} stale at the last check"
        yield CheckResult(what, "quaid docs check", tuple(stale))


CHECKS = {
    "repository": (check_repository, ""),
    "git lock": (check_git_lock, "No lock is left behind"),
    "merging": (check_merging, ""),
    "git hook": (check_git_hook, ""),
    "state": (check_state, ""),
    "writes": (check_writes, "No write is left unfinished"),
    "index": (check_index, ""),
    "embedding": (check_weights, ""),
    "vectors": (check_embedding, ""),
    "models": (check_models, ""),
    "outbound": (check_outbound, ""),
    "watcher": (check_watcher, ""),
    "resident": (check_resident, ""),
    "janitor": (check_janitor, ""),
    "hooks": (check_hooks, ""),
    "queue": (check_queue, "No conversation was given up"),
    "projects": (check_projects, "None yet; make one with: quaid project create NAME --root PATH"),
    "folders": (check_folders, "Quaid's folders hold only its own notes"),
    "obsidian-git": (check_obsidian_git, "Not installed, or it commits nothing automatically"),
    "conflict copies": (check_conflict_copies, "None"),
    "core notes": (check_core_notes, "A session shows them whole"),
    "disk": (check_disk, ""),
}
"""The checks of `quaid doctor` for an open vault in the order in which they are shown, each with the sentence for one
that yields nothing.
"""
ATTENTION_CHECKS = (
    check_settings,
    check_writes,
    check_watcher,
    check_repository,
    check_git_lock,
    check_notes,
    check_folders,
    check_owners,
    check_core_notes,
    check_quota,
    check_hook_failures,
    check_janitor,
    check_clock,
    check_queue,
    check_set_aside,
    check_documents,
)
"""The checks that are quick enough for every `quaid status`, the most pressing first."""
