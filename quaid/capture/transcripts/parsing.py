"""What the formats of transcripts share: lines, JSON objects, times, questions with their answers, and turns."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple, TypeVar

from quaid.capture.cleaning import clean_name, clean_text, split_message
from quaid.model import Conversation, Turn
from quaid.recall.query import strip_metadata
from quaid.text.host_blocks import without_host_blocks

_Node = TypeVar("_Node", bound=Hashable)

LINE_LIMIT_BYTES = 64 * 2**20
"""Bytes. A longer line is skipped and counted."""
CITABLE_CHARS = 2000
"""The maximum length of an agent's turn, unless a single paragraph or code block is longer."""

_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
_OTHER_BLOCKS = {
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "tool call",
    "server_tool_use": "tool call",
    "toolCall": "tool call",
    "tool_result": "tool result",
}
_JSON_START = re.compile(r"""\s*(?:\{\s*(?:"|\}|$)|\[\s*(?:[{"\[\]]|$))""")
_END = "\n\n."
_NO_TITLES = frozenset({"new chat", "untitled"})
_LAST_COMPONENT = re.compile(r"[^/\\]+(?=[/\\]*$)")
_USER_NOTE = "user_note:"
"""Codex writes this before an answer typed next to the selected one."""

_EPOCH = re.compile(r"[0-9]{9,13}(?:\.[0-9]+)?")
_HALF_OF_DAY = re.compile(r"\b([ap])\.?m\b\.?", re.IGNORECASE)
_DAY = re.compile(r"\d[^\d:]+\d|[a-zA-Z]{3}\W+\d|\d\W+[a-zA-Z]{3}")
_DOTTED = re.compile(r"\b\d{1,2}\.\d{1,2}\.\d")
_LETTERS = re.compile(r"[^\W\d_]+")
_EARLIEST_MILLISECONDS = 100_000_000_000


def read_lines(stream: IO[bytes], skipped: Counter[str]) -> Iterator[str]:
    """Yield the lines without their newlines: UTF-8, or UTF-16 with a BOM; bytes that are not text become U+FFFD."""
    first = stream.readline(LINE_LIMIT_BYTES)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from (first + stream.read()).decode("utf-16", "replace").split("\n")
        return
    raw = first.removeprefix(codecs.BOM_UTF8)
    while raw:
        if len(raw) >= LINE_LIMIT_BYTES and not raw.endswith(b"\n"):
            while (chunk := stream.readline(LINE_LIMIT_BYTES)) and not chunk.endswith(b"\n"):
                pass
            skipped["overlong line"] += 1
        else:
            yield raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
        raw = stream.readline(LINE_LIMIT_BYTES)


