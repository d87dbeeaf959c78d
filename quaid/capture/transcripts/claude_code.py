"""Claude Code's session files: an append-only JSONL log that is really a tree.

Every line with a `uuid` names its parent. Going back in a session ("rewind") leaves the abandoned branch in the
file, so the conversation is what leads to the newest message. A compaction starts a new root; what was said before
it is still part of the conversation, and the summary the model wrote of it is not. One answer is spread over
several lines with the same `message.id`, with tool calls and their results in between; some results hold what the user
answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.claude_code_typed import ToolCall, list_results, read_answers, read_tool_call, read_typed
from quaid.capture.transcripts.lines import (
    find_texts,
    list_at,
    list_objects,
    object_at,
    read_objects,
    text_at,
    value_at,
)
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, find_project, make_conversation
from quaid.model import Conversation
from quaid.text.words import count_words

NAME = "Claude Code sessions"

_BOOKKEEPING = frozenset(
    """
    api-request api-request-blob api-request-shape atis-latch cost-state file-history-snapshot last-prompt mode progress
    queue-operation summary system tools-used
    """.split()  # noqa: SIM905 - a word list reads best as words
)
_TYPES = _BOOKKEEPING | {"user", "assistant", "attachment"}
_MARKS = frozenset({"uuid", "parentUuid", "sessionId", "leafUuid", "messageId"})

_PEOPLE = frozenset({"human", "channel"})
_OUTPUT = "<local-command-stdout>"
_ABSORBED = "absorbed_mid_turn"
_MIN_COMMAND_WORDS = 4
_BLOCKED = "UserPromptSubmit operation blocked by hook"
_ORIGINAL_PROMPT = "Original prompt:"
_MAX_ATTACHMENTS = 50


@dataclass(slots=True)
class _Tree:
    """The tree of lines: `parents[node]` are node numbers, or uuids not met yet."""

    numbers: dict[str, int] = field(default_factory=dict)
    parents: list[tuple[int | str, ...]] = field(default_factory=list)
    newest: int | None = None
    """The last line of the conversation proper: the end of what stays in the file."""
    has_links: bool = False
    """False while no line names a parent: then each follows the one before it."""

    def add(self, line: dict[str, Any]) -> int:
        parents = self._named_parents(line)
        self.has_links |= bool(parents)
        node = len(self.parents)
        self.parents.append(tuple(self.numbers.get(parent, parent) for parent in parents) or self._implied(line))
        if isinstance(line.get("uuid"), str):
            self.numbers[line["uuid"]] = node
        return node

    def walk_from(self, nodes: Iterable[int]) -> set[int]:
        """`nodes` and all their ancestors."""
        found: set[int] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.find_parents(node)
        return found

    def _named_parents(self, line: dict[str, Any]) -> list[str]:
        preserved = list_at(line["compactMetadata"], "preservedMessages", "uuids") if "compactMetadata" in line else []
        links = [line.get("parentUuid"), line.get("logicalParentUuid"), *preserved]
        return [link for link in links if isinstance(link, str)]

    def _implied(self, line: dict[str, Any]) -> tuple[int, ...]:
        # A person's message with an explicit null begins a new conversation; anything else goes on from before.
        is_said = line.get("type") == "user" and not line.get("isCompactSummary") and not line.get("isMeta")
        is_root = is_said and "parentUuid" in line
        return () if is_root or self.newest is None else (self.newest,)

    def find_parents(self, node: int) -> list[int]:
        """The lines that `node` follows: one, none at a root, several where a compaction relinks."""
        named = self.parents[node] if self.has_links else (node - 1,) * (node > 0)
        known = [self.numbers.get(parent) if isinstance(parent, str) else parent for parent in named]
        found = [parent for parent in known if parent is not None]
        # A parent that is not in the file was on a line that got lost: the one before must do.
        return found if found or not named or node == 0 else [node - 1]


@dataclass(slots=True)
class _Session:
    session: str | None = None
    project: str | None = None
    tree: _Tree = field(default_factory=_Tree)
    said: list[Utterance] = field(default_factory=list)
    """The place of an utterance is its line's number in the tree, the source of an answer its message id."""
    answers: dict[str, list[int]] = field(default_factory=dict)
    """The lines of each answer, by its message id."""
    queued: list[Utterance] = field(default_factory=list)
    """What the user typed while the agent was at work or to the program itself; this hangs beside the tree."""
    beside: set[int] = field(default_factory=set)
    """The lines of attachments."""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    """The calls of tools, by their ids."""
    results: dict[str, int] = field(default_factory=dict)
    """The line with the last result of each call."""
    blocked: set[int] = field(default_factory=set)
    """The lines of prompts that a hook kept from the agent."""

    def read_line(self, line: dict[str, Any], skipped: Counter[str]) -> None:
        kind, uuid, tree = text_at(line, "type") or "", text_at(line, "uuid"), self.tree
        if line.get("isSidechain"):
            skipped["sidechain"] += 1
        elif uuid is not None and uuid in tree.numbers:
            skipped["repeated line"] += 1
        elif kind in {"user", "assistant"}:
            self._read_message(line, skipped)
        elif kind == "attachment":
            node = tree.add(line) if uuid is not None or tree.newest is None else tree.newest
            self.beside.add(node)
            for typed in _queued_utterances(line, node, skipped):
                self._drop_absorbed(typed.text)
                self.queued.append(typed)
        elif line.get("operation") == "remove" and line.get("reason", _ABSORBED) == _ABSORBED:
            self.queued += _typed_utterances(line, line.get("content"), tree.add(line), skipped, _ABSORBED)
        elif line.get("subtype") == "local_command":
            self._read_command(line, tree.add(line), skipped)
        else:
            if uuid is not None:
                self._note_block(line, tree.add(line))
            skipped["bookkeeping" if kind in _BOOKKEEPING else "unknown type"] += 1

    def _read_message(self, line: dict[str, Any], skipped: Counter[str]) -> None:
        self.tree.newest = node = self.tree.add(line)
        # A resumed session may begin with lines of the one it came from.
        self.session = text_at(line, "sessionId") or self.session
        if self.project is None:
            self.project = find_project(line.get("cwd"))
        self._drop_switch(line, node, skipped)
        self.said += _utterances(line, node, self.calls, skipped)
        if message_id := text_at(line, "message", "id"):
            self.answers.setdefault(message_id, []).append(node)
        self.results.update((call_id, node) for call_id in list_results(line) if call_id in self.calls)

    def _read_command(self, line: dict[str, Any], node: int, skipped: Counter[str]) -> None:
        self._drop_switch(line, node, skipped)
        for typed in _typed_utterances(line, line.get("content"), node, skipped):
            if _is_switch(typed.text):
                skipped["command"] += 1
            else:
                self.queued.append(typed)

    def _drop_absorbed(self, text: str) -> None:
        """Most versions write down twice what the agent took from the queue."""
        absorbed = (place for place, typed in enumerate(self.queued) if (typed.source, typed.text) == (_ABSORBED, text))
        for place in list(absorbed)[-1:]:
            del self.queued[place]

    def _drop_switch(self, line: dict[str, Any], node: int, skipped: Counter[str]) -> None:
        last, output = self.said[-1:], text_at(line, "message", "content") or text_at(line, "content") or ""
        is_carried_out = output.startswith(_OUTPUT) and bool(last) and last[0].place in self.tree.find_parents(node)
        if is_carried_out and _is_switch(last[0].text):
            self.said.pop()
            skipped["command"] += 1

    def _note_block(self, line: dict[str, Any], node: int) -> None:
        """Some versions write a prompt down before a hook refuses it, perhaps for the secret it holds."""
        content = text_at(line, "content") or ""
        if not content.startswith(_BLOCKED):
            return
        parents = self._find_anchors(node)
        asked = [utterance for utterance in self.said if utterance.place in parents and utterance.role == "user"]
        if all(_ORIGINAL_PROMPT not in content or utterance.text in clean_text(content) for utterance in asked):
            self.blocked.update(utterance.place for utterance in asked)

    def _find_anchors(self, node: int) -> list[int]:
        """The lines that `node` follows, whatever attachments stand between."""
        parents = self.tree.find_parents(node)
        for _ in range(_MAX_ATTACHMENTS):
            if not parents or parents[0] not in self.beside:
                break
            parents = self.tree.find_parents(parents[0])
        return parents

    def follow(self, skipped: Counter[str]) -> list[Utterance]:
        """Return what was said on the way to the newest message, in the order of the file."""
        tree = self.tree
        path = tree.walk_from([] if tree.newest is None else [tree.newest])
        # The next prompt may hang on another block of the same answer, or on the result of another of its calls.
        answered = {message_id for message_id, nodes in self.answers.items() if not path.isdisjoint(nodes)}
        path.update(self.results[call] for call in self.results if self.calls[call].message in answered)
        if self.said and self.said[-1].place == tree.newest and _is_switch(self.said[-1].text):
            self.said.pop()  # what follows tells a switch from the call of a skill
            skipped["command"] += 1
        kept = [utterance for utterance in self.said if utterance.place in path or utterance.source in answered]
        kept += [
            utterance
            for utterance in self.queued
            if path.intersection([utterance.place, *self._find_anchors(utterance.place)])
        ]
        if abandoned := len(self.said) + len(self.queued) - len(kept):
            skipped["abandoned branch"] += abandoned
        said = [utterance for utterance in kept if utterance.place not in self.blocked]
        if blocked := len(kept) - len(said):
            skipped["blocked prompt"] += blocked
        return sorted(said, key=lambda utterance: utterance.place)


