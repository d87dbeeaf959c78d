"""MEMORY.md, USER.md, daily notes and lists, as agents and people write them -> their statements, by rule.

A line becomes a fact; a like, a dislike or a rule for an agent a preference of the owner; in a daily note a decision or
an event that holds from its day on. A name under "People", "Pets" or "Projects" gets a note of its own.

This reads lines rather than parsing markdown: it matters which list item or paragraph states something, under which
headings and items, and which lines state nothing (code, tables, links, questions).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from posixpath import basename, dirname, join, normpath
from typing import NamedTuple

from quaid.capture.cleaning import clean_text
from quaid.capture.facts import NewFact
from quaid.capture.importers.import_content import (
    MARKDOWN,
    ImportContent,
    ImportedEntity,
    ImportFormat,
    ImportSource,
    LeftOut,
)
from quaid.errors import BadInputError
from quaid.text.other_dates import MONTHS
from quaid.text.stop_words import read_lists
from quaid.text.words import is_long_enough
from quaid.vault import frontmatter, markdown
from quaid.vault.notes import parse_time

MAX_STATEMENT_CHARS = 400
"""About; a longer paragraph becomes several statements, split between sentences."""
MAX_LABEL_CHARS = 80

_ANY = {
    name: f"(?:{'|'.join(words.split())})".replace("_", " ") for name, words in read_lists("memory_words.txt").items()
}
"""Patterns of the word lists, by name."""
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+((?:[^ \t#]|[ \t#]+(?=[^ \t#]))*+)[ \t#]*$")
_NO_DAY = rf"(?![ \t]+(?i:{'|'.join(' '.join(MONTHS.values()).split())})\b)"
_ITEM = re.compile(rf"([ \t]*)(?:(?:[-*+]|\d{{1,2}}[.)]{_NO_DAY})[ \t]+|(?=\d{{1,9}}[.)][ \t]))(.*)$")
"""A number of two digits counts the items of a list, but not before a month; `1582.` is a part of the statement."""
_BOX = re.compile(r"\[([ xX/>-])\][ \t]+")
_WHEN = re.compile(
    r"[*_`(\[]*(?:(?P<day>\d{4}-\d\d-\d\d)(?:[ T]\d\d:\d\d(?::\d\d)?Z?)?|\d\d?:\d\d(?::\d\d)?(?: ?[ap]m)?"
    r"|(?<=\[)unknown)[*_`)\]]*(?:(?<=\])\.)?[ \t]*(?:[-–—:]+[*_`]*[ \t]+|(?<=[*_`)\].])[ \t]+)",  # noqa: RUF001
    re.IGNORECASE,
)
_ENTRY = re.compile(r"^[ \t]*\[(?:\d{4}-\d\d-\d\d|unknown)\][ \t]*[-–—:]", re.IGNORECASE | re.MULTILINE)  # noqa: RUF001
"""A line of a list of memories, as an assistant writes it when it is asked to export them."""
_RULE = re.compile(r"[ \t]*([-*_=])[ \t]*(?:\1[ \t]*){2,}$")
_TITLE = re.compile(r"\*\*([^*]{1,80}[^*:.!?])\*\*")
"""A line that is bold from its beginning to its end is a heading, as Claude.ai writes them."""
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")  # noqa: RUF001
_LINK = re.compile(r"!?\[[^\[\]]*\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*\)|!?\[\[[^\[\]]*\]\]|<?\b\w+://\S+")
_LOCAL_NOTE = re.compile(r"[*_ ]*\[[^\[\]]+\]\((?!\w+://)[^()]+\.md(?:#[^()]*)?\)")
_HINT = re.compile(r"[_*]*\([^()]*\)[_*]*\.?|_\([^\n]*\)_")
_EMPTY_VALUE = re.compile(r"[^:：]{1,60}[:：]\s*(?:[-–—…_.]*|tbd|todo|none|n/a|unknown)\s*", re.IGNORECASE)  # noqa: RUF001
_EMPTY_LABEL = re.compile(
    rf"(?:{_ANY['label_adjectives']}\s+)*{_ANY['empty_labels']}(?:\.md)?(?:\s*[-–—:,(]*\s*\d{{4}}-\d\d-\d\d\)?.*)?",  # noqa: RUF001
    re.IGNORECASE,
)
_DATE_ONLY = re.compile(r"(?:\w+day,?\s+)?(?:\d{4}-\d\d-\d\d|\w+ \d{1,2},? \d{4}|\d{1,2}\.? \w+ \d{4})\b.{0,20}")
_UNRESOLVED = re.compile(
    r"(?:he|she|it|they|his|her|hers|its|their|theirs|this|that|these|those|there|also|and|but|so|then|same)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    rf"[\"'(]*[A-Z0-9][\w'’.&+/-]*,?(?:\s+[\w'’.&+/(),-]+){{0,6}}?\s+(?:{_ANY['verbs']}|\w{{3,}}ed)\s+\S"  # noqa: RUF001
)

_FIRST_PERSON = re.compile(
    r"(?:我们?|私|僕|俺|ฉัน|ผม|ดิฉัน)\w|(?:저|나|제가|내가|저는|나는|я|мы|أنا|मैं|हम|ich|wir|tôi|yo|eu|io|ik|jag|jeg)\b\s+\S",
    re.IGNORECASE,
)
"""A statement that begins with `I` names its subject, in any language."""

_MEMORY_FILES = {"memory.md", "user.md"}
_MEMORY_FOLDERS = {"memory", "memories", "rules"}
_INSTRUCTIONS = re.compile(
    r"(?:agents|soul|tools|identity|heartbeat|bootstrap|boot|claude|gemini|skill|dreams|readme)(?:\.local)?\.md",
    re.IGNORECASE,
)
_LISTS = (".txt", "stdin.md")
"""Of these, a text whose lines mostly end a sentence is a list of memories."""
_GEMINI = re.compile(r"^## Gemini Added Memories[ \t]*\n(.*?)(?=^#{1,2} |\Z)", re.MULTILINE | re.DOTALL)
"""The memories in GEMINI.md, which begins with its owner's instructions."""
_EVIDENCE = re.compile(r"(?:.*/)?(?:(?:rollout_summaries|skills)/.*|raw_memories\.md)")
_INDEXES = {"rollout_summary_files", "keywords", "what's in memory"}
_SCOPE = re.compile(r"(?:scope|applies_to): ")
_TASK = re.compile(r"(?:(?<!\s)\s+)?\[Tasks? [\d, ]+\]\s*$|(?<=# )Task(?: Group| \d+): ")
"""Codex writes notes on single sessions, their summary, MEMORY.md, and in it where each part is from."""
_DAILY = re.compile(r"(\d{4}-\d\d-\d\d)(?:[-_ ].*)?\.(?:md|markdown)", re.IGNORECASE)
_LINKED = re.compile(r"\]\(([^()\s]+\.md)(?:#[^()\s]*)?\)")
_TURN = re.compile(r"[ \t>*_-]*(?:user|assistant|system|human|tool)[*_]*:[*_]*(?:\s|$)", re.IGNORECASE)
_BOOKKEEPING = re.compile(r"(?:session (?:key|id)|source|channel|model|message id):\s", re.IGNORECASE)

