"""MEMORY.md, USER.md and daily notes, as OpenClaw, Claude Code and people keep them: what they state, by rule.

A line becomes a fact; one that likes or hates something a preference; in a daily note a decision or an event that holds
from its day on. What stands under "People", "Pets" or "Projects" by its name gets a note of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from posixpath import basename, dirname, join, normpath

from quaid.capture.cleaning import clean_text
from quaid.capture.importers.import_content import MARKDOWN, ImportContent, ImportedEntity, ImportedFact, ImportSource
from quaid.capture.importers.statements import Statement, read_statements, says_nothing
from quaid.errors import BadInputError
from quaid.vault import frontmatter

NAME = "markdown"

_MEMORY_FILES = {"memory.md", "user.md"}
_INSTRUCTIONS = re.compile(
    r"(?:agents|soul|tools|identity|heartbeat|bootstrap|boot|claude|gemini|skill|dreams|readme)(?:\.local)?\.md",
    re.IGNORECASE,
)
_DAILY = re.compile(r"(\d{4}-\d\d-\d\d)(?:[-_ ].*)?\.(?:md|markdown)", re.IGNORECASE)
_LINKED = re.compile(r"\]\(([^()\s]+\.md)(?:#[^()\s]*)?\)")
_SAID = re.compile(r"[ \t>*_-]*(?:user|assistant|system|human|tool)[*_]*:[*_]*(?:\s|$)", re.IGNORECASE)
_BOOKKEEPING = re.compile(r"(?:session (?:key|id)|source|channel|model|message id):\s", re.IGNORECASE)

_PREFERENCE = re.compile(
    r"\b(?:likes?|loves?|prefers?|preferred|enjoys?|hates?|dislikes?|adores?|detests?|avoids?|favou?rites?|rather|"
    r"(?:can't|cannot|can not) stand|(?:isn't|is not|not) (?:a fan|keen))\b",
    re.IGNORECASE,
)
_PREFERENCE_HEADING = re.compile(r"\b(?:preferences?|likes|dislikes|favou?rites|tastes?)\b", re.IGNORECASE)
_DECISION = re.compile(r"(?:we |i )?(?:decided|decision|agreed|chose|chosen|settled|resolved)\b", re.IGNORECASE)
_DECISION_HEADING = re.compile(r"\b(?:decisions?|decided)\b", re.IGNORECASE)
_LASTING_HEADING = re.compile(
    r"\b(?:lessons?|learn(?:ed|ings?|t)|facts?|people|contacts|pets|places|insights?|knowledge|remember)\b",
    re.IGNORECASE,
)
_TASK_HEADING = re.compile(
    r"\b(?:to-?dos?|tasks?|next steps?|action items?|follow[- ]?ups?|done|completed|sessions?)\b", re.IGNORECASE
)
_KINDS = (
    ("person", r"people|persons?|family|friends?|contacts?|team|colleagues?|coworkers?|relationships?|kids|children"),
    ("pet", r"pets?|animals?|dogs?|cats?"),
    ("place", r"places?|locations?|rooms?|homes?"),
    ("project", r"projects?"),
    ("organization", r"organi[sz]ations?|compan(?:y|ies)|employers?|clients?|customers?"),
    ("thing", r"devices?|cameras?|hardware|servers?|vehicles?|cars?"),
)
_KIND = re.compile("|".join(rf"(?P<{kind}>\b(?:{words})\b)" for kind, words in _KINDS), re.IGNORECASE)
_NAMED = re.compile(
    r"(?P<name>[^\W\d_a-z][\w'’.&-]*(?:[ ](?:(?:of|de|la|van|von|der|the|da|di|and|&)[ ])*[^\W\d_a-z][\w'’.&-]*){0,3})"  # noqa: RUF001
    r"(?=\s*(?:[—–:,(=]|\s-\s|$))"  # noqa: RUF001
)
_NO_NAME = re.compile(
    r"(?:name|goals?|status|type|role|e-?mail|phone|birthday|born|age|address|location|time ?zone|notes?|pronouns|"
    r"owner|done|todo|next|last|updated?|created|url|link|repo|stack|tech|deadline|priority|description|current|none|tbd|n/a)",
    re.IGNORECASE,
)
_OWN_NAME = re.compile(r"(?:full )?name:\s*(?P<name>.+)", re.IGNORECASE)


def recognises(source: ImportSource) -> bool:
    if not source.is_folder:
        return source.name.lower().endswith(MARKDOWN) and source.only_text is not None
    return not source.has_obsidian and bool(_memory_files(source))


def read(source: ImportSource, found: ImportContent) -> None:
    if source.is_folder:
        every = [path for path in source.notes if not _INSTRUCTIONS.fullmatch(basename(path))]
        chosen = _memory_files(source) or every
        texts = {path: source.notes[path] for path in chosen}
        found.left_out["other notes in the folder"] += len(source.notes) - len(texts)
    else:
        if source.only_text is None:
            raise BadInputError(f"{source.name} is not text. Give a markdown file or a folder of them.")
        texts = {source.name: source.only_text}
    for path, text in texts.items():
        _read_note(path, text, found)


def _memory_files(source: ImportSource) -> list[str]:
    """MEMORY.md, USER.md, what MEMORY.md points at, and the notes in memory/ (or in the folder that is one)."""
    top = {path for path in source.notes if "/" not in path}
    named = {path for path in top if path.lower() in _MEMORY_FILES}
    linked = {normpath(join(dirname(path), target)) for path in named for target in _LINKED.findall(source.notes[path])}
    inside = {path for path in source.notes if path.split("/")[0].lower() == "memory" and "/" in path}
    daily = {path for path in top if _day_of(path)}
    if source.name.lower() == "memory" or (daily and daily | named == top):
        inside |= top
    chosen = named | inside | (linked & source.notes.keys())
    return [path for path in source.notes if path in chosen and not _INSTRUCTIONS.fullmatch(basename(path))]


def _read_note(path: str, text: str, found: ImportContent) -> None:
    head = frontmatter.parse(clean_text(found.admitted(path, text)))
    body = "\n".join(_without_conversation(head.body.split("\n"), found))
    day = _day_of(path)
    for statement in read_statements(body, found.left_out):
        if _BOOKKEEPING.match(statement.said) and day:
            found.left_out["lines about the session"] += 1
            continue
        for name, kind in _entities_of(statement, is_about_owner=basename(path).lower() == "user.md"):
            found.entities.setdefault(name, ImportedEntity(name, kind, place=path))
        found.facts.append(_as_fact(statement, path, day))


def _as_fact(statement: Statement, path: str, day: str | None) -> ImportedFact:
    since = statement.day if statement.day and _is_day(statement.day) else day
    text = statement.text
    if statement.box is not None:
        is_below_tasks = statement.labels and _TASK_HEADING.search(statement.labels[-1])
        text = f"{'Done' if statement.box == 'done' else 'To do'}: {statement.said if is_below_tasks else text}"
    words = [label.casefold() for label in statement.labels if not says_nothing(label) and len(label.split()) < 4]
    return ImportedFact(
        text,
        path,
        _type_of(statement, is_daily=day is not None),
        created=datetime.fromisoformat(since).replace(tzinfo=UTC) if since else None,
        valid_from=since,
        keywords=tuple(word for word in words if word not in text.casefold()),
    )


def _type_of(statement: Statement, *, is_daily: bool) -> str:
    above = " | ".join(statement.labels)
    if statement.box is not None:
        return "event"
    if _DECISION_HEADING.search(above) or _DECISION.match(statement.said):
        return "decision"
    if _PREFERENCE_HEADING.search(above) or _PREFERENCE.search(statement.said):
        return "preference"
    if _TASK_HEADING.search(above):
        return "event"
    return "event" if is_daily and not _LASTING_HEADING.search(above) else "fact"


def _entities_of(statement: Statement, *, is_about_owner: bool) -> Iterator[tuple[str, str]]:
    """(name, entity type) of what a statement, or what stands above it, is about."""
    own = _OWN_NAME.fullmatch(statement.said) if is_about_owner else None
    if own and (name := _NAMED.fullmatch(own["name"].strip())):
        yield name["name"], "person"
    for heading, below in pairwise((*statement.labels, statement.said)):
        kind = _KIND.search(heading) if len(heading.split()) <= 4 else None
        name = _NAMED.match(below) if kind else None
        if kind and name and not _NO_NAME.fullmatch(name["name"]) and not _KIND.fullmatch(name["name"]):
            yield name["name"].rstrip("."), str(kind.lastgroup)


def _without_conversation(lines: Iterable[str], found: ImportContent) -> Iterator[str]:
    """A daily note may hold turns of a session; those are for `quaid extract`."""
    is_said = False
    for line in lines:
        is_said = _SAID.match(line) is not None or (is_said and bool(line.strip()) and not line.startswith("#"))
        if is_said:
            found.left_out["lines of a conversation"] += 1
        else:
            yield line


def _day_of(path: str) -> str | None:
    dated = _DAILY.fullmatch(basename(path))
    return dated[1] if dated and _is_day(dated[1]) else None


def _is_day(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
