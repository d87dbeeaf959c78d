"""What a task of the janitor plans on: a real vault, and a model that answers by the prompt it is asked with."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace

from model_service import Service

from quaid.history.authorship import Authors, Ranking
from quaid.janitor.task_context import TaskContext
from quaid.llm.prompts import load_prompt
from quaid.model import Use
from quaid.place import data_folder
from quaid.vault import files

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


class Known(dict):
    """Judgements that are forgotten with the test."""

    def known(self, keys):
        return {key: self[key] for key in keys if key in self}

    def add(self, task, judgements):
        self.update(judgements)


class Scripted(Service):
    """`answers`: name of a prompt -> what it answers, or a callable that makes it from what was said so far.

    Other prompts get an answer of their form that says nothing.
    """

    def __init__(self, **answers: dict | Callable[[str], dict]) -> None:
        super().__init__()
        self.answers = answers

    @property
    def value(self):
        return self.answer_to(self.asked[-1])

    @value.setter
    def value(self, value):
        pass

    def answer_to(self, body):
        texts = [m["content"] if isinstance(m["content"], str) else json.dumps(m["content"]) for m in body["messages"]]
        said = json.dumps(body)
        prompts = (load_prompt(path.stem) for path in sorted(data_folder("prompts").glob("*.md")))
        prompt = next(p for p in prompts if json.dumps(p.system[:200])[1:-1] in said)
        answer = self.answers.get(prompt.name, _nothing(prompt.schema))
        return answer("\n".join(texts)) if callable(answer) else answer


def _nothing(schema):
    """The shortest answer that fits."""
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][-1]
    if kind == "object":
        return {name: _nothing(schema["properties"][name]) for name in schema["required"]}
    usual = {"array": [], "string": "", "integer": schema.get("minimum", 0), "number": 0, "boolean": False}
    return schema["enum"][0] if "enum" in schema else usual.get(kind)


def context_of(memory, *, models=None, now=NOW, use=None, judged=None, vetoes=(), is_committed=False) -> TaskContext:
    """A task's view of `memory` as it is on disk now. `use` maps ids to `Use`. Lines are the janitor's or their owner's by
    the commits if it `is_committed`, else all their owner's.
    """
    used = use or {}
    usage = SimpleNamespace(strengths=lambda ids: {i: used.get(i, Use()) for i in ids})
    return TaskContext(
        settings=memory.settings,
        now=now,
        index=memory.index(),
        root=memory.root,
        records=usage,
        documents=None,
        judgements=judged if judged is not None else Known(),
        models=models,
        vetoes=tuple(vetoes),
        vetoed=frozenset(veto.key for veto in vetoes),
        ranking=Ranking(memory.git, Authors(""), "HEAD", is_on=False) if is_committed else None,
    )


def carry_out(memory, decisions) -> None:
    """Write what was decided, one after the other, as the runner would."""
    for decision in decisions:
        for edit in decision.edits:
            files.write_note(memory.root, edit.rel_path, edit.before, edit.after)
    memory.sync()