def recognises(head: Sequence[str]) -> bool:
    """Return True when one of the first non-empty lines has a type and the ids that Claude Code writes."""
    return any(_is_line(found) for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation, that leads to the newest message.

    Memory is bounded by the kept text plus a few hundred bytes a line for the tree.
    """
    session = _Session()
    for line in read_objects(lines, skipped):
        session.read_line(line, skipped)
    yield make_conversation(session.follow(skipped), "claude-code", session.session, project=session.project)


def _is_line(found: dict[str, Any]) -> bool:
    kind = text_at(found, "type")
    is_message = kind in {"user", "assistant"} and "content" in object_at(found, "message")
    return (kind in _TYPES and not _MARKS.isdisjoint(found)) or is_message


def _utterances(
    line: dict[str, Any], node: int, calls: dict[str, ToolCall], skipped: Counter[str]
) -> Iterator[Utterance]:
    message = line.get("message")
    reason = _skip_reason(line)
    if reason or not isinstance(message, dict):
        skipped[reason or "unknown type"] += 1
        return
    # A streamed answer is sometimes written twice under one message id.
    source = text_at(message, "id") or node
    at = parse_timestamp(line.get("timestamp"))
    content = message.get("content")
    if line["type"] == "assistant":
        for block in list_at(message, "content"):
            if text_at(block, "type") == "tool_use" and isinstance(block.get("id"), str):
                calls[block["id"]] = read_tool_call(block)._replace(message=source)
        for raw in find_texts(content, skipped):
            if text := clean_text(raw):
                yield Utterance("assistant", text, at, node, source)
            else:
                skipped["empty"] += 1
        return
    for asked, answer in read_answers(line, calls, skipped):
        yield from (Utterance(role, text, at, node) for role, text in (("assistant", asked), ("user", answer)) if text)
    for text in read_typed(content, skipped):
        yield Utterance("user", text, at, node, source)


def _is_switch(text: str) -> bool:
    """Return True for a command that states nothing in so few words, such as `/model opus`."""
    return text.startswith("/") and count_words(text) < _MIN_COMMAND_WORDS


def _queued_utterances(line: dict[str, Any], node: int, skipped: Counter[str]) -> Iterator[Utterance]:
    attachment = object_at(line, "attachment")
    is_prompt = attachment.get("type") == "queued_command" and attachment.get("commandMode", "prompt") == "prompt"
    if not is_prompt or not _is_from_person(attachment.get("origin")):
        skipped["attachment"] += 1
        return
    yield from _typed_utterances(line, attachment.get("prompt"), node, skipped)


def _typed_utterances(
    line: dict[str, Any], content: object, node: int, skipped: Counter[str], source: str | None = None
) -> Iterator[Utterance]:
    at = parse_timestamp(line.get("timestamp"))
    for text in read_typed(content, skipped):
        yield Utterance("user", text, at, node, source)


def _skip_reason(line: dict[str, Any]) -> str | None:
    """Return why a line was not said by anybody; None for one that was."""
    if line.get("isCompactSummary"):
        return "compact summary"
    if line.get("isMeta") and value_at(line, "origin", "kind") != "channel":
        return "meta"
    if not _is_from_person(line.get("origin")):
        return "notification"
    if line.get("isApiErrorMessage") or value_at(line, "message", "model") == "<synthetic>":
        return "error message"
    return None


def _is_from_person(origin: object) -> bool:
    kind = origin.get("kind", "human") if isinstance(origin, dict) else "human"
    return not isinstance(kind, str) or kind in _PEOPLE
