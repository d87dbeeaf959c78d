"""Templates: all that they print is escaped, without secrets, and shows hidden characters."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_environment
from markupsafe import Markup, escape

from quaid.model import note_name
from quaid.redaction import admit
from quaid.text.invisible import escaped
from quaid.text.quoting import short_id
from quaid.text.zones import local_day, local_now, read_local
from quaid.vault.notes import format_day
from quaid.web.guard import FORM_TOKEN
from quaid.web.outcomes import read_words

if TYPE_CHECKING:
    from quaid.web.routes import Page

_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
MAX_CACHED = 20_000
"""Texts whose printed form is cached: a page that is loaded again, as most are, has the same."""


def make_environment(vault: str, form_token: str, navigation: Sequence[Page]) -> Environment:
    """Return the environment of all templates of a vault.

    `exactly` prints a text as it is, for a form that sends it back. The global `timezone` is the vault's setting.
    """
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
    environment.globals |= {
        "vault": vault,
        "navigation": navigation,
        "form_token": field.__html__,
        "memory_path": memory_path,
        "zone": pass_environment(lambda own: f"{local_now(own.globals['timezone']):%Z}"),
        "timezone": "",
        "kind_names": read_words("kinds"),
    }

    environment.filters |= {
        "exactly": lambda text: Markup(escape(text)),  # noqa: S704 - escaped just here
        "moment": pass_environment(lambda own, iso: format_moment(iso, own.globals["timezone"])),
        "when": pass_environment(lambda own, iso: mark_moment(iso, own.globals["timezone"])),
        "clock": pass_environment(lambda own, iso: mark_clock(iso, own.globals["timezone"])),
        "days": format_days,
        "day": pass_environment(lambda own, iso: format_day(local_day(iso, own.globals["timezone"]))),
        "short_id": short_id,
    }
    environment.tests["untitled"] = lambda note: note.title == note_name(note.path)
    return environment


def memory_path(reference: str, page: str = "memory") -> str:
    """Return the address of the page of a memory, or of another page about it."""
    return f"/{page}/{quote(reference, safe='')}"


def format_moment(iso: str | None, timezone: str = "") -> str:
    """Return a moment of ISO 8601 in the machine's zone: `14 March 2026, 15:02`. A day or a month has no time."""
    local = read_local(iso or "", timezone)
    return f"{format_day(local.isoformat())}, {local:%H:%M}" if local else format_day(iso or "")


def format_days(text: str) -> str:
    """Return a text of ours with its days as people read them; what it quotes stays as it is."""
    ours, mark, quoted = text.partition("“")
    return f"{_DAY.sub(lambda day: format_day(day[0]), ours)}{mark}{quoted}"


def mark_moment(iso: str | None, timezone: str = "") -> Markup:
    """Return the same as an element that live.js prints in the browser's zone."""
    return _mark_time(iso or "", format_moment(iso, timezone), "moment")


def mark_clock(iso: str | None, timezone: str = "") -> Markup:
    """Return the time of a moment without its day, as such an element."""
    local = read_local(iso or "", timezone)
    return _mark_time(iso or "", f"{local:%H:%M}" if local else "", "clock")


def _mark_time(iso: str, text: str, style: str) -> Markup:
    return Markup('<time datetime="{}" data-local="{}">{}</time>').format(_print_text(iso), style, _print_text(text))


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
