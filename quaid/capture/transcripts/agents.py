"""The session files of agents other than Claude Code: Codex CLI, Gemini CLI, OpenClaw and Hermes."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.parsing import (
    DocumentFormat,
    Format,
    Utterance,
    clean_typed,
    list_at,
    object_at,
    pair_answers,
    parse_object,
    parse_timestamp,
    text_at,
    utter_pairs,
    value_at,
    walk_back,
)
from quaid.model import Conversation
from quaid.text.host_blocks import without_host_blocks

_CODEX_BOOKKEEPING = frozenset({"turn_context", "compacted", "world_state", "token_usage_record"})
_CODEX_TYPES = _CODEX_BOOKKEEPING | {"session_meta", "response_item", "event_msg"}
_CODEX_SKIPPED = (
    (re.compile("reasoning"), "thinking"),
    (re.compile(".*_output|.*_result"), "tool result"),
    (re.compile(".*_call"), "tool call"),
    (re.compile("ghost_snapshot|compaction.*|context_compaction"), "bookkeeping"),
)
_CODEX_EVENTS = {"usermessage": "user", "agentmessage": "assistant"}
_CODEX_QUESTION_TOOL = "request_user_input"

_CODEX_INJECTED = re.compile(
    r"\s*(?:</?(?:permissions instructions|skill|instructions|image|user_action)\b|# AGENTS\.md instructions"
    r"|Another language model started to solve this problem)",
    re.IGNORECASE,
)
_CODEX_TAG = re.compile(r"\s*<[a-z][a-z0-9_ -]*>")
_CODEX_REQUEST = re.compile(
    r"\A#+ (?:Context from my IDE setup|Files mentioned by the user):?\n.*?^## My request for Codex:[ \t]*\n?",
    re.DOTALL | re.MULTILINE,
)


class Codex(Format):
    """Codex CLI's rollouts: `{"timestamp", "type", "payload"}` per line, every message in them twice.

    `response_item` lines are the messages to and from the model, `event_msg` lines what the terminal showed. The items
    are read, because they are the older and the fuller record; the events show which of a user's items a person typed,
    as the host puts instructions and context there in the user's name. The user's answer to a question is in the output
    of the tool that asked it. `compacted` lines repeat earlier ones, and `thread_rolled_back` takes turns back. A
    rollout of an agent that another agent sent has no turns: no person took part.
    """

    name = "Codex CLI rollouts"
    source = "codex"

    def __init__(self, skipped: Counter[str]) -> None:
        super().__init__(skipped)
        self._is_delegated = False
        self._entries: list[tuple[str, Utterance] | int] = []
        """(item, event or tool, an utterance), or a number of turns that are taken back."""
        self._questions: dict[str, list[Any]] = {}
        """The questions of tools to the user, by the id of the call."""

    @staticmethod
    def is_entry(found: dict[str, Any]) -> bool:
        return _find_payload(found) is not None

    def read_entry(self, found: dict[str, Any]) -> None:
        payload = _find_payload(found)
        kind = str(found.get("type")) if payload is not found else "response_item"
        if payload is None and "type" not in found and isinstance(found.get("id"), str):
            kind, payload = "session_meta", found
        if payload is None:
            self._skip_item(kind)
            return
        at = parse_timestamp(found.get("timestamp")) or parse_timestamp(payload.get("timestamp"))
        # A forked rollout repeats its parent's head after its own.
        if kind == "session_meta" and self.session is None and isinstance(payload.get("id"), str):
            self.begin(payload["id"], payload.get("cwd"), payload.get("timestamp"), found.get("timestamp"))
            self._is_delegated = "subagent" in object_at(payload, "source")
        elif kind == "response_item":
            self._read_item(payload, at)
        elif kind == "event_msg":
            # Since 0.171 an event has the message as an item.
            item = object_at(payload, "item") or payload
            role = _CODEX_EVENTS.get(str(item.get("type")).replace("_", "").lower())
            turns = payload.get("num_turns")
            parts = [text_at(part, "text") or "" for part in list_at(item, "content")]
            message = "".join(parts) if parts else text_at(item, "message")
            if role and message is not None:
                text, _ = self.clean(role, message)
                self._entries += [("event", Utterance(role, text, at))] if text else []
            elif payload.get("type") == "thread_rolled_back" and isinstance(turns, int) and turns > 0:
                self._entries.append(turns)
            else:
                self.skipped["bookkeeping"] += 1
        elif kind != "session_meta":
            self.skipped["bookkeeping"] += 1

    def _read_item(self, payload: dict[str, Any], at: datetime | None) -> None:
        kind, role = str(payload.get("type")), payload.get("role")
        if kind != "message":
            call = text_at(payload, "call_id") or ""
            if payload.get("name") == _CODEX_QUESTION_TOOL:
                self._questions[call] = list_at(parse_object(text_at(payload, "arguments") or ""), "questions")
            output, pairs = text_at(payload, "output"), []
            if call in self._questions and output is not None:
                answers = object_at(parse_object(output), "answers")
                pairs = list(pair_answers(self._questions.pop(call), answers))
            if not pairs:
                self._skip_item(kind)
            self._entries += [("tool", piece) for piece in utter_pairs(pairs, at)]
        elif role not in ("user", "assistant"):
            self.skipped["system or tool"] += 1
        else:
            content = payload.get("content")
            # Since 0.171 each part names who put it there: `user.text`, `environments.environment_context`.
            kinds = list_at(payload, "internal_chat_message_metadata_passthrough", "content_item_kinds")
            if role == "user" and isinstance(content, list) and len(kinds) == len(content):
                typed = [part for part, kind in zip(content, kinds, strict=True) if str(kind).startswith("user.")]
                self.skipped["injected"] += len(content) - len(typed)
                content = typed
            self._entries += [("item", piece) for piece in self.utter(role, content, at)]

    def _skip_item(self, kind: str) -> None:
        self.skipped[next((why for form, why in _CODEX_SKIPPED if form.fullmatch(kind)), "unknown type")] += 1

    def clean(self, role: str, text: str) -> tuple[str, str]:
        text = clean_text(text)
        typed = text if role == "assistant" else without_host_blocks(text)
        # Injected text is recognised by its opening, so it is cleaned no further.
        is_raw = role == "assistant" or _CODEX_INJECTED.match(typed)
        reason = "injected" if text and not typed else "empty"
        return (typed if is_raw else clean_typed(_CODEX_REQUEST.sub("", typed))), reason

    def finish(self) -> Iterator[Conversation]:
        entries = [entry for entry in self._entries if not isinstance(entry, int)]
        typed = {piece.text for kind, piece in entries if kind == "event" and piece.role == "user"}
        # New kinds of these appear with every release; where there are events, they know better.
        strange = {piece for _, piece in entries if typed and piece.text not in typed and _CODEX_TAG.match(piece.text)}
        hosts = {piece for _, piece in entries if piece in strange or _CODEX_INJECTED.match(piece.text)}
        injected = {piece for piece in hosts if piece.role == "user"}
        roles_of_items = {piece.role for kind, piece in entries if kind == "item" and piece not in injected}
        self.skipped["injected"] += sum(kind == "item" and piece in injected for kind, piece in entries)
        utterances: list[Utterance] = []
        for entry in self._entries:
            if isinstance(entry, int):
                while utterances and entry:
                    entry -= utterances.pop().role == "user"  # noqa: PLW2901 - a countdown
                    self.skipped["abandoned branch"] += 1
                continue
            kind, piece = entry
            is_read = kind == ("item" if piece.role in roles_of_items else "event")
            if kind == "tool" or (is_read and piece not in injected):
                utterances.append(piece)
        if self._is_delegated:
            self.skipped["sidechain"] += len(utterances)
            utterances = []
        yield self.converse(utterances)


def _find_payload(found: dict[str, Any]) -> dict[str, Any] | None:
    if isinstance(found.get("payload"), dict):
        return found["payload"] if str(found.get("type")) in _CODEX_TYPES else None
    # The first versions wrote the bare items.
    blocks = list_at(found, "content") if found.get("type") == "message" else []
    kinds = {text_at(block, "type") for block in blocks}
    return None if kinds.isdisjoint({"input_text", "output_text"}) else found


_GEMINI_ROLES = {"user": "user", "gemini": "assistant"}
_GEMINI_NOTICES = frozenset({"info", "warning", "error"})
_GEMINI_COMMAND = re.compile(r"/[\w:-]+\s*\Z")
_GEMINI_QUESTION_TOOL = "ask_user"
_GEMINI_FILES_START = "--- Content from referenced files ---"
_GEMINI_FILES_END = "--- End of content ---"
_GEMINI_SKIPPED = {"functionCall": "tool call", "functionResponse": "tool result"}


class Gemini(DocumentFormat):
    """Gemini CLI's sessions: a log of messages and patches to them, or, from older versions, one JSON object.

    The first line has session and start. A message is written again whenever it grows, so of an id the first place and
    the last content count. `{"$rewindTo": id}` takes back that message and all after it. `{"$set": {"messages": …}}` is
    the model's view from then on, not what was typed: a compression puts a summary there, under new ids; it is read
    only where there are no other messages. A helper agent's session has no turns.
    """

    name = "Gemini CLI sessions"
    source = "gemini"

    def __init__(self, skipped: Counter[str]) -> None:
        super().__init__(skipped)
        self._metadata: dict[str, Any] = {}
        self._messages: dict[str, tuple[list[Utterance], Counter[str]]] = {}

    @staticmethod
    def is_entry(found: dict[str, Any]) -> bool:
        is_message = found.get("type") == "gemini" and {"id", "content"} <= found.keys()
        return _is_gemini_header(found) or is_message or "$rewindTo" in found

    @staticmethod
    def is_conversation(keys: Collection[str]) -> bool:
        return {"sessionId", "messages", "startTime"} <= set(keys)

    def read_entry(self, found: dict[str, Any]) -> None:
        if (target := text_at(found, "$rewindTo")) is not None:
            if target not in self._messages:
                # It names a message of the model's view: the conversation stays.
                self.skipped["unknown rewind"] += 1
            while target in self._messages:
                self._messages.popitem()
                self.skipped["abandoned branch"] += 1
        elif isinstance(found.get("id"), str):
            message = Gemini(Counter())
            self._messages[found["id"]] = (list(message.read_message(found)), message.skipped)
        elif isinstance(found.get("$set"), dict) or _is_gemini_header(found):
            self._metadata |= found.get("$set") or found
        else:
            self.skipped["unknown type"] += 1

    def finish(self) -> Iterator[Conversation]:
        if not self._messages:
            yield self.read_document(self._metadata)
            return
        for _, skipped in self._messages.values():
            self.skipped.update(skipped)
        yield self._make(self._metadata, [piece for pieces, _ in self._messages.values() for piece in pieces])

    def read_document(self, found: dict[str, Any]) -> Conversation:
        messages = [message for message in list_at(found, "messages") if isinstance(message, dict)]
        return self._make(found, [piece for message in messages for piece in self.read_message(message)])

    def _make(self, metadata: dict[str, Any], utterances: list[Utterance]) -> Conversation:
        if metadata.get("kind") == "subagent":
            self.skipped["sidechain"] += len(utterances)
            utterances = []
        folder = next(iter(list_at(metadata, "directories")), None)
        self.begin(metadata.get("sessionId"), folder, metadata.get("startTime"))
        return self.converse(utterances)

    def read_message(self, message: dict[str, Any]) -> Iterator[Utterance]:
        """Yield what a message, and the user's answers to its questions, state."""
        kind = text_at(message, "type") or ""
        role = _GEMINI_ROLES.get(kind)
        if role is None:
            self.skipped["notice" if kind in _GEMINI_NOTICES else "unknown type"] += 1
            return
        # Files named with @ follow the typed text, which `displayContent` has alone.
        content = message.get("displayContent") if role == "user" else None
        texts = list(self._find_texts(content or message.get("content")))
        text = clean_text("".join(texts)) if role == "assistant" else clean_typed("\n\n".join(filter(str.strip, texts)))
        at = parse_timestamp(message.get("timestamp"))
        if text and not (role == "user" and _GEMINI_COMMAND.match(text)):
            yield Utterance(role, text, at)
        else:
            self.skipped["command" if text else "empty"] += 1
        for call in list_at(message, "toolCalls"):
            for part in list_at(call, "result") if text_at(call, "name") == _GEMINI_QUESTION_TOOL else ():
                output = object_at(part, "functionResponse", "response").get("output")
                answers = value_at(parse_object(output) if isinstance(output, str) else output, "answers")
                yield from utter_pairs(pair_answers(value_at(call, "args", "questions"), answers), at)

    def _find_texts(self, content: object) -> Iterator[str]:
        is_file = False
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) else part
            if not isinstance(text, str):
                kinds = [reason for key, reason in _GEMINI_SKIPPED.items() if isinstance(part, dict) and key in part]
                if part is not None:
                    self.skipped[kinds[0] if kinds else "attachment"] += 1
                continue
            is_file = (is_file or text.strip().startswith(_GEMINI_FILES_START)) and _GEMINI_FILES_END not in text
            if value_at(part, "thought"):
                self.skipped["thinking"] += 1
            elif is_file or _GEMINI_FILES_END in text:
                self.skipped["attachment"] += 1
            elif not (typed := without_host_blocks(text)).strip() and text.strip():
                self.skipped["injected"] += 1
            else:
                yield typed


