"""Exports of ChatGPT and Claude.ai: JSON lists that may not fit into memory, perhaps in a ZIP archive."""

import codecs
import itertools
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO, Any

from quaid.capture.cleaning import clean_name
from quaid.capture.transcripts import parsing
from quaid.errors import BadInputError
from quaid.model import Conversation

CONVERSATION_LIMIT = 32 * 2**20
"""Characters. A longer conversation is skipped and counted."""
UNPACKED_LIMIT_BYTES = 4 * 2**30
"""The maximum size of all conversations of an archive; an archive that holds more is a trap."""

_CHUNK_BYTES = 2**20
CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:[-_][0-9]+)?\.json", re.IGNORECASE)
_DECODER = json.JSONDecoder(strict=False)
_SEPARATORS = re.compile(r"[\s,\[\]\0\ufeff]*")
_NEXT_OBJECT = re.compile(r",\s*(?=\{)")
_KEY = re.compile(r'(?<!\\)"([A-Za-z_]{1,40})"\s*:')
_DOCUMENT_START = re.compile(r"[\s\ufeff\[]*(?=\{)")
_MAX_WORD_CHARS = 16

_CLAUDE_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_TEXT_KINDS = frozenset({"text", "multimodal_text"})
_SPOKEN_KINDS = frozenset({"text", "audio_transcription"})
_THOUGHT_KINDS = frozenset({"thoughts", "reasoning_recap"})
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_CITATION = re.compile("\ue200[^\ue200\ue201]{0,400}\ue201")


class ChatGpt(parsing.DocumentFormat):
    """ChatGPT's conversations, from an export or a page: a tree of nodes of which `current_node` is the end.

    An edited question and a regenerated answer leave their old branch in the tree. Other nodes hold instructions,
    searches, code and its output, and thoughts.
    """

    name = "ChatGPT exports"
    source = "chatgpt"
    is_wrapped = False

    @staticmethod
    def is_conversation(keys: Collection[str]) -> bool:
        return "mapping" in keys and not {"current_node", "conversation_id", "create_time"}.isdisjoint(keys)

    def read_document(self, found: dict[str, Any]) -> Conversation:
        nodes = {name: node for name, node in parsing.object_at(found, "mapping").items() if isinstance(node, dict)}
        parents = {name: parsing.text_at(node, "parent") or None for name, node in nodes.items()}

        def seconds(name: str) -> float:
            at = parsing.parse_timestamp(parsing.value_at(nodes[name], "message", "create_time"))
            return at.timestamp() if at else 0.0

        current = parsing.text_at(found, "current_node")
        path = parsing.walk_back(
            current if current in nodes else max(reversed(nodes), key=seconds, default=None), parents
        )
        utterances = [piece for name in path for piece in self.read_message(nodes[name].get("message"))]
        unread = ChatGpt(Counter())
        abandoned = (any(unread.read_message(nodes[name].get("message"))) for name in nodes.keys() - set(path))
        self.skipped["abandoned branch"] += sum(abandoned)
        session = parsing.text_at(found, "conversation_id") or parsing.text_at(found, "id")
        self.begin(session, None, found.get("create_time"))
        return self.converse(utterances, parsing.text_at(found, "title"))

    def read_message(self, message: object) -> Iterator[parsing.Utterance]:
        """Yield the text of a message; its other parts are counted."""
        if not isinstance(message, dict):
            return
        role, content = parsing.value_at(message, "author", "role"), message.get("content")
        kind = content.get("content_type", "text") if isinstance(content, dict) else None
        kind = kind if isinstance(kind, str) else ""
        reasons = {
            "system or tool": role not in ("user", "assistant"),
            "hidden": any(parsing.value_at(message, "metadata", mark) for mark in _HIDDEN),
            "thinking": kind in _THOUGHT_KINDS or message.get("channel") == "analysis",
            "attachment": kind not in _TEXT_KINDS,
            "tool call": message.get("recipient", "all") not in ("all", None),
        }
        if reason := next((reason for reason, holds in reasons.items() if holds), None):
            self.skipped[reason] += 1
            return
        texts: list[str] = []
        parts = parsing.value_at(content, "parts")
        for part in parts if isinstance(parts, list) else [parsing.value_at(content, "text")]:
            kind = part.get("content_type", "text") if isinstance(part, dict) else "text"
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str) and isinstance(kind, str) and kind in _SPOKEN_KINDS:
                texts += [text] if text.strip() else []
            else:
                self.skipped["attachment"] += 1
        text = _CITATION.sub("", "\n\n".join(texts))
        yield from self.utter(str(role), text, parsing.parse_timestamp(message.get("create_time")))


