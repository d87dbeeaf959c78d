"""Addresses of our own pages, which an action leads to."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def say(path: str, said: str) -> str:
    """Return the address of one of our own pages, which then says the message `said`; that of the first page where
    `path` leads elsewhere.
    """
    if not path.startswith("/") or path.startswith("//") or "\\" in path or not path.isprintable():
        path = "/"
    scheme, host, page, query, part = urlsplit(path)
    kept = "&".join(field for field in query.split("&") if field and not field.startswith("said="))
    return urlunsplit((scheme, host, page, f"{kept}&said={said}" if kept else f"said={said}", part))
