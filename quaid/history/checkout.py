"""The checkout that a file of anybody's lies in: its repository, its last commit, whether it was changed since.

Nothing that a foreign repository configures is run: no hook, no monitor, no filter. So git is not asked whether the
file was changed; its bytes are compared with those that are committed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from quaid.errors import QuaidError
from quaid.history import repository as repositories
from quaid.history.git import Git, hash_blob

_POINTER_SIZE = 300
"""Bytes; what stands for a file that git LFS keeps elsewhere is smaller."""
_SCHEME = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[^/]*@)?(?P<host>[^/:?#@\s]+)(?::\d+)?/+(?P<path>[^?#\s]*)(?:[?#].*)?", re.IGNORECASE
)
_SCP = re.compile(r"(?:[^/:]*@)?(?P<host>[^/@:\s]{2,}):(?P<path>(?!//|:)[^?#\s]+)")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A file's place in a repository: `repository` is its remote (`github.com/maya/house`) or its folder's name.

    `commit` last touched the file, None when none has; `is_changed` says that the file differs from what HEAD has.
    """

    repository: str
    path: str
    branch: str | None
    commit: str | None
    is_changed: bool


def find_checkout(path: Path, data: bytes) -> Checkout | None:
    """Return the checkout that the file at `path`, which holds `data`, lies in; None when it is in no repository."""
    real = path.resolve()
    found = repositories.find_repository(real.parent)
    if found is None:
        return None
    inside = found.to_git(real.name)
    try:
        git, state = Git(found), repositories.read_state(found)
        commit = (git.query("log", "-1", "--format=%H", "HEAD", "--", inside) or b"").decode().strip()
        is_changed = not commit or not _is_committed(git, inside, data)
        remote = (git.query("config", "--get-regexp", r"^remote\..*\.url$") or b"").decode("utf-8", "replace")
    except (QuaidError, OSError):  # git is not there, or HEAD is not to be read
        return Checkout(found.top.name, inside, None, None, is_changed=True)
    name = find_remote_name(remote) or found.top.name
    return Checkout(name, inside, state.branch if state.is_known else None, commit or None, is_changed)


def _is_committed(git: Git, path: str, data: bytes) -> bool:
    listed = (git.query("ls-tree", "-l", "-z", "--full-tree", "HEAD", "--", path) or b"").split()
    if len(listed) < 4:
        return False
    blob, size = listed[2].decode(), listed[3].decode()
    if blob in {hash_blob(data, blob), hash_blob(data.replace(b"\r\n", b"\n"), blob)}:
        return True
    if not size.isdigit() or int(size) > _POINTER_SIZE:
        return False
    return sha256(data).hexdigest().encode() in (git.query("cat-file", "blob", blob) or b"")


def find_remote_name(listed: str) -> str | None:
    """`github.com/maya/house` from the remotes, `origin` before the others; no user, password or port stays in it."""
    urls = dict(line.split(" ", 1) for line in listed.splitlines() if " " in line)
    for _, url in sorted(urls.items(), key=lambda item: item[0] != "remote.origin.url"):
        found = _SCHEME.fullmatch(url.strip()) or _SCP.fullmatch(url.strip())
        if found and not url.startswith("file:"):
            return f"{found['host'].lower()}/{found['path'].strip('/').removesuffix('.git')}"
    return None
