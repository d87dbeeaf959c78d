"""`quaid init`."""

import getpass
import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from quaid.agents.installation import list_hosts, this_machine
from quaid.capture.importers.programs import find_exports, find_programs
from quaid.capture.owner_note import clean_name
from quaid.capture.transcripts.exports import CONVERSATIONS
from quaid.cli.extract import import_found
from quaid.cli.install import ask_about_models
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, can_answer, flag, option
from quaid.cli.remote import notify_steering
from quaid.cli.terminal import count, first, known, short, styled, titled
from quaid.embed import fetch_weights, open_reranker
from quaid.embed.weights import MULTILINGUAL_MODEL, RERANKER
from quaid.errors import BadInputError, QuaidError, UsageError, VaultExistsError
from quaid.history.creation import Created, user_name
from quaid.memory import Memory
from quaid.place import find_vault
from quaid.settings import EmbeddingSettings
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.embedding import LEFT_OPEN, MANY, MULTILINGUAL_STEP, propose_model, start_embedding
from quaid.trust import locate_vault
from quaid.vault import layout

MAX_ENTRIES = 2_000
"""Entries of a folder that are looked at before it counts as one without notes."""
EMBED_S = 0.5
"""The seconds that are spent on vectors before a process in the background does the rest."""
MAX_OFFERED = 5
"""Memories of other programs that are named."""
_CODE = frozenset(
    """
    pyproject.toml setup.py requirements.txt package.json tsconfig.json deno.json Cargo.toml go.mod pom.xml build.gradle
    build.gradle.kts Makefile CMakeLists.txt meson.build Gemfile composer.json mix.exs Package.swift pubspec.yaml
    stack.yaml build.sbt flake.nix Dockerfile BUILD.bazel WORKSPACE
    """.split()  # noqa: SIM905 - a word list reads best as words
)
_OF_PROJECTS = frozenset(
    {"readme.md", "changelog.md", "contributing.md", "license.md", "security.md", "code_of_conduct.md"}
)
"""Markdown about its own folder, which is no note."""


def choose_folder(named: Path | None) -> tuple[Path, str]:
    """Return the folder `named` on the command line, else `$QUAID_HOME`, else the working folder if it is empty or has
    notes, else `~/quaid`; and why it is not the working folder, empty if that is obvious.

    Raises:
        VaultExistsError: it is in a vault.
        BadInputError: it holds the home folder or is a bare repository, or the working folder is gone.
    """
    try:
        home, here = Path.home(), Path.cwd()
    except FileNotFoundError:
        raise BadInputError("The working folder is gone. Go to another one with cd and try again.") from None
    chosen = named or os.environ.get("QUAID_HOME")
    if chosen:
        root = Path(os.path.normpath(here / Path(chosen).expanduser()))
        if home.is_relative_to(root):
            raise BadInputError(
                f"{root} holds your whole home folder, and all of it would be read. Name a folder in it: "
                "quaid init ~/quaid"
            )
        if _is_bare(root):
            raise BadInputError(f"{root} is a bare git repository. Clone it, then make the clone a vault.")
        problem = ""
    else:
        root = home / "quaid" if home.is_relative_to(here) else here
        problem = _why_not(root) if root == here else ""
    around = find_vault(root)
    if around is not None and around != home:
        raise VaultExistsError(around)
    if not problem:
        return root, ""
    advice = "" if _is_bare(here) else " To make it one: quaid init ."
    return home / "quaid", f"{here} {problem}, so it is not the vault.{advice}"


def _why_not(folder: Path) -> str:
    """Return why `folder` is not a plausible vault, empty if it is."""
    names = {entry.name for entry in islice(os.scandir(folder), MAX_ENTRIES)}
    if ".obsidian" in names or not names - {".git"}:
        return ""
    if _is_bare(folder):
        return "is a bare git repository"
    if code := sorted(names & _CODE):
        return f"looks like code ({code[0]})"
    left = MAX_ENTRIES
    for _, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not layout.skips_folder(name))
        if any(layout.is_note_name(name) and name.lower() not in _OF_PROJECTS for name in files):
            return ""
        left -= len(folders) + len(files)
        if left < 0:
            break
    return "has no notes"


