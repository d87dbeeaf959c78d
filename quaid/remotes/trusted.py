"""The remotes that the user has trusted, in their own config: a vault, its .git/config and a pull cannot add one.

What is trusted is an address. When it has changed, the user is asked again before anything is sent there; what else
the repository says of how it is reached belongs to the trust in the vault (history/vault_guard.py).
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

from quaid.errors import QuaidError
from quaid.history.remotes import Remote
from quaid.user_config import changing_user_config, read_user_config

_TABLE = "remotes"


class Trusted(NamedTuple):
    """A remote that the user trusts. `own`: whether only their machines write there, None if unknown."""

    address: str
    own: bool | None = None


def list_trusted(root: Path) -> dict[str, Trusted]:
    """Return the trusted remotes of the vault at `root`, by name."""
    table = _dig(read_user_config(), "trust", _TABLE, os.path.realpath(root))
    return {
        name: Trusted(str(entry["address"]), own if isinstance(own := entry.get("own"), bool) else None)
        for name, entry in table.items()
        if isinstance(entry, dict) and "address" in entry
    }


def check(root: Path, remote: Remote) -> Trusted:
    """Return what the user stated about `remote`.

    Raises:
        QuaidError: they have not, or of another place.
    """
    known = list_trusted(root).get(remote.name)
    if known is None:
        raise QuaidError(
            f"You have not said that your notes may go to {remote.name}, {remote.shown}: nothing was sent or fetched. "
            f"If that is yours: quaid remote trust {remote.name}",
            code="remote_not_trusted",
        )
    if known.address != remote.shown:
        raise QuaidError(
            f"The address of {remote.name} changed from {known.address} to {remote.shown}: nothing was sent or "
            f"fetched. If that was you, confirm it with: quaid remote trust {remote.name}",
            code="remote_changed",
        )
    return known


def trust(root: Path, remote: Remote, *, own: bool | None) -> None:
    """Remember that notes may be sent to `remote` as it is now. If `own` is None, the earlier statement still holds."""
    known = list_trusted(root).get(remote.name)
    if own is None and known is not None and known.address == remote.shown:
        own = known.own
    entry = {"address": remote.shown} | ({} if own is None else {"own": own})
    with changing_user_config() as document:
        remotes = document.setdefault("trust", {}).setdefault(_TABLE, {})
        remotes.setdefault(os.path.realpath(root), {})[remote.name] = entry


def forget(root: Path, name: str) -> None:
    """Trust a remote no longer."""
    if name in list_trusted(root):
        with changing_user_config() as document:
            _dig(document, "trust", _TABLE, os.path.realpath(root)).pop(name)


def _dig(table: Any, *keys: str) -> Any:
    for key in keys:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}
