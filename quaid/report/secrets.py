"""Secrets that the history holds, or the next commit would bring, by the kinds that `redaction` knows: where they are,
never what they are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from quaid.history.commit_hook import read_next_commit
from quaid.history.git import Git, ObjectReader
from quaid.history.maintenance import find_first_commits
from quaid.history.repository import find_repository
from quaid.redaction import LocatedSecret, admit, locate
from quaid.sync.embedding import Progress, ignore_progress
from quaid.vault.files import is_binary

MAX_BYTES = 2_000_000
"""A larger file is none of a memory's notes: it is counted as left out."""


class FoundSecret(NamedTuple):
    """A secret of `kind`; `path` and `commit` are where it first came, empty where it was never committed. In the
    message of a commit it has no path.
    """

    kind: str
    path: str
    commit: str


def find_secrets(root: Path, progress: Progress = ignore_progress) -> tuple[list[FoundSecret], int, int, int]:
    """Scan each file and message of the history of `root` once.

    Returns:
        The secrets; the number of files and messages that were scanned, and their bytes; and how many were left out
        for their size.

    Raises:
        GitError: an object cannot be read.
    """
    repository = find_repository(root)
    if repository is None:
        return [], 0, 0, 0
    held: dict[str, tuple[str, ...]] = {}
    messages: list[FoundSecret] = []
    objects = size = left_out = 0
    for item in Git(repository).iterate_objects():
        if item.kind == "tree" or is_binary(item.data):
            continue
        if len(item.data) > MAX_BYTES:
            left_out += 1
            continue
        objects, size = objects + 1, size + len(item.data)
        if not objects % 200:
            progress("files and messages", objects, 0)
        text = item.data.decode("utf-8", "replace")
        if item.kind == "blob":
            if kinds := admit(text).redacted:
                held[item.id] = kinds
        else:  # the head of a commit is git's, and its signature no secret
            kinds = admit(text.partition("\n\n")[2]).redacted
            messages += [FoundSecret(kind, "", item.id) for kind in dict.fromkeys(kinds)]
    secrets = set()
    places = find_first_commits(repository, held)
    for blob, kinds in held.items():
        commit, path = places.get(blob, ("", ""))
        secrets |= {FoundSecret(kind, path, commit) for kind in kinds}
    ordered = sorted(secrets, key=lambda secret: (secret.path, secret.commit, secret.kind))
    return [*ordered, *messages], objects, size, left_out


def find_staged_secrets(top: Path) -> tuple[list[tuple[str, LocatedSecret]], list[str]]:
    """Scan what is staged in the work tree at `top`.

    Returns:
        The new secrets, each with its path, and the paths that were too large to scan. A secret of a file that the
        commit changes or removes is not new: an old secret refuses no commit.

    Raises:
        GitError: git cannot tell what is staged.
    """
    git, added, replaced = read_next_commit(top)
    sizes = git.read_sizes({*added.values(), *replaced})
    with git.reading() as reader:
        found = [(path, secret) for path, blob in added.items() for secret in _locate(reader, blob, sizes)]
        old = replaced if found else ()
        known = {secret.text for blob in old for secret in _locate(reader, blob, sizes)}
    left_out = [path for path, blob in added.items() if sizes.get(blob, 0) > MAX_BYTES]
    return [(path, secret) for path, secret in found if secret.text not in known], left_out


def _locate(reader: ObjectReader, blob: str, sizes: Mapping[str, int]) -> tuple[LocatedSecret, ...]:
    if not 0 < sizes.get(blob, 0) <= MAX_BYTES:
        return ()
    data = reader.read(blob).data
    return () if is_binary(data) else locate(data.decode("utf-8", "replace"))