_PREFERENCE = re.compile(rf"\b{_ANY['preference']}\b", re.IGNORECASE)
_PREFERENCE_HEADING = re.compile(rf"\b{_ANY['preference_heading']}\b", re.IGNORECASE)
_RULE_FOR_AGENTS = re.compile(rf"{_ANY['rule']}\b", re.IGNORECASE)
_DECISION = re.compile(rf"(?:we |i )?{_ANY['decision']}\b", re.IGNORECASE)
_DECISION_HEADING = re.compile(rf"\b{_ANY['decision_heading']}\b", re.IGNORECASE)
_LASTING_HEADING = re.compile(rf"\b{_ANY['lasting_heading']}\b", re.IGNORECASE)
_TASK_HEADING = re.compile(rf"\b{_ANY['task_heading']}\b", re.IGNORECASE)
_KINDS = ("person", "pet", "place", "project", "organization", "thing")
_KIND = re.compile("|".join(rf"(?P<{kind}>\b{_ANY[kind]}\b)" for kind in _KINDS), re.IGNORECASE)
_NAMED = re.compile(
    r"(?P<name>[^\W\d_a-z][\w'’.&-]*(?:[ ](?:(?:of|de|la|van|von|der|the|da|di|and|&)[ ])*[^\W\d_a-z][\w'’.&-]*){0,3})"  # noqa: RUF001
    r"(?=\s*(?:[—–:,(=]|\s-\s|$))"  # noqa: RUF001
)
_NO_NAME = re.compile(_ANY["no_names"], re.IGNORECASE)
_OWN_NAME = re.compile(r"(?:full )?name:\s*(?P<name>.+)", re.IGNORECASE)


