"""The changes of a document's sources since it was last true, as people and models are shown them. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quaid.docs.freshness import SourceFinding
from quaid.redaction import admit
from quaid.text.quoting import neutralise
from quaid.text.zones import local_now
from quaid.vault import headings

MAX_COMPARED = 1_000_000
"""Bytes of a version; two larger ones are not compared line by line."""
MAX_SHOWN_COMMITS = 10
MAX_REFUSED = 20
GAP = "\n[…]\n\n"
_MAX_EXCERPT_DIFF = 20_000
_MAX_FILES, _MIN_SHARE, _MAX_SHARE = 60_000, 1_000, 16_000
"""Characters of all files, and the least and the most of each file or difference."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_WORD = re.compile(r"\w{3,}")
_QUOTED_BY_GIT = re.compile(r'["\\\x00-\x1f\x7f\udc80-\udcff]')


@dataclass(frozen=True, slots=True)
class SourceChange:
    """The change of one source of a document, with the bytes before and after."""

    finding: SourceFinding
    before: bytes | None
    after: bytes | None

    @property
    def title(self) -> str:
        """`renamed quaid/old.py to quaid/new.py`, on one line."""
        found = self.finding
        moved = f"{found.old_path} to {found.path}" if found.old_path else found.path
        return headings.one_line(f"{found.kind} {moved}")

    def diff(self, context: int = 3, longest: int = 12_000) -> str:
        """Return the hunks of a unified diff, at most about `longest` characters: the middle of a longer one is cut.

        Each line begins with a space, +, -, @, a backslash or `[…]`, which explains what cannot be compared.
        """
        before, after = self.before or b"", self.after or b""
        sizes = f"{len(before):,} bytes before, {len(after):,} now"
        if b"\0" in before or b"\0" in after:
            return f"[…] not text: {sizes}\n"
        if max(len(before), len(after)) > MAX_COMPARED:
            return f"[…] too large to compare: {sizes}\n"
        if before == after:
            return "[…] the same content\n"
        old, new = before.replace(b"\r\n", b"\n"), after.replace(b"\r\n", b"\n")
        if old == new:
            return "[…] only line ends differ\n"
        text = "".join(hunks(old, new, context))
        # A lone carriage return ends a line for some readers, and would hide the mark of the one behind it.
        return shorten(text.encode("utf-8", "replace").decode().replace("\r", " "), longest)

    def show(self, longest: int) -> str:
        """Return the change with its commits and its diff. No line of it looks like the heading of another change."""
        made = self.finding.commits
        commits = [f"commit {c.id[:10]} {c.when[:10]} {headings.one_line(c.subject)[:120]}" for c in made]
        if (more := len(made) - MAX_SHOWN_COMMITS) > 0:
            commits[MAX_SHOWN_COMMITS:] = [f"[…] {more:,} commits before these"]
        return "\n".join([self.title, *commits, self.diff(longest=longest)])


def shorten(text: str, longest: int) -> str:
    """Return `text`; of a longer one the beginning and the end, and how many lines were left out between them."""
    if len(text) <= longest:
        return text
    first, last = longest * 2 // 3, len(text) - longest // 3
    head = text[: text.rfind("\n", 0, first) + 1 or first]
    tail = text[text.find("\n", last) + 1 :] if "\n" in text[last:-1] else f" {text[last:]}"
    left_out = text.count("\n") - head.count("\n") - tail.count("\n")
    newline = "" if head.endswith("\n") else "\n"
    return f"{head}{newline}[…] {max(1, left_out):,} lines left out\n{tail}"


