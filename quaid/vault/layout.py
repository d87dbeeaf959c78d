"""The places of things in a vault, and what a path alone says about a note."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, Self
from unicodedata import category, combining, normalize

from quaid.errors import BadInputError
from quaid.model import CORE_FILES, ENTITY_TYPES, FACT_TYPES, NOTE_ENDINGS, Kind, note_name
from quaid.settings import VaultSettings
from quaid.text.words import list_words

WRITTEN_BY, AGENT = "written_by", "agent"
"""The key, and its value, by which a note says that an agent wrote it."""
COOKIE_DIR = ".quaid"
"""Quaid's one hidden folder in a vault: listeners touch files in it to get their notification. None is ever read."""

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_ID = re.compile(f"[0-7][{_CROCKFORD}]{{24,25}}")
"""What `new_id` makes, which other programs write in capitals; or one character less, as in the design's example."""
_CORE_STEMS = "|".join(name.removesuffix(".md") for name in CORE_FILES)
_BY_NAME = re.compile(
    rf"snippets/(?:{_CORE_STEMS})\.snippets\.md"
    rf"|journal/(?:(?:{_CORE_STEMS})\.journal|archive/(?:{_CORE_STEMS})-\d{{4}}-\d\d)\.md"
)
KNOWLEDGE_GAPS = "review/knowledge-gaps.md"
"""The list of questions asked in vain."""
RELATION_WORDS = "review/relation-words.md"
"""The list of the words that questions use for relations: `mentors: coach guide` as aliases, which the index has."""
_FOLDER_KINDS = {
    "facts": Kind.FACT,
    "entities": Kind.ENTITY,
    "episodes": Kind.EPISODE,
    "snippets": Kind.SNIPPET,
    "journal": Kind.JOURNAL,
    "projects": Kind.DOC,
    "review": Kind.REVIEW,
    "sources": Kind.DOC,
}
FOLDERS = tuple(_FOLDER_KINDS)
"""The names of Quaid's folders."""
# Of Obsidian Sync and Dropbox; of those two, Nextcloud, Seafile and FSNotes in other languages, with a date; of
# Syncthing, ownCloud, Synology, and of Resilio and Quaid. iCloud's "name 2.md", Google's "name (1).md" and OneDrive's
# "name-LAPTOP.md" are also what people call their own notes: `list_problems` reports those with equal text or id.
_CONFLICT_COPY = re.compile(
    r"\((?:[^()]*['’]s? )?conflicted copy[^()]*(?:\(\d+\))?\)"  # noqa: RUF001
    r"|\((?:case|unicode encoding|selective sync|white ?space) conflict(?: \d+)?\)$"
    r"|\([^()]*(?:[ck]onfli|コンフリ|конфл|競合|冲突|衝突|충돌|çak[ıi]ş|ütköz|kolid|ristiriit)"  # noqa: RUF001
    r"[^()]*(?:\d{4}-\d\d-\d\d|\d{8})[^()]*\)(?: \d+)?$"
    r"|\.sync-conflict-\d{8}-|_conflict-\d{8}-\d{4,6}$|_[^_]+_[^_]*\d{6}[^_]*_conflict$|\.conflict$",
    re.IGNORECASE,
)
# Windows refuses these characters and stems; Obsidian's links break on # ^ | [ ].
_FORBIDDEN = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f\x7f\ud800-\udfff]|%%+')
_HIDDEN = re.compile(r"^[.~]")
_HIDDEN_FILES = {".gitignore", ".gitattributes"}
_MAX_NAME_BYTES = 190
"""Bytes of an entity's name as a file; file systems take 255."""
_MAX_SLUG_BYTES = 120
"""Bytes of a slug: some folders that are encrypted take names of 143."""
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{20,24}\.tmp", re.DOTALL)
_RESERVED = re.compile(r"^(con|prn|aux|nul|conin\$|conout\$|com[\d¹²³]|lpt[\d¹²³])(?= *(?:\.|$))", re.IGNORECASE)


