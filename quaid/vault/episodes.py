r"""The grammar of an episode's body: one block per turn, each with a block id that a fact can cite.

    **Caroline** (13:56): I went to a support group yesterday. ^t3

    **Melanie**: Two things:

    - wow
    - tell me more

    ^t4

A header starts a paragraph; the id ends the turn's last line, or is on its own line after a
list, a table, a quote or a code fence, which is where Obsidian looks for it. Inside a turn, a line that looks like
a header gets a backslash before its colon and one that ends like an id a backslash before its caret: markdown
shows neither. Lines that were escaped already get one more, so that reading takes exactly one away.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from quaid.errors import BadInputError
from quaid.model import Turn

FORGOTTEN = "*(forgotten)*"

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER_START = r"\*\*(?P<speaker>(?:\\.|[^\\*])+)\*\*(?: ?\((?P<time>[^()]*)\))?"
_HEADER = re.compile(_HEADER_START + r":[ \t]*(?P<text>.*)")
_TIME = re.compile(
    r"\s*(?:(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}) )?(?P<clock>[0-9:]+)(?: ?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2}))?\s*"
)
_HEADER_IN_TEXT = re.compile(rf"(?P<start>{_HEADER_START})(?P<slashes>\\*):")
_ID = re.compile(r"(?:^|[ \t])\^t(?P<number>[0-9]{1,9})[ \t]*$")
_ID_IN_TEXT = re.compile(r"(?P<start>^|[ \t])(?P<slashes>\\*)(?P<rest>\^t[0-9]+[ \t]*)$")
_FORGOTTEN_IN_TEXT = re.compile(r"(?P<slashes>\\*)(?P<rest>\*\(forgotten\)\*)")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?(?P<shown>[^\[\]|]+)\]\]")
_STRUCTURE = re.compile(
    r"[ \t]|[-*+](?:[ \t]|$)|[0-9]{1,9}[.)](?:[ \t]|$)|\||>|#{1,6}(?:[ \t]|$)|```|~~~|\$\$|[-=*_ ]{3,}$"
)


class EpisodeTurn(NamedTuple):
    """One block of an episode's body, `body[start:end]`.

    `number` is None for text without an id; `speaker` is empty for text without a header; `text` is empty for a
    forgotten turn. `said_at` is ISO 8601 with its offset, to the minute.
    """

    number: int | None
    speaker: str
    text: str
    said_at: str | None
    start: int
    end: int


@dataclass(slots=True)
class _Block:
    """A block as it is found: `end` and `text_end` move on with each line that belongs to it."""

    start: int
    end: int
    text_start: int
    text_end: int
    header: re.Match[str] | None = None
    number: int | None = None


def render_turns(turns: Sequence[Turn], first: int, started: datetime | None) -> str:
    """Return the blocks of `turns`, numbered from `first`, ending in a newline; empty for no turns.

    A turn of the day of `started` shows HH:MM, another the date too, one with another offset that as well, one without
    a time nothing.
    """
    blocks = []
    for number, turn in enumerate(turns, first):
        speaker = " ".join(turn.speaker.split()) or ("Assistant" if turn.role == "assistant" else "User")
        header = "**" + re.sub(r"[\\*]", r"\\\g<0>", speaker) + "**"
        if turn.at:
            day, clock = f"{turn.at:%Y-%m-%d} ", f"{turn.at:%H:%M}"
            zone = turn.at.isoformat(timespec="minutes")[len("2026-11-20T14:30") :]
            is_same_day = started is not None and started.date() == turn.at.date()
            is_same_zone = (turn.at.utcoffset() or None) == ((started and started.utcoffset()) or None)
            header += f" ({'' if is_same_day else day}{clock}{'' if is_same_zone else f' {zone}'})"
        text = _escape(turn.text)
        last_paragraph = text.rpartition("\n\n")[2].split("\n")
        before = "\n\n" if _STRUCTURE.match(text) else " "
        after = "\n\n" if any(_STRUCTURE.match(line) for line in last_paragraph) else " "
        blocks.append(f"{header}:{before}{text}{after}^t{number}" if text else f"{header}: ^t{number}")
    return "\n\n".join(blocks) + "\n" if blocks else ""


def parse_turns(body: str, started: datetime | None = None) -> list[EpisodeTurn]:
    """Return the turns of `body` in order, as a person may have edited them. Never raises.

    Args:
        body: an episode note without its frontmatter, with any newlines.
        started: completes times without a date or an offset; without it, those have no date and are UTC.

    A turn that lost its id belongs to the next one: both have that number. Numbers may repeat.
    """
    turns = []
    for block in _find_blocks(body):
        raw = body[block.text_start : block.text_end].replace("\r\n", "\n")
        text = "" if raw == FORGOTTEN else _escape(raw, is_reading=True)
        header = block.header
        speaker = re.sub(r"\\(.)", r"\1", header["speaker"]) if header else ""
        speaker = " ".join(_LINK.sub(lambda link: link["shown"], speaker).split())
        said_at = None
        if header and (time := _TIME.fullmatch(header["time"] or "")):
            day = time["day"] or (f"{started:%Y-%m-%d}" if started else "")
            with suppress(ValueError):
                moment = datetime.fromisoformat(f"{day}T{time['clock']}{time['zone'] or ''}")
                moment = moment.replace(tzinfo=moment.tzinfo or (started and started.tzinfo) or UTC)
                said_at = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
        turns.append(EpisodeTurn(block.number, speaker, text, said_at, block.start, block.end))
    return turns


def read_count(fields: Mapping[str, object], key: str) -> int | None:
    """Return a number of turns in the head of an episode; None where there is none."""
    value = str(fields.get(key) or "")
    return int(value) if re.fullmatch("[0-9]{1,9}", value) else None


def says_turn(body: str, number: int) -> bool:
    """Return whether a turn has this number and a text."""
    return any(turn.number == number and turn.text for turn in parse_turns(body))


def forget_turn(body: str, number: int) -> str:
    """`body` with the text of turn `number` replaced by `*(forgotten)*` and every other byte as it was.

    Every block with that number is forgotten.

    Raises:
        BadInputError: no turn has that number.
    """
    for block in reversed(_find_turn(body, number)):
        if block.text_start < block.text_end:
            body = body[: block.text_start] + FORGOTTEN + body[block.text_end :]
    return body


def restore_turn(body: str, before: str, number: int) -> str:
    """Return `body` with the blocks of turn `number` as they are in `before`.

    Raises:
        BadInputError: one of the two has no such turn.
    """
    old = _find_turn(before, number)
    new = _find_turn(body, number, len(old))
    for then, now in zip(reversed(old), reversed(new), strict=True):
        body = body[: now.start] + before[then.start : then.end] + body[now.end :]
    return body


def _escape(text: str, *, is_reading: bool = False) -> str:
    """Add a backslash before all that could be read as grammar, or remove one."""

    def change(slashes: str) -> str:
        return slashes[1:] if is_reading else slashes + "\\"

    if forgotten := _FORGOTTEN_IN_TEXT.fullmatch(text):
        return change(forgotten["slashes"]) + forgotten["rest"]
    lines = text.split("\n")
    for index, line in enumerate(lines):
        is_paragraph_start = index > 0 and not lines[index - 1].strip(" \t")
        header = _HEADER_IN_TEXT.match(line) if is_paragraph_start else None
        if header:
            line = header["start"] + change(header["slashes"]) + line[header.end("slashes") :]  # noqa: PLW2901
        lines[index] = _ID_IN_TEXT.sub(lambda found: found["start"] + change(found["slashes"]) + found["rest"], line)
    return "\n".join(lines)


def _find_blocks(body: str) -> list[_Block]:
    blocks: list[_Block] = []
    waiting: list[_Block] = []
    current: _Block | None = None
    starts_paragraph = True
    for found in _LINE.finditer(body):
        line = found[0].rstrip("\r\n")
        block_id = _ID.search(line)
        words = line[: block_id.start()] if block_id else line
        start, end = found.start(), found.start() + len(words.rstrip(" \t\r"))
        header = _HEADER.match(body, start, end) if starts_paragraph else None
        text_start = header.start("text") if header else start
        has_words = bool(body[text_start:end].strip(" \t\r"))
        if header or (current is None and has_words):
            current = _Block(start, end, text_start, text_start, header)
            blocks.append(current)
            waiting += [current] if header else []
        if current is not None and has_words:
            if current.text_start == current.text_end:
                current.text_start = text_start
            current.text_end = current.end = end
        if current is not None and block_id:
            current.end = start + len(line.rstrip(" \t"))
            for block in (*waiting, current):
                block.number = int(block_id["number"])
            waiting, current = [], None
        starts_paragraph = block_id is not None or end == start
    return blocks


def _find_turn(body: str, number: int, count: int | None = None) -> list[_Block]:
    """Return the blocks, at least one or exactly `count`, that have a turn's number."""
    blocks = [block for block in _find_blocks(body) if block.number == number]
    if not blocks or count not in (None, len(blocks)):
        raise BadInputError(f"No turn is numbered {number} in this episode. Look at its block ids (^t{number}).")
    return blocks
