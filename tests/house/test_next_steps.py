"""No next step that a message or a page gives loses what its reader has not committed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DESTRUCTIVE = {
    name: re.compile(pattern)
    for name, pattern in {
        "overwrites files": r"git (-\S+ \S+ )*(checkout|restore)\b(?! -b)(?!-index)[^;|&]*(?<![\w/])(--? )?(\.|:/|\*)(\s|$|[`'\"),.])",
        "forces a checkout": r"git (-\S+ \S+ )*(checkout|switch|checkout-index)\b[^;|&]* (-f\b|--force|--discard-changes)",
        "throws changes away": r"git (-\S+ \S+ )*(reset\b[^;|&]*--(hard|merge|keep)|clean\b|stash (drop|clear))",
        "gives up what was begun": r"git (-\S+ \S+ )*(rebase|merge|am|cherry-pick|revert)\b[^;|&.]*--(abort|quit|skip)|or --abort",
        "leaves commits behind": r"git (-\S+ \S+ )*(branch\b[^;|&]* (-D|--delete --force)\b|push\b[^;|&]* (-f\b|--force(?!-with-lease=\S+:))|reflog|gc --prune|update-ref)",
        "leaves a detached HEAD": r"git (-\S+ \S+ )*switch (?!-c )",
        "stages whatever there is": r"git (-\S+ \S+ )*(add (-A|--all|-u|\.)|commit -[a-z]*a)",
        "removes files": r"(^|[`\s:])(git (-\S+ \S+ )*)?rm (-\w+ )?[\w./~-]|rmdir ",
    }.items()
}
"""Kinds of commands that lose uncommitted edits, staged work, untracked notes or commits that no branch has."""

HARMLESS = [
    "git checkout -b side", "git checkout-index -z --stdin", "git stash push -u", "git commit -m x", "git restore --staged a.md", "git reset a.md",
    "git push --force-with-lease=main:4b08a5a7 origin main",  # leaves the one commit behind that the message names
    "git checkout -- 'facts/a.md'", "git merge --continue", "git branch -m a b", "git switch -c NAME", "git add -p && git commit",
]  # fmt: skip
LOSSY = [
    "git checkout -- .", "git -C ~/quaid checkout -- .", "git checkout .", "git restore .", "git restore --source=HEAD :/", "git checkout -f main",
    "git reset --hard", "git reset -q --hard HEAD~1", "git clean -fd", "git stash drop", "git push --force", "git push origin -f",
    "git push --force-with-lease", "git push --force-with-lease=main origin main",
    "git rebase --abort", "git merge --continue or --abort", "git branch -D old", "git switch main", "git add -A && git commit", "git commit -am x",
    "rm -rf facts", "git rm facts/a.md", "git checkout-index -f -a",
]  # fmt: skip


def problems(text: str) -> list[str]:
    return [name for name, pattern in DESTRUCTIVE.items() if pattern.search(text)]


def test_the_check_knows_what_loses_something_and_lets_the_rest_be():
    assert [command for command in LOSSY if not problems(f"Bring it back: {command}")] == []
    assert [command for command in HARMLESS if problems(f"Bring it back: {command}")] == []


def texts_of(module: Path) -> list[str]:
    """The texts that a module may show: its strings, those of a sentence in one, without docstrings."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    bare |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            texts.append(node.value)
    return texts


@pytest.mark.slow
def test_no_message_tells_its_reader_to_lose_something():
    modules = [path for path in (ROOT / "quaid").rglob("*.py") if "redaction" not in path.parts]
    found = {(path.name, bad): text for path in modules for text in texts_of(path) for bad in problems(text)}
    assert found == {}


def test_no_page_does():
    pages = [
        ROOT / "README.md",
        *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"),
        *(ROOT / "hooks").rglob("*.md"),
        *(ROOT / "vault-template").glob("*.md"),
    ]
    lines = [(page.name, line) for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    assert [(name, line, bad) for name, line in lines if (bad := problems(line))] == []
