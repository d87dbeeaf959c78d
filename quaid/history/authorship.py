"""Who wrote a commit, and so a line: the owner, somebody else, an agent through Quaid, the janitor, an import.

The commit decides, never a field of a note, which anybody can write. Signatures are checked by what the user's own git
config trusts, never by what the repository's says.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import GitError
from quaid.history.git import Git, execute
from quaid.settings import GitSettings

if TYPE_CHECKING:
    from quaid.history.vault_history import History


Who = Literal["owner", "other", "agent", "janitor", "import"]
JANITOR = ("Quaid Janitor", "janitor@localhost")
"""Name and e-mail address under which nights are committed."""
_NAMES = (("NAME", "Quaid"), ("EMAIL", "quaid@localhost"))
QUAID = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _NAMES}
"""The environment for commits that are not in the notes: leases, and branches of other repositories."""
_IMPORTS = ("import: ", "analyze: ")


class LineOrigin(NamedTuple):
    """The commit that touched a line last: its id, its author's name and e-mail address, its subject."""

    commit: str
    author: str
    email: str
    subject: str


class Authors:
    """Tells commits apart by the e-mail address of their author.

    `own` is the address that Quaid commits under, `owner` are those with which the owner commits by hand; where none is
    known, everybody who commits by hand is the owner.
    """

    def __init__(self, own: str, owner: Collection[str] = ()) -> None:
        self._own = frozenset({own, JANITOR[1]})
        self._owner = frozenset(address.casefold() for address in owner if address)

    @classmethod
    def of(cls, settings: GitSettings, owner: tuple[str, str] | None) -> Authors:
        """The authors of a vault whose `owner` commits by hand under this (name, e-mail)."""
        more = (address.strip() for address in settings.addresses.split(","))
        return cls(settings.email, (*([owner[1]] if owner else []), *more) if owner or settings.addresses else ())

    def is_by_hand(self, email: str) -> bool:
        """Return whether a person made the commit, not Quaid."""
        return email not in self._own

    def name(self, email: str, subject: str) -> Who:
        """Return who wrote what a commit with this author and subject brought."""
        if self.is_by_hand(email):
            return "other" if self._owner and email.casefold() not in self._owner else "owner"
        if email == JANITOR[1]:
            return "janitor"
        return "import" if subject.startswith(_IMPORTS) else "agent"


def choose_identity(git: Git, ours: tuple[str, str], author: tuple[str, str] | None, *, signs: bool) -> dict[str, str]:
    """Return the environment with which git commits: as `author` (name, e-mail), by default as Quaid, `ours`. With
    `signs` the committer is the user: a signature is the committer's, and they sign in their own name.
    """
    name, email = author or ours
    identity = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email}
    if author is not None and author == find_owner(git):
        return identity | {"GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email}
    return identity if signs else identity | {"GIT_COMMITTER_NAME": ours[0], "GIT_COMMITTER_EMAIL": ours[1]}


def find_owner(git: Git) -> tuple[str, str] | None:
    """Return the name and e-mail address with which git commits by hand here; None where it has none."""
    args = ("config", "-z", "--get-regexp", r"^(author|user)\.(name|email)$")
    entries = git.read_text("read the configuration", *args, accept=(0, 1)).split("\0")
    known = {key: value.strip() for key, _, value in (entry.partition("\n") for entry in entries)}
    name, email = (
        os.environ.get(f"GIT_AUTHOR_{part.upper()}") or known.get(f"author.{part}") or known.get(f"user.{part}")
        for part in ("name", "email")
    )
    email = email or os.environ.get("EMAIL")
    return (name, email) if name and email else None


_GOOD = "G"
"""What `%G?` says of a signature that fits, by a key that the user trusts."""
_DEFAULTS = {
    "gpg.program": "gpg",
    "gpg.openpgp.program": "",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.allowedSignersFile": os.devnull,
    "gpg.ssh.revocationFile": "",
    "gpg.minTrustLevel": "undefined",
}
"""Every setting that takes part in a check, with what holds where the user has set none: the repository's never does.
A file of signers without a signer trusts nobody."""


def ask_users_config(key: str, *options: str) -> str:
    """Return a value of the user's own git config, or of the machine's; empty where there is none."""
    # Seen from no repository: nothing of the vault's takes part.
    nowhere = {"GIT_DIR": os.devnull, "GIT_CEILING_DIRECTORIES": os.sep}
    code, out, _ = execute(["-C", os.sep, "config", "--includes", *options, "--get", key], b"", nowhere)
    return out.decode("utf-8", "replace").strip() if code == 0 else ""


def is_signing() -> bool:
    """Return whether the user's own git config has their commits signed."""
    return ask_users_config("commit.gpgsign", "--type=bool") == "true"


def find_signed(git: Git, commit_ids: Iterable[str]) -> frozenset[str]:
    """Return those of these commits that have a good signature of somebody whom the user trusts."""
    wanted = list(dict.fromkeys(commit_ids))
    if not wanted:
        return frozenset()
    config = []
    for key, default in _DEFAULTS.items():
        options = ("--type=path",) if key.endswith("File") else ()
        value = ask_users_config(key, *options) or default
        if key == "gpg.openpgp.program":  # the newer name of gpg.program, which it goes before
            value = value or ask_users_config("gpg.program") or "gpg"
        config += ["-c", f"{key}={Path(value).expanduser() if value and options else value}"]
    args = (*config, "log", "--no-walk=unsorted", "--stdin", "--format=%H %G?")
    out = git.read("check signatures", *args, stdin="".join(f"{each}\n" for each in wanted).encode()).decode()
    return frozenset(line.split(" ")[0] for line in out.splitlines() if line.endswith(f" {_GOOD}"))


class Ranking:
    """Tells which of two notes its owner has signed, as both are at the commit `base`; none where nobody signs."""

    def __init__(self, history: History, authors: Authors, base: str, *, is_on: bool) -> None:
        self._history = history
        self._authors = authors
        self._base = base
        self._is_on = is_on and is_signing()
        self._signed: dict[str, bool] = {}
        self._foreign: dict[str, frozenset[str]] = {}

    def outranks(self, path: str, other: str) -> bool:
        """Return whether the owner has signed all of the note at `path`, and not all of the `other` one."""
        return self._is_on and self._is_signed(path) and not self._is_signed(other)

    def list_foreign(self, path: str) -> frozenset[str]:
        """Return the lines of the note at `path` that the janitor has not written."""
        if path not in self._foreign:
            lines = (self._history.read_at(self._base, path) or b"").decode("utf-8", "replace").split("\n")
            origins = zip(lines, self._history.blame(path, self._base), strict=False)
            self._foreign[path] = frozenset(line.strip() for line, by in origins if by.email != JANITOR[1])
        return self._foreign[path]

    def _is_signed(self, path: str) -> bool:
        if path not in self._signed:
            lines = self._history.blame(path, self._base)
            is_owners = bool(lines) and all(self._authors.name(line.email, line.subject) == "owner" for line in lines)
            commits = {line.commit for line in lines}
            self._signed[path] = False
            with suppress(GitError):
                self._signed[path] = is_owners and find_signed(self._history.runner, commits) == commits
        return self._signed[path]
