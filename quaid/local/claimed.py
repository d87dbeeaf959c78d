"""The facts that a pull brought from other people. Their marks (verified, pinned) are only claims until the owner of
the vault marks the fact.

A file of the vault's state folder. Without it the marks count as they are written.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from quaid.local import state_files
from quaid.place import state_folder, write_private

FILE = "claimed.json"
OTHER_PERSON = "other"
"""The `source` that such a fact has in the index."""


def read(root: Path) -> dict[str, str]:
    """Return the id of each such fact of the vault at `root`, with the remote that it came from."""
    try:
        stored = json.loads(state_files.read(state_folder(root) / FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(note_id): str(remote) for note_id, remote in stored.items()} if isinstance(stored, dict) else {}


def drop(root: Path, note_id: str) -> bool:
    """Let a fact be its owner's word; return whether it was not."""
    claims = read(root)
    if claims.pop(note_id, None) is None:
        return False
    write(root, claims)
    return True


def write(root: Path, claims: Mapping[str, str]) -> None:
    """Remember `claims` in the place of those that were known. Raises OSError: the disk takes no writes."""
    if claims != read(root):
        write_private(state_folder(root) / FILE, json.dumps(claims), sync=True)
