"""A note as a person reads it: all that its file says, with its structure in colour."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from quaid.cli.terminal import line_width, paragraphs, styled
from quaid.index.views import NoteView
from quaid.janitor.fact_edits import statement_span
from quaid.model import Kind
from quaid.vault import notes
from quaid.vault.markdown import blank, plain

_FENCE = re.compile(r"\s*(?:>\s*)*(?:`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_LEAD = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[.\]\s+)?|>\s?)*")
_LINK = re.compile(r"!?\[\[[^\[\]\n]+\]\]|(?<=\])\([^()\s]+\)|https?://[^\s<>)\]]+")


def render_note(view: NoteView) -> str:
    """Return the note below a head that says what it is."""
    document = view.document
    facts = [document.type or document.kind, document.status, document.speaker and f"said by {document.speaker}"]
    facts += [document.created and document.created[:10], document.id if document.id != document.path else None]
    part = f"t{view.turn}" if view.turn is not None else view.heading
    head = styled(document.path + (f"#{part}" if part else ""), "bold")
    about = styled(" · ".join(str(fact) for fact in facts if fact), "dim")
    before, body = notes.split_body(view.markdown)
    if document.kind == Kind.FACT and "\\" in body:  # what was stated is no markdown
        start, end = statement_span(body)
        body = body[:start] + plain(body[start:end]) + body[end:]
    properties = "\n".join(styled(line, "dim") for line in before.splitlines())
    return paragraphs(f"{head}\n{about}", properties.strip("\n"), "\n".join(_render_lines(body)).strip("\n"))


def _render_lines(body: str) -> Iterator[str]:
    for line, shown in zip(body.splitlines(), blank(body, "fence").splitlines(), strict=True):
        if line != shown:
            yield styled(line, "dim" if _FENCE.match(line) else "green")
        elif _HEADING.match(line):
            yield styled(line, "bold")
        else:
            yield _LINK.sub(lambda link: styled(link[0], "cyan"), _wrap(line))


def _wrap(line: str) -> str:
    """Return a line of prose within the terminal's width; tables stay whole."""
    if len(line) <= line_width() or line.lstrip().startswith("|"):
        return line
    lead = _LEAD.match(line)
    marks = lead[0] if lead else ""
    below = marks if ">" in marks else " " * len(marks)
    return textwrap.fill(
        line[len(marks) :],
        line_width(),
        initial_indent=marks,
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
    )
