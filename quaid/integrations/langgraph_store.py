"""LangGraph's `BaseStore`: each item is a note in a folder of the vault, its text as text and the rest as JSON below.

Filters, pages and lists of namespaces are those of LangGraph's own `InMemoryStore`, which is given the items; a search
by `query` orders them as `quaid recall` finds them. Nothing expires: a TTL is refused.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp
from langgraph.store.base import validate_op_namespace as check_namespace
from langgraph.store.memory import InMemoryStore

from quaid.errors import NoteNotFoundError
from quaid.memory import Memory
from quaid.redaction import admit_all
from quaid.resident.async_memory import AsyncMemory
from quaid.vault.agent_notes import is_obeyed
from quaid.vault.layout import slug


class QuaidStore(BaseStore):
    """The store for `graph.compile(store=…)`. `vault` is found as `Memory.open` finds it."""

    def __init__(self, vault: str | os.PathLike[str] | None = None, *, folder: str = "store") -> None:
        self.memory, self._folder = AsyncMemory(vault), folder

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self.memory.call(partial(_carry_out, folder=self._folder, ops=list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self.memory.run(partial(_carry_out, folder=self._folder, ops=list(ops)))


def _carry_out(memory: Memory, folder: str, ops: list[Op]) -> list[Result]:
    """Read first, then write, as `InMemoryStore` does; of several writes of one item the last counts."""
    results, puts = list[Result](), dict[str, PutOp]()
    for op in ops:
        check_namespace(op)
        if isinstance(op, PutOp) and op.ttl is not None:
            raise NotImplementedError("Notes do not expire: leave out ttl, or delete the item when it is over.")
        match op:
            case GetOp():
                results.append(_read(memory, _path(folder, *op.namespace, key=op.key)))
            case SearchOp():
                results.append(search(memory, _path(folder, *op.namespace_prefix), op))
            case ListNamespacesOp():
                results += _load(memory, folder)[1].batch([op])
            case PutOp():
                puts[_path(folder, *op.namespace, key=op.key)] = op
                results.append(None)
    for path, op in puts.items():
        old, now = _read(memory, path), datetime.now(UTC)
        if op.value is not None:
            made, where = old.created_at if old else now, op.namespace
            item = Item(value=dict(op.value), key=op.key, namespace=where, created_at=made, updated_at=now)
            memory.notes.write(path, render_item(item))
        elif old is not None:
            memory.notes.delete(path)
    return results


def search(memory: Memory, folder: str, op: SearchOp) -> list[SearchItem]:
    items, copy = _load(memory, folder)
    keys = {(each.namespace, each.key) for each in copy.search((), filter=op.filter, limit=len(items) + 1)}
    hits = memory.recall(op.query, 100, kinds=frozenset({"note"}), keep=False).hits if op.query else ()
    scores = {hit.path: hit.score for hit in reversed(hits)}
    found = [(scores.get(path), item) for path, item in items.items() if (item.namespace, item.key) in keys]
    found.sort(key=lambda pair: -1.0 if pair[0] is None else pair[0], reverse=True)
    page = found[op.offset : op.offset + op.limit]
    return [SearchItem(**{name: getattr(item, name) for name in Item.__slots__}, score=score) for score, item in page]


def _load(memory: Memory, folder: str) -> tuple[dict[str, Item], InMemoryStore]:
    """Return the items of a folder by path, the oldest first, and LangGraph's own store with them."""
    found = [(path, item) for path in memory.notes.list(folder) if (item := _read(memory, path)) is not None]
    items, copy = dict(sorted(found, key=lambda pair: pair[1].created_at)), InMemoryStore()
    copy.batch([PutOp(item.namespace, item.key, item.value) for item in items.values()])
    return items, copy


def _read(memory: Memory, path: str) -> Item | None:
    try:
        text, _, about = memory.notes.read(path).shown.rpartition("```json\n")
        fields = json.loads(about.rpartition("```")[0])
        if name := fields.pop("text_of", None):
            fields["value"][name] = text.removesuffix("\n\n")
        return Item(**fields)
    except NoteNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError, KeyError):
        warnings.warn(f"{path} is not as the store wrote it and is left out", stacklevel=2)
        return None


def render_item(item: Item) -> str:
    fields, text = admit_all(item.dict())[0], ""
    if name := next(
        (name for name in ("text", "content", "memory", "data") if isinstance(fields["value"].get(name), str)), None
    ):
        text = f"{fields['value'][name]}\n\n"
        fields |= {"text_of": name, "value": {**fields["value"], name: None}}
    return f"{text}```json\n{json.dumps(fields, ensure_ascii=False, indent=1)}\n```\n"


def _path(folder: str, *namespace: str, key: str | None = None) -> str:
    return "/".join([folder, *map(_name, namespace), *([f"{_name(key)}.md"] if key is not None else [])])


def _name(label: str) -> str:
    if re.fullmatch(r"[a-z0-9]([a-z0-9 _-]{0,60}[a-z0-9])?", label) and not is_obeyed(f"x/{label}.md"):
        return label
    return f"{slug(label)}-{hashlib.sha256(label.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"
