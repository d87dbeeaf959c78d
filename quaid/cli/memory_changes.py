"""What became of memories, as a person reads it: learned, changed word by word, replaced, forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from quaid.cli.terminal import clipped, line_width, lines, paragraphs, styled
from quaid.model import Kind
from quaid.timeline.changes import MemoryChange, diff_words

MAX_SHOWN = 50
"""Changes of one sort that are listed; of the others their number."""
_FACTS = {
    "learned": "Learned", "changed": "Changed", "superseded": "No longer true", "restored": "True again",
    "forgotten": "Forgotten", "moved": "Moved",
}  # fmt: skip
_OTHERS = (
    (("entity",), "Entities"), (("core",), "Core notes"), (("episode",), "Conversations"),
    (("review",), "Questions to you"), (("snippet", "journal", "doc", "note", "file"), "Notes and files"),
)  # fmt: skip
_MARKS = {"learned": "+", "added": "+", "restored": "+", "forgotten": "-", "removed": "-", "superseded": "-"}
_STYLES = {"+": "green", "-": "red"}


def render_changes(changes: Sequence[MemoryChange], titles: Mapping[str, str] = _FACTS) -> str:
    """Return the changes under a heading for each sort, of facts by `titles`; empty where there are none."""
    facts = [change for change in changes if change.kind == Kind.FACT]
    parts = [_render(title, [fact for fact in facts if fact.how == how]) for how, title in titles.items()]
    parts += [_render(title, [change for change in changes if change.kind in kinds]) for kinds, title in _OTHERS]
    return paragraphs(*parts)


def _render(title: str, changes: Sequence[MemoryChange]) -> str:
    if not changes:
        return ""
    more = [f"  and {len(changes) - MAX_SHOWN:,} more"] if len(changes) > MAX_SHOWN else []
    rows = (row for change in changes[:MAX_SHOWN] for row in _list_rows(change))
    return lines(styled(f"{title} ({len(changes):,})", "bold"), *rows, *more)


def _list_rows(change: MemoryChange) -> Iterator[str]:
    mark = _MARKS.get(change.how, "~")
    text = clipped(change.text, line_width() - 4)
    if change.was is not None:
        text = render_words(change.was, change.text)
    yield f"  {styled(mark, _STYLES.get(mark, 'yellow'))} {text}"
    details = [*(() if change.by is None else (f"replaced by {change.by}",)), *change.details]
    if change.how in {"superseded", "restored"}:  # which says it
        details = [sentence for sentence in details if not sentence.startswith(("superseded_by ", "valid_until "))]
    yield from (f"      {clipped(sentence, line_width() - 6)}" for sentence in details)


def render_words(before: str, after: str) -> str:
    """Return how a sentence was reworded: [-what was taken-]{+what was brought+}, as `git diff --word-diff` has it."""
    return " ".join(_mark(diff_words(before, after)))


def _mark(words: Iterable[tuple[str, str]]) -> Iterator[str]:
    for how, text in words:
        word = text.strip()
        yield word if how == "=" else styled(f"[-{word}-]", "red") if how == "-" else styled(f"{{+{word}+}}", "green")
