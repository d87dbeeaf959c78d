"""What replaces a memory, or will once a question in review/ is answered: it is shown with the memory, and first."""

import json
from collections.abc import Collection

from quaid.index import documents, graph, references
from quaid.index.documents import Document
from quaid.model import Kind, note_name
from quaid.recall.scoring import holding
from quaid.recall.search import Search

REPLACED_BY, REPLACES = "replaced by", "replaces"
Related = dict[int, dict[int, tuple[str, Document | None]]]
"""By chunk: how other memories are related to it, in words, by their chunks. A doubt without another memory has 0."""


def relate_successors(search: Search, candidates: Collection[Document], related: Related) -> None:
    """Add to `related` what replaces each of `candidates`: a fact, or a turn that a replaced fact rests on. A turn that
    the successor rests on too is as true as before.
    """
    connection, scope = search.connection, search.scope
    pending = search.sources.cache.of(connection, documents.list_pending)
    turns = {(note_name(each.path), each.turn or 0): each for each in candidates if each.turn is not None}
    citing = graph.list_replaced_from(connection, [*turns], [*pending], scope) if turns else []
    stale = [(turns[episode, turn], doc_id) for episode, turn, doc_id in citing]
    stale += [(each, each.doc_id) for each in candidates if each.kind == Kind.FACT and each.superseded_by is not None]
    stale += [(each, each.doc_id) for each in candidates if each.doc_id in pending and each.superseded_by is None]
    successors = {doc_id: pending[doc_id] for _, doc_id in stale if doc_id in pending}
    numbers = json.dumps(sorted({doc_id for _, doc_id in stale} - successors.keys()))
    for replaced in documents.find_documents(connection, f"d.doc_id IN {documents.IDS}", (numbers,)):
        if later := references.replaced_by(connection, replaced):
            path = later[-1].path
            successors[replaced.doc_id] = REPLACED_BY, documents.find_paths(connection, [path])[path]
    first = documents.first_chunks(connection, {doc_id for _, doc_id in successors.values() if doc_id})
    fetched = holding(search, documents.fetch_candidates(connection, first, scope).values())
    by_document = {each.doc_id: each for each in fetched}
    cited = set(graph.cited_turns(connection, by_document.keys()))
    for each, doc_id in stale:
        word, successor_id = successors.get(doc_id, ("", None))
        successor = by_document.get(successor_id or 0)
        if successor is not None and (successor.doc_id, each.chunk_id) not in cited:
            related.setdefault(each.chunk_id, {})[successor.chunk_id] = word, successor
            related.setdefault(successor.chunk_id, {})[each.chunk_id] = REPLACES, each
        elif word and successor_id is None and each.turn is None:
            related.setdefault(each.chunk_id, {})[0] = word, None