class MarkdownMemories(ImportFormat):
    name = "markdown"

    @staticmethod
    def recognises(source: ImportSource) -> bool:
        if not source.is_folder:
            return source.name.lower().endswith((*MARKDOWN, ".txt")) and source.only_text is not None
        return not source.has_obsidian and bool(_memory_files(source))

    @staticmethod
    def read(source: ImportSource, found: ImportContent) -> None:
        if source.is_folder:
            every = [
                path
                for path, text in source.notes.items()
                if not (_INSTRUCTIONS.fullmatch(basename(path)) or _EVIDENCE.fullmatch(path)) or _GEMINI.search(text)
            ]
            texts = {path: source.notes[path] for path in (not source.program and _memory_files(source)) or every}
            found.left_out["other notes in the folder"] += len(source.notes) - len(texts)
        else:
            if source.only_text is None:
                raise BadInputError(f"{source.name} is not text. Give a markdown file or a folder of them.")
            texts = {source.name: source.only_text}
        for path, text in texts.items():
            added = _GEMINI.search(text)
            _read_note(path, added[1] if added else text, source, found)


def _memory_files(source: ImportSource) -> list[str]:
    """Return MEMORY.md, USER.md, the targets of MEMORY.md, and the notes in memory/ (or in the folder that is one)."""
    top = {path for path in source.notes if "/" not in path}
    named = {path for path in top if path.lower() in _MEMORY_FILES}
    linked = {normpath(join(dirname(path), target)) for path in named for target in _LINKED.findall(source.notes[path])}
    inside = {path for path in source.notes if path.split("/")[0].lower() == "memory" and "/" in path}
    daily = {path for path in top if _day_of(path)}
    is_of_agents = source.name.lower() in _MEMORY_FOLDERS or any(path.endswith(".mdc") for path in top)
    if is_of_agents or (daily and daily | named == top):
        inside |= top
    selected = named | inside | (linked & source.notes.keys())
    return [path for path in source.notes if path in selected and not _INSTRUCTIONS.fullmatch(basename(path))]


def _read_note(path: str, text: str, source: ImportSource, found: ImportContent) -> None:
    head = frontmatter.parse(clean_text(found.admit(path, text)))
    lines = head.body.split("\n")
    written = [line for line in lines if line.strip() and not line.startswith("#")]
    if path.lower().endswith(_LISTS) and 2 * sum(line.rstrip().endswith((".", "!", "。")) for line in written) > len(
        written
    ):
        lines = [f"- {line}" if line[:1].isalnum() else line for line in lines]
    title = " ".join(str(head.fields.get("name") or "").replace("_", " ").replace("-", " ").split())
    if title and "description" in head.fields and not head.body.lstrip().startswith("#"):
        lines.insert(0, f"# {title}")  # Claude Code names the subject of a note there alone
    day = _day_of(path)
    created = parse_time(str(head.fields.get("created") or head.fields.get("date") or ""))
    is_feedback = re.search(r"^\s*type: feedback\s*$", text[: len(text) - len(head.body)], re.MULTILINE)
    for statement in read_statements("\n".join(select_lines(lines, found.left_out)), found.left_out):
        if _BOOKKEEPING.match(statement.line) and day:
            found.left_out.add("lines about the session", statement.line)
            continue
        for name, kind in _entities_of(statement, is_about_owner=basename(path).lower() == "user.md"):
            found.entities.setdefault(name, ImportedEntity(name, kind, place=path))
        since = statement.day if parse_time(statement.day) else day
        text, labels = statement.text, statement.labels
        if statement.box is not None:
            is_below_tasks = labels and _TASK_HEADING.search(labels[-1])
            text = f"{'Done' if statement.box == 'done' else 'To do'}: {statement.line if is_below_tasks else text}"
        words = [label.casefold() for label in labels if not is_empty_label(label) and len(label.split()) < 4]
        kind = _type_of(statement, is_daily=day is not None)
        fact = NewFact(
            text,
            imported_from=path,
            type="preference" if is_feedback and kind == "fact" else kind,
            created=parse_time(since) or created or source.find_commit_date(statement.source_lines),
            valid_from=since,
            keywords=tuple(word for word in words if word not in text.casefold()),
        )
        found.facts.append(fact)


