"""The note of knowledge gaps: the questions without an answer."""

from collections.abc import Iterator, Sequence

from quaid import redaction
from quaid.janitor.task_context import TaskContext
from quaid.local.recall_log import Gap
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit
from quaid.text.quoting import neutralise, shorten
from quaid.vault import headings, notes
from quaid.vault.layout import KNOWLEDGE_GAPS

TASK = "gaps"
TITLE = "Asked in vain"
MAX_GAPS, MAX_SHOWN = 100, 20

_HEAD = "---\ntype: digest\n---\n# Knowledge gaps\n\n"
_MAX_CHARACTERS = 300
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in r"\[]*_`<>%#|~"})


def plan_gaps(context: TaskContext) -> Iterator[Decision]:
    """Yield the edit of the note of knowledge gaps, if its list has changed."""
    path = context.layout.place(KNOWLEDGE_GAPS)
    before = context.read(path)
    gaps = context.records.gaps(MAX_GAPS)[0] if context.settings.recall.gaps != "off" else []
    if context.settings.recall.gaps == "off" or (before is None and not gaps):
        return
    try:
        text = (before or _HEAD.encode()).decode("utf-8")
    except UnicodeDecodeError:
        return
    listed = _list_questions(gaps)
    after = _with_list(text, f"## {TITLE}\n\n{listed}\n")
    if after == text:
        return
    count = len(gaps)
    asked = f"list {count:,} question{'s' * (count != 1)} asked in vain"
    subject = asked if count else "no question was asked in vain"
    edits = (Edit(path, before, after.encode()),)
    why = "A recall found nothing for them."
    yield Decision(TASK, "digest", evidence_key(TASK, listed), edits, subject, why, is_minor=True)


def _list_questions(gaps: Sequence[Gap]) -> str:
    """Return the questions as plain words: without links, hidden text, orders and secrets."""
    if not gaps:
        return "Nothing: every question found something."
    asked = sum(gap.asked for gap in gaps)
    lines = [
        f"{len(gaps):,} questions, asked {asked:,} times in all, the last on {notes.format_day(gaps[0].last_asked)}.",
        "",
    ]
    worded = [gap for gap in gaps if gap.text][:MAX_SHOWN]
    if not worded:
        lines.append("Their words are not kept. To see them here: `quaid config recall.gaps text`")
    for gap in worded:
        text = neutralise(headings.one_line(redaction.admit(gap.text or "").text))
        shown = shorten(text, _MAX_CHARACTERS)
        times = "once" if gap.asked == 1 else f"{gap.asked:,} times"
        lines.append(f"- {times}, the last on {notes.format_day(gap.last_asked)}: {shown.translate(_MARKS)}")
    return "\n".join(lines)


def _with_list(text: str, section: str) -> str:
    """Return `text` with its list replaced, or added where there is none; the owner's own text stays."""
    section = section.replace("\n", notes.newline_of(text))
    for stretch in headings.top_sections(text):
        if stretch.title == TITLE:
            gap = text[stretch.start : stretch.end]
            trail = gap[len(gap.rstrip()) :] if text[stretch.end :].strip() else notes.newline_of(text)
            return text[: stretch.start] + section.rstrip() + trail + text[stretch.end :]
    return headings.insert_block(text, len(text), section.rstrip().replace("\r\n", "\n"))
