"""A history in memory for tests that need one and no git; tests/history/test_contract.py holds it to what git does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from quaid.model import Committed, Edit, Message


class MemoryHistory:
    """Trees of files, the newest last. It writes nothing but an empty folder `.git`."""

    def __init__(self, root: Path) -> None:
        self.git_dir = root / ".git"
        self.git_dir.mkdir(exist_ok=True)
        self.trees: dict[str, dict[str, bytes]] = {}
        self.head = ""

    def wait_until_ready(self, say: Callable[[str], None] | None = None) -> None:
        pass

    def commit(
        self,
        edits: Sequence[Edit],
        message: Message,
        *,
        author: tuple[str, str] | None = None,
        merged: str | None = None,
    ) -> Committed:
        tree = dict(self.trees.get(self.head, {}))
        left = tuple(edit.rel_path for edit in edits if tree.get(edit.rel_path) not in {edit.before, edit.after})
        for edit in edits:
            if edit.rel_path not in left and edit.after is not None:
                tree[edit.rel_path] = edit.after
            elif edit.rel_path not in left:
                tree.pop(edit.rel_path, None)
        if tree == self.trees.get(self.head, {}):
            return Committed(None, left)
        self.head = f"{len(self.trees) + 1:040x}"
        self.trees[self.head] = tree
        return Committed(self.head, left)

    def adopt(self, edits: Sequence[Edit], commit_id: str) -> Committed:
        self.head = commit_id
        return Committed(commit_id)

    def has_adopted(self, commit_id: str) -> bool:
        return self.has_commit(commit_id) and commit_id <= self.head

    def recover(self) -> None:
        pass

    def owner(self) -> tuple[str, str] | None:
        return None

    def read_at(self, revision: str, rel_path: str) -> bytes | None:
        return self.trees.get(self.head if revision == "HEAD" else revision, {}).get(rel_path)

    def has_commit(self, commit_id: str) -> bool:
        return commit_id in self.trees
