"""The documents that describe what an agent has edited, by the symbols that they name."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from quaid.docs.catalogue import Doc
from quaid.docs.definitions import SymbolChange, compare, define
from quaid.docs.freshness import Freshness
from quaid.docs.mentions import find_mentions, is_plain
from quaid.docs.source_trees import SourceTrees
from quaid.errors import name_first
from quaid.text.quoting import neutralise
from quaid.vault import files, headings


def find_affected(
    trees: SourceTrees, docs: Sequence[Doc], known: Mapping[str, Freshness], edited: Mapping[str, float]
) -> Iterator[tuple[Doc, str]]:
    """Yield the documents that name what was changed in the files `edited`, and what: symbols, or of a file without
    any its path, if a document states it as a source. `edited` is when each was edited first, in seconds.

    A document that was written since the first of these edits is left out: it is being worked on. `known` are the
    stored checks by document.
    """
    changed = dict(filter(None, (_compare(trees, Path(path), at) for path, at in edited.items())))
    written = {Path(path).resolve() for path in edited}
    for doc in docs if changed else ():
        if doc.file.resolve() in written or doc.file.stat().st_mtime > min(edited.values()):
            continue
        text = (files.read_note(doc.folder, doc.rel_path) or b"").decode("utf-8", "replace")
        if names := list(_list_named(doc, text, known.get(doc.id), changed)):
            shown = [f"`{neutralise(headings.one_line(name)).replace('`', '')}`" for name in names]
            yield doc, name_first(shown)


def _list_named(
    doc: Doc, text: str, freshness: Freshness | None, changed: Mapping[str, Sequence[SymbolChange]]
) -> Iterator[str]:
    mentions = find_mentions(doc.rel_path, text)
    for path, changes in changed.items():
        is_source = freshness is not None and freshness.describes(path)
        found = ""
        for symbol in (each for each in changes if each.part != "added" and each.definition.kind != "file"):
            # A plain word is a name only where the document is known to be about the file.
            named = [name for name in symbol.definition.names if name in mentions and (is_source or not is_plain(name))]
            if named:
                found = max(named, key=len)
                yield found
        if not found and is_source and freshness is not None and freshness.origin not in {"learned", "none"}:
            yield path


def _compare(trees: SourceTrees, path: Path, at: float) -> tuple[str, Sequence[SymbolChange]] | None:
    """Return a file's path in its repository and its definitions that changed since it was edited first, whether that
    is committed or not; None if it did not change.
    """
    tree = trees.open(path.parent)
    if tree is None:
        return None
    inside = tree.inside(path)
    base = tree.log.at(at)
    changed = tree.changes_since(base) if base is not None else {}
    blob = changed[inside][0] if inside in changed else tree.files.get(inside)
    before = tree.read_blobs([blob]).get(blob) if blob else None
    after = files.read_note(path.parent, path.name)
    if before == after:
        return None
    return inside, compare(inside, *(define(inside, data) if data else {} for data in (before, after)))
