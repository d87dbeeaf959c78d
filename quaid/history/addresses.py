"""Addresses of remote repositories: the protocol that reaches one, and its text without a password."""

import os
import re
from pathlib import Path

from quaid.errors import BadInputError

PROTOCOLS = ("https", "ssh", "http", "file")
"""The supported protocols. Others run a program that the address names, or let anybody on the way change the data."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_AUTHORITY = re.compile(r"\w+://(?:[^-/@\s][^/@\s]*@)?(?:\w[\w.-]*|\[[\da-fA-F:.]+\])(?::\d+)?(?:/.*)?")
"""Neither a user nor a host begins with a hyphen: ssh would take it for an option."""
_SCP_LIKE = re.compile(r"(?:[\w.~+-]+@)?\w[\w.-]*:(?!:).+")
_USER = re.compile(r"^(https?://)[^/@]*@", re.IGNORECASE)
_PASSWORD = re.compile(r"^(\w+://[^/@:]*):[^/@]*@")
_ANY_PASSWORD = re.compile(r"(https?://)[^/@\s]{1,500}@")


def protocol_of(address: str) -> str:
    """Return the protocol that reaches `address`, one of `PROTOCOLS`.

    Raises:
        BadInputError: it is none of them, or no address.
    """
    scheme = _SCHEME.match(address)
    is_plain = address.isprintable() and address == address.strip() and not address.startswith("-")
    protocol = scheme[1].lower() if scheme else ""
    if is_plain and protocol in PROTOCOLS and (protocol == "file" or _AUTHORITY.fullmatch(address)):
        return protocol
    if is_plain and not scheme and "::" not in address.partition("/")[0]:
        if address.startswith(("/", "./", "../")):
            return "file"
        if _SCP_LIKE.fullmatch(address):
            return "ssh"
    raise BadInputError(
        f"{hide_password(address)!r} is not an address that Quaid sends notes to. "
        f"Give one of {', '.join(f'{each}://' for each in PROTOCOLS)}, host:path, or a folder."
    )


def complete(address: str) -> str:
    """Return what was typed as an address that means the same everywhere: a folder as its whole path."""
    if not address or _SCHEME.match(address) or address.startswith("-") or "::" in address:
        return address
    folder = Path(address).expanduser()
    is_folder = address.startswith(("/", ".", "~")) or folder.is_dir()
    return os.path.normpath(folder.absolute()) if is_folder else address


def hide_password(address: str) -> str:
    """Return an address without what may be a password or a token. Of ssh the user stays, who is part of the place."""
    return _PASSWORD.sub(r"\1@", _USER.sub(r"\1", address))


def hide_passwords(text: str) -> str:
    """Return what git says without the passwords in its addresses."""
    return _ANY_PASSWORD.sub(r"\1", text)
