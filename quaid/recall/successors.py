"""What replaces a memory, or will once a question in review/ is answered: it is shown with the memory, and first."""

import json
from collections.abc import Collection

from quaid.index import documents, references
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
    connection = search.connection
    pending = search.sources.cache.of(connection, documents.list_pending)
    reader = search.reader
    turns = sorted(
        (each for each in candidates if each.turn is not None), key=lambda each: (note_name(each.path), each.turn)
    )
    stale = [
        (each, doc_id)
        for each in turns
        for doc_id, _, is_replaced in sorted(reader.citing.get((each.doc_id, each.turn or 0), ()))
        if is_replaced or doc_id in pending
    ]
    stale += [(each, each.doc_id) for each in candidates if each.kind == Kind.FACT and each.superseded_by is not None]
    stale += [(each, each.doc_id) for each in candidates if each.doc_id in pending and each.superseded_by is None]
    successors = {doc_id: pending[doc_id] for _, doc_id in stale if doc_id in pending}
    unknown = sorted({doc_id for _, doc_id in stale} - successors.keys())
    among = f"d.doc_id IN {documents.IDS}"
    for replaced in documents.find_documents(connection, among, (json.dumps(unknown),)) if unknown else ():
        if later := references.replaced_by(connection, replaced):
            path = later[-1].path
            successors[replaced.doc_id] = REPLACED_BY, documents.find_paths(connection, [path])[path]
    first = documents.first_chunks(connection, {doc_id for _, doc_id in successors.values() if doc_id})
    fetched = holding(search, reader.fetch(first).values())
    by_document = {each.doc_id: each for each in fetched}
    for each, doc_id in stale:
        word, successor_id = successors.get(doc_id, ("", None))
        successor = by_document.get(successor_id or 0)
        if successor is not None and each.chunk_id not in reader.cited.get(successor.doc_id, ()):
            related.setdefault(each.chunk_id, {})[successor.chunk_id] = word, successor
            related.setdefault(successor.chunk_id, {})[each.chunk_id] = REPLACES, each
        elif word and successor_id is None and each.turn is None:
            related.setdefault(each.chunk_id, {})[0] = word, None