def parse_object(line: str) -> dict[str, Any] | None:
    """Return the JSON object on `line`, None for anything else."""
    try:
        value = json.loads(line.replace("\0", "").strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_json(head: Sequence[str]) -> bool:
    """Return True when these lines are JSON or JSONL rather than prose that quotes some."""
    starts = [_JSON_START.match(line.replace("\0", "")) is not None for line in head]
    return bool(starts) and (starts[0] or sum(starts) * 2 > len(starts))


def find_texts(content: object, skipped: Counter[str]) -> Iterator[str]:
    """Yield the texts of a message's content: a string, or a list of strings, text blocks and pasted documents."""
    blocks = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    for block in blocks:
        if isinstance(block, str):
            yield block
            continue
        found = block if isinstance(block, dict) else {}
        kind = str(found.get("type"))
        is_pasted = kind == "document" and (text_at(found, "title") or "").lower().startswith("paste")
        text = text_at(found, "source", "data") if is_pasted else found.get("text")
        if (is_pasted or kind in _TEXT_BLOCKS) and isinstance(text, str):
            yield text
        else:
            skipped[_OTHER_BLOCKS.get(kind, "attachment")] += 1


def value_at(found: object, *keys: str) -> Any:
    """Return the value at a path of `keys`, None where one is missing."""
    for key in keys:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def text_at(found: object, *keys: str) -> str | None:
    """Return the string at a path of `keys`, None where there is none."""
    value = value_at(found, *keys)
    return value if isinstance(value, str) else None


def object_at(found: object, *keys: str) -> dict[str, Any]:
    """Return the object at a path of `keys`, else an empty one."""
    value = value_at(found, *keys)
    return value if isinstance(value, dict) else {}


def list_at(found: object, *keys: str) -> list[Any]:
    """Return the list at a path of `keys`, else an empty one."""
    value = value_at(found, *keys)
    return value if isinstance(value, list) else []


def parse_timestamp(value: object) -> datetime | None:
    """Return a time with its offset, without one where it gives none; None when it cannot be read, or could be read as
    two.

    Read are ISO 8601, epoch seconds or milliseconds, and the forms of chat logs, such as `1:56 pm on 8 May, 2023`.
    """
    text = _HALF_OF_DAY.sub(r"\1m", " ".join(value.split())) if isinstance(value, str) and len(value) <= 64 else ""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    number = float(text) if _EPOCH.fullmatch(text) else number
    try:
        if number is not None:
            return datetime.fromtimestamp(number / 1000 if abs(number) >= _EARLIEST_MILLISECONDS else number, UTC)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            # 3/4/2026 is the third of April or the fourth of March, and no one can tell.
            (moment,) = _read_loosely(text)
        return moment if moment.astimezone(UTC) else None
    except (ValueError, OverflowError, OSError):
        return None


def _read_loosely(text: str) -> set[datetime]:
    """Return the readings of a day and a time of day in any order; what is missing of the day makes it several."""
    from dateutil import parser

    info = parser.parserinfo()
    known = (info.jump, info.utczone, info.ampm, info.month, info.weekday)
    # Other words would be taken for time zones of this machine.
    meanings = [[knows(word) for knows in known] for word in _LETTERS.findall(text)]
    is_time = all(any(meaning is not None and meaning is not False for meaning in each) for each in meanings)
    if not is_time or not _DAY.search(text):
        return set()
    orders = (False,) if text[:4].isdecimal() else (True,) if _DOTTED.search(text) else (False, True)
    defaults = (datetime(2000, 1, 1), datetime(2001, 2, 2))  # noqa: DTZ001 - as most times have no zone
    return {parser.parse(text, default=default, dayfirst=order) for default in defaults for order in orders}


class Utterance(NamedTuple):
    """A cleaned text of the user or the assistant, at `place` in its transcript.

    Between two prompts, equal texts of one `source` are one text written down twice; None is a source of its own.
    """

    role: str
    text: str
    at: datetime | None = None
    place: int = 0
    source: Hashable = None


def pair_answers(questions: object, answers: object, notes: object = None) -> Iterator[tuple[str, str]]:
    """Yield each question of a tool that its user answered, with the answer; values of other shapes are ignored.

    `answers` and `notes` are keyed by the question's text, its id or its number from 0. An answer is a text, a list of
    them or an object with `answers`; a note is an object with `notes`.
    """
    for number, question in enumerate(questions if isinstance(questions, (list, tuple)) else ()):
        text = clean_text(text_at(question, "question") or "")
        keys = (text_at(question, "question"), text_at(question, "id"), str(number))
        given, note = (
            next((found[key] for key in keys if key in found), None) if isinstance(found, dict) else None
            for found in (answers, notes)
        )
        given = value_at(given, "answers") if isinstance(given, dict) else given
        parts = [*(given if isinstance(given, list) else [given]), text_at(note, "notes")]
        texts = [part.removeprefix(_USER_NOTE).strip() for part in parts if isinstance(part, str)]
        answer = clean_text("\n".join(filter(None, texts)))
        if text and answer:
            yield text, answer


def utter_pairs(pairs: Iterable[tuple[str, str]], at: datetime | None, place: int = 0) -> Iterator[Utterance]:
    """Yield each question of the agent and its answer."""
    for question, answer in pairs:
        if question:
            yield Utterance("assistant", question, at, place)
        if answer:
            yield Utterance("user", answer, at, place)


def find_start(turns: Iterable[Turn]) -> datetime | None:
    """Return the first time that a turn gives."""
    return next((turn.at for turn in turns if turn.at), None)


def clean_typed(text: str) -> str:
    """Return the text that a person typed, without what gateways and hosts put around it; possibly empty."""
    cleaned = without_host_blocks(clean_text(text))
    # A message that is all metadata is returned whole; one with an end of its own never is.
    typed = strip_metadata(cleaned + _END).removesuffix(".").rstrip()
    return cleaned if typed == cleaned.rstrip() else clean_text(typed)


def find_project(folder: object) -> str | None:
    """Return the name of a working folder."""
    found = _LAST_COMPONENT.search(folder) if isinstance(folder, str) else None
    return (clean_name(found[0]) if found else "") or None


def walk_back(leaf: _Node | None, parents: Mapping[_Node, _Node | None]) -> list[_Node]:
    """Return the path from the root to `leaf`. A node that is not in `parents`, or a circle, ends it."""
    path: dict[_Node, None] = {}
    while leaf is not None and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))