def select_lines(lines: list[str], left_out: LeftOut) -> Iterator[str]:
    """Yield the lines that may state something, without turns of a session, which are for `quaid extract`, and without
    what Codex notes about its sources.
    """
    is_turn, skipped = False, 0
    for line in lines:
        heading = _HEADING.match(line)
        if heading and (not skipped or len(heading[1]) <= skipped):
            skipped = len(heading[1]) if heading[2].casefold() in _INDEXES else 0
        is_turn = _TURN.match(line) is not None or (is_turn and bool(line.strip()) and not line.startswith("#"))
        if is_turn:
            left_out.add("lines of a conversation", line)
        elif (skipped or _SCOPE.match(line)) and line.strip():
            left_out.add("lines of an index", line)
        elif not skipped:
            yield _TASK.sub("", line)


def _type_of(statement: "Statement", *, is_daily: bool) -> str:
    above = " | ".join(statement.labels)
    if statement.box is not None:
        return "event"
    if _DECISION_HEADING.search(above) or _DECISION.match(statement.line):
        return "decision"
    is_rule = _RULE_FOR_AGENTS.match(statement.line)
    if is_rule or _PREFERENCE_HEADING.search(above) or _PREFERENCE.search(statement.line):
        return "preference"
    is_event = _TASK_HEADING.search(above) or (is_daily and not _LASTING_HEADING.search(above))
    return "event" if is_event else "fact"


def _entities_of(statement: "Statement", *, is_about_owner: bool) -> Iterator[tuple[str, str]]:
    """Yield (name, entity type) of the subjects of a statement and of the labels above it."""
    own = _OWN_NAME.fullmatch(statement.line) if is_about_owner else None
    if own and (name := _NAMED.fullmatch(own["name"].strip())):
        yield name["name"], "person"
    for heading, below in pairwise((*statement.labels, statement.line)):
        kind = _KIND.search(heading) if len(heading.split()) <= 4 else None
        name = _NAMED.match(below) if kind else None
        if kind and name and not _NO_NAME.fullmatch(name["name"]) and not _KIND.fullmatch(name["name"]):
            yield name["name"].rstrip("."), str(kind.lastgroup)


def _day_of(path: str) -> str | None:
    dated = _DAILY.fullmatch(basename(path))
    return dated[1] if dated and parse_time(dated[1]) else None


class Statement(NamedTuple):
    """`text` can be read alone; `line` is without its context. `labels` are the headings and items above it, outermost
    first; `box` is a task's: open, done, or None for other lines; `day` is the date in front, 2026-03-15.
    """

    text: str
    line: str
    labels: tuple[str, ...] = ()
    box: str | None = None
    day: str | None = None
    source_lines: tuple[str, ...] = ()


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


class _Reader:
    """The open headings and list items, and the block that grows."""

    def __init__(self, left_out: LeftOut) -> None:
        self.left_out = left_out
        self.blocks: list[_Block] = []
        self.headings: list[tuple[int, str]] = []
        self.items: list[_Block] = []
        self.open: _Block | None = None
        self.lead = ""
        """The paragraph that ends with a colon above a list."""

    def read(self, line: str) -> None:
        if not line.strip():
            self.open = None
        elif heading := _HEADING.match(line):
            self._begin_section(len(heading[1]), heading[2])
        elif self.open and self.open.indent < 0 and _SETEXT.match(line):
            self.blocks.remove(self.open)
            self._begin_section(1 if "=" in line else 2, self.open.text)
        elif self.open is None and (title := _TITLE.fullmatch(line.strip())):
            self._begin_section(6, title[1])
        elif _RULE.match(line):
            self.open = None
        elif line.lstrip().startswith(("|", ">")):
            self.left_out.add("rows of tables" if line.lstrip()[0] == "|" else "quoted lines", line)
            self.open = None
        elif self.open and not (_ITEM.match(line) or _ENTRY.match(line)):
            self.open.lines.append(line.strip())
        else:
            self._begin_block(line, _ITEM.match(line))

    def _begin_section(self, level: int, title: str) -> None:
        del self.headings[
            next((i for i, (depth, _) in enumerate(self.headings) if depth >= level), len(self.headings)) :
        ]
        self.headings.append((level, _shown(title)))
        self.items.clear()
        self.open, self.lead = None, ""

    def _begin_block(self, line: str, item: re.Match[str] | None) -> None:
        """Begin a list item, or a paragraph, which belongs to the item that it is indented below."""
        wide = line.expandtabs(4)
        indent = len(item[1].expandtabs(4)) if item else len(wide) - len(wide.lstrip())
        while self.items and self.items[-1].indent >= indent:
            self.items.pop()
        text = item[2] if item else line.strip()
        box = _BOX.match(text) if item else None
        if item and self.items:
            self.items[-1].has_children = True
        elif item and self.blocks and self.blocks[-1].indent < 0 and self.blocks[-1].is_label:
            self.lead = _as_label(self.blocks[-1])
        elif not item and not self.items:
            self.lead = ""
        titles = tuple(title for _, title in self.headings if title)
        # Of the labels above an item a statement has two at most.
        parents = tuple(filter(None, (self.lead, *map(_as_label, self.items[-2:]))))
        state = None if box is None else "done" if box[1] in "xX" else "open"
        text = text[box.end() :] if box else text
        self.open = _Block([text], titles, indent if item else -1, parents, state)
        self.items += [self.open] if item else []
        self.blocks.append(self.open)


