"""The context of a session: core notes, preferences, projects, what is pending for the owner, recent facts.

`read_context` reads it from the vault and its index as they are, `render_context` renders it in a number of tokens.
Hooks inject that text at the start of a session, `quaid context` prints it.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

from quaid.agents.project_context import read_projects
from quaid.errors import count
from quaid.index import contents, documents
from quaid.index.documents import list_first_paths, list_latest_facts
from quaid.index.listing import list_rules
from quaid.index.port import IndexConnection
from quaid.index.scope import visible_to
from quaid.local import queue
from quaid.place import state_folder
from quaid.recall import visibility
from quaid.redaction import admit
from quaid.remotes.contact import list_reminders
from quaid.sync.diff import compare
from quaid.text.quoting import CLOSING, OPENING, neutralise, shorten
from quaid.vault import files
from quaid.vault.layout import Layout, is_question

RECENT_DAYS = 14
MAX_RECENT = 40
MIN_RECENT = 10
"""The number of newest facts that are shown, however old they are."""
MAX_PREFERENCES = 15
"""A preference applies to every prompt, so it is shown once, before the first."""
PREFERENCE_SHARE = 0.25
"""The maximum share of the remaining budget for preferences."""
MAX_LISTED = 5
PROJECT_SHARE = 0.5
"""The share of the rest for the notes of the project that the session works in."""
PROJECTS = "Projects (ask their documents with docs_search, or `quaid docs search`)"
_MAX_FACT = 240
_MAX_TITLE = 100
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[( |x|X)\]", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
CUT = "(cut for length)"


DatedFact = tuple[str, str]
"""A fact in the context of a session: the day it was learned (ISO) and its text."""


class SessionContext(NamedTuple):
    """`core` and `project`, the notes of the project at work, are (file, text); `projects` are one line each.

    `questions` are the titles of those in review/, `queued` counts conversations that could not be learned from yet,
    `remotes` are sentences about other machines' commits. `recent` is newest first and excludes the `preferences`, of
    which the weightiest is first.
    """

    core: tuple[tuple[str, str], ...] = ()
    projects: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    queued: int = 0
    recent: tuple[DatedFact, ...] = ()
    project: tuple[tuple[str, str], ...] = ()
    preferences: tuple[DatedFact, ...] = ()
    remotes: tuple[str, ...] = ()


def build_session_context(
    root: Path,
    index: IndexConnection | None,
    owners: frozenset[str],
    tokens: int,
    longest: int | None = None,
    cwd: str | None = None,
    *,
    place: Layout,
    now: datetime,
) -> str:
    """Return the text for a session in the folder `cwd`, at most `longest` characters as JSON, in which quotes and
    newlines take two.
    """
    context = read_context(root, index, owners, now, cwd, place=place)
    text = render_context(context, tokens)
    while longest is not None and len(json.dumps(text, ensure_ascii=False)) > longest:
        tokens = tokens * 9 // 10
        text = render_context(context, tokens)
    return text


def is_current(root: Path, place: Layout, index: IndexConnection, now: datetime) -> bool:
    """Return whether the index agrees with the files in what `read_context` takes from it: the newest facts, the first
    preferences, and all of this month and the last. That looks at some files where a sweep looks at all.
    """
    if index.schema_version() != contents.SCHEMA_VERSION:
        return False
    last_month = now.replace(day=1) - timedelta(days=1)
    facts = root / place.place("facts")
    folders = [facts / f"{day:%Y/%m}" for day in (now, last_month)]
    near = {path.relative_to(root).as_posix() for folder in folders for path in folder.glob("*.md")}
    paths = near.union(list_first_paths(index, MAX_RECENT, MAX_PREFERENCES))
    return not any(compare(files.list_some(root, paths).notes, documents.list_known(index, paths)))


def read_context(
    root: Path,
    index: IndexConnection | None,
    owners: frozenset[str],
    now: datetime,
    cwd: str | None = None,
    *,
    place: Layout,
) -> SessionContext:
    """Read the context for one of `owners` from the vault at `root`; without an index, only from the files."""
    since = (now - timedelta(days=RECENT_DAYS)).date().isoformat()
    newest: Sequence[tuple[str, str]] = ()
    preferred: list[tuple[str, str]] = []
    if index is not None:
        scope, today = visible_to(index, owners), now.date().isoformat()
        preferred = list_rules(index, scope, MAX_LISTED)
        preferred += list_latest_facts(index, scope, MAX_PREFERENCES, today, preferences=True)
        newest = list_latest_facts(index, scope, MAX_RECENT, today)
    projects, project = read_projects(root, place, cwd)
    return SessionContext(
        core=tuple(visibility.read_core_notes(root, owners, place)),
        projects=projects,
        project=project,
        questions=tuple(_list_questions(root, owners, place)),
        remotes=tuple(list_reminders(root)),
        queued=sum(1 for item in queue.waiting(state_folder(root)) if item.attempts),
        preferences=tuple(starmap(_to_fact, preferred)),
        recent=tuple(
            _to_fact(created, text)
            for number, (created, text) in enumerate(newest)
            if (created >= since or number < MIN_RECENT) and (created, text) not in preferred
        ),
    )


def _to_fact(created: str, text: str) -> DatedFact:
    return created[:10], shorten(text, _MAX_FACT)


def render_context(context: SessionContext, tokens: int) -> str:
    """Render the text for an agent, without secrets, in <quaid-memory> tags and at most `tokens` long; empty if there
    is nothing to show.
    """
    questions, waiting = len(context.questions), []
    if questions:
        waiting.append(f"{count(questions, 'question')} in review/ (quaid janitor list):")
        waiting += context.questions[:MAX_LISTED]
    if context.queued:
        waiting.append(f"{count(context.queued, 'conversation')} could not be learned from yet")
    waiting += context.remotes
    room = visibility.session_room(tokens)
    blocks = [*_render_notes(context.core, int(room * visibility.CORE_SHARE))]
    room -= sum(len(block) + 2 for block in blocks)
    if block := _render_list("Preferences", _format_days(context.preferences), int(room * PREFERENCE_SHARE)):
        blocks.append(block)
        room -= len(block) + 2
    of_project = [*_render_notes(context.project, int(room * PROJECT_SHARE))]
    room -= sum(len(block) + 2 for block in of_project)
    for title, lines in (
        (PROJECTS, context.projects),
        ("Waiting for the owner", waiting),
        ("Learned lately", _format_days(context.recent)),
    ):
        block = _render_list(title, lines, room)
        if block:
            blocks.append(block)
            room -= len(block) + 2
        if title == PROJECTS:
            blocks += of_project
    text = "\n\n".join([f"{OPENING}\n{visibility.PREFACE}", *blocks, CLOSING]) if blocks else ""
    return admit(text).text


def _format_days(facts: Sequence[DatedFact]) -> list[str]:
    return [f"({day}) {text}" for day, text in facts]


def _render_notes(notes: Sequence[tuple[str, str]], room: int) -> Iterator[str]:
    """Each note gets an even share; what a short one leaves goes to the others."""
    texts = [neutralise(note) for _, note in notes]
    names = [name for name, _ in notes]
    for name, text, share in zip(names, texts, visibility.share_room(names, texts, room), strict=True):
        if shown := shorten_note(text, share):
            yield f"## {name}\n{shown}"


def _render_list(title: str, lines: Sequence[str], room: int) -> str:
    shown = _fit((f"- {' '.join(neutralise(line).split())}" for line in lines), room - len(title) - 4)
    return "\n".join([f"## {title}", *shown]) if shown else ""


def _list_questions(root: Path, owners: Collection[str], place: Layout) -> Iterator[str]:
    """Yield the titles of the questions in review/ whose boxes are all empty."""
    folder = place.place("review")
    for path in sorted((root / folder).glob("*.md")):
        text = visibility.read_visible(root, f"{folder}/{path.name}", owners, place)
        boxes = _BOX.findall(text)
        if not boxes or any(box.strip() for box in boxes):
            continue
        from quaid.vault import frontmatter  # takes a hook 30 ms, and most sessions have no question

        if is_question(frontmatter.parse(text).fields):
            title = _TITLE.search(text)
            yield (title[1] if title else path.stem)[:_MAX_TITLE]


# -- core notes that are too long ------------------------------------------------------------------------------------


def shorten_note(text: str, budget: int) -> str:
    """Return whole lines of a core note in at most `budget` characters; empty if not even a few fit.

    Of each section the oldest lines are left out: the janitor and people add lines at the end, so of a list the end is
    shown, and of prose the beginning.
    """
    if len(text) <= budget:
        return text
    sections: list[tuple[str, list[str]]] = [("", [])]  # the first has no heading
    for line in text.split("\n"):
        if _HEADING.match(line):
            sections.append((line, []))
        else:
            sections[-1][1].append(line)
    if sections[0] == ("", []):
        del sections[0]
    # A line end and perhaps a mark for each section.
    spare = sum(len(heading) + len(CUT) + 3 for heading, _ in sections)
    if spare > budget // 2:  # more headings than text could be shown
        shown = _fit(text.split("\n")[::-1], budget - len(CUT) - 1)[::-1]
        return "\n".join([CUT, *shown]) if shown else ""
    shares = visibility.divide_room([len("\n".join(body)) for _, body in sections], budget - spare)
    parts: list[str] = []
    for (heading, body), share in zip(sections, shares, strict=True):
        if len("\n".join(body)) > share:
            first = next((place for place, line in enumerate(body) if _ITEM.match(line)), len(body))
            items = _fit(body[first:][::-1], share * 2 // 3 if first else share)[::-1]
            left = share - len("\n".join(items))
            prose = _fit(body[:first], left)
            if first and not prose and (start := body[0][: max(0, left - 1)].rstrip()):
                prose = [start]
            body = [*prose, CUT, *items]  # noqa: PLW2901 - what is left of it
        parts += [heading] if heading else []
        parts += body
    return "\n".join(parts)


def _fit(lines: Iterable[str], budget: int) -> list[str]:
    """Return the first lines that fit into `budget` characters, without blank ones at the end."""
    shown: list[str] = []
    for line in lines:
        budget -= len(line) + 1
        if budget < 0:
            break
        shown.append(line)
    while shown and not shown[-1].strip():
        shown.pop()
    return shown
