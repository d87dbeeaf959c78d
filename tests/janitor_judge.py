"""A model that judges conversation 26 as a real one has: what that one was not asked about stays as it is."""

from __future__ import annotations

import json
from typing import Any

from janitor_context import Scripted
from replay import needs


def read_judgements(name: str) -> list[dict]:
    return json.loads((needs("extraction/conv-26") / "janitor" / f"{name}.json").read_text("utf-8"))


class Judge(Scripted):
    """Answers review, duplicates, dedup_review, contradictions and resolve; has nothing to say to the core notes."""

    def __init__(self) -> None:
        super().__init__(
            review=self._review, duplicates=self._duplicates, dedup_review=self._duplicates,
            contradictions=self._contradictions, resolve=self._resolve,
        )  # fmt: skip
        self._reviews = {entry["fact"]["text"]: entry for entry in read_judgements("review")}
        self._pairs = {_key(entry): entry for entry in read_judgements("dedup")}
        self._conflicts = {_key(entry): entry for entry in read_judgements("contradictions")}

    def _review(self, question: str) -> dict:
        judgements = []
        for line in _lines(question):
            known = self._reviews.get(_texts(line)[0])
            answer = {"verdict": "approve", "rewrite": None, "reason": "It is clear."} if known is None else known
            judgements.append({"n": line["n"], **{key: answer[key] for key in ("verdict", "rewrite", "reason")}})
        return {"verdicts": judgements}

    def _duplicates(self, question: str) -> dict:
        return {"pairs": [self._duplicate(line) for line in _lines(question)]}

    def _duplicate(self, line: dict) -> dict:
        a, b = _texts(line)[:2]
        known = self._pairs.get(frozenset((a, b)))
        if known is None:
            return {"n": line["n"], "verdict": "different", "keep": None, "merged_text": None, "reason": "Two claims."}
        is_swapped = known["a"]["text"] != a
        keep = {"a": "b", "b": "a"}.get(known["keep"], known["keep"]) if is_swapped else known["keep"]
        told = {key: known[key] for key in ("verdict", "merged_text", "reason")}
        return {"n": line["n"], "keep": keep, **told}

    def _contradictions(self, question: str) -> dict:
        pairs = []
        for line in _lines(question):
            known = self._conflicts.get(frozenset(_texts(line)[:2]))
            said = {"verdict": "compatible", "reason": "Both can be so."} if known is None else known
            pairs.append({"n": line["n"], "verdict": said["verdict"], "reason": said["reason"]})
        return {"pairs": pairs}

    def _resolve(self, question: str) -> dict:
        pairs = []
        for line in _lines(question):
            a, b = _texts(line)[:2]
            known = self._conflicts[frozenset((a, b))]
            swapped = {"keep_a": "keep_b", "keep_b": "keep_a"} if known["a"]["text"] != a else {}
            resolution = swapped.get(known["resolution"], known["resolution"])
            pairs.append({
                "n": line["n"], "verdict": known["verdict"], "resolution": resolution, "merged_text": None,
                "reason": known["reason"],
            })  # fmt: skip
        return {"pairs": pairs}


def _key(entry: dict) -> frozenset[str]:
    return frozenset((entry["a"]["text"], entry["b"]["text"]))


def _lines(question: str) -> list[dict]:
    return [json.loads(line) for line in question.splitlines() if line.startswith('{"n"')]


def _texts(value: Any) -> list[str]:
    """What stands under `text`, or under `a` and `b`, in the order it comes."""
    found = []
    for key, part in value.items():
        if isinstance(part, dict):
            found += _texts(part)
        elif key in {"text", "a", "b"} and isinstance(part, str):
            found.append(part)
    return found
