"""What was asked in vain, as one note for the owner: what the memory would have to learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quaid import redaction
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import Context
from quaid.local.runs import key_of
from quaid.model import Edit
from quaid.text.quoting import neutralise
from quaid.vault import headings, notes

if TYPE_CHECKING:
    from quaid.local.gaps import Gap

TASK = "gaps"
PATH = "review/knowledge-gaps.md"
TITLE = "Asked in vain"
MOST_SHOWN = 20

_HEAD = "---\ntype: digest\n---\n# Knowledge gaps\n\n"
_LONGEST = 300
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in r"\[]*_`<>%#|~"})


def plan(context: Context) -> Iterator[Decision]:
    """The note anew, when what it lists has changed."""
    before = context.read(PATH)
    if context.settings.recall.gaps == "off" or (before is None and not context.gaps):
        return
    try:
        text = (before or _HEAD.encode()).decode("utf-8")
    except UnicodeDecodeError:
        return
    listed = _listed(context.gaps)
    after = _with_list(text, f"## {TITLE}\n\n{listed}\n")
    if after == text:
        return
    count = len(context.gaps)
    asked = f"list {count:,} question{'s' * (count != 1)} asked in vain"
    yield Decision(
        task=TASK,
        kind="digest",
        key=key_of(TASK, listed),
        edits=(Edit(PATH, before, after.encode()),),
        subject=asked if count else "no question was asked in vain",
        why="A recall found nothing for them.",
        is_minor=True,
    )


def _listed(gaps: Sequence[Gap]) -> str:
    if not gaps:
        return "Nothing: every question found something."
    asked = sum(gap.asked for gap in gaps)
    lines = [
        f"{len(gaps):,} questions, asked {asked:,} times in all, the last on {notes.format_day(gaps[0].last_asked)}.",
        "",
    ]
    worded = [gap for gap in gaps if gap.text][:MOST_SHOWN]
    if not worded:
        return "\n".join([*lines, "Their words are not kept. To see them here: `quaid config recall.gaps text`"])
    return "\n".join([*lines, *(f"- {_shown(gap)}" for gap in worded)])


def _shown(gap: Gap) -> str:
    """A question as plain words: nothing in it is a link, hides anything or gives orders, and no secret is written."""
    text = neutralise(headings.one_line(redaction.admit(gap.text or "").text))
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"
    times = "once" if gap.asked == 1 else f"{gap.asked:,} times"
    return f"{times}, the last on {notes.format_day(gap.last_asked)}: {shown.translate(_MARKS)}"


def _with_list(text: str, section: str) -> str:
    """`text` with its list replaced, or added where there is none; what the owner wrote beside it stays."""
    section = section.replace("\n", headings.newline_of(text))
    for stretch in headings.top_sections(text):
        if stretch.title == TITLE:
            gap = text[stretch.start : stretch.end]
            trail = gap[len(gap.rstrip()) :] if text[stretch.end :].strip() else headings.newline_of(text)
            return text[: stretch.start] + section.rstrip() + trail + text[stretch.end :]
    return headings.insert_block(text, len(text), section.rstrip().replace("\r\n", "\n"))
