"""Where things live in a vault, and what a path alone says about a note."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
import unicodedata
from collections.abc import Container
from datetime import datetime
from pathlib import Path, PurePosixPath

from quaid.config import CONFIG_FILE
from quaid.model import CORE_FILES, ENTITY_TYPES, FACT_TYPES, Kind

STATE_DIR = ".quaid"
INDEX_FILE = "index.db"
CACHE_FILE = "cache.db"
LOCAL_FILE = "local.db"
LOCK_FILE = "lock"
LOG_DIR = "log"

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_FOLDER_KINDS = {
    "facts": Kind.FACT,
    "entities": Kind.ENTITY,
    "episodes": Kind.EPISODE,
    "snippets": Kind.SNIPPET,
    "journal": Kind.JOURNAL,
    "projects": Kind.DOC,
    "review": Kind.REVIEW,
}
# Obsidian Sync, Syncthing, Dropbox and ownCloud, Resilio. iCloud's "name 2.md" and Google's "name (1).md" are
# also what people call their own notes, so those are left to the duplicate-id check.
_CONFLICT_COPY = re.compile(
    r"\(conflicted copy[^)]*\)|\([^)]*'s conflicted copy[^)]*\)|\.sync-conflict-\d{8}-|\.conflict\b", re.IGNORECASE
)
# Windows refuses these characters and stems; Obsidian's links break on # ^ | [ ].
_FORBIDDEN = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f]')
_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def find_vault(start: Path) -> Path | None:
    """The vault that encloses `start`: the nearest folder upwards that holds quaid.toml."""
    for folder in (start, *start.parents):
        if (folder / CONFIG_FILE).is_file():
            return folder
    return None


def kind_of(rel_path: str, note_type: str | None, keys: Container[str] = ()) -> Kind:
    """What a note is: its folder decides, elsewhere its `type`.

    `event` names both a fact type and an entity type; outside the two folders a `confidence` or `status` key
    (which only facts have) makes it a fact.
    """
    parts = PurePosixPath(rel_path).parts
    if len(parts) == 1 and parts[0] in CORE_FILES:
        return Kind.CORE
    if len(parts) > 1 and parts[0] in _FOLDER_KINDS:
        return _FOLDER_KINDS[parts[0]]
    if note_type == "episode":
        return Kind.EPISODE
    if note_type in FACT_TYPES and ("confidence" in keys or "status" in keys):
        return Kind.FACT
    if note_type in ENTITY_TYPES:
        return Kind.ENTITY
    return Kind.NOTE


def is_note_name(name: str) -> bool:
    """Markdown that is not an editor's or a sync tool's temporary file."""
    return name.endswith(".md") and not name.startswith((".", "~", "#"))


def is_conflict_copy(rel_path: str) -> bool:
    """A copy a sync tool made because two devices disagreed: reported, never indexed as memory."""
    return _CONFLICT_COPY.search(PurePosixPath(rel_path).name) is not None


def skips_folder(name: str) -> bool:
    """Folders that hold no notes: hidden ones (.git, .obsidian, .quaid, .trash) and package trees."""
    return name.startswith(".") or name in {"node_modules", "__pycache__"}


def new_id(now: datetime) -> str:
    """A ULID in lower case: 48 bits of milliseconds, 80 random bits; sorts by time."""
    number = (int(now.timestamp() * 1000) << 80) | secrets.randbits(80)
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def slug(text: str, limit: int = 48) -> str:
    """Lower-case ASCII words joined by hyphens, cut at a word's end; `note` when nothing is left."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", ascii_text.lower().replace("'", ""))
    kept = ""
    for word in words:
        candidate = f"{kept}-{word}" if kept else word[:limit]
        if len(candidate) > limit:
            break
        kept = candidate
    return kept or "note"


def fact_path(text: str, note_id: str, created: datetime) -> str:
    """`facts/2026/11/maya-prefers-oat-milk-7k3qd.md`"""
    return f"facts/{created:%Y/%m}/{slug(text)}-{note_id[-5:]}.md"


def session_tail(session: str) -> str:
    """Six characters that stand for a session in a file name."""
    if re.fullmatch(r"[0-9a-z]{4,8}", session):
        return session
    return hashlib.sha256(session.encode()).hexdigest()[:6]


def episode_path(session: str, started: datetime) -> str:
    """`episodes/2026/11/20-1402-2f1c9a.md`"""
    return f"episodes/{started:%Y/%m/%d-%H%M}-{session_tail(session)}.md"


def entity_path(name: str) -> str:
    """`entities/Maya Chen.md`: the file name is the name, less what file systems and links refuse."""
    cleaned = _FORBIDDEN.sub(" ", unicodedata.normalize("NFC", name))
    cleaned = re.sub(r"\s+", " ", cleaned).strip(" .")
    while len(cleaned.encode()) > 200:
        cleaned = cleaned[:-1].rstrip(" .")
    if not cleaned or _RESERVED.match(cleaned):
        cleaned = f"{cleaned}_"
    return f"entities/{cleaned}.md"


def temporary_name(name: str) -> str:
    """A hidden neighbour of `name` that no other process picks, shaped so that every listing skips it."""
    return f".{name[:100]}.{time.time_ns():x}{secrets.token_hex(3)}.tmp"
