"""A model that judges conversation 26 as a real one has: what that one was not asked about stays as it is."""

from __future__ import annotations

import json

from janitor_context import Scripted
from janitor_facts import DIFFERENT, answer_pairs, pairs_in
from replay import needs


def read_judgements(name: str) -> list[dict]:
    return json.loads((needs("extraction/conv-26") / "janitor" / f"{name}.json").read_text("utf-8"))


class Judge(Scripted):
    """Answers review, compare and resolve; has nothing to say to the core notes."""

    def __init__(self) -> None:
        super().__init__(review=self._review, compare=self._compare, resolve=self._resolve)
        self._reviews = {entry["fact"]["text"]: entry for entry in read_judgements("review")}
        self._pairs = {_key(entry): entry for entry in read_judgements("dedup")}
        self._conflicts = {_key(entry): entry for entry in read_judgements("contradictions")}

    def _review(self, question: str) -> dict:
        approved, verdicts = [], []
        for line in _lines(question):
            known = self._reviews.get(line["text"])
            if known is None or known["verdict"] == "approve":
                approved.append(line["n"])
            else:
                verdicts.append({"n": line["n"], **{key: known[key] for key in ("verdict", "rewrite", "reason")}})
        return {"approve": approved, "verdicts": verdicts}

    def _compare(self, question: str) -> dict:
        return answer_pairs([{"n": n, **self._judge_pair(a, b)} for n, a, b in pairs_in(question)])

    def _judge_pair(self, a: str, b: str) -> dict:
        known = self._pairs.get(frozenset((a, b)))
        if known is not None and known["verdict"] == "duplicate":
            is_swapped = known["a"]["text"] != a
            keep = {"a": "b", "b": "a"}.get(known["keep"], known["keep"]) if is_swapped else known["keep"]
            return {"verdict": "same", "keep": keep, "merged_text": known["merged_text"], "reason": known["reason"]}
        conflict = self._conflicts.get(frozenset((a, b)))
        verdict = {"contradiction": "conflict", "update": "update"}.get(conflict["verdict"]) if conflict else None
        return {"verdict": verdict, "reason": conflict["reason"]} if conflict and verdict else DIFFERENT

    def _resolve(self, question: str) -> dict:
        pairs = []
        for n, a, b in pairs_in(question):
            known = self._conflicts[frozenset((a, b))]
            swapped = {"keep_a": "keep_b", "keep_b": "keep_a"} if known["a"]["text"] != a else {}
            resolution = swapped.get(known["resolution"], known["resolution"])
            pairs.append({"n": n, "verdict": known["verdict"], "resolution": resolution, "reason": known["reason"]})
        return {"pairs": pairs}


def _key(entry: dict) -> frozenset[str]:
    return frozenset((entry["a"]["text"], entry["b"]["text"]))


def _lines(question: str) -> list[dict]:
    return [json.loads(line) for line in question.splitlines() if line.startswith('{"n"')]