def hunks(before: bytes, after: bytes, context: int = 3) -> Iterator[str]:
    """Yield the lines of a unified diff without its head. Bytes that are not UTF-8 are surrogates.

    Only a newline ends a line: a carriage return is part of it.
    """
    old, new = (_LINE.findall(side.decode("utf-8", "surrogateescape")) for side in (before, after))
    for number, line in enumerate(difflib.unified_diff(old, new, n=context)):
        if number >= 2:  # after the two lines that name the files
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def render_patch(path: str, before: bytes, after: bytes) -> str:
    """Return a patch of one file for `git apply`, empty without a change. Bytes that are not UTF-8 are surrogates."""
    if before == after:
        return ""
    old, new = _quote(f"a/{path}"), _quote(f"b/{path}")
    # git ends a name that has a space with a tab: other tools take what follows the space for a date.
    tab = "\t" if " " in path else ""
    return "".join([f"diff --git {old} {new}\n--- {old}{tab}\n+++ {new}{tab}\n", *hunks(before, after)])


def _quote(path: str) -> str:
    """Return a path as git writes it in a patch."""
    if not _QUOTED_BY_GIT.search(path):
        return path
    written = path.encode("utf-8", "surrogateescape")
    shown = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in written)
    return f'"{"".join(shown)}"'


# -- inputs of prompts -----------------------------------------------------------------------------------------------


def today() -> str:
    """Return the day and its weekday."""
    return f"{local_now():%A %Y-%m-%d}"


def excerpt(text: str, changes: Sequence[SourceChange], longest: int) -> str:
    """Return the body of a document, at most about `longest` characters of it.

    Of a longer one the beginning and the sections that have most words in common with the changes, in their order.
    """
    body = text[headings.text_start(text) :].replace("\r\n", "\n")
    if len(body) <= longest:
        return body
    parts = [body[section.start : section.next] for section in headings.sections(body)]
    words: set[str] = set()  # of the names of the files and of the changed lines
    for change in changes:
        lines = change.diff(context=0, longest=_MAX_EXCERPT_DIFF).split("\n")
        changed = [line for line in lines if line[:1] in ("+", "-")]
        words.update(_WORD.findall("\n".join([change.finding.path, change.finding.old_path or "", *changed])))
    by_relevance = sorted(range(len(parts)), key=lambda n: (n > 0, -len(words & set(_WORD.findall(parts[n])))))
    budget = longest
    shown: dict[int, str] = {}
    for place in by_relevance:
        if len(parts[place]) <= budget or not shown:
            shown[place] = shorten(parts[place], budget)
            budget -= len(shown[place])
    texts = [f"{GAP * (place > 0 and place - 1 not in shown)}{shown[place]}" for place in sorted(shown)]
    return "".join(texts) + GAP * (max(shown) < len(parts) - 1)


def number_changes(shown: Iterable[str]) -> str:
    """Return the changes, each under a heading with its number, from 1 on."""
    return "\n".join(f"### {n} {text}" for n, text in enumerate(shown, 1))


def show_files(files: Mapping[str, bytes]) -> str:
    """Return the files under their paths, each line indented. Of a file beyond the budget only the name is shown."""
    longest = divide_budget(_MAX_FILES, len(files))
    budget = _MAX_FILES
    blocks: list[str] = []
    for path, data in files.items():
        title = f"### {headings.one_line(path)}"
        if budget <= 0 or b"\0" in data:
            blocks.append(f"{title}\n[…] {'left out' if budget <= 0 else 'not text'}: {len(data):,} bytes")
            continue
        text = shorten(headings.without_control(data.decode("utf-8", "replace")), longest)
        budget -= len(text)
        blocks.append(f"{title}\n" + "\n".join(f" {line}" for line in text.split("\n")))
    return "\n".join(blocks)


def divide_budget(budget: int, count: int) -> int:
    """Return how many of `budget` characters each of `count` texts may have."""
    return min(_MAX_SHARE, max(_MIN_SHARE, budget // max(1, count)))


def show_refused(refused: Sequence[str]) -> str:
    """Return the edits that the owner refused, a line of JSON each."""
    return "\n".join(json.dumps(text, ensure_ascii=False) for text in refused[:MAX_REFUSED]) or "(nothing so far)"


def clean(text: str) -> str:
    """Return a sentence of a model as one line that is fit for a commit."""
    return headings.one_line(neutralise(admit(text).text))
