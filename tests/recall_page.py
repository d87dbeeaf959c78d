"""A page about recall, a change of its source, and how the models are asked about them."""

from __future__ import annotations

from pathlib import Path

from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange
from quaid.docs.freshness import Freshness, SourceCommit, SourceFinding
from quaid.docs.updates import OpenDoc
from quaid.local.runs import Judgements

DOC = """---
sources: [quaid/recall.py]
---
# Recall

<!-- SOURCES: quaid/recall.py -->

Recall reads the index and answers with hits. It is asked by `recall(query)`, from every door of the house.

## Limits

- A recall gives 10 hits (`DEFAULT_LIMIT`).
- A question is cut at 500 characters.
- A recall of the past reads an index of its own, made from the notes as they were then.

## How

1. The query is parsed, then each channel is asked.
2. The channels are fused and reranked, as the page on fusion tells.

```python
recall("tea")
```

The rest of this page tells of what happens when a channel is missing: the answer names it, and goes on without.
"""
OLD = b"DEFAULT_LIMIT = 10\n\n\ndef recall(query):\n    return query\n"
NEW = b"DEFAULT_LIMIT = 20\n\n\ndef recall(query, at=None):\n    return query\n"
COMMIT = SourceCommit("3f2a91c" * 5, "2026-11-20T10:00:00Z", "Maya", "recall: twice as many hits")


def change(
    path: str, before: bytes | None, after: bytes | None, *commits: SourceCommit, old_path: str | None = None
) -> SourceChange:
    blobs = (None if side is None else str(len(side)) for side in (before, after))
    finding = SourceFinding("", path, old_path, *blobs, commits)
    return SourceChange(finding, before, after)


CHANGE = change("quaid/recall.py", OLD, NEW, COMMIT)
BODY = DOC[DOC.index("# Recall") :]
LIMIT = ("Limits", "gives 10 hits", "gives 20 hits", "DEFAULT_LIMIT is 20.")


def answer(*edits, still_true=False):
    keys = ("section", "find", "replace", "reason")
    return {
        "still_true": still_true,
        "summary": "The limit has doubled.",
        "edits": [dict(zip(keys, (*edit, "Because.")[:4], strict=True)) for edit in edits],
    }


JUDGEMENTS = Judgements(Path("nowhere"), "2026-11-20", is_read_only=True)


def stale(text=DOC, changes=(CHANGE,), path="docs/recall.md"):
    """The page with changes of its sources."""
    doc = Doc(f"code:{path}", "code", Path(), path)
    return OpenDoc(doc, text.encode(), "", Freshness(doc.id, "stale"), changes)


def ask(service, value, text=DOC, refused=()):
    service.value = value
    return stale(text).ask(service.models("anthropic"), JUDGEMENTS, refused)


def ask_cleanup(service, edits, text=DOC):
    """Ask for cuts of the page, which has grown."""
    service.value = {"edits": edits}
    return OpenDoc(stale().doc, text.encode(), "").ask(service.models("anthropic"), JUDGEMENTS)


def question(service, number=0):
    return service.asked[number]["messages"][0]["content"]
