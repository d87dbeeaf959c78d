"""`quaid remote`, `quaid push` and `quaid pull`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, count, known, moment, paragraphs, styled
from quaid.cli.trust import Own, notify_steering
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.remotes.exchange import RemoteState
    from quaid.remotes.pulling import Pulled

ACTIONS = ("list", "add", "trust", "remove")
_Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The remote; the default is origin, or the only one.")
]


def run_remote(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="add: the address; trust and remove: the name.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="add: the name of the remote.")] = "origin",
    own: Own = None,
) -> None:
    r"""Show or change the repositories that this vault is exchanged with. Nothing goes to one that you have not named.

    \b
    list           the remotes, how far apart they are, when they were asked
    add URL        https://…, ssh://…, host:path or a folder; pull and push use it from then on
    trust NAME     confirm one that is in .git/config, or whose address has changed
    remove NAME    forget it; what it has stays there

    What comes from a remote is what others say: its facts count as theirs, and what agents obey (AGENTS.md, SOUL.md) or
    somebody may run comes only when you have seen it. Say --own for a remote that only your own machines write to.

    Examples:
      quaid remote add git@example.org:maya/memory.git
      quaid remote add /media/stick/memory.git --name stick
      quaid remote trust origin --own
    """
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    if action != "list" and target is None:
        raise UsageError(f"Which one? Give {'its address' if action == 'add' else 'its name'}: quaid remote {action} …")
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        remotes = memory.remotes
        if action == "list":
            states = remotes.list_states()
            shown = paragraphs(*(columns(list_rows(state)) for state in states))
            nothing = "No remote. Add one with: quaid remote add URL"
            invocation.respond(shown or nothing, remotes=[asdict(state) for state in states])
            return
        if action == "remove":
            remotes.remove(target or "")
            invocation.respond(f"{styled('Removed', 'green')}: {target}", name=target, outcome="removed")
            return
        remote = remotes.add(target or "", name, own=own) if action == "add" else remotes.trust(target or "", own=own)
        outcome = "Added" if action == "add" else "Trusted"
        shape = {"name": remote.name, "address": remote.shown, "outcome": outcome.lower()}
        invocation.respond(f"{styled(outcome, 'green')}: {remote.name}, {remote.shown}", **shape)
        notify_steering(invocation, memory.root)
        if memory.settings.git.sync == "off":
            invocation.notify("Send your notes there with: quaid push. To have it done: quaid config git.sync auto")


def run_push(ctx: typer.Context, name: _Name = None) -> None:
    """Send what is new here to a remote. What is new there is pulled first; nothing of either is ever left behind.

    Examples:
      quaid push
      quaid push stick --json
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        done = memory.remotes.push(name)
    before = [render_pull(pulled) for pulled in done.pulled if pulled.commit]
    sent = f"Pushed {count(done.commits, 'commit')} to {done.remote}" if done.commits else "Nothing to push"
    invocation.respond("\n".join([*before, styled(sent, "green")]), **asdict(done))
    for pulled in done.pulled:
        _tell_conflicts(invocation, pulled)


def run_pull(
    ctx: typer.Context,
    name: _Name = None,
    *,
    accept_removals: Annotated[
        bool, typer.Option("--accept-removals", help="Go on although the remote removes many notes.")
    ] = False,
    accept: Annotated[
        str, typer.Option(metavar="DIGEST", help="Take files that programs or agents obey, as a pull has shown them.")
    ] = "",
) -> None:
    """Fetch what is new at a remote and merge it. What you have not committed stays as it is.

    Examples:
      quaid pull
      quaid pull --accept-removals
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        pulled = memory.remotes.pull(name, accept_removals=accept_removals, accept=accept)
    invocation.respond(render_pull(pulled), **asdict(pulled))
    _tell_conflicts(invocation, pulled)


def render_pull(pulled: Pulled) -> str:
    """Return what became of a pull in a line or two."""
    if pulled.commit is None:
        return styled("Nothing to pull", "green")
    notes = [f"{count(len(pulled.changed), 'note')} changed"]
    notes += [f"{pulled.removed:,} removed"] if pulled.removed else []
    notes += [f"{count(pulled.claims, 'fact')} as the word of others"] if pulled.claims else []
    how = f" and merged (before that: {pulled.backup})" if pulled.merged else ""
    outcome = styled(f"Pulled {count(pulled.commits, 'commit')}", "green")
    return f"{outcome}{how}, {', '.join(notes)}"


def list_rows(state: RemoteState) -> list[tuple[str, str]]:
    """Return what is known of a remote as (name, text)."""
    trust = {"no": "not confirmed", "changed": "has changed"}.get(state.trust)
    return known(
        ("remote", f"{state.name}, {state.address}"),
        ("", f"{trust}: quaid remote trust {state.name}" if trust else None),
        ("apart", describe_distance(state)),
        ("reached", moment(state.reached) if state.reached else "never"),
        ("offline", f"since {moment(state.offline_since)}" if state.offline_since else None),
        ("problem", state.problem or None),
        ("janitor", f"{state.janitor} until {moment(state.janitor_until)}" if state.janitor else None),
    )


def describe_distance(state: RemoteState) -> str:
    """Return how far a remote and this clone are apart, as of when it was last asked."""
    if state.ahead is None or state.behind is None:
        return "not known yet"
    parts = [f"{number:,} to {what}" for number, what in ((state.ahead, "push"), (state.behind, "pull")) if number]
    return " and ".join(parts) if parts else "nothing to push or pull"


def _tell_conflicts(invocation: Invocation, pulled: Pulled) -> None:
    for path in pulled.conflicts:
        invocation.notify(
            f"{path} holds both sides, marked, as they could not be merged. Settle it with: quaid conflicts"
        )
