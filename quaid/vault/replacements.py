"""Pieces of a text, found or counted, are replaced: what a model proposes becomes bytes, and no other byte changes.

A model is shown bare newlines, whatever the text has; its answer gets those of the place where it is put.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from quaid.vault import headings, markdown
from quaid.vault.headings import text_lines, text_start

FindProblem = Callable[[str, str], str]
"""(old, new) text, both with bare newlines -> the problem with that change, empty when there is none."""
ChangeProblem = tuple[int, str]
"""The place of a change in those that were proposed, and what is wrong with it."""
_NUMBERED = re.compile(r"[0-9]+\t")
_SHORT, _LONG = 60, 200
"""Characters that are quoted of a piece of text: to the model, and to who decides."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """`text[start:end]` is to read `new`."""

    start: int
    end: int
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """`text[start:end]`, a heading and all below it, headings of deeper levels among it.

    `titles` is the path of headings, outermost first; empty for the text before the first one. `body` is the offset
    behind the heading, `next` that of the next heading of any level.
    """

    titles: tuple[str, ...]
    level: int
    start: int
    body: int
    next: int
    end: int


def fit(
    text: str, changes: Sequence[Mapping[str, Any]], find_problem: FindProblem | None = None
) -> tuple[list[Replacement], list[ChangeProblem]]:
    """The changes that can be made, in the order of their places, and what is wrong with the others.

    Each has `find`, `replace`, `reason` and perhaps `section`, the heading of the only section it is looked for in.
    """
    found: list[Replacement] = []
    problems: list[ChangeProblem] = []
    start = text_start(text)
    all_sections = list(sections(text))
    for number, change in enumerate(changes):
        wanted, new = (change[key].replace("\r\n", "\n") for key in ("find", "replace"))
        title = title_key(change.get("section") or "")
        spans = [(s.start, s.end) for s in all_sections if s.titles and title_key(s.titles[-1]) == title]
        if title and not spans:
            problems.append((number, f"there is no heading {_quoted(title)}"))
            continue
        places = {place for span in spans or [(start, len(text))] for place in _places(text, wanted, *span)}
        place = min(places, default=(0, 0))
        if len(places) != 1:
            where = "its section" if spans else "the text"
            problem = f"`find` occurs {len(places)} times in {where} and must occur once"
        elif wanted == new:
            problem = "`replace` says what `find` does"
        else:
            problem = _find_problem(place, (wanted, new), found, find_problem)
        if problem:
            problems.append((number, f"{problem}: {_quoted(wanted)}"))
        else:
            found.append(Replacement(*place, _as_written(text, place, new), change["reason"]))
    return sorted(found, key=lambda replacement: replacement.start), problems


def number_lines(text: str) -> str:
    """Return the lines of `text`, with bare newlines, each behind its number and a tab, as `fit_lines` counts them."""
    return "\n".join(f"{n}\t{line}" for n, line in enumerate(_counted(text), 1))


def fit_lines(
    text: str, changes: Sequence[Mapping[str, Any]], find_problem: FindProblem | None = None
) -> tuple[list[Replacement], list[ChangeProblem]]:
    """Return as `fit`. Each change has `from` and `to`, the numbers of the first and last line that go, `replace`, the
    lines of the text there instead, and `reason`.
    """
    found: list[Replacement] = []
    problems: list[ChangeProblem] = []
    lines = _counted(text)
    starts = list(accumulate((len(line) + 1 for line in text_lines(text)), initial=text_start(text)))
    for number, change in enumerate(changes):
        first, last, new = change["from"], change["to"], change["replace"].replace("\r\n", "\n")
        new += "\n" if new and not new.endswith("\n") else ""
        old = "".join(f"{line}\n" for line in lines[first - 1 : last])
        place = (0, 0)
        if not 1 <= first <= last <= len(lines):
            problem = f"the note has the lines 1 to {len(lines)}, and `from` is not after `to`"
        elif old == new:
            problem = "`replace` is the text that is there already"
        elif any(_NUMBERED.match(line) and line not in lines for line in new.splitlines()):
            problem = "`replace` has the numbers of lines in it"
        else:
            place = (starts[first - 1], min(starts[last], len(text)))
            problem = _find_problem(place, (old, new), found, find_problem)
        if problem:
            problems.append((number, f"lines {first} to {last}: {problem}"))
        else:
            found.append(Replacement(*place, _as_written(text, place, new), change["reason"]))
    return sorted(found, key=lambda replacement: replacement.start), problems


def apply(text: str, replacements: Sequence[Replacement]) -> str:
    """`text` with `replacements`, which are sorted and do not overlap."""
    for replacement in reversed(replacements):
        text = text[: replacement.start] + replacement.new + text[replacement.end :]
    return text


def describe(text: str, replacement: Replacement) -> str:
    """`- "Rent: 900" becomes "Rent: 950": the lease says so`."""
    old = _quoted_ends(text[replacement.start : replacement.end])
    changed = f"{old} becomes {_quoted(replacement.new, _LONG)}" if replacement.new.strip() else f"{old} goes"
    return f"- {changed}: {replacement.reason}" if replacement.reason else f"- {changed}"


def sections(text: str) -> Iterator[SectionSpan]:
    """Yield the text before the first heading, if there is any, and the section of each heading."""
    marks = list(headings.find_headings(text))
    start = text_start(text)
    first = marks[0][1] if marks else len(text)
    if text[start:first].strip():
        yield SectionSpan((), 0, start, start, first, first)
    path: list[tuple[int, str]] = []
    for place, (level, begin, body, title) in enumerate(marks):
        path = [*(outer for outer in path if outer[0] < level), (level, title)]
        following = marks[place + 1 :]
        end = next((other[1] for other in following if other[0] <= level), len(text))
        next_one = following[0][1] if following else len(text)
        yield SectionSpan(tuple(title for _, title in path), level, begin, body, next_one, end)


def has_open_fence(text: str) -> bool:
    """Return True if a code fence is opened that goes on to the end."""
    return not markdown.blank(f"{text[text_start(text) :]}\n.", "fence").endswith(".")


def title_key(title: str) -> str:
    """Return the key that headings share which are written alike, with or without their marks."""
    return headings.one_line(re.sub(r"^[ \t]*#{1,6}[ \t]+|(?<![ \t])[ \t]+#+[ \t]*$", "", title)).casefold()


def _find_problem(
    place: tuple[int, int], change: tuple[str, str], found: Sequence[Replacement], find_problem: FindProblem | None
) -> str:
    problem = find_problem(*change) if find_problem is not None else ""
    if not problem and any(other.start < place[1] and place[0] < other.end for other in found):
        return "it overlaps with another change"
    return problem


def _places(text: str, wanted: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Each place of `wanted` in `text[start:end]`, also where two of them overlap."""
    if wanted.strip():
        written = re.escape(wanted).replace("\\\n", r"(?:(?<!\r)\n|\r\n)")
        yield from (place.span(1) for place in re.compile(f"(?=({written}))").finditer(text, start, end))


