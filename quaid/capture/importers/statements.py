"""Markdown that somebody keeps as memory -> the statements in it, each able to stand alone.

A reader of lines, not a parser of markdown: what matters is which list item or paragraph says something, under which
headings and items it stands, and what says nothing (code, tables, links, questions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from quaid.text.other_dates import MONTHS
from quaid.text.words import is_long_enough
from quaid.vault import markdown

MAX_STATEMENT_CHARS = 400
"""Characters of a statement, about; a longer paragraph becomes several, cut between sentences."""
MAX_LABEL_CHARS = 80

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+((?:[^ \t#]|[ \t#]+(?=[^ \t#]))*+)[ \t#]*$")
_NO_DAY = rf"(?![ \t]+(?i:{'|'.join(' '.join(MONTHS.values()).split())})\b)"
_ITEM = re.compile(rf"([ \t]*)(?:(?:[-*+]|\d{{1,2}}[.)]{_NO_DAY})[ \t]+|(?=\d{{1,9}}[.)][ \t]))(.*)$")
"""A number of two digits counts the items of a list, but not before a month; `1582.` is a part of the statement."""
_BOX = re.compile(r"\[([ xX/>-])\][ \t]+")
_WHEN = re.compile(
    r"[*_`(\[]*(?:(?P<day>\d{4}-\d\d-\d\d)(?:[ T]\d\d:\d\d(?::\d\d)?Z?)?|\d\d?:\d\d(?::\d\d)?(?: ?[ap]m)?)[*_`)\]]*"
    r"[ \t]*(?:[-–—:]+[*_`]*[ \t]+|(?<=[*_`)\]])[ \t]+)",  # noqa: RUF001
    re.IGNORECASE,
)
_RULE = re.compile(r"[ \t]*([-*_=])[ \t]*(?:\1[ \t]*){2,}$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")  # noqa: RUF001
_LINK = re.compile(r"!?\[[^\[\]]*\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*\)|!?\[\[[^\[\]]*\]\]|<?\b\w+://\S+")
_LOCAL_NOTE = re.compile(r"[*_ ]*\[[^\[\]]+\]\((?!\w+://)[^()]+\.md(?:#[^()]*)?\)")
_HINT = re.compile(r"[_*]*\([^()]*\)[_*]*\.?|_\([^\n]*\)_")
_EMPTY_VALUE = re.compile(r"[^:：]{1,60}[:：]\s*(?:[-–—…_.]*|tbd|todo|none|n/a|unknown)\s*", re.IGNORECASE)  # noqa: RUF001
_SAYS_NOTHING = re.compile(
    r"(?:(?:my|the|long[- ]?term|short[- ]?term|daily|"
    r"general|key|core|important|other|misc\w*|more|recent|current|user)\s+)*"
    r"(?:memor(?:y|ies)|notes?|logs?|journal|diary|facts?|info(?:rmation)?|overview|summary|observations?|details?|"
    r"context|today|things|misc\w*|other|general|readme|index|user(?: profile)?|profile|index)"
    r"(?:\.md)?(?:\s*[-–—:,(]*\s*\d{4}-\d\d-\d\d\)?.*)?",  # noqa: RUF001
    re.IGNORECASE,
)
_DATE_ONLY = re.compile(r"(?:\w+day,?\s+)?(?:\d{4}-\d\d-\d\d|\w+ \d{1,2},? \d{4}|\d{1,2}\.? \w+ \d{4})\b.{0,20}")
_UNRESOLVED = re.compile(
    r"(?:he|she|it|they|his|her|hers|its|their|theirs|this|that|these|those|there|also|and|but|so|then|same)\b",
    re.IGNORECASE,
)
_VERBS = (
    r"is|are|was|were|am|be|been|has|have|had|does|do|did|will|would|can|could|should|must|may|might|shall|"
    r"lives?|works?|likes?|loves?|hates?|dislikes?|prefers?|enjoys?|wants?|needs?|uses?|owns?|takes?|makes?|goes|went|"
    r"gets?|got|keeps?|kept|plays?|runs?|ran|speaks?|spoke|stud(?:y|ies)|teaches|taught|learns?|drinks?|drank|eats?|ate|"
    r"drives?|drove|rides?|rode|sleeps?|wakes?|born|bought|sold|starts?|began|begins?|ends?|stops?|joins?|left|leaves?|"
    r"met|meets?|knows?|knew|thinks?|thought|believes?|feels?|felt|says?|said|tells?|told|asks?|chose|chooses?|agrees?|"
    r"plans?|means?|meant|helps?|writes?|wrote|reads?|gives?|gave|comes?|came|sees?|saw|finds?|found|sends?|sent|hurts?|"
    r"builds?|built|broke|breaks?|costs?|opens?|closes?|holds?|belongs?|moves?|stays?|won|lost|wears?|grows?|grew|"
    r"isn't|aren't|wasn't|don't|doesn't|didn't|won't|can't|cannot|\w{3,}ed"
)
_SENTENCE = re.compile(rf"[\"'(]*[A-Z0-9][\w'’.&+/-]*,?(?:\s+[\w'’.&+/(),-]+){{0,6}}?\s+(?:{_VERBS})\s+\S")  # noqa: RUF001

_FIRST_PERSON = re.compile(
    r"(?:我们?|私|僕|俺|ฉัน|ผม|ดิฉัน)\w|(?:저|나|제가|내가|저는|나는|я|мы|أنا|मैं|हम|ich|wir|tôi|yo|eu|io|ik|jag|jeg)\b\s+\S",
    re.IGNORECASE,
)
"""Who begins with `I` says whom it is about, in whatever language."""


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` stands alone; `said` is what the line itself says. `labels` are the headings and items above it, outermost
    first; `box` is a task's: open, done, or None for other lines; `day` is the date in front, 2026-03-15.
    """

    text: str
    said: str
    labels: tuple[str, ...] = ()
    box: str | None = None
    day: str | None = None


