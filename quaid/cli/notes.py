"""`quaid remember`, `get`, `forget`, `restore`, `link` and `note`."""

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from quaid.cli.change_output import tell_written
from quaid.cli.invocation import Invocation, render_json
from quaid.cli.options import Reference, argument, check_one_of, choosing, flag, option
from quaid.cli.terminal import count, has_terminal, line_width, paragraphs, print_exactly, styled
from quaid.errors import BadInputError, NoteNotFoundError, QuaidError, UsageError
from quaid.index.documents import Document
from quaid.index.references import NoteView
from quaid.janitor.fact_edits import statement_span
from quaid.model import DURABILITIES, FACT_TYPES, PRIVACIES, SOURCES, STATUSES, Kind
from quaid.shapes import json_object
from quaid.text.dates import read_period
from quaid.vault import notes
from quaid.vault.markdown import blank, plain

_DATE = re.compile(r"\d{4}(-\d\d)?|\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?")
_FENCE = re.compile(r"\s*(?:>\s*)*(?:`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_LEAD = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[.\]\s+)?|>\s?)*")
_LINK = re.compile(r"!?\[\[[^\[\]\n]+\]\]|(?<=\])\([^()\s]+\)|https?://[^\s<>)\]]+")


def run_remember(
    invocation: Invocation,
    text: Annotated[list[str], argument("TEXT", "One statement of at least three words; - reads it from stdin.")],
    type_: Annotated[str, option("TYPE", f"{', '.join(FACT_TYPES)}.", "--type")] = "fact",
    speaker: Annotated[str | None, option("NAME", "The speaker.")] = None,
    source: Annotated[str, option("SOURCE", f"Where it comes from: {', '.join(SOURCES)}.")] = "user",
    keywords: Annotated[
        list[str] | None, option("WORDS", "Words to find it by, repeatable or with commas between them.")
    ] = None,
    confidence: Annotated[float, option("0…1", "How certain the fact is.", min=0.0, max=1.0)] = 0.8,
    valid_from: Annotated[str | None, option("DATE", "The day from which it is true, such as 2026-11-01.")] = None,
    valid_until: Annotated[str | None, option("DATE", "The day on which it is no longer true.")] = None,
    session: Annotated[str | None, option("ID", "The conversation it comes from.")] = None,
    project: Annotated[str | None, option("NAME", "The project it belongs to.")] = None,
    status: Annotated[str, option("STATUS", f"{', '.join(STATUSES)}.")] = "active",
    durability: Annotated[str, option("HOW", f"{', '.join(DURABILITIES)}.")] = "mutable",
    privacy: Annotated[str, option("WHOSE", f"{', '.join(PRIVACIES)}.")] = "private",
    pinned: Annotated[bool, flag("Never let it fade.", "--pinned")] = False,
    replaces: Annotated[str | None, option("REF", "The fact, or its words, that is true no longer.")] = None,
    technical: Annotated[bool, flag("It is about how something is built.", "--technical")] = False,
) -> None:
    """Store a fact as a note, or confirm the one that says the same.

    Examples:
      quaid remember "Maya takes oat milk in her coffee" --type preference --speaker Maya
      quaid remember "The lease of the Bergstrasse flat ends" --valid-from 2026-12-31 --keywords rent,home
      quaid remember "We track our work in Jira" --replaces 7k3qd
      echo "The backup key is in the blue safe" | quaid remember -
    """
    check_one_of("type", [type_], FACT_TYPES)
    check_one_of("source", [source], SOURCES)
    check_one_of("status", [status], STATUSES)
    check_one_of("durability", [durability], DURABILITIES)
    check_one_of("privacy", [privacy], PRIVACIES)
    words = dict.fromkeys(word.strip() for group in keywords or () for word in group.split(","))
    try:
        statement = sys.stdin.buffer.read().decode("utf-8") if text == ["-"] else " ".join(text)
    except UnicodeDecodeError as error:
        raise BadInputError("What came on stdin is not UTF-8 text: nothing was stored. Convert it first.") from error
    with invocation.open() as memory:
        written = memory.remember(
            statement,
            type=type_,
            speaker=speaker,
            source=source,
            keywords=[*filter(None, words)],
            confidence=confidence,
            valid_from=_check_date("valid-from", valid_from),
            valid_until=_check_date("valid-until", valid_until),
            session=session,
            project=project,
            status=status,
            durability=durability,
            privacy=privacy,
            pinned=pinned,
            technical=technical,
            replaces=replaces,
        )
        if written.outcome == "confirmed":  # show the stored fact, not its repetition
            written = replace(written, text=memory.get(written.path).text)
    tell_written(invocation, written)


