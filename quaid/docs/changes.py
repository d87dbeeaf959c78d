"""The changes of a document's sources since it was last true, as people and models are shown them. Pure."""

import difflib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from quaid.docs import markup
from quaid.docs.definitions import Definition, Part, SymbolChange, compare, define
from quaid.docs.freshness import Doubt, SourceFinding
from quaid.docs.mentions import find_mentions, is_plain
from quaid.vault import headings
from quaid.vault.markdown import Block

MAX_COMPARED = 1_000_000
"""Bytes of a version that is compared."""
OPTION = r"(?<![\w-])--?[A-Za-z][\w-]*"
NUMBER = r"(?<![\w.])\d+(?:[.,:]\d+)*"
_MAX_PART, _MAX_TEST, _MAX_COMMITS = 1_600, 800, 3
_MOST_USEFUL: Sequence[Part] = ("signature", "removed", "help", "added", "body")
"""What a reader of the document needs to know first of the parts of a definition."""
_VALUE = re.compile(
    rf"{OPTION}|{NUMBER}|(?<=[\"'])[\w./:-]{{2,}}(?=[\"'])|\b[A-Za-z]\w*_\w+|(?<![\w./-])/?(?:[\w.-]+/)+[\w.-]+"
)
"""Options, numbers, quoted words, names and paths in a line of a source."""
_MAX_LINES = 12
"""Lines of a passage; of a longer one, such as the options of a command, only a part may be shown."""
_MAX_EXAMPLE, _MAX_LINE, _MAX_REMOVED = 300, 100, 5
_TEST = re.compile(r"(?:.*/)?(?:tests?|specs?|__tests__)/.*|(?:.*/)?(?:test_[^/]*|[^/]*(?:_test|\.test|\.spec))\.\w+")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n|(?=\n[ \t]*(?:[-*+|]|\d+[.)])[ \t])")
_GAP = "\n\n[…]\n\n"


class ChangedPart(NamedTuple):
    """A changed definition with its lines before and after."""

    symbol: SymbolChange
    old: Sequence[str]
    new: Sequence[str]

    def show(self, longest: int) -> str:
        """Return the definition's name, its first line and the difference of its lines."""
        its = self.symbol.definition
        old, new = ("".join(f"{line}\n" for line in side) for side in (self.old, self.new))
        diff = "".join(hunks(old, new, 2))
        head = f" {self.new[0]}\n" if self.new and f"{self.new[0]}\n" not in diff else ""
        return shorten_lines(f"  {its.kind} {headings.one_line(its.name)}, {self.symbol.part}\n{head}{diff}", longest)