class Layout(NamedTuple):
    """The places of Quaid's notes in one vault, and the rule by which a note is one of them.

    `folder` holds Quaid's folders; empty means that they lie in the vault itself. `is_managed` means that hand-written
    notes in those folders, or with a `type` of Quaid's, are Quaid's too.
    """

    folder: str = ""
    is_managed: bool = False

    @classmethod
    def of(cls, settings: VaultSettings) -> Self:
        return cls(settings.folder.strip("/"), settings.hand_written == "managed")

    @classmethod
    def of_vault(cls, root: Path) -> Self:
        """Return the layout that the settings of the vault at `root` ask for."""
        from quaid.config import settings_for_reading  # not above: most who need a path read no setting

        return cls.of(settings_for_reading(root)[0].vault)

    def place(self, path: str) -> str:
        """Return the path in the vault of one of Quaid's paths (`facts/2026/11/x.md`). Core notes stay at the top."""
        return f"{self.folder}/{path}" if self.folder and path not in CORE_FILES else path

    def inner_path(self, rel_path: str) -> str:
        """Return the path below `folder`, which is what `place` was given; empty for a path outside of it."""
        if not self.folder:
            return rel_path
        return rel_path.removeprefix(f"{self.folder}/") if rel_path.startswith(f"{self.folder}/") else ""

    def folder_kind(self, rel_path: str) -> Kind | None:
        """Return the kind of note that the folder is for, if it is one of Quaid's."""
        first, _, rest = self.inner_path(rel_path).partition("/")
        return _FOLDER_KINDS.get(first) if rest else None

    def kind_of(self, rel_path: str, fields: Mapping[str, Any]) -> Kind:
        """Return the kind of a note with this head. What does not say that Quaid made it is a `NOTE`, its owner's."""
        if rel_path in CORE_FILES:
            return Kind.CORE
        placed = self.folder_kind(rel_path)
        if not self.is_managed or WRITTEN_BY in fields:
            return self._marked_kind(rel_path, placed, fields)
        if placed is not None:
            return placed
        # Elsewhere the `type` tells. `event` is one of facts and of entities: a `confidence` or `status`, which only
        # facts have, decides.
        note_type = fields.get("type")
        if note_type == "episode":
            return Kind.EPISODE
        if note_type in FACT_TYPES and ("confidence" in fields or "status" in fields):
            return Kind.FACT
        return Kind.ENTITY if note_type in ENTITY_TYPES else Kind.NOTE

    def _marked_kind(self, rel_path: str, placed: Kind | None, fields: Mapping[str, Any]) -> Kind:
        """The kind that the marks of Quaid's own notes tell. Those in the head hold wherever the note is moved."""
        if is_agents(fields):  # whatever else it says: an agent states no facts by writing a note like one
            return Kind.DOC if self.project_of(rel_path) else Kind.NOTE
        if (kind := _headed_kind(placed, fields)) is not None:
            return kind
        inner = self.inner_path(rel_path)
        match placed:
            case Kind.SNIPPET | Kind.JOURNAL:
                is_made = _BY_NAME.fullmatch(inner) is not None
            case Kind.REVIEW:
                is_made = is_question(fields) or inner in {KNOWLEDGE_GAPS, RELATION_WORDS}
            case Kind.DOC:
                is_made = project_of(inner) is not None
            case _:
                is_made = False
        return placed if placed and is_made else Kind.NOTE

    def project_of(self, rel_path: str) -> str | None:
        """Return the project whose folder contains a note."""
        return project_of(self.inner_path(rel_path))

    def is_tools_note(self, rel_path: str) -> bool:
        """Return True if a note tells how the tools of a project are reached."""
        return self.project_of(rel_path) is not None and rel_path.endswith("/TOOLS.md")