class ClaudeAi(parsing.DocumentFormat):
    """Claude.ai's conversations, from an export: messages with blocks, each linked to the message before.

    An edited message leaves its old branch in the list. The export also has the contents of attached files, which are
    not part of the conversation. A long text that was pasted is an attachment without a name of its own.
    """

    name = "Claude.ai exports"
    source = "claude-ai"
    is_wrapped = False

    @staticmethod
    def is_conversation(keys: Collection[str]) -> bool:
        return "chat_messages" in keys and "uuid" in keys

    def read_document(self, found: dict[str, Any]) -> Conversation:
        messages = [message for message in parsing.list_at(found, "chat_messages") if isinstance(message, dict)]
        numbers = {message["uuid"]: n for n, message in enumerate(messages) if isinstance(message.get("uuid"), str)}
        parents: dict[int, int | None] = {}
        for number, message in enumerate(messages):
            parent = parsing.text_at(message, "parent_message_uuid")
            # The first message names one of zeros; older exports name none at all, and there the list is the order.
            parents[number] = numbers.get(parent) if parent is not None else number - 1 if number else None
        last = len(messages) - 1 if messages else None
        leaf = parsing.text_at(found, "current_leaf_message_uuid")
        path = parsing.walk_back(numbers.get(leaf, last) if leaf is not None else last, parents)
        self.skipped["abandoned branch"] += len(messages) - len(path)
        self.begin(found.get("uuid"), None, found.get("created_at"))
        self.project = clean_name(parsing.text_at(found, "project", "name") or "") or None
        utterances = [piece for number in path for piece in self.read_message(messages[number])]
        return self.converse(utterances, parsing.text_at(found, "name"))

    def read_message(self, message: dict[str, Any]) -> Iterator[parsing.Utterance]:
        """Yield the text of a message; what is attached to it is counted."""
        role = _CLAUDE_ROLES.get(parsing.text_at(message, "sender") or "")
        if role is None:
            self.skipped["unknown role"] += 1
            return
        pasted: list[str] = []
        for attached in parsing.list_at(message, "attachments"):
            name, text = parsing.text_at(attached, "file_name"), parsing.text_at(attached, "extracted_content")
            if text and name is not None and (not name or name.lower().startswith("paste")):
                pasted.append(text)
        attachments = [*parsing.list_at(message, "attachments"), *parsing.list_at(message, "files")]
        self.skipped["attachment"] += len(attachments) - len(pasted)
        # The plain text repeats the blocks, with a notice in place of those that are not text.
        content = parsing.list_at(message, "content") or message.get("text")
        texts = [text for text in (*pasted, *parsing.find_texts(content, self.skipped)) if text.strip()]
        yield from self.utter(role, "\n\n".join(texts), parsing.parse_timestamp(message.get("created_at")))


def find_keys(start: bytes) -> frozenset[str]:
    """Return the keys of the first object in a file that begins with `start`; none when no object begins there.

    Of an object that is cut off, all keys within reach, nested ones too.
    """
    text = start.decode(_find_encoding(start), "replace")
    place = _DOCUMENT_START.match(text)
    if place is None:
        return frozenset()
    try:
        found, _ = _DECODER.raw_decode(text, place.end())
    except (ValueError, RecursionError):
        return frozenset(_KEY.findall(text))
    return frozenset(found)