def _check_date(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    if _DATE.fullmatch(value) and (found := read_period(value, end=name == "valid-until")):
        return found
    raise UsageError(f"--{name} is {value!r}, must be a date like 2026-11-01.")


def run_get(
    invocation: Invocation,
    ref: Reference,
    raw: Annotated[bool, flag("Print the bytes of the file at a terminal too.", "--raw")] = False,
) -> None:
    """Print a note as it is, or a part of it: a turn of a conversation, a section.

    In a pipe and with --raw these are the bytes of the file. A terminal shows them below a line that says what the note
    is.

    Examples:
      quaid get 7k3qd
      quaid get "[[Maya Chen]]"
      quaid get "[[Garden#Tomatoes]]"
      quaid get 20-1402-2f1c9a#t3
    """
    with invocation.open() as memory:
        view = choosing(invocation, memory, ref, memory.get)
    if invocation.as_json:
        # Not `print_json`, which redacts: a note is given as it is.
        shape = json_object(view, "turn", "text", "markdown", heading=view.heading or None, edges=list(view.edges))
        shape |= {"known": list(view.known)} if view.known else {}
        print(render_json({"note": document_shape(view.document), **shape}))
    elif raw or not has_terminal():
        print_exactly(view.source)
    else:
        print(render_note(view))


def run_forget(invocation: Invocation, ref: Reference) -> None:
    """Remove a fact, an entity, a conversation or one turn from the memory; git keeps it.

    Your own notes are never removed. Where several notes fit they are listed, and a terminal asks which one to remove.

    Examples:
      quaid forget 7k3qd
      quaid forget "Maya takes oat milk in her coffee"
      quaid forget 20-1402-2f1c9a#t3
    """
    with invocation.open() as memory:
        tell_written(invocation, choosing(invocation, memory, ref, memory.forget))


def run_restore(invocation: Invocation, ref: Reference) -> None:
    """Bring back what was forgotten, as it was. Give words of it, or the whole id; `quaid log` has both.

    Examples:
      quaid restore "oat milk"
      quaid restore 01kagx3m7r9q2d5w8t0v7k3qd
    """
    with invocation.open() as memory:
        try:
            tell_written(invocation, choosing(invocation, memory, ref, memory.restore))
        except NoteNotFoundError as error:
            what = f"Nothing that was forgotten has the id or the words {ref!r}. Find it with: quaid log"
            raise QuaidError(what, code="not_found") from error


def run_link(
    invocation: Invocation,
    subject: Annotated[str, argument("SUBJECT", "A person or a thing.")],
    relation: Annotated[
        str, argument("RELATION", "The relation, such as works_at; an inverse such as employs is turned round.")
    ],
    target: Annotated[str, argument("OBJECT", "The person or thing it is related to.")],
) -> None:
    """Connect two things in the graph; notes for them are made on the way.

    Examples:
      quaid link "Maya Chen" works_at Acme
      quaid link Biscuit pet_of "Maya Chen"
    """
    with invocation.open() as memory:
        tell_written(invocation, memory.link(subject, relation, target))


def run_note(
    invocation: Invocation,
    text: Annotated[list[str], argument("TEXT", "One line.")],
    session: Annotated[str | None, option("ID", "Keep it for this session; the default is the next one.")] = None,
) -> None:
    """Queue a line that is stored with the next conversation as a note to self.

    Examples:
      quaid note "call Maya back about the lease"
    """
    with invocation.open() as memory:
        waiting = memory.note(" ".join(text), session)
    invocation.respond(f"Noted. {count(waiting, 'line')} waiting for the next quaid extract.", waiting=waiting)


def document_shape(document: Document) -> dict[str, object]:
    """Return a note's row without its row number, which means nothing outside of this index."""
    names = (
        "path id kind type title status owner confidence speaker source session created valid_from valid_until "
        "superseded_by confirmations content_hash"
    )
    return json_object(document, *names.split())


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
    known = [styled("Known now", "bold"), *_render_lines("\n".join(f"- {fact}" for fact in view.known))]
    text = "\n".join(_render_lines(body)).strip("\n")
    return paragraphs(f"{head}\n{about}", properties.strip("\n"), text, "\n".join(known) if view.known else "")


def _render_lines(body: str) -> Iterator[str]:
    """Yield the lines of a body, those of prose within the terminal's width; tables stay whole."""
    for line, shown in zip(body.splitlines(), blank(body, "fence").splitlines(), strict=True):
        if line != shown:
            yield styled(line, "dim" if _FENCE.match(line) else "green")
            continue
        if _HEADING.match(line):
            yield styled(line, "bold")
            continue
        wrapped = line
        if len(line) > line_width() and not line.lstrip().startswith("|"):
            lead = _LEAD.match(line)
            marks = lead[0] if lead else ""
            wrapped = textwrap.fill(
                line[len(marks) :],
                line_width(),
                initial_indent=marks,
                subsequent_indent=marks if ">" in marks else " " * len(marks),
                break_long_words=False,
                break_on_hyphens=False,
            )
        yield _LINK.sub(lambda link: styled(link[0], "cyan"), wrapped)
