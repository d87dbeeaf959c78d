"""The answer to an action: the address to go to with a message, or a page about what cannot be done."""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request

from quaid.capture.writer import WriteResult

Item = TypeVar("Item")

Context = Mapping[str, Any]
Form = Mapping[str, str]

MESSAGE, COMMIT = "said", "commit"
"""The parameters of an address that say what was just done, and by which commit."""
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OWN = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path on this host: browsers take a backslash for a slash, and two of them for a host."""


class Shown(NamedTuple):
    """A page in place of the requested one, or of an action that cannot be done as it is: the posted form is on it and
    not lost; or, with the status 200, the result of an action.
    """

    template: str
    context: Context
    status: int = 409


def go_to(address: str, message: str, commit: str | None = None) -> str:
    """Return an address of ours with a message, a key of `MESSAGES`, and the commit that can be undone."""
    place, _, part = address.partition("#")
    path, _, query = place.partition("?")
    pairs = [*without_message(query), (MESSAGE, message), *([(COMMIT, commit)] if commit else [])]
    return f"{path}?{urlencode(pairs)}{f'#{part}' if part else ''}"


def go_to_written(address: str, written: WriteResult, message: str) -> str:
    """Return the address to go to after a write, with the message that it was done, or that it was not needed, or that
    it is not committed.
    """
    if written.outcome == "unchanged":
        message = "unchanged"
    elif written.left:
        message = "left"
    return go_to(address, message, written.commit)


def without_message(query: str) -> list[tuple[str, str]]:
    """Return the names and values of a query without message and commit."""
    return [pair for pair in parse_qsl(query) if pair[0] not in {MESSAGE, COMMIT}]


def own_address(given: str) -> str | None:
    """Return an address from a form, without its fragment; None if it may lead to another host."""
    if not _OWN.fullmatch(given):
        return None
    parts = urlsplit(given)
    return None if parts.netloc else f"{parts.path}{f'?{parts.query}' if parts.query else ''}"


def commit_id(given: str) -> str:
    """Return `given` if it is the whole id of a commit, else an empty string."""
    return given if _COMMIT_ID.fullmatch(given) else ""


def page_number(given: str) -> int:
    """Return the number of a page from an address, 1 if it is not a number."""
    return max(1, int(given)) if given.isascii() and given.isdigit() and len(given) < 7 else 1


def paginate(total: int, request: Request, size: int) -> tuple[slice, dict[str, int]]:
    """Return the part of a list that the page in the address shows, the last one if there are fewer pages, and the
    values for the macro `pager`.
    """
    pages = max(1, -(-total // size))
    page = min(pages, page_number(request.query_params.get("page", "")))
    return slice(size * (page - 1), size * page), {"page": page, "pages": pages, "total": total}


def link(asked: Mapping[str, Any], **changed: Any) -> str:
    """Return the query of an address like this one with other values; what is not the same list has its first page."""
    fields = {**asked, "page": "", **changed}
    return f"?{urlencode({name: value for name, value in fields.items() if value}, doseq=True)}"


def group_by(pairs: Iterable[tuple[str, Item]]) -> list[tuple[str, list[Item]]]:
    """Return (key, items) of neighbouring pairs with the same key."""
    return [(key, [item for _, item in those]) for key, those in groupby(pairs, itemgetter(0))]
