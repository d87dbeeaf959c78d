"""`quaid init`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quaid.cli.consent import ask_about_models
from quaid.cli.invocation import Invocation, fields
from quaid.cli.terminal import count, known, short, styled, titled
from quaid.config import load_settings
from quaid.memory import Memory
from quaid.sync.derived_index import SyncOptions


def run_init(
    ctx: typer.Context,
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="The folder; the default is --vault, $QUAID_HOME or ~/quaid.")
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch/--no-fetch", help="Download the embedding model (90 MB), once.")
    ] = True,
    folder: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="The folder in it for Quaid's folders (facts, journal …).")
    ] = None,
) -> None:
    """Make a folder a vault. A folder that has notes is adopted: files are added, none is changed.

    Examples:
      quaid init ~/quaid
      quaid init .            # adopt this Obsidian vault or folder of markdown
      quaid init --no-fetch
    """
    invocation: Invocation = ctx.obj
    made, created = Memory.create(
        path or invocation.vault or os.environ.get("QUAID_HOME") or Path.home() / "quaid", folder
    )
    made.close()
    with invocation.adopt(Memory.open(created.root)) as memory:
        problem = fetch_model(invocation, memory) if fetch else None
        with invocation.progress(memory):
            report = memory.sync(SyncOptions(fetch_weights=False))
        uncommitted = memory.git.uncommitted()
    shape = {
        "vault": created.root, **fields(created, "adopted", "made_repository", "files", "commit", "folder"),
        "notes": report.total, "pending": report.pending, "uncommitted": uncommitted, "fetch_problem": problem,
    }  # fmt: skip
    rows = known(
        ("added", ", ".join(created.files) or "nothing"),
        ("git", "made a repository, branch main" if created.made_repository else None),
        ("commit", short(created.commit)),
        ("index", count(report.total, "note")),
    )
    head = f"{styled('Adopted' if created.adopted else 'Made a vault in', 'green')} {created.root}"
    invocation.tell(lambda: titled(head, rows), **shape)
    if created.adopted:
        invocation.say("Your own notes are untouched: Quaid reads them and never edits them.")
        if created.clashes and created.folder:
            named = ", ".join(f"{name}/" for name in created.clashes)
            invocation.say(f"You have {named} already, so Quaid keeps its own folders in {created.folder}/.")
        if created.made_repository and uncommitted:
            invocation.say(
                f"{count(len(uncommitted), 'note')} of yours not committed yet: "
                f'git -C {created.root} add -A && git -C {created.root} commit -m "My notes"'
            )
    ask_about_models(invocation, load_settings(created.root).models)
    invocation.say('Next: quaid remember "…", then quaid recall "…"')


def fetch_model(invocation: Invocation, memory: Memory, *, force: bool = False) -> str | None:
    """Make the embedding model ready; return why it is not, which is said and is not a failure."""
    if memory.settings.embedding.provider != "local" or memory.embedding.embedder() is not None:
        return None
    with invocation.progress(memory) as bar:
        memory.embedding.fetch(bar.update, force=force)
    problem = memory.embedding.problem
    if problem is None:
        return None
    invocation.say(str(problem))
    return str(problem)