@dataclass(frozen=True)
class SourceChange:
    """The change of one source of a document, with the bytes before and after."""

    finding: SourceFinding
    before: bytes | None
    after: bytes | None

    def diff(self, longest: int = 12_000) -> str:
        """Return the hunks of a unified diff, of a longer one the first.

        Each line begins with a space, +, -, @, a backslash or `[…]`, which explains what cannot be compared.
        """
        before, after = self.before or b"", self.after or b""
        old, new = (read_text(data).replace("\r\n", "\n") for data in (before, after))
        if (before and not old) or (after and not new):
            return f"[…] cannot be compared: {len(before):,} bytes before, {len(after):,} now\n"
        # A lone carriage return ends a line for some readers, and would hide the mark of the one behind it.
        return shorten_lines("".join(hunks(old, new)).replace("\r", " "), longest) or "[…] the same lines\n"

    @property
    def head(self) -> str:
        """What happened to the file, and its last commits. No line of it looks like the heading of another change."""
        found = self.finding
        moved = f"{found.old_path} to {found.path}" if found.old_path else found.path
        last = found.commits[:_MAX_COMMITS]
        commits = [f"commit {c.id[:10]} {c.when[:10]} {headings.one_line(c.subject)[:120]}" for c in last]
        return "".join(f"{line}\n" for line in (headings.one_line(f"{found.kind} {moved}"), *commits))

    @property
    def lines(self) -> Iterator[str]:
        """What may be said of the change: the names of the file, the commits, and the definitions that changed."""
        yield from filter(None, (self.finding.path, self.finding.old_path))
        yield from (commit.subject for commit in self.finding.commits)
        yield from (line for part in self.parts for line in (*part.old, *part.new))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the changed lines."""
        before, after = (set(read_text(data).split("\n")) for data in (self.before, self.after))
        return frozenset(_WORD.findall("\n".join(before ^ after)))

    @cached_property
    def parts(self) -> Sequence[ChangedPart]:
        """The definitions that changed, with their lines; what holds others only if it changed itself."""
        path, sides = self.finding.path, (self.before, self.after)
        symbols = compare(path, *(define(path, data) if data and read_text(data) else {} for data in sides))
        old, new = (read_text(data).split("\n") for data in sides)
        outer = {each.definition.scope for each in symbols}
        inner = (each for each in symbols if each.name not in outer or each.part in ("signature", "help"))
        return [ChangedPart(each, _slice(old, each.before), _slice(new, each.after)) for each in inner]


def read_text(data: bytes | None) -> str:
    """Return the text of a version of a file; empty where it is not text or too large to be compared."""
    is_text = data is not None and b"\0" not in data and len(data) <= MAX_COMPARED
    return data.decode("utf-8", "replace") if data is not None and is_text else ""


def _slice(lines: Sequence[str], definition: Definition | None) -> Sequence[str]:
    return lines[definition.lines[0] - 1 : definition.lines[1]] if definition is not None else ()


def shorten_lines(text: str, longest: int) -> str:
    """Return `text`; of a longer one the first lines, and how many more there are."""
    if len(text) <= longest:
        return text
    head = text[: text.rfind("\n", 0, longest) + 1 or longest]
    left_out = text.rstrip("\n").count("\n") + 1 - head.count("\n")
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}[…] {left_out:,} lines left out\n"


def hunks(before: str, after: str, context: int = 3) -> Iterator[str]:
    """Yield the lines of a unified diff without its head. A carriage return is part of its line."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+\Z", side) for side in (before, after))
    for number, line in enumerate(difflib.unified_diff(old, new, n=context)):
        if number >= 2:  # after the two lines that name the files
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def make_patch(path: str, before: str, after: str) -> str:
    """Return a patch of one file for `git apply`, empty without a change. Bytes that are not UTF-8 are surrogates."""
    if before == after:
        return ""
    old, new = (re.sub(r'[\x00-\x1f\x7f"\\]', lambda sign: f"\\{ord(sign[0]):03o}", f"{side}/{path}") for side in "ab")
    if "\\" in old:  # git takes names with such signs in quotes only
        old, new = f'"{old}"', f'"{new}"'
    # git ends a name that has a space with a tab: other tools take what follows the space for a date.
    tab = "\t" if " " in path else ""
    return "".join([f"diff --git {old} {new}\n--- {old}{tab}\n+++ {new}{tab}\n", *hunks(before, after)])


# -- inputs of prompts -----------------------------------------------------------------------------------------------


def excerpt(path: str, text: str, changes: Sequence[SourceChange], longest: int, doubts: Sequence[Doubt] = ()) -> str:
    """Return the body of a document, at most about `longest` characters of it.

    Of a longer one the beginning, and the paragraphs that are in doubt, name what changed or share words with it, in
    their order and under their headings.
    """
    body = text[headings.text_start(text) :].replace("\r\n", "\n")
    if len(body) <= longest:
        return body
    lines = body.split("\n")
    blocks = [
        replace(block, first=first, last=min(first + _MAX_LINES - 1, block.last))
        for block in markup.read_blocks(path, lines, 0)
        for first in range(block.first, block.last + 1, _MAX_LINES)
    ]
    # What is no block belongs to the next one: an anchor, a directive, a comment.
    firsts = [0, *(block.last + 1 for block in blocks[:-1])]
    texts = ["\n".join(lines[first : block.last + 1]) for first, block in zip(firsts, blocks, strict=True)]
    first_line = text[: headings.text_start(text)].count("\n") + 1
    scores = list(_score(blocks, texts, changes, {doubt.line - first_line for doubt in doubts}))
    groups: list[set[int]] = []  # each block with the headings above it
    above: list[int] = []
    for place, block in enumerate(blocks):
        if block.kind == "heading":
            above = [*(outer for outer in above if blocks[outer].level < block.level), place]
        groups.append({*above, place})
    chosen: set[int] = set()
    for place in sorted(range(len(blocks)), key=lambda place: (place > 1, -scores[place])):
        wanted = chosen | groups[place]
        size = sum(len(texts[each]) + len(_GAP) for each in wanted)
        if size <= longest and (place <= 1 or scores[place]):
            chosen = wanted
    if not chosen:
        return shorten_lines(body, longest)
    shown = ""
    for place, part in enumerate(texts):
        if place in chosen:
            shown += f"\n{part}" if place - 1 in chosen else part.lstrip("\n")
        elif place == 0 or place - 1 in chosen:
            shown += _GAP
    return shown


