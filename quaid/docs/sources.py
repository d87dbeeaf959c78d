"""The sources of a document: what it states or, if it states nothing, the files that it mentions. Pure."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from quaid.vault import frontmatter, markdown

Origin = Literal["frontmatter", "comment", "registered", "learned", "none"]

_COMMENT = re.compile(r"^ {0,3}<!--\s{0,20}SOURCES:", re.IGNORECASE | re.MULTILINE)
_NOTHING = frozenset({"", "none"})
_PATH = re.compile(r"(?:\./|\.\./)*+[\w@.+-][\w@.+ /-]*\.[A-Za-z][A-Za-z0-9]{0,9}")
_POSITION = re.compile(r"(?:[#:]L?\d+(?:-L?\d+)?)?(?:#\S*)?$")
_PROSE = frozenset(
    {".md", ".markdown", ".rst", ".txt", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".webp", ".ico"}
)
"""A document that mentions another one is not about it."""
_DATED = re.compile(
    r"\d{4}-\d\d-\d\d|\d{4,}[-_]|(?:changelog|changes|history|news|releases?|license|copying)\b", re.IGNORECASE
)
_RECORDS = frozenset({"adr", "adrs", "decisions", "rfcs", "changelogs"})
"""Below a folder of documents only: `go/queue/archive` is a package."""
_GLOB = re.compile(r"[*?\[]")
_MAX_STARS = 3
"""Stars in a name: each multiplies the work."""


class References(NamedTuple):
    """The references of a document as `written` (paths, folders and globs), and their origin."""

    written: tuple[str, ...] = ()
    origin: Origin = "none"

    @property
    def is_stated(self) -> bool:
        """Whether they were named on purpose, not learned from the text."""
        return self.origin not in {"learned", "none"}


def sources_of(text: str, registered: Sequence[str] = ()) -> References:
    """Return the sources that a document names: in its frontmatter, else in a `<!-- SOURCES: a, b -->` comment, else in
    the registry.
    """
    head = frontmatter.parse(text)
    listed = head.fields.get("sources")
    if listed is not None:
        return _stated(re.split(r"[,\n]", listed) if isinstance(listed, str) else listed, "frontmatter")
    comments = [head.body[start:end] for start, end in _comments(head.body)]
    if comments:
        lists = (comment.partition(":")[2].removesuffix("-->") for comment in comments)
        return _stated([item for text in lists for item in re.split(r"[,\n]", text)], "comment")
    return References(tuple(registered), "registered" if registered else "none")


def learned_from(names: Iterable[str]) -> References:
    """Return the files among what a document links or has as code, without anchors and line numbers."""
    paths = (_POSITION.sub("", name) for name in names)
    found = (path for path in paths if _PATH.fullmatch(path) and PurePosixPath(path).suffix.lower() not in _PROSE)
    written = tuple(dict.fromkeys(found))
    return References(written, "learned" if written else "none")


def _stated(items: object, origin: Origin) -> References:
    written = [str(item).strip().strip("`\"'").strip("[]").strip() for item in items] if isinstance(items, list) else []
    cleaned = dict.fromkeys(_POSITION.sub("", item) for item in written)
    return References(tuple(item for item in cleaned if item.lower() not in _NOTHING), origin)


def true_at_of(text: str) -> str | None:
    """Return the commit at which a document was true by its own frontmatter."""
    value = frontmatter.parse(text).fields.get("true_at")
    return value if isinstance(value, str) and re.fullmatch(r"[0-9a-fA-F]{7,64}", value) else None


def is_record(path: str) -> bool:
    """Return whether a document is a record by its name: it does not go out of date."""
    *folders, name = (part.lower() for part in PurePosixPath(path).parts)
    below = folders[folders.index("docs") :] if "docs" in folders else folders[:1]
    return _DATED.match(name) is not None or not _RECORDS.isdisjoint(below)


def without_statement(data: bytes) -> bytes:
    """Return a document without its head and its SOURCES comments."""
    text = data.decode("utf-8", "surrogateescape")
    body = text[frontmatter.body_start(text) :]
    for start, end in reversed(list(_comments(body))):
        body = body[:start] + body[end:]
    return body.encode("utf-8", "surrogateescape")


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of comments that begin with SOURCES; one in code is an example and left out."""
    for start, end in markdown.comments(text):
        if _COMMENT.match(text, text.rfind("\n", 0, start) + 1, end):
            yield start, end


class FileList:
    """The files of a repository, in which references are looked up: those that exist, and those that are `gone`."""

    def __init__(self, paths: Sequence[str], gone: Sequence[str] = ()) -> None:
        self._there = frozenset(paths)
        self._every = (*paths, *gone)
        self._all = frozenset(self._every)
        self._folders: set[str] = set()
        self._by_name: dict[str, list[str]] = {}
        for path in self._every:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)
            folder = posixpath.dirname(path)
            while folder and folder not in self._folders:
                self._folders.add(folder)
                folder = posixpath.dirname(folder)
        self._known: dict[tuple[str, str, str], tuple[Sequence[str], bool]] = {}

    def resolve(
        self, reference: str, folder: str, root: str, *, is_stated: bool = True
    ) -> tuple[Sequence[str], int | None]:
        """Return the files that a document in `folder` refers to, and None; if that is unclear, the number of files
        that the reference may mean, 0 if there are none now.

        `root` is the top of the document's project; both are relative to the repository. A learned reference counts if
        it can only mean one file, and is never unclear.
        """
        key = (reference, folder, root)
        if key not in self._known:
            self._known[key] = self._find(*key)
        found, is_clear = self._known[key]
        if not is_stated:
            return (found if is_clear and len(found) == 1 else ()), None
        if not is_clear:
            return (), len(found)
        return found, 0 if self._there.isdisjoint(found) else None

    def _find(self, reference: str, folder: str, root: str) -> tuple[Sequence[str], bool]:
        """Return the files that a reference may name, and whether it is unambiguous.

        It is relative to the document's folder, the project's root or the repository; else it is the end of a path.
        """
        for base in dict.fromkeys((folder, root, "")):
            full = posixpath.normpath(posixpath.join(base, reference.lstrip("/")))
            full = "" if full == "." else full
            if full.startswith(".."):
                continue
            if full in self._all and full not in self._folders:
                return [full], True
            if full in self._folders or not full:
                prefix = f"{full}/" if full else ""
                # Also the file itself: what is a folder now may have been a file.
                return [path for path in self._every if path.startswith(prefix) or path == full], True
            if _GLOB.search(full) and (matching := _match_glob(full, self._every)):
                return matching, True
        if _GLOB.search(reference):
            return [], False
        tail = posixpath.normpath(reference).lstrip("./")
        named = self._by_name.get(posixpath.basename(tail), ())
        found = [path for path in named if f"/{path}".endswith(f"/{tail}")]
        found = [path for path in found if path in self._there] or found
        return found, len(found) == 1


def _match_glob(pattern: str, paths: Sequence[str]) -> list[str]:
    """Return the paths that match; none if the pattern is no glob or has so many stars that it would take long."""
    import pathspec

    if any(part.count("*") > _MAX_STARS for part in pattern.split("/")):
        return []
    try:
        spec = pathspec.GitIgnoreSpec.from_lines([f"/{pattern}"])
    except (ValueError, re.error):
        return []  # a folder's name, as in `app/[post-id]`
    return list(spec.match_files(paths))