def _is_gemini_header(found: dict[str, Any]) -> bool:
    has_start = "projectHash" in found or "startTime" in found
    return isinstance(found.get("sessionId"), str) and "type" not in found and has_start


_OPENCLAW_SKIPPED = {
    "branch_summary": "summary",
    "compaction": "summary",
    "custom": "bookkeeping",
    "custom_message": "injected",
    "label": "bookkeeping",
    "model_change": "bookkeeping",
    "reset": "bookkeeping",
    "session_info": "bookkeeping",
    "thinking_level_change": "bookkeeping",
}
_OPENCLAW_RESTARTS = frozenset({"compaction", "reset"})
_OPENCLAW_MACHINE_TEXT = re.compile(
    r"\[cron:|\[Inter-session message\]|\[Subagent Context\]|Read HEARTBEAT\.md\b|Pre-compaction memory flush\b"
    r"|A new session was started via /new or /reset\b"
)
_OPENCLAW_DIRECTIVE = r"\[\[ ?(?:reply_to_current|reply_to: ?[^\[\]\n]{1,200}|audio_as_voice) ?\]\]"
_OPENCLAW_DIRECTIVES = re.compile(rf"\A(?:\s*{_OPENCLAW_DIRECTIVE})+\s*|{_OPENCLAW_DIRECTIVE}\s*\Z")
"""Instructions to the gateway about how to send an answer."""
_OPENCLAW_FAILURE = re.compile(
    r"(?:\u26a0\ufe0f? ?)?(?:Agent failed before reply\b|\[assistant turn failed before producing content\])"
    r"|\u26a0\ufe0f? (?=[^\w\s])\S+ [^\n]*\bfailed\b[^\n]*\Z"
)
"""Messages of the gateway, in the agent's name, about a failed call of a model or a tool."""
_OPENCLAW_SILENCE = frozenset({"NO_REPLY", "HEARTBEAT_OK"})