def _score(
    blocks: Sequence[Block], texts: Sequence[str], changes: Sequence[SourceChange], doubtful: Collection[int]
) -> Iterator[float]:
    """Yield how much each block of a document has to do with `changes`. Lines from 0 are `doubtful`."""
    names = {name for change in changes for part in change.parts for name in part.symbol.definition.names}
    words = {word for change in changes for word in change.words}
    for block, shown in zip(blocks, texts, strict=True):
        found = set(_WORD.findall(shown))
        # A large example, such as a schema, shares some words with any change.
        is_large = block.kind == "fence" and len(block.text) > _MAX_EXAMPLE
        common = 10 * len(names_in(shown) & names) + len(found & words) / math.sqrt(len(found) + 1)
        yield 100 * any(block.first <= line <= block.last for line in doubtful) + common * (not is_large)


@lru_cache(maxsize=8_192)
def names_in(shown: str) -> frozenset[str]:
    """Return the names of code in a text; a plain word such as `load` is one only where it is written as code."""
    written = (word for word in re.findall(r"-{0,2}[A-Za-z_][\w.-]*\w", shown) if not is_plain(word))
    return frozenset([*find_mentions("", shown), *written])


def show_changes(text: str, changes: Sequence[SourceChange], longest: int, doubts: Sequence[Doubt] = ()) -> str:
    """Return the changes of the sources of the document `text`, each under a heading with its number, in at most about
    `longest` characters: first the definitions for which it is in doubt and those that it names, then tests with the
    same names, then signatures and help.
    """
    blocks = [change.head for change in changes]
    tests = [is_test(change.finding.path) for change in changes]
    parts = [(place, part) for place, change in enumerate(changes) for part in change.parts]
    changed = {name for place, part in parts if not tests[place] for name in part.symbol.definition.names}
    in_doubt = [(doubt.path, doubt.symbol) for doubt in doubts]
    names = names_in(text) & changed

    def order(found: tuple[int, ChangedPart]) -> tuple[bool, bool, bool, int]:
        place, part = found
        its_doubt = changes[place].finding.path, part.symbol.name
        its = names_in("\n".join([*part.old, *part.new])) if tests[place] else part.symbol.definition.names
        return its_doubt not in in_doubt, names.isdisjoint(its), tests[place], _MOST_USEFUL.index(part.symbol.part)

    budget = longest - sum(map(len, blocks))
    left: Counter[int] = Counter()
    for place, part in sorted(parts, key=order):
        shown = part.show(_MAX_TEST if tests[place] else _MAX_PART)
        if len(shown) <= budget:
            blocks[place] += shown
            budget -= len(shown)
        else:
            left[place] += 1
    for place, change in enumerate(changes):
        if left[place]:
            blocks[place] += f"[…] {left[place]:,} more changes of this file left out"
        elif not change.parts:
            blocks[place] += change.diff(_MAX_PART)
    return "\n".join(f"### {number} {block.rstrip()}" for number, block in enumerate(blocks, 1))


def is_test(path: str) -> bool:
    """Return whether a file has tests, by its name."""
    return _TEST.fullmatch(path) is not None


def find_removed(text: str, changes: Sequence[SourceChange]) -> list[str]:
    """Return the values that `changes` removed from the sources and the document `text` still has, a line each.

    An option, a path or a name is gone if its definition is, or no source has it any more; a number or a word in quotes
    if the new lines of its definition lack it, and a paragraph has it together with a name of the definition, or of the
    line that it was in.
    """
    paragraphs = _PARAGRAPHS.split(text.replace("\r\n", "\n"))
    sources = [change for change in changes if not is_test(change.finding.path)]
    now = "\n".join(read_text(change.after) for change in sources)
    found: dict[str, str] = {}
    for part, path in ((part, change.finding.path) for change in sources for part in change.parts):
        names, left = set(part.symbol.definition.names), "\n".join(part.new)
        gone = names if part.symbol.part == "removed" else set()
        for line in (line for line in part.old if line not in part.new):
            known = names.union(word for word in _WORD.findall(line) if not is_plain(word))
            for value in (each for each in _VALUE.findall(line) if each in text and not _has(left, each)):
                is_name = not is_plain(value) and not value[0].isdigit()
                if is_name and value not in gone and _has(now, value):
                    continue
                holding = (shown for shown in paragraphs if _has(shown, value))
                near = next((shown for shown in holding if is_name or names_in(shown) & known), None)
                if near is not None:
                    line_of_it = next((each for each in near.split("\n") if _has(each, value)), near)
                    shown = headings.one_line(line_of_it)[:_MAX_LINE]
                    found.setdefault(value, f"`{value}` ({headings.one_line(path)}): {shown}")
    return list(found.values())[:_MAX_REMOVED]


def _has(shown: str, value: str) -> bool:
    """Return whether a text has a value, not as a part of another one."""
    return value in shown and re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", shown) is not None