def read_documents(
    chunks: Iterator[bytes], form: type[parsing.DocumentFormat], skipped: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Yield the conversations of a format: objects in a list, in several lists, or one after another.

    No more is held than the longest conversation, at most `CONVERSATION_LIMIT`, and a chunk. Unreadable ones are
    counted, and reading continues with the next conversation.
    """
    reader = _Window(chunks)
    is_lost = False
    while reader.has_more():
        try:
            found = reader.take()
        except (ValueError, RecursionError):
            skipped["unreadable conversation"] += not is_lost
            is_lost = True
            reader.skip()
            continue
        if isinstance(found, dict) and form.is_conversation(found.keys()):
            is_lost = False
            yield found
        elif not is_lost:
            skipped["unknown entry"] += 1


class _Window:
    """A window on the text, which grows until the value that begins in it is whole."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        first = next(chunks, b"")
        self._chunks = codecs.iterdecode(itertools.chain([first], chunks), _find_encoding(first), "replace")
        self._text = ""
        self._place = 0

    def has_more(self) -> bool:
        while True:
            self._place = _SEPARATORS.match(self._text, self._place).end()  # type: ignore[union-attr]
            if self._place < len(self._text):
                return True
            if not self._grow():
                return False

    def take(self) -> object:
        """Return the value that begins here. Raises ValueError or RecursionError where there is none."""
        while True:
            try:
                found, self._place = _DECODER.raw_decode(self._text, self._place)
            except ValueError as error:
                at = getattr(error, "pos", None)
                is_at_end = at is not None and at >= len(self._text) - _MAX_WORD_CHARS
                is_cut_off = is_at_end or str(error).startswith("Unterminated string")
                if not is_cut_off or not self._grow():
                    raise
            else:
                return found

    def skip(self) -> None:
        """Go to where another object may begin; never to the same place."""
        following = _NEXT_OBJECT.search(self._text, self._place + 1)
        is_too_long = len(self._text) - self._place >= CONVERSATION_LIMIT
        self._place = following.end() if following and not is_too_long else len(self._text)

    def _grow(self) -> bool:
        """Drop what was read and double the rest, so that nothing is decoded more than a few times."""
        rest = self._text[self._place :]
        if len(rest) >= CONVERSATION_LIMIT:
            return False
        pieces = [rest]
        wanted = max(len(rest), 1)
        for piece in self._chunks:
            pieces.append(piece)
            wanted -= len(piece)
            if wanted <= 0:
                break
        self._text, self._place = "".join(pieces), 0
        return len(self._text) > len(rest)


def _find_encoding(start: bytes) -> str:
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def read_archive(stream: IO[bytes], name: str, wanted: re.Pattern[str] = CONVERSATIONS) -> Iterator[Iterator[bytes]]:
    """Yield the chunks of each `conversations.json`, or `conversations-000.json` and so on, in order; or of the files
    that are `wanted`.
    """
    import zipfile

    left = UNPACKED_LIMIT_BYTES

    def unpack(member: zipfile.ZipInfo) -> Iterator[bytes]:
        nonlocal left
        with _explain_damage(name), archive.open(member) as unpacked:
            while chunk := unpacked.read(_CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise BadInputError(
                        f"{name} unpacks to more than {UNPACKED_LIMIT_BYTES / 2**30:g} GB of conversations. Unpack it "
                        "and give its parts one by one."
                    )
                yield chunk

    with _explain_damage(name), zipfile.ZipFile(stream) as archive:
        members = [
            entry
            for entry in archive.infolist()
            if wanted.fullmatch(entry.filename) and not entry.filename.startswith("__MACOSX/")
        ]
        if not members:
            raise BadInputError(
                f"{name} is a ZIP archive without conversations.json. Give the archive as ChatGPT or Claude.ai "
                "sent it, or a transcript taken out of it."
            )
        for member in sorted(members, key=lambda entry: entry.filename):
            yield unpack(member)


@contextmanager
def _explain_damage(name: str) -> Iterator[None]:
    import lzma
    import struct
    import zipfile
    import zlib

    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, ValueError, EOFError) as error:
        raise BadInputError(f"{name} is a damaged ZIP archive ({error}). Download it again.") from error
    except (RuntimeError, NotImplementedError) as error:
        raise BadInputError(
            f"{name} cannot be unpacked ({error}). Unpack it and give its conversations.json."
        ) from error
