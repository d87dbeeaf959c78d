"""Spans that tags hide: what their owner has marked `<private>`, and what machines put between tags of their own."""

import re
from collections.abc import Collection, Iterable, Iterator

PLACEHOLDER = re.compile(r"\[redacted: ([a-z0-9-]+)\]")
"""The replacement for a redacted secret; the group is its kind."""
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>private|quaid-memory|system-reminder)\b[^<>]*>", re.IGNORECASE)
_PARAGRAPH_END = re.compile(r"\n[ \t]*(?=\n)")

# A reminder left open may be somebody talking about reminders; an open memory or private span must not leak.
_HIDDEN_WHEN_LEFT_OPEN = ("quaid-memory", "private")
_PRIVATE = frozenset({"private"})


def without_private(text: str, *, keep_lines: bool = False) -> str:
    """`text` without its `<private>` spans, all else as it is; with `keep_lines` their newlines stay. Pure and
    idempotent.
    """
    while "<" in text:
        shown = without(text, hidden_spans(text, _PRIVATE), keep_lines=keep_lines)
        if shown == text:
            break
        text = shown
    return text


def without(text: str, spans: Iterable[tuple[int, int]], *, keep_lines: bool = False) -> str:
    """`text` without `spans`; with `keep_lines` their newlines stay."""
    pieces = []
    position = 0
    for start, end in sorted(spans):
        if start > position:
            pieces.append(text[position:start])
        if keep_lines:
            pieces.append("\n" * text.count("\n", max(start, position), end))
        position = max(position, end)
    return "".join([*pieces, text[position:]])


def hidden_spans(text: str, names: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans that tags of these names hide, the tags included."""
    open_tags: dict[str, list[re.Match[str]]] = {}
    for tag in _TAG.finditer(text):
        name = tag["name"].lower()
        if name not in names:
            continue
        if not tag["closes"]:
            open_tags.setdefault(name, []).append(tag)
        elif open_tags.get(name):
            yield open_tags[name].pop().start(), tag.end()
    for name in _HIDDEN_WHEN_LEFT_OPEN:
        if name in names:
            end = 0
            for tag in open_tags.get(name, []):
                if tag.start() >= end:
                    paragraph_end = _PARAGRAPH_END.search(text, tag.end())
                    end = paragraph_end.start() if paragraph_end else len(text)
                    yield tag.start(), end