def _headed_kind(placed: Kind | None, fields: Mapping[str, Any]) -> Kind | None:
    """The kind of a note whose head says that Quaid made it: by an id of Quaid's form, an episode by its session."""
    note_type, note_id = fields.get("type"), fields.get("id")
    if note_type == "episode" and "session" in fields and "turn_count" in fields:
        return Kind.EPISODE
    if not isinstance(note_id, str) or not _ID.fullmatch(note_id):
        return None
    if placed in {Kind.FACT, Kind.ENTITY}:
        return placed
    if note_type in FACT_TYPES and ("confidence" in fields or "status" in fields):
        return Kind.FACT
    if note_type in ENTITY_TYPES and "created" in fields:
        return Kind.ENTITY
    return Kind.DOC if note_type == "source" and "checksum" in fields else None


DEFAULT = Layout()


def is_agents(fields: Mapping[str, Any]) -> bool:
    """Return True for the head of a note that an agent wrote, or that its owner lets agents write."""
    return bool(fields.get(WRITTEN_BY) == AGENT)


def is_question(fields: Mapping[str, Any]) -> bool:
    """Return True for the head of a question to the owner in review/."""
    task, kind, key = (fields.get(name) for name in ("task", "kind", "key"))
    is_keyed = isinstance(key, str) and re.fullmatch("[0-9a-f]{16}", key) is not None
    return fields.get("type") == "review" and bool(task and kind and is_keyed)


def project_of(path: str) -> str | None:
    """Return the project whose folder contains `path`, a path of Quaid's."""
    parts = path.split("/", 2) if path.startswith("projects/") else ()
    return parts[1] if len(parts) == 3 else None


def list_project_files(root: Path, place: Layout) -> Iterator[Path]:
    """Yield the PROJECT.md of each project of the vault at `root`."""
    return (root / place.place("projects")).glob("*/PROJECT.md")


def is_note_name(name: str) -> bool:
    """Markdown that is not an editor's or a sync tool's temporary file."""
    return name.lower().endswith(NOTE_ENDINGS) and not name.startswith((".", "~$"))


def is_other_format(name: str) -> bool:
    """Return True for a note in a format that is not read: Obsidian's canvas, org mode and the like."""
    return name.lower().endswith((".adoc", ".canvas", ".mdx", ".org", ".qmd", ".rst")) and not name.startswith(".")


def is_note_path(rel_path: str) -> bool:
    """Return True if a listing of the vault would come across this file and take its name for a note's."""
    *folders, name = rel_path.split("/")
    return is_note_name(name) and not any(map(skips_folder, folders))


def is_vault_path(rel_path: str) -> bool:
    """Return True if Quaid may write a file of this path: below the vault, and nothing on the way is hidden."""
    names = rel_path.split("/")
    is_plain = all(name and not name.startswith(".") for name in names) and "\0" not in rel_path
    return is_plain or rel_path in _HIDDEN_FILES


def is_repository_path(rel_path: str) -> bool:
    """Return True if the path is inside the vault and none of git's own, on any file system."""
    if "\0" in rel_path:
        return False
    for name in rel_path.split("/"):
        # Some file systems take `.GIT`, `.git ` and `git~1` for `.git`, and leave out what is not seen.
        seen = "".join(char for char in normalize("NFKC", name).lower() if category(char) != "Cf")
        if name in {"", ".", ".."} or re.fullmatch(r"(\.git|git~\d+)(:.*)?[. ]*", seen):
            return False
    return True


def is_conflict_copy(rel_path: str) -> bool:
    """A copy a sync tool made because two devices disagreed: reported, never indexed as memory."""
    return _CONFLICT_COPY.search(normalize("NFC", note_name(rel_path))) is not None


def skips_folder(name: str) -> bool:
    """Folders that hold no notes: hidden ones (.git, .obsidian, .quaid, .trash) and package trees."""
    return name.startswith(".") or name in {"node_modules", "__pycache__"}


def new_id(now: datetime) -> str:
    """A ULID in lower case: 48 bits of milliseconds, 80 random bits; sorts by time."""
    return encode_id((int(now.timestamp() * 1000) << 80) | int.from_bytes(os.urandom(10)))


def encode_id(number: int, length: int = 26) -> str:
    """Return a number as ids are written, in `length` characters of five bits."""
    return "".join(_CROCKFORD[(number >> 5 * place) & 31] for place in reversed(range(length)))


