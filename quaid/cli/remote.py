"""`quaid remote`, `push`, `pull`, `clone` and `trust`."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from quaid import trust
from quaid.cli.commands import Actions
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, flag, option
from quaid.cli.terminal import columns, count, known, moment, paragraphs, styled
from quaid.config import ignored_settings
from quaid.errors import BadInputError, UsageError
from quaid.history import merge_driver, steering, vault_guard
from quaid.history.creation import clone_vault
from quaid.history.remotes import Remote
from quaid.history.repository import find_repository
from quaid.memory import Memory
from quaid.place import CONFIG_FILE
from quaid.remotes.exchange import ORIGIN, RemoteState, list_states
from quaid.remotes.pulling import Pulled
from quaid.shapes import json_object

Own = Annotated[bool | None, flag("Your own machines alone write there, or others as well.", "--own/--shared")]


def run_clone(
    invocation: Invocation,
    url: Annotated[str, argument("URL", "The repository, as git clone takes it.")],
    path: Annotated[Path | None, argument("PATH", "A new folder; the default is ~/quaid.")] = None,
    own: Own = None,
) -> None:
    """Clone a vault of yours and trust it, and the repository that it comes from: quaid pull and quaid push use that.

    A vault that you do not know is cloned with git and not trusted.

    Examples:
      quaid clone git@example.org:maya/memory.git --own
      quaid clone /media/stick/quaid ~/quaid
    """
    root = (path or invocation.vault or Path.home() / "quaid").expanduser().absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise BadInputError(f"{root} is there already. Give another folder: quaid clone {url} PATH")
    clone_vault(url, root)
    if not (root / CONFIG_FILE).is_file():
        raise BadInputError(
            f"{url} is not a vault: it has no {CONFIG_FILE}. Make one of its clone: quaid init {shlex.quote(str(root))}"
        )
    _trust(invocation, root, "Cloned and trusted")
    with Invocation(vaults=(root,)).open() as memory:
        memory.remotes.trust(ORIGIN, own=own)


def run_trust(
    invocation: Invocation,
    path: Annotated[Path | None, argument("PATH", "The vault; the default is the working folder.")] = None,
    remove: Annotated[bool, flag("Stop trusting it; nothing is deleted.", "--remove")] = False,
    show: Annotated[bool, flag("List the trusted vaults.", "--list")] = False,
) -> None:
    """Trust a vault that you did not make with quaid init here: one that you cloned, copied, moved or unpacked.

    Quaid reads no other. Trust a vault when you know who can write to it: what it says is given to your agents, and its
    git hooks run when Quaid commits. Whatever git may run in it, and where that may send data, is shown, and asked
    about again when it changes.

    Examples:
      git clone git@example.org:me/memory.git ~/quaid && quaid trust ~/quaid
      quaid trust --list
      quaid trust ~/old --remove
    """
    if show:
        if path is not None or remove:
            raise UsageError("--list shows all vaults. Leave PATH and --remove out.")
        vaults = trust.trusted_vaults()
        invocation.respond("\n".join(vaults) or "No vault is trusted yet.", vaults=list(vaults))
        return
    root = (path or invocation.vault or Path.cwd()).expanduser().absolute()
    if not remove:
        _trust(invocation, root, "Trusted")
    elif trust.distrust(root):
        _respond(invocation, root, "removed", "No longer trusted")
    else:
        _respond(invocation, root, "unknown", "It was not trusted")


def _trust(invocation: Invocation, root: Path, verb: str) -> None:
    is_new = trust.trust(root)
    listed = vault_guard.accept(root)
    merge_driver.set_up(root)
    for remark in ignored_settings(root):
        invocation.notify(remark)
    _respond(invocation, root, *(("trusted", verb) if is_new else ("known", "Trusted already")))
    notify_steering(invocation, root, listed)


def notify_steering(invocation: Invocation, root: Path, listed: Mapping[str, str] | None = None) -> None:
    """Show what git may run in the repository of the vault at `root`, and where it may send data."""
    if lines := steering.describe(steering.list_steering(find_repository(root)) if listed is None else listed):
        invocation.notify("\n  ".join((f"What git may run in {root}, and where it may send data:", *lines)))


def _respond(invocation: Invocation, root: Path, outcome: str, verb: str) -> None:
    invocation.respond(f"{styled(verb, 'green')}: {root}", vaults=(root,), outcome=outcome)


_Name = Annotated[str | None, argument("NAME", "The remote; the default is origin, or the only one.")]
_Named = Annotated[str, argument("NAME", "The remote.")]

run_remote = Actions(
    """
    Show or change the repositories that this vault is exchanged with. Nothing goes to one that you have not named.

    What comes from a remote is what others say: its facts count as theirs, and what agents obey (AGENTS.md, SOUL.md) or
    somebody may run comes only when you have seen it. Say --own for a remote that only your own machines write to.

    Examples:
      quaid remote add git@example.org:maya/memory.git
      quaid remote add /media/stick/memory.git --name stick
      quaid remote trust origin --own
    """,
    default="list",
)


@run_remote.action("list")
def list_remotes(invocation: Invocation) -> None:
    """List the remotes, how far apart they are, and when they were asked (the default)."""
    with invocation.open() as memory:
        states = list_states(memory)
    tables = []
    for state in states:
        trust_remote = {"no": "not confirmed", "changed": "has changed"}.get(state.trust)
        rows = known(
            ("remote", f"{state.name}, {state.address}"),
            ("", f"{trust_remote}: quaid remote trust {state.name}" if trust_remote else None),
            ("apart", describe_distance(state)),
            ("reached", moment(state.reached) if state.reached else "never"),
            ("offline", f"since {moment(state.offline_since)}" if state.offline_since else None),
            ("problem", state.problem or None),
            ("janitor", f"{state.janitor} until {moment(state.janitor_until)}" if state.janitor else None),
        )
        tables.append(columns(rows))
    invocation.respond(paragraphs(*tables) or "No remote. Add one with: quaid remote add URL", remotes=states)


@run_remote.action("add")
def add(
    invocation: Invocation,
    address: Annotated[str, argument("URL", "https://…, ssh://…, host:path or a folder.")],
    name: Annotated[str, option("NAME", "The name of the remote.")] = "origin",
    own: Own = None,
) -> None:
    """Add a remote; pull and push use it from then on."""
    with invocation.open() as memory:
        _tell_remote(invocation, memory, memory.remotes.add(address, name, own=own), "Added")


@run_remote.action("trust")
def trust_remote(invocation: Invocation, name: _Named, own: Own = None) -> None:
    """Confirm a remote that is in .git/config, or whose address has changed."""
    with invocation.open() as memory:
        _tell_remote(invocation, memory, memory.remotes.trust(name, own=own), "Trusted")


def _tell_remote(invocation: Invocation, memory: Memory, remote: Remote, verb: str) -> None:
    text = f"{styled(verb, 'green')}: {remote.name}, {remote.shown}"
    invocation.respond(text, name=remote.name, address=remote.shown, outcome=verb.lower())
    notify_steering(invocation, memory.root)
    if memory.settings.git.sync == "off":
        invocation.notify("Send your notes there with: quaid push. To have it done: quaid config git.sync auto")


@run_remote.action("remove")
def remove(invocation: Invocation, name: _Named) -> None:
    """Forget a remote; what it has stays there."""
    with invocation.open() as memory:
        memory.remotes.remove(name)
    invocation.respond(f"{styled('Removed', 'green')}: {name}", name=name, outcome="removed")


def run_push(invocation: Invocation, name: _Name = None) -> None:
    """Send what is new here to a remote. What is new there is pulled first; nothing of either is ever left behind.

    Examples:
      quaid push
      quaid push stick --json
    """
    with invocation.open() as memory, invocation.progress(memory):
        done = memory.remotes.push(name)
    before = [render_pull(pulled) for pulled in done.pulled if pulled.commit]
    sent = f"Pushed {count(done.commits, 'commit')} to {done.remote}" if done.commits else "Nothing to push"
    invocation.respond("\n".join([*before, styled(sent, "green")]), **json_object(done))
    for pulled in done.pulled:
        _tell_conflicts(invocation, pulled)


def run_pull(
    invocation: Invocation,
    name: _Name = None,
    *,
    accept_removals: Annotated[
        bool, flag("Go on although the remote removes many notes.", "--accept-removals")
    ] = False,
    accept: Annotated[str, option("DIGEST", "Take files that programs or agents obey, as a pull has shown them.")] = "",
) -> None:
    """Fetch what is new at a remote and merge it. What you have not committed stays as it is.

    Examples:
      quaid pull
      quaid pull --accept-removals
    """
    with invocation.open() as memory, invocation.progress(memory):
        pulled = memory.remotes.pull(name, accept_removals=accept_removals, accept=accept)
    invocation.respond(render_pull(pulled), **json_object(pulled))
    _tell_conflicts(invocation, pulled)


def render_pull(pulled: Pulled) -> str:
    """Return the outcome of a pull in a line."""
    if pulled.commit is None:
        return styled("Nothing to pull", "green")
    notes = [f"{count(len(pulled.changed), 'note')} changed"]
    notes += [f"{pulled.removed:,} removed"] if pulled.removed else []
    notes += [f"{count(pulled.claims, 'fact')} as the word of others"] if pulled.claims else []
    how = f" and merged (before that: {pulled.backup})" if pulled.merged else ""
    outcome = styled(f"Pulled {count(pulled.commits, 'commit')}", "green")
    return f"{outcome}{how}, {', '.join(notes)}"


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
