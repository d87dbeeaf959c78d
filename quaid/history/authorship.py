"""Who wrote a commit, and so a line: the owner, somebody else, an agent through Quaid, the janitor, an import.

The commit decides, never a field of a note, which anybody can write.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.settings import GitSettings

if TYPE_CHECKING:
    from quaid.history.git import Git

Who = Literal["owner", "other", "agent", "janitor", "import"]
JANITOR = ("Quaid Janitor", "janitor@localhost")
"""Name and e-mail address under which nights are committed."""
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
    known, whoever commits by hand is the owner.
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