def read_statements(body: str, left_out: LeftOut) -> Iterator[Statement]:
    """Yield the statements of a note's body. Lines that state nothing go to `left_out`, by reason."""
    reader = _Reader(left_out)
    for start, end in markdown.comments(body):
        left_out.add("comments", body[start:end])
    visible = markdown.without_comments(body)
    for start, end, kind, _ in [*markdown.verbatim(visible)][::-1]:
        if kind == "fence" and _ENTRY.search(visible, start, end):  # an assistant's export is a block of code
            inside = visible[start:end].partition("\n")[2].rstrip("`~ \t\n")
            visible = f"{visible[:start]}{inside}\n{visible[end:]}"
        elif kind == "fence":
            left_out.add("blocks of code", visible[start:end])
    for line in markdown.blank(visible, "fence").split("\n"):
        reader.read(line)
    for block in reader.blocks:
        when, shown = _WHEN.match(block.text), _shown(block.text)
        is_label = block.is_label or (block.has_children and not is_long_enough(shown))
        is_link = _LINK.search(block.text) and not _WORD.search(_LINK.sub("", block.text))
        is_empty = not _WORD.search(shown) or _HINT.fullmatch(block.text.strip())
        reasons = {
            "links": _LOCAL_NOTE.match(block.text) or is_link,
            "labels of what stands below them": is_label and (block.has_children or block.indent < 0) and not is_empty,
            "empty lines of a form": is_empty or is_label or _EMPTY_VALUE.fullmatch(shown),
            "questions": shown.endswith(("?", "？", "؟", "\u037e")),  # noqa: RUF001
        }
        if reason := next((reason for reason, holds in reasons.items() if holds), None):
            left_out.add(reason, block.text)
            continue
        labels = tuple(dict.fromkeys([*block.headings, *block.parents]))
        for line in markdown.split_text(_shown(block.text[when.end() :]) if when else shown, MAX_STATEMENT_CHARS):
            named = [label for label in labels if len(label) <= MAX_LABEL_CHARS and not is_empty_label(label)][-2:]
            missing = [label for label in named if label.casefold() not in line.casefold()]
            # A line that does not name its subject has it in front.
            is_whole = (_SENTENCE.match(line) and not _UNRESOLVED.match(line)) or _FIRST_PERSON.match(line)
            text = line if is_whole or not missing else f"{', '.join(missing)}: {line}"
            if not is_long_enough(text):
                left_out.add("lines of fewer than three words", line)
            else:
                yield Statement(text, line, labels, block.box, when["day"] if when else None, tuple(block.lines))


def is_empty_label(heading: str) -> bool:
    """Return True for a heading without information, such as "Notes" or a date."""
    return _EMPTY_LABEL.fullmatch(heading) is not None or _DATE_ONLY.fullmatch(heading) is not None


def _shown(text: str) -> str:
    """Return the text without markup, on one line; a heading's or item's bold colon stays a colon."""
    return " ".join(markdown.plain(text).split())


def _as_label(block: _Block) -> str:
    return _shown(block.text).rstrip(":： ")  # noqa: RUF001