@dataclass(slots=True)
class _Block:
    """A list item (`indent` from 0) or a paragraph (`indent` -1)."""

    lines: list[str]
    headings: tuple[str, ...]
    indent: int = -1
    parents: tuple[str, ...] = ()
    box: str | None = None
    has_children: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.lines)

    @property
    def is_label(self) -> bool:
        return self.text.rstrip("*_ ").endswith((":", "："))  # noqa: RUF001


@dataclass(slots=True)
class _Reader:
    """The state of a reading: the headings and list items that are open, and the block that grows."""

    left_out: Counter[str]
    blocks: list[_Block] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    items: list[_Block] = field(default_factory=list)
    open: _Block | None = None
    lead: str = ""
    """The paragraph that ends with a colon above a list."""

    def read(self, line: str) -> None:
        if not line.strip():
            self.open = None
        elif heading := _HEADING.match(line):
            self._begin_section(len(heading[1]), heading[2])
        elif self.open and self.open.indent < 0 and _SETEXT.match(line):
            self.blocks.remove(self.open)
            self._begin_section(1 if "=" in line else 2, self.open.text)
        elif _RULE.match(line):
            self.open = None
        elif line.lstrip().startswith(("|", ">")):
            self.left_out["rows of tables" if line.lstrip()[0] == "|" else "quoted lines"] += 1
            self.open = None
        elif item := _ITEM.match(line):
            self._begin_item(len(item[1].expandtabs(4)), item[2])
        elif self.open:
            self.open.lines.append(line.strip())
        else:
            self._begin_paragraph(line)

    def _begin_section(self, level: int, title: str) -> None:
        del self.headings[
            next((i for i, (depth, _) in enumerate(self.headings) if depth >= level), len(self.headings)) :
        ]
        self.headings.append((level, _shown(title)))
        self.items.clear()
        self.open, self.lead = None, ""

    def _begin_item(self, indent: int, text: str) -> None:
        box = _BOX.match(text)
        while self.items and self.items[-1].indent >= indent:
            self.items.pop()
        if self.items:
            self.items[-1].has_children = True
        elif self.blocks and self.blocks[-1].indent < 0 and self.blocks[-1].is_label:
            self.lead = _as_label(self.blocks[-1])
        state = None if box is None else "done" if box[1] in "xX" else "open"
        self.open = _Block([text[box.end() :] if box else text], self._titles(), indent, self._parents(), state)
        self.items.append(self.open)
        self.blocks.append(self.open)

    def _begin_paragraph(self, line: str) -> None:
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        while self.items and self.items[-1].indent >= indent:  # one that is indented goes on with its list item
            self.items.pop()
        if not self.items:
            self.lead = ""
        self.open = _Block([line.strip()], self._titles(), -1, self._parents())
        self.blocks.append(self.open)

    def _parents(self) -> tuple[str, ...]:
        """The labels above an item; a statement names two of them at most."""
        return tuple(filter(None, (self.lead, *map(_as_label, self.items[-2:]))))

    def _titles(self) -> tuple[str, ...]:
        return tuple(title for _, title in self.headings if title)