def _as_written(text: str, place: tuple[int, int], new: str) -> str:
    """`new` with the newlines of its place, and the end of the text left as it is."""
    start, end = place
    old = text[start:end]
    if end == len(text) and (new.strip("\n") or not text[:start].endswith("\n")):
        ending = old[len(old.rstrip("\r\n")) :].replace("\r\n", "\n")
        new = new.rstrip("\n") + ending
    after = text.find("\n", start)
    line_end = after if after >= 0 else text.rfind("\n")
    return new.replace("\n", "\r\n") if line_end > 0 and text[line_end - 1] == "\r" else new


def _counted(text: str) -> list[str]:
    """Return the lines of `text` without their ends; text after the last newline is a line."""
    lines = [line.removesuffix("\r") for line in text_lines(text)]
    return lines if lines[-1] else lines[:-1]


def _quoted(text: str, most: int = _SHORT) -> str:
    line = headings.one_line(text)
    return f'"{line}"' if len(line) <= most else f'"{line[:most].rsplit(" ", 1)[0].rstrip(" ,;.")}…"'


def _quoted_ends(text: str) -> str:
    """Return a passage as who decides on it sees it: where it begins and where it ends."""
    line = headings.one_line(text)
    if len(line) <= _LONG:
        return f'"{line}"'
    begin, end = line[: _LONG // 2].rsplit(" ", 1)[0].rstrip(" ,;."), line[-_LONG // 2 :].split(" ", 1)[-1]
    return f'"{begin} … {end}"'
