"""`quaid list`."""

from typing import Annotated, cast

from quaid.cli.invocation import Invocation
from quaid.cli.notes import document_shape
from quaid.cli.options import check_one_of, flag, option
from quaid.cli.terminal import clipped, columns, count, has_terminal, line_width, one_line, styled
from quaid.index.listing import SORTS, SUPERSEDED, NoteFilter, Sort, list_notes
from quaid.model import STATUSES, Kind
from quaid.text.dates import parse_period
from quaid.text.quoting import short_id
from quaid.text.zones import local_now

MAX_SHOWN = 50
"""Notes that a terminal shows unless --limit says otherwise."""
_KINDS = tuple(Kind)
_STATUSES = (*STATUSES, SUPERSEDED)
_MIN_TEXT = 20


def run_list(
    invocation: Invocation,
    kind: Annotated[list[str] | None, option("KIND", f"Only this kind; repeatable: {', '.join(_KINDS)}.")] = None,
    of_type: Annotated[
        list[str] | None, option("TYPE", "Only this type (preference, person …); repeatable.", "--type")
    ] = None,
    status: Annotated[list[str] | None, option("STATUS", f"Only this one; repeatable: {', '.join(_STATUSES)}.")] = None,
    about: Annotated[
        list[str] | None, option("NAME", "Only notes about this person or thing; repeatable.", "--about", "--entity")
    ] = None,
    since: Annotated[str | None, option("DAY", "From this day on: 2026-03-01, last March.")] = None,
    until: Annotated[str | None, option("DAY", "Up to the end of this day.")] = None,
    project: Annotated[str | None, option("NAME", "Only notes of this project.")] = None,
    owner: Annotated[str | None, option("NAME", "Only notes of this owner.")] = None,
    sort: Annotated[str, option("ORDER", f"{', '.join(SORTS)}; the newest first by date.")] = "date",
    reverse: Annotated[bool, flag("The other way round.", "--reverse", "-r")] = False,
    limit: Annotated[
        int | None, option("N", f"Show at most N; a terminal shows {MAX_SHOWN}.", "--limit", "-n", min=1)
    ] = None,
    paths: Annotated[bool, flag("Print nothing but the paths, one a line.", "--paths")] = False,
) -> None:
    """List the notes of the memory, the newest first. The date is when a note was created, else last changed.

    Examples:
      quaid list --kind fact --since "last week"
      quaid list --about "Maya Chen" --status active
      quaid list --kind entity --type person --sort title
      quaid list --kind fact --status superseded --json
      quaid list --project boat --paths | xargs wc -w
    """
    check_one_of("kind", kind, _KINDS)
    check_one_of("status", status, _STATUSES)
    check_one_of("sort", [sort], SORTS)
    with invocation.open() as memory:
        first, last = parse_period(("--since", "--until"), since, until, local_now(memory.settings.timezone))
        kinds, types, statuses, names = (tuple(each or ()) for each in (kind, of_type, status, about))
        wanted = NoteFilter(kinds, types, statuses, names, owner, project, since=first, until=last)
        retries, found = memory.index_retries(), None
        while found is None:
            with retries:
                found = list_notes(memory.index(), wanted, cast("Sort", sort))
    found = found[::-1] if reverse else found
    is_for_people = has_terminal() and not paths and not invocation.as_json
    shown = found[: limit or (MAX_SHOWN if is_for_people else len(found))]
    notes = [{**document_shape(document), "date": date, "text": document.text} for date, document in shown]
    heads = columns(
        (date[:10], each.type or each.kind, SUPERSEDED if each.superseded_by else each.status or "", short_id(each.id))
        for date, each in shown
    ).splitlines()
    width = max(map(len, heads), default=0)
    room = max(_MIN_TEXT, line_width() - width - 2)
    texts = [clipped(each.text, room) if has_terminal() else one_line(each.text) for _, each in shown]
    rows = [f"{styled(head.ljust(width), 'dim')}  {text}" for head, text in zip(heads, texts, strict=True)]
    text = "\n".join(each.path for _, each in shown) if paths else "\n".join(rows)
    invocation.respond(text, notes=notes, total=len(found))
    if not found:
        invocation.notify("No note fits. See what there is: quaid stats")
    elif len(shown) < len(found):
        invocation.notify(f"{len(shown):,} of {count(len(found), 'note')}. Show more with: --limit {len(found)}")