def read_statements(body: str, left_out: Counter[str]) -> Iterator[Statement]:
    """The statements of a note's body, in order. Lines that state nothing are counted in `left_out`, by reason."""
    reader = _Reader(left_out)
    shown = markdown.without_comments(body)
    left_out.update("blocks of code" for _, _, kind, _ in markdown.verbatim(shown) if kind == "fence")
    for line in markdown.blank(shown, "fence").split("\n"):
        reader.read(line)
    for block in reader.blocks:
        reason = _why_left_out(block)
        if reason is not None:
            left_out[reason] += 1
            continue
        labels = tuple(dict.fromkeys([*block.headings, *block.parents]))
        when = _WHEN.match(block.text)
        shown = _shown(block.text[when.end() :] if when else block.text)
        for said in markdown.split_text(shown, MAX_STATEMENT_CHARS):
            text = _standing_alone(said, labels)
            if not is_long_enough(text):
                left_out["lines of fewer than three words"] += 1
            else:
                yield Statement(text, said, labels, block.box, when["day"] if when else None)


def says_nothing(heading: str) -> bool:
    """Return True for a heading that adds nothing to what stands below it, such as "Notes" or a date."""
    return _SAYS_NOTHING.fullmatch(heading) is not None or _DATE_ONLY.fullmatch(heading) is not None


def _why_left_out(block: _Block) -> str | None:
    shown = _shown(block.text)
    if _LOCAL_NOTE.match(block.text) or (_LINK.search(block.text) and not _WORD.search(_LINK.sub("", block.text))):
        return "links"
    if not _WORD.search(shown) or _HINT.fullmatch(block.text.strip()):
        return "empty lines of a form"
    if block.is_label or (block.has_children and not is_long_enough(shown)):
        return "labels of what stands below them" if block.has_children or block.indent < 0 else "empty lines of a form"
    if _EMPTY_VALUE.fullmatch(shown):
        return "empty lines of a form"
    if shown.endswith(("?", "？", "؟", "\u037e")):  # noqa: RUF001
        return "questions"
    return None


def _standing_alone(said: str, labels: tuple[str, ...]) -> str:
    """`said`, with what it is about in front where it does not say so itself."""
    if (_SENTENCE.match(said) and not _UNRESOLVED.match(said)) or _FIRST_PERSON.match(said):
        return said
    kept = [label for label in labels if len(label) <= MAX_LABEL_CHARS and not says_nothing(label)][-2:]
    missing = [label for label in kept if label.casefold() not in said.casefold()]
    return f"{', '.join(missing)}: {said}" if missing else said


def _shown(text: str) -> str:
    """The text without markup, on one line; a heading's or item's bold colon stays a colon."""
    return " ".join(markdown.plain(text).split())


def _as_label(block: _Block) -> str:
    return _shown(block.text).rstrip(":： ")  # noqa: RUF001