def _is_bare(folder: Path) -> bool:
    """Return whether `folder` is what git keeps of a repository, without its files."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def run_init(
    invocation: Invocation,
    path: Annotated[
        Path | None,
        argument(
            "PATH",
            "The folder; the default is --vault, $QUAID_HOME, the working folder if it is empty or has notes, "
            "or ~/quaid.",
        ),
    ] = None,
    name: Annotated[str | None, option("NAME", "Your name; the default is git's user.name.", "--name")] = None,
    yes: Annotated[bool, flag("Ask nothing: take the defaults.", "--yes", "-y")] = False,
    fetch: Annotated[bool, flag("Download the embedding model (90 MB), once.", "--fetch/--no-fetch")] = True,
    multilingual: Annotated[
        bool, flag("Find notes by meaning in any language, not in English alone.", "--multilingual")
    ] = False,
    folder: Annotated[str | None, option("FOLDER", "The folder in it for Quaid's folders (facts, journal …).")] = None,
) -> None:
    """Make a folder a vault. A folder that has notes is adopted: files are added, none is changed.

    "I" and "my" in a question mean the owner, who gets a note in entities/.

    Examples:
      quaid init ~/quaid
      cd ~/Notes && quaid init   # adopt an Obsidian vault or a folder of markdown
      quaid init --name "Maya Chen" --yes
      quaid init --multilingual  # for notes in other languages than English
      quaid init --no-fetch
    """
    asks = not yes and can_answer(invocation)
    root, remark = choose_folder(path or invocation.vault)
    if remark:
        invocation.notify(remark)
    # Of a repository that was there before: its hooks run at the first commit.
    notify_steering(invocation, root)
    owner = user_name(root) if name is None else clean_name(name)
    if asks and name is None:
        question = "Your name" if owner else 'Your name, whom "I" and "my" mean (Enter for none)'
        owner = clean_name(typer.prompt(question, default=owner, show_default=bool(owner), err=True))
    names = [owner]
    with suppress(OSError, KeyError):  # an account without a name
        names.append(getpass.getuser())
    made, created = Memory.create(root, tuple(names), folder)
    with made:
        chosen = made.settings.embedding.provider, made.settings.embedding.model
        if asks and not multilingual and chosen == LEFT_OPEN:
            question = "Should notes be found by meaning in languages other than English?"
            multilingual = typer.confirm(question, default=False, err=True)
        if multilingual:
            made.configure("embedding.model", MULTILINGUAL_MODEL)
    with invocation.adopt(Memory.open(created.root)) as memory:
        report, problem = _index(invocation, memory, fetch=fetch)
        own, state = memory.git.uncommitted(), memory.git.state()
        top = memory.git.runner.repository.top
        models = memory.settings.models
        proposal = propose_model(memory.index(), memory.settings.embedding)
    rows = known(
        ("added", ", ".join(created.files) or "nothing"),
        ("git", "made a repository, branch main" if created.made_repository else None),
        ("commit", short(created.commit)),
        ("index", count(report.total, "note")),
        ("owner", f'{owner}: "I" and "my" in a question mean you' if owner else None),
    )
    head = f"{styled('Adopted' if created.plan.adopted else 'Made a vault in', 'green')} {created.root}"
    invocation.respond(
        titled(head, rows),
        vault=created.root,
        adopted=created.plan.adopted,
        made_repository=created.made_repository,
        files=created.files,
        commit=created.commit,
        folder=created.plan.folder,
        owner_name=owner,
        notes=report.total,
        pending=report.pending,
        uncommitted=own,
        fetch_problem=problem,
    )
    for sentence in _list_remarks(created, owner, own):
        invocation.notify(sentence)
    if top is not None and top != created.root.resolve():
        invocation.notify(f"The folder is in the git repository {top}: what Quaid writes is committed there.")
    if state.detached:
        where = f"git -C {shlex.quote(str(created.root))} switch -c NAME"
        invocation.notify(f"HEAD is detached, so these commits belong to no branch. Put them on one with: {where}")
    if proposal:
        invocation.notify(f"{proposal}: {MULTILINGUAL_STEP}")
    ask_about_models(invocation, models, asks=asks)
    _offer_memories(invocation, created.root, asks=asks)
    _name_next_steps(invocation, created.root)


def fetch_model(invocation: Invocation, memory: Memory, *, force: bool = False) -> str | None:
    """Make the embedding model ready; return why it is not; the caller is notified, and that is no failure."""
    if memory.settings.embedding.provider != "local" or memory.embedding.embedder() is not None:
        return None
    with invocation.progress(memory) as bar:
        memory.embedding.fetch(bar.update, force=force)
    problem = memory.embedding.problem
    if problem is None:
        return None
    invocation.notify(str(problem))
    return str(problem)


def fetch_models(invocation: Invocation, only: str | None) -> None:
    """Fetch the models that are set, trying again at once, and embed; or the reranker alone, set or not."""
    if only not in {None, "reranker"}:
        raise UsageError("Only the reranker is fetched by its name: quaid doctor --fetch reranker")
    with invocation.open() as memory:
        if not only and fetch_model(invocation, memory, force=True) is None:
            embed(invocation, memory)
        if only or memory.settings.recall.reranker:
            fetch_reranker(invocation, memory)


def fetch_reranker(invocation: Invocation, memory: Memory) -> None:
    """Make the configured reranker ready, or the one that Quaid proposes, and name the next step."""
    model, offline = memory.settings.recall.reranker or RERANKER, memory.settings.embedding.offline
    with invocation.progress(memory) as bar:
        show = partial(bar.update, f"Fetching {model}")
        fetch_weights(EmbeddingSettings(model=model, offline=offline), show, force=True)
    open_reranker(model)
    if not memory.settings.recall.reranker:
        invocation.notify(f"{model} is here and switched off. Use it with: quaid config recall.reranker {model}")


def _index(invocation: Invocation, memory: Memory, *, fetch: bool) -> tuple[SyncReport, str | None]:
    """Index the notes: their words at once, their vectors as far as a few seconds go. Return why the model is not there
    as well.
    """
    has_model = memory.embedding.embedder() is not None
    report = embed(invocation, memory)
    if fetch and report.total > MANY and memory.embedding.quick() is None:
        with invocation.progress(memory) as bar:
            memory.embedding.fetch_quick(bar.update)
        report = embed(invocation, memory)
    problem = fetch_model(invocation, memory) if fetch else None
    if not has_model and memory.embedding.embedder() is not None:
        report = embed(invocation, memory)
    return report, problem


def change_model(invocation: Invocation, key: str) -> None:
    """Fetch the model that is configured now by `key`, and embed with it; the old vectors answer meanwhile."""
    with invocation.open() as memory:
        if key == "recall.reranker":
            if memory.settings.recall.reranker:
                fetch_reranker(invocation, memory)
        elif memory.settings.embedding.provider != "none" and fetch_model(invocation, memory) is None:
            embed(invocation, memory)


def embed(invocation: Invocation, memory: Memory) -> SyncReport:
    """Index what is new, and leave to a process in the background what takes longer."""
    with invocation.progress(memory):
        report = memory.sync(SyncOptions(fetch_weights=False, embed_budget_s=EMBED_S))
    if report.pending and memory.embedding.embedder() is not None and start_embedding(memory.root):
        is_changing = memory.embedding.is_changing
        until_then = "Questions use the old model until then" if is_changing else "Keyword search works now"
        invocation.notify(
            f"Indexing {report.pending:,} passages for semantic search in the background. {until_then}. "
            "See the progress with: quaid status"
        )
    return report


def _list_remarks(created: Created, owner: str, own: list[str]) -> Iterator[str]:
    """Yield what the owner should know of the new vault; `own` are their notes that are not committed."""
    if not owner:
        yield 'Quaid does not know your name, so it writes "User". Say it with: quaid config owner_name NAME'
    if not created.plan.adopted:
        return
    yield "Your own notes are untouched: Quaid reads them and never edits them."
    if created.plan.clashes and created.plan.folder:
        named = ", ".join(f"{name}/" for name in created.plan.clashes)
        yield f"You have {named} already, so Quaid keeps its own folders in {created.plan.folder}/."
    if created.made_repository and own:
        git = f"git -C {shlex.quote(str(created.root))}"
        commit = f'{git} add -A && {git} commit -m "My notes"'
        yield f"{count(len(own), 'note')} of yours not committed yet: {commit}"


def _offer_memories(invocation: Invocation, root: Path, *, asks: bool) -> None:
    """Take in what other programs remember, each if it is wanted; without a terminal, say how."""
    home = Path.home()
    programs = [each for each in find_programs(home, os.environ) if not each.folder.is_relative_to(root)]
    exports = find_exports([Path.cwd(), home / "Downloads"], CONVERSATIONS)
    chats = [path for path in exports if not path.is_relative_to(root)]
    if not asks:
        found = [f"memories of {each.title}: quaid import --from {each.name}" for each in programs]
        found += [f"exported conversations: quaid extract {shlex.quote(str(path))}" for path in chats]
        for line in first(found, MAX_OFFERED, "{:,} more like the last one"):
            invocation.notify(f"Found {line}")
        return
    with invocation.adopt(Memory.open(root)) as memory:
        if programs:
            import_found(invocation, memory, programs)
        for path in chats[:MAX_OFFERED]:
            if not typer.confirm(f"Found exported conversations: {path}. Take it in?", default=False, err=True):
                continue
            try:
                with invocation.progress(memory):
                    turns = [done.new_turns for done in memory.extract_each(path, facts=False)]
            except QuaidError as error:  # a problem with one ends nothing else
                invocation.notify(f"{error}")
                continue
            summary = f"Kept {count(len(turns), 'conversation')} with {count(sum(turns), 'turn')}"
            invocation.print(f"{summary}. To draw facts from them: quaid extract --pending")


def _name_next_steps(invocation: Invocation, root: Path) -> None:
    """Name the next step that matters: to connect the programs in which agents live."""
    named = "" if locate_vault()[0] == root else f" --vault {shlex.quote(str(root))}"
    hosts = [one.host for one in list_hosts(this_machine()) if one.found and not one.installed]
    commands = [f"  quaid install {host.name}{named}" for host in hosts]
    try_it = f'quaid remember{named} "…", then quaid recall{named} "…"'
    if commands:
        invocation.notify("\n".join(("Next, connect the programs that your agents run in:", *commands)))
        invocation.notify(f"Or try it here: {try_it}")
    else:
        invocation.notify(f"Next: {try_it}")
        invocation.notify(f"To give it to an agent: quaid install{named}")
    if root != locate_vault(start=Path("/"))[0]:
        invocation.notify(f"Other folders do not know of it unless you set: export QUAID_HOME={shlex.quote(str(root))}")