class OpenClaw(Format):
    """OpenClaw's session files (version 3, which are pi's): JSON lines that are a tree by `parentId`.

    Going back leaves the branch in the file, so the conversation is the path to the last entry. Turns before a
    compaction or a reset belong to it; summaries of the model, and messages of extensions, do not. A gateway puts
    before a user's words who sent them, where and when.
    """

    name = "OpenClaw sessions"
    source = "openclaw"

    def __init__(self, skipped: Counter[str]) -> None:
        super().__init__(skipped)
        self._numbers: dict[str, int] = {}
        """Id of an entry -> its number."""
        self._parents: dict[int, int | None] = {}
        self._last_kind = ""

    @staticmethod
    def is_entry(found: dict[str, Any]) -> bool:
        kind = text_at(found, "type") or ""
        is_known = kind == "message" or kind in _OPENCLAW_SKIPPED
        return _is_openclaw_header(found) or (is_known and isinstance(found.get("id"), str) and "parentId" in found)

    def read_entry(self, found: dict[str, Any]) -> None:
        kind = found.get("type")
        if _is_openclaw_header(found):
            if self.session is None and isinstance(found.get("id"), str):
                self.begin(found["id"], found.get("cwd"), found.get("timestamp"))
            return
        if not isinstance(kind, str):
            self.skipped["unknown type"] += 1
            return
        number = len(self._parents)
        before = number - 1 if number else None
        parent = text_at(found, "parentId")
        is_root = "parentId" in found and kind not in _OPENCLAW_RESTARTS and self._last_kind not in _OPENCLAW_RESTARTS
        # A parent that is not in the file was lost or compacted away: the entry before takes its place.
        known = self._numbers.get(parent, before) if parent is not None else None if is_root else before
        self._parents[number] = known
        self._last_kind = kind
        if isinstance(found.get("id"), str):
            self._numbers[found["id"]] = number
        message = object_at(found, "message")
        role = message.get("role")
        if kind != "message":
            self.skipped[_OPENCLAW_SKIPPED.get(kind, "unknown type")] += 1
        elif role not in ("user", "assistant"):
            self.skipped["system or tool"] += 1
        else:
            at = parse_timestamp(found.get("timestamp")) or parse_timestamp(message.get("timestamp"))
            # The gateway writes down once more what a channel delivered.
            self.utterances += self.utter(role, message.get("content"), at, number, "answer")

    def clean(self, role: str, text: str) -> tuple[str, str]:
        text = clean_text(text)
        if role == "assistant":
            text = _OPENCLAW_DIRECTIVES.sub("", text).rstrip()
            reason = (
                "silence" if text in _OPENCLAW_SILENCE else "error message" if _OPENCLAW_FAILURE.match(text) else ""
            )
            return ("", reason) if reason else (text, "empty")
        text = text if _OPENCLAW_MACHINE_TEXT.match(text) else clean_typed(text)
        return ("", "notification") if _OPENCLAW_MACHINE_TEXT.match(text) else (text, "empty")

    def finish(self) -> Iterator[Conversation]:
        path = set(walk_back(len(self._parents) - 1, self._parents))
        found = [piece for piece in self.utterances if piece.place in path]
        self.skipped["abandoned branch"] += len(self.utterances) - len(found)
        yield self.converse(found)


