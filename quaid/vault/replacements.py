"""Pieces of a text, found or counted, are replaced: what a model proposes becomes bytes, and no other byte changes.

A model is shown bare newlines, whatever the text has; its answer gets those of the place where it is put.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from quaid.vault import headings, markdown
from quaid.vault.headings import SectionSpan, sections, text_lines, text_start

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


def fit(
    text: str, changes: Sequence[Mapping[str, Any]], spans: Sequence[SectionSpan] | None = None
) -> tuple[list[Replacement], list[ChangeProblem]]:
    """The changes that can be made, in the order of their places, and what is wrong with the others.

    Each has `find`, `replace`, `reason` and perhaps `section`, the heading of the only section it is looked for in; one
    that occurs more than once is written behind those above it: `Logs > Options`. `spans` are the sections of `text`,
    if it is not markdown.
    """
    found: list[Replacement] = []
    problems: list[ChangeProblem] = []
    start = text_start(text)
    all_sections = list(sections(text) if spans is None else spans)
    for number, change in enumerate(changes):
        wanted, new = (change[key].replace("\r\n", "\n") for key in ("find", "replace"))
        title = title_key(change.get("section") or "")
        named = [(s.start, s.end) for s in all_sections if s.titles and _is_title(title, s)]
        if title and not named:
            problems.append((number, f"there is no heading {_quoted(title)}"))
            continue
        written = re.compile(f"(?=({re.escape(wanted)}))".replace("\\\n", r"(?:(?<!\r)\n|\r\n)"))
        searched = named or [(start, len(text))] if wanted.strip() else []
        places = {
            place.span(1) for span in searched for place in written.finditer(text, *span)
        }  # also overlapping ones
        place = min(places, default=(0, 0))
        if len(places) != 1:
            where = "its section" if named else "the text"
            problem = f"`find` occurs {len(places)} times in {where} and must occur once"
            if len(named) > 1:
                problem += f"; {len(named)} sections have this heading: write `Parent > Heading`"
        elif wanted == new:
            problem = "`replace` says what `find` does"
        else:
            problem = _find_overlap(place, found)
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
            problem = (find_problem(old, new) if find_problem is not None else "") or _find_overlap(place, found)
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
    line = headings.one_line(text[replacement.start : replacement.end])
    half = _LONG // 2
    begin, end = line[:half].rsplit(" ", 1)[0].rstrip(" ,;."), line[-half:].split(" ", 1)[-1]
    old = f'"{line}"' if len(line) <= _LONG else f'"{begin} … {end}"'
    changed = f"{old} becomes {_quoted(replacement.new, _LONG)}" if replacement.new.strip() else f"{old} goes"
    return f"- {changed}: {replacement.reason}" if replacement.reason else f"- {changed}"


def has_open_fence(text: str) -> bool:
    """Return True if a code fence is opened that goes on to the end."""
    return not markdown.blank(f"{text[text_start(text) :]}\n.", "fence").endswith(".")


def title_key(title: str) -> str:
    """Return the key that headings share which are written alike, with or without their marks and backticks."""
    unmarked = re.sub(r"^[ \t]*#{1,6}[ \t]+|(?<![ \t])[ \t]+#+[ \t]*$", "", title).replace("`", "")
    return headings.one_line(unmarked).casefold()


def _is_title(key: str, section: SectionSpan) -> bool:
    """Return whether a section has the title with this key, or the titles above it and its own, joined by `>`."""
    *outer, last = map(title_key, section.titles)
    if key != last and not key.endswith(f" > {last}"):
        return False
    above = iter(outer)
    return all(part in above for part in key.removesuffix(last).split(" > ") if part)


def _find_overlap(place: tuple[int, int], found: Sequence[Replacement]) -> str:
    overlaps = any(other.start < place[1] and place[0] < other.end for other in found)
    return "it overlaps with another change" if overlaps else ""


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
