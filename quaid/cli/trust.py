"""`quaid trust` and `quaid clone`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from quaid import trust
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, flag
from quaid.cli.terminal import styled
from quaid.config import ignored_settings
from quaid.errors import BadInputError, UsageError
from quaid.history import merge_driver, steering, vault_guard
from quaid.history.creation import clone_vault
from quaid.history.repository import find_repository
from quaid.place import CONFIG_FILE
from quaid.remotes.exchange import ORIGIN

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