def _is_openclaw_header(found: dict[str, Any]) -> bool:
    return found.get("type") == "session" and ("version" in found or "cwd" in found)


class Hermes(Format):
    """Hermes' event streams (ATOF): the start and end of everything an agent does, of many sessions in one file.

    A scope `hermes.turn` may carry question and answer. Where none does, the scopes of the calls to the model are read:
    each repeats the conversation so far, so that only its last message may be new.
    """

    name = "Hermes event streams"
    source = "hermes"

    def __init__(self, skipped: Counter[str]) -> None:
        super().__init__(skipped)
        self._sessions: dict[str | None, tuple[list[Utterance], list[Utterance]]] = {}
        """Session -> (utterances of its turns, utterances of its calls to the model)."""
        self._last_messages: dict[str | None, tuple[int, str]] = {}
        """Session -> (the number of the user's messages in its last call, the last of them)."""
        self._owners: dict[str, str] = {}

    @staticmethod
    def is_entry(found: dict[str, Any]) -> bool:
        return "atof_version" in found and isinstance(found.get("kind"), str)

    def read_entry(self, found: dict[str, Any]) -> None:
        if not self.is_entry(found):
            self.skipped["unknown type"] += 1
            return
        session, parent = text_at(found, "metadata", "session_id"), text_at(found, "parent_uuid")
        if session is None and parent is not None:
            session = self._owners.get(parent)
        if session is not None and isinstance(found.get("uuid"), str):
            self._owners[found["uuid"]] = session
        turns, calls = self._sessions.setdefault(session, ([], []))
        data = object_at(found, "data")
        is_end = found.get("scope_category") == "end"
        role = "assistant" if is_end else "user"
        if found.get("name") == "hermes.turn":
            content, utterances = data.get(role), turns
        elif found.get("category") != "llm":
            self.skipped["tool call" if found.get("category") == "tool" else "bookkeeping"] += 1
            return
        else:
            choices = list_at(data, "choices")
            answer = data.get("assistant_message") or (value_at(choices[0], "message") if choices else None)
            answer = answer.get("content") if isinstance(answer, dict) else answer
            content, utterances = answer if is_end else self._find_question(session, data), calls
        utterances += self.utter(role, content, parse_timestamp(found.get("timestamp")))

    def _find_question(self, session: str | None, data: dict[str, Any]) -> object:
        """Return the last message of the user, if this call is the first to send it."""
        request = data.get("content")
        messages = request.get("messages") if isinstance(request, dict) else data.get("messages")
        if not isinstance(messages, list):
            return request
        contents = [message.get("content") for message in messages if value_at(message, "role") == "user"]
        before, now = self._last_messages.get(session, (0, "")), (len(contents), str(contents[-1:]))
        self._last_messages[session] = now
        return contents[-1] if contents and now != before else None

    def finish(self) -> Iterator[Conversation]:
        for name, (turns, calls) in self._sessions.items():
            if turns or calls or name is not None or len(self._sessions) == 1:
                self.session = name
                yield self.converse(turns or calls)
