"""A page about recall, a change of its source, and how the models are asked about them."""

from __future__ import annotations

from quaid.docs.changes import SourceChange
from quaid.docs.freshness import ChangeKind, SourceCommit, SourceFinding
from quaid.docs.updates import ask_update

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
    path: str, before: bytes | None, after: bytes | None, kind: ChangeKind = "modified", *commits, old_path=None
):
    finding = SourceFinding("", path, old_path, kind, None, None, commits)
    return SourceChange(finding, before, after)


CHANGE = change("quaid/recall.py", OLD, NEW, "modified", COMMIT)
FILES = {"quaid/recall.py": NEW}
BODY = DOC[DOC.index("# Recall") :]
LIMIT = ("Limits", "gives 10 hits", "gives 20 hits", "DEFAULT_LIMIT is 20.")


def answer(*edits, still_true=False):
    keys = ("section", "find", "replace", "reason")
    return {
        "still_true": still_true,
        "summary": "The limit has doubled.",
        "edits": [dict(zip(keys, (*edit, "Because.")[:4], strict=True)) for edit in edits],
    }


def ask(service, value, text=DOC, refused=()):
    service.value = value
    return ask_update(service.models("anthropic"), "docs/recall.md", text, [CHANGE], FILES, refused)


def question(service, number=0):
    return service.asked[number]["messages"][0]["content"]


def say(service, value):
    service.value = value
    return service.models("anthropic")