class Format:
    """A format of transcripts: JSON lines, unless `read` is overridden.

    An instance reads one transcript and counts in `skipped` what it leaves out.
    """

    name = ""
    """The name in error messages."""
    source = ""
    """The name in conversations."""
    is_wrapped = True
    """Whether hosts or gateways put something around what a person types."""

    def __init__(self, skipped: Counter[str]) -> None:
        self.skipped = skipped
        self.session: str | None = None
        self.project: str | None = None
        self.started: datetime | None = None
        self.utterances: list[Utterance] = []

    @classmethod
    def recognises(cls, head: Sequence[str]) -> bool:
        """Return True when `head`, the first non-empty lines of a file, is of this format."""
        found = map(parse_object, head) if is_json(head) else ()
        return any(cls.is_entry(entry) for entry in found if entry is not None)

    @staticmethod
    def is_entry(found: dict[str, Any]) -> bool:
        """Return True when only this format has such a line."""
        raise NotImplementedError

    def read(self, lines: Iterator[str]) -> Iterator[Conversation]:
        """Yield the conversations in `lines`, holding no more than their text."""
        for line in lines:
            found = parse_object(line)
            if found is not None:
                self.read_entry(found)
            elif line.strip("\0 \t\r"):
                self.skipped["unreadable line"] += 1
        yield from self.finish()

    def read_entry(self, found: dict[str, Any]) -> None:
        """Read one line."""
        raise NotImplementedError

    def finish(self) -> Iterator[Conversation]:
        """Yield the conversations of all lines."""
        raise NotImplementedError

    def begin(self, session: object, folder: object, *times: object) -> None:
        """Set the session's id, its working folder and the first of `times` that can be read."""
        self.session = session if isinstance(session, str) else None
        self.project = find_project(folder)
        self.started = next(filter(None, map(parse_timestamp, times)), None)

    def clean(self, role: str, text: str) -> tuple[str, str]:
        """Return a text as it was written, and the reason to leave it out if that is empty."""
        return (clean_typed(text) if role == "user" and self.is_wrapped else clean_text(text)), "empty"

    def utter(
        self, role: str, content: object, at: datetime | None, place: int = 0, source: Hashable = None
    ) -> Iterator[Utterance]:
        """Yield the cleaned texts of a message's content; everything else in it is counted."""
        for raw in find_texts(content, self.skipped):
            text, reason = self.clean(role, raw)
            if text:
                yield Utterance(role, text, at, place, source)
            else:
                self.skipped[reason] += 1

    def converse(self, utterances: Iterable[Utterance], title: str | None = None) -> Conversation:
        """Return the conversation of `utterances`; if nothing says when it started, with the first time given.

        Each utterance is a turn, so that none changes while the transcript grows; a long message of the agent is
        several.
        """
        turns: list[Turn] = []
        answered: set[tuple[Hashable, str]] = set()
        for piece in utterances:
            if piece.role != "assistant":
                answered.clear()
                turns.append(Turn("User", piece.text, "user", piece.at))
            elif piece.source is None or (piece.source, piece.text) not in answered:
                answered.add((piece.source, piece.text))
                parts = split_message(piece.text, CITABLE_CHARS)
                turns += [Turn("Assistant", part, "assistant", piece.at) for part in parts]
        title = clean_name(title or "")
        title = None if title.casefold() in _NO_TITLES else title or None
        started = self.started or find_start(turns)
        return Conversation(tuple(turns), self.session, self.source, started, self.project, title=title)


class DocumentFormat(Format):
    """A format in which a conversation is a JSON object, perhaps one of many in a list."""

    @staticmethod
    def is_conversation(keys: Collection[str]) -> bool:
        """Return True when an object with these keys is a conversation of this format."""
        raise NotImplementedError

    def read_document(self, found: dict[str, Any]) -> Conversation:
        """Return the conversation of an object."""
        raise NotImplementedError
