"""How certain it is that a page is out of date, from what changed of the symbols that it names. Pure.

Each changed symbol is a doubt with a weight of at most 1. A name that many pages have says little about one of them, a
new option counts for the page that describes its siblings, and a body counts only where the owner named the symbol.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from quaid.docs.definitions import Definition, Definitions, Part, SymbolChange
from quaid.docs.mentions import is_plain
from quaid.history.source_repository import Log, LoggedCommit

CERTAIN = 1.0
"""The certainty from which a page is stale: one changed symbol that no other page names."""
MOST_FLAGGED = 0.4
"""The part of a project's pages that may be stale by guessed symbols: the most certain."""
NAMED: Mapping[Part, float] = {"signature": 1.0, "removed": 1.0, "help": 0.8, "added": 0.0, "body": 0.0}
"""The weight of a change of what a page names."""
CHOSEN: Mapping[Part, float] = {"signature": 1.0, "removed": 1.0, "help": 1.0, "added": 1.0, "body": 0.6}
"""The weight where the owner named the symbol as a source, or its file and the page the symbol."""
IN_FILE: Mapping[Part, float] = {"signature": 1.0, "removed": 1.0, "help": 1.0, "added": 1.0, "body": 0.3}
"""The weight of another symbol of a file that is a source: all of a small file is what the page is about."""
SMALL_FILE, LARGE_FILE = 4, 44
"""Symbols of a file up to which that weight is whole, and from which it does not become less."""
SIBLING = 0.5
PLAIN_MEMBER = 0.3
"""What is left where a field or method is named by a word of the language alone."""
EACH_FURTHER = 0.7
HISTORY, HISTORY_STATED = 2.5, 2.0
"""The weight of what changed with a page before; less where its owner named the sources."""
_MANY_FILES, _FEW_COMMITS = 40, 2
_MIN_SCOPE = 3
_MIN_SIBLINGS = 2
MEMBERS = frozenset({"method", "field", "entry", "table", "member", "property", "variable"})


Scopes = Mapping[tuple[str, str | None], Sequence[Definition]]
"""The public definitions in each (path, scope), and under None those of the whole file."""


class Weighed(NamedTuple):
    """A changed symbol and how much it speaks against a page. `name` is what the page calls it, or a sibling of it."""

    change: SymbolChange
    weight: float
    name: str


class PageNames:
    """What a page names: `mentions` as (name, line) in its text, `files` and `chosen` symbols (path or "", name) as its
    sources. `is_stated`: its owner named these.
    """

    def __init__(
        self, mentions: Mapping[str, int], files: Iterable[str], chosen: Iterable[tuple[str, str]], *, is_stated: bool
    ) -> None:
        self.mentions = mentions
        self.files = frozenset(files)
        self.chosen = frozenset(chosen)
        self.is_stated = is_stated
        self._siblings: dict[tuple[str, str], tuple[float, str]] = {}

    def weigh(self, changes: Iterable[SymbolChange], pages: Mapping[str, int], before: Scopes) -> list[Weighed]:
        """Return what speaks against the page, the weightiest first.

        `pages` is the number of pages that have each name, `before` what there was when the page was true.
        """
        found: dict[str, Weighed] = {}
        for change in changes:
            weight, name = max(self.weigh_one(change, pages, before), default=(0.0, ""))
            key = name if name in change.definition.names else f"{change.path} {change.name}"
            if weight and (key not in found or found[key].weight < weight):
                found[key] = Weighed(change, weight, name)
        return sorted(found.values(), key=lambda one: (-one.weight, one.change.path, one.change.name))

    def weigh_one(self, change: SymbolChange, pages: Mapping[str, int], before: Scopes) -> Iterator[tuple[float, str]]:
        """Yield how much one change speaks against the page, for each reason why it may, and the name it has there."""
        defined, part = change.definition, change.part
        named = [name for name in defined.names if name in self.mentions]
        name = min(named, key=lambda each: pages.get(each, 1), default="")
        in_file = change.path in self.files
        forms = (*defined.names, defined.name, defined.scope)
        if any(path in ("", change.path) and chosen in forms for path, chosen in self.chosen):
            yield CHOSEN[part], name
        elif in_file and (defined.kind == "file" or (named and self.is_stated)):
            yield CHOSEN[part] if self.is_stated or part == "removed" else SIBLING, name
        elif in_file or not (self.is_stated or part == "body"):
            if in_file and defined.is_public:
                count = min(max(len(before.get((change.path, None), ())), SMALL_FILE), LARGE_FILE)
                yield IN_FILE[part] / math.sqrt(count / SMALL_FILE), name
            if name:
                is_dull = defined.kind == "file" or (defined.kind in MEMBERS and is_plain(name))
                yield NAMED[part] / math.sqrt(pages.get(name, 1)) * (PLAIN_MEMBER if is_dull else 1), name
            if defined.is_public and part != "body" and not (name and NAMED[part]):
                share, sibling = self._count_siblings(change, before)
                yield SIBLING * share, sibling

    def name_of(self, defined: Definition) -> str:
        """Return the name that the page has for a definition, other than a word of the language; empty without one."""
        names = (name for name in defined.names if name in self.mentions)
        return next((name for name in names if not (defined.kind in MEMBERS and is_plain(name))), "")

    def _count_siblings(self, change: SymbolChange, before: Scopes) -> tuple[float, str]:
        """Return the part of the public definitions around a symbol that the page names, and one that it names."""
        place = change.path, change.definition.scope
        if place not in self._siblings:
            public = before.get(place, ())
            named = [name for each in public if (name := self.name_of(each))]
            is_about = len(named) >= _MIN_SIBLINGS
            self._siblings[place] = (len(named) / max(len(public), _MIN_SCOPE), named[0]) if is_about else (0.0, "")
        return self._siblings[place]


def group_by_scope(path: str, defined: Definitions) -> Scopes:
    """Return the public definitions of a file by their scope, and under None all of them."""
    found: dict[tuple[str, str | None], list[Definition]] = {}
    for each in defined.values():
        if each.is_public:
            found.setdefault((path, each.scope), []).append(each)
            found.setdefault((path, None), []).append(each)
    return found


def certainty(found: Sequence[Weighed], shares: Iterable[float], *, is_stated: bool) -> float:
    """Return how certain it is that a page is out of date, from what speaks against it, the weightiest first.

    `shares` are, for each changed file, the part of its earlier commits that changed the page too.
    """
    symbols = sum(one.weight * float(EACH_FURTHER**place) for place, one in enumerate(found))
    history = HISTORY_STATED if is_stated else HISTORY
    return symbols + history * math.sqrt(sum(share * share for share in shares))


# -- what changes together ---------------------------------------------------------------------------------------------


def list_shares(mainline: Log, base: LoggedCommit, page: str, paths: Iterable[str]) -> dict[str, float]:
    """Return for each file the part of its commits up to `base` that changed `page` too, the largest first.

    Commits of many files do not count: they say nothing about which of these belong together.
    """
    first = mainline.places.get(base.id) or mainline.places.get(mainline.at(base.at) or "", 0)
    # The commit that added the page says only that it was written then.
    changes = [commit for commit, touch in mainline.changes(page) if touch.before is not None]
    with_page = {commit.id for commit in changes if mainline.places[commit.id] >= first}
    shares = {}
    for path in paths if with_page else ():
        commits = (commit for commit in mainline.touching.get(path, ()) if mainline.places[commit.id] >= first)
        ids = [commit.id for commit in commits if len(commit.touches) <= _MANY_FILES]
        if both := sum(commit in with_page for commit in ids):
            shares[path] = both / (len(ids) + _FEW_COMMITS)
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))
