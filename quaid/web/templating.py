"""Templates: all that they print is escaped, without secrets, and shows hidden characters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from quaid.model import note_name
from quaid.redaction import admit
from quaid.text.invisible import escaped
from quaid.text.quoting import short_id
from quaid.web.guard import FORM_TOKEN

if TYPE_CHECKING:
    from quaid.web.routes import Page

MAX_CACHED = 20_000
"""Texts whose printed form is cached: a page that is loaded again, as most are, has the same."""


def make_environment(form_token: str, navigation: Sequence[Page]) -> Environment:
    """Return the environment of all templates. `exactly` prints a text as it is, for a form that sends it back."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=_printed,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    field = Markup('<input type="hidden" name="{}" value="{}">').format(FORM_TOKEN, form_token)
    environment.globals |= {"navigation": navigation, "form_token": field.__html__, "memory_path": memory_path}
    environment.filters |= {
        "exactly": lambda text: Markup(escape(text)),  # noqa: S704 - escaped just here
        "moment": format_moment,
        "short_id": short_id,
    }
    environment.tests["untitled"] = lambda note: note.title == note_name(note.path)
    return environment


def memory_path(reference: str, page: str = "memory") -> str:
    """Return the address of the page of a memory, or of another page about it."""
    return f"/{page}/{quote(reference, safe='')}"


def format_moment(moment: str | None) -> str:
    """Return a moment of ISO 8601 as people read it: the day, and the time to the minute if it has one."""
    day, _, time = (moment or "").partition("T")
    return f"{day} {time[:5]}" if time else day


def to_json(value: Any) -> bytes:
    """Return JSON for a script, with each string as a template prints it, but not escaped."""
    return json.dumps(_print_all(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _print_all(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _print_all(item) for key, item in value.items()}
    return [_print_all(item) for item in value] if isinstance(value, list) else _printed(value)


def _printed(value: Any) -> Any:
    return _print_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(maxsize=MAX_CACHED)
def _print_text(text: str) -> str:
    return escaped(admit(text).text)