def slug(text: str, limit: int = 48) -> str:
    """The words of `text` in lower case, joined by hyphens, cut at a word's end to `limit` characters; `note` when
    nothing is left. Latin letters lose their accents, those of other scripts stay as they are.
    """
    folded = normalize("NFKC", normalize("NFKC", text.replace("'", "")).lower().replace("ß", "ss"))
    result = ""
    for word in list_words(folded):
        plain = ""  # its Latin letters as ASCII, as far as they are ASCII letters with something on them
        for char in word:
            base = normalize("NFKD", char)[0]
            if base.isascii() or not (combining(char) and plain[-1:].isascii()):
                plain += base if base.isascii() else char
        candidate = f"{result}-{plain}" if result else plain
        while not result and not _fits(candidate, limit):
            candidate = candidate[:-1]
        if not _fits(candidate, limit):
            break
        result = candidate
    return result or "note"


def _fits(name: str, limit: int) -> bool:
    return len(name) <= limit and len(name.encode()) <= _MAX_SLUG_BYTES


def fact_path(text: str, note_id: str, created: datetime) -> str:
    """`facts/2026/11/maya-prefers-oat-milk-7k3qd.md`"""
    return f"facts/{created:%Y/%m}/{slug(text)}-{note_id[-5:]}.md"


def source_path(file_name: str, digest: str) -> str:
    """`sources/lease-bergstrasse-3fa2c.md`; `digest` is of what tells the file from others of its name."""
    return f"sources/{slug(PurePosixPath(file_name).stem)}-{digest}.md"


def session_tail(session: str) -> str:
    """Return six characters that identify a session in a file name."""
    if re.fullmatch(r"[0-9a-z]{4,8}", session):
        return session
    import hashlib

    return hashlib.sha256(session.encode()).hexdigest()[:6]


def episode_path(session: str, started: datetime, title: str | None = None) -> str:
    """`episodes/2026/11/20-1402-2f1c9a.md`, or with a title `episodes/2026/11/20-1402-the-lease-2f1c9a.md`"""
    named = f"-{slug(title)}" if title else ""
    return f"episodes/{started:%Y/%m/%d-%H%M}{named}-{session_tail(session)}.md"


def entity_path(name: str) -> str:
    """`entities/Maya Chen.md`: the file name is the name, but what file systems and links refuse is replaced by its
    full-width twin, so that no two names share a file.
    """
    cleaned = _FORBIDDEN.sub(_full_width, normalize("NFC", name))
    cleaned = _HIDDEN.sub(_full_width, " ".join(cleaned.split())).rstrip(" .")
    if len(cleaned.encode()) > _MAX_NAME_BYTES:
        cleaned = (
            f"{cleaned.encode()[: _MAX_NAME_BYTES - 9].decode(errors='ignore').rstrip(' .')} {session_tail(cleaned)}"
        )
    # Windows takes the part before the first full stop for the device.
    cleaned = _RESERVED.sub(r"\1_", cleaned) or "_"
    return f"entities/{cleaned}.md"


def side_path(core: str, kind: Literal["snippets", "journal"]) -> str:
    """`SOUL.md` -> `snippets/SOUL.snippets.md` or `journal/SOUL.journal.md`

    Raises:
        BadInputError: `core` is not a core note.
    """
    if core not in CORE_FILES:
        raise BadInputError(f"{core!r} is not a core note. Snippets and journal exist for {', '.join(CORE_FILES)}.")
    return f"{kind}/{core.removesuffix('.md')}.{kind}.md"


def _full_width(refused: re.Match[str]) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else " " for char in refused[0])


def temporary_name(name: str) -> str:
    """A hidden neighbour of `name` that no other process picks, shaped so that every listing skips it."""
    return f".{os.fsencode(name)[:100].decode(errors='ignore')}.{time.time_ns():x}{os.urandom(3).hex()}.tmp"


def is_temporary_name(name: str) -> bool:
    """Return True if `temporary_name` made this name: nobody else's hidden files are ours to tidy away."""
    return _TEMPORARY.fullmatch(name) is not None
