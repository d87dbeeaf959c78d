"""Templates: whatever one prints is without secrets, shows what is hidden, and is escaped."""

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

MAX_KEPT = 20_000
"""Texts whose shown form is remembered: a page that is asked for again, as most are, has the same."""


def make_environment(form_token: str, navigation: Sequence[Page]) -> Environment:
    """Return the environment of all templates. `exactly` prints a text as it is, for a form that sends it back."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    field = Markup('<input type="hidden" name="{}" value="{}">').format(FORM_TOKEN, form_token)
    environment.globals |= {"navigation": navigation, "form_token": lambda: field, "memory_path": memory_path}
    environment.filters |= {
        "exactly": lambda text: Markup(escape(text)),  # noqa: S704 - escaped just here
        "moment": tell_moment,
        "short_id": short_id,
    }
    environment.tests["untitled"] = lambda note: note.title == note_name(note.path)
    return environment


def memory_path(reference: str, page: str = "memory") -> str:
    """Return the address of the page of the memory that `reference` means, or of another page about it."""
    return f"/{page}/{quote(reference, safe='')}"


def tell_moment(moment: str | None) -> str:
    """Return a moment of ISO 8601 as it is read: the day, and the time to the minute where it has one."""
    if not moment:
        return ""
    day, _, time = moment.partition("T")
    return f"{day} {time[:5]}" if time else day


def to_json(value: Any) -> bytes:
    """Return JSON for a script, of whose strings each is as a template prints it, but for the escaping."""

    def shown(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: shown(inner) for key, inner in part.items()}
        return [shown(inner) for inner in part] if isinstance(part, list) else _shown(part)

    return json.dumps(shown(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _shown(value: Any) -> Any:
    return _show(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(maxsize=MAX_KEPT)
def _show(text: str) -> str:
    return escaped(admit(text).text)
