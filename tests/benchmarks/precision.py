"""PrecisionMemBench: does recall return the belief that is wanted, and only that one?

    python tests/benchmarks/precision.py                   # 77 single questions, then the 12 turns of two sessions
    python tests/benchmarks/precision.py --verbose --json result.json
    python tests/benchmarks/precision.py --set recall.profile=classic

35 beliefs of two users become the notes of one vault, committed: a belief of type entity is a note in entities/, any
other a fact; its scope `domain:code` is the project `code`, `user:universal` the project `universal`, and a resolved question is
one that was true until then. Each question is asked as its user, in its scope.

*theirs* scores as the benchmark does (github.com/tenurehq/precisionMemBench, src/retrieval.external.eval.test.ts and
src/adapters/baseAdapter.ts). Their adapter does part of the work for every system under test, so it does here: pinned
beliefs and pinned open questions of the scope reach the context by a road of their own, the pinned are taken out of
what the search found, participants of a relation that was found are added, and the budget cuts what is left. Gold is
`relevantBeliefs.shouldOnlyInclude`, else `mustInclude` without the pinned. Precision of a question that has no gold is
0 when anything came back and does not count when nothing did; one that has gold and got nothing is 0; recall counts
where there is gold. *active* are the passed questions whose precision counts.

*unaided* is the same gold against all that recall returned, without the adapter's help. *any tier* takes every belief a
case wants anywhere for gold, and an empty answer where nothing is wanted for 1.

Random and oracle rows show that the harness itself is sound. Nothing that is superseded or another user's may ever
come back.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import describe_machine, make_parser, save

from quaid import Memory
from quaid.model import Turn
from quaid.recall.options import Profile
from quaid.vault import frontmatter, layout

DATA = Path(os.environ.get("QUAID_DATA", Path(__file__).parents[3] / "shared" / "data")) / "precisionmembench"
USER = "test-user"
BUDGET = 20
"""Beliefs a context may hold unless a case says otherwise (theirs)."""
NOW = datetime(2026, 11, 1, tzinfo=UTC)
"""After everything in the seed, so that what was resolved is over on any machine."""
KINDS = frozenset({"fact", "entity"})
IDENTITY = ("-c", "user.name=seed", "-c", "user.email=seed@example.org", "-c", "core.hooksPath=/dev/null")

Belief = dict[str, Any]
Answer = list[str]


@dataclass(frozen=True)
class Case:
    """One question, or one turn of a session."""

    id: str
    category: str
    query: str
    scope: tuple[str, ...]
    expect: Mapping[str, Any]
    user: str = USER
    budget: int = BUDGET

    def wanted(self, tier: str, rule: str) -> list[str] | None:
        return self.expect.get(tier, {}).get(rule)


@dataclass(frozen=True)
class Context:
    """What a system under test brings into a context, tier by tier (ids)."""

    found: tuple[str, ...]
    relevant: tuple[str, ...]
    pinned: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """Precision and recall, None where they do not count."""

    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Result:
    case: Case
    context: Context
    scores: Mapping[str, Score]
    failures: tuple[str, ...]

    @property
    def is_active(self) -> bool:
        return not self.failures and self.scores["theirs"].precision is not None


Ranker = Callable[[Case], Answer]


class Bench:
    """The beliefs in a vault of their own."""

    def __init__(self, root: Path, beliefs: Sequence[Belief], settings: Sequence[str]) -> None:
        self.beliefs = {belief["_id"]: belief for belief in beliefs}
        made, _ = Memory.create(root)
        with made:
            for change in ("vault.hand_written=managed", *settings):
                made.configure(*change.split("=", 1))
        for belief in beliefs:
            write_belief(root, belief, self.beliefs)
        _commit(root, "seed")
        self.memory = Memory.open(root)
        self.memory.sync()
        self.latencies: list[float] = []
        self.degraded: set[str] = set()

    def put(self, belief: Belief) -> None:
        """A belief that is new, or says more than before."""
        self.beliefs[belief["_id"]] = belief
        write_belief(self.memory.root, belief, self.beliefs)
        _commit(self.memory.root, belief["_id"])

    def recall(self, case: Case, limit: int | None = None, **options: Any) -> Answer:
        """Ids of what recall returns to this user in this scope, best first."""
        projects = frozenset(project for scope in case.scope if (project := project_of(scope)))
        wanted = {"owners": {case.user}, "projects": projects, "kinds": KINDS, "now": NOW, "depth": "fast", **options}
        memory = self.memory
        wanted |= {"profile": Profile(cut_share=0.0)} if limit else {}
        started = time.perf_counter()
        answer = memory.recall(case.query, limit or case.budget, keep=False, **wanted)
        if not options and limit is None:
            self.latencies.append((time.perf_counter() - started) * 1000)
        self.degraded |= set(answer.degraded)
        return [hit.id for hit in answer.hits]

    def rankers(self) -> dict[str, Ranker]:
        """The rows of the table."""
        chance = random.Random(7)
        everything = sorted(self.beliefs)
        return {
            "random 10": lambda _: chance.sample(everything, 10),
            "words alone": lambda case: self.recall(case, keyword_only=True),
            "top 10, no cut": lambda case: self.recall(case, 10),
            "recall": self.recall,
            "oracle": lambda case: [*gold_of(case, self.beliefs)],
        }

    def context(self, case: Case, rank: Ranker) -> Context:
        """What their adapter makes of an answer."""
        pinned = self._pinned(case, is_question=False)
        asked = bool(case.query.strip()) and case.budget > 0
        found = rank(case) if asked else []
        searched = [i for i in dict.fromkeys(found) if i not in pinned]
        joined = [i for i in self._participants(case, searched) if i not in pinned and i not in searched]
        room = max(0, case.budget - len(pinned))
        return Context(
            tuple(found),
            tuple([*searched, *dict.fromkeys(joined)][:room]),
            tuple(pinned[: case.budget]),
            tuple(self._pinned(case, is_question=True)),
        )

    def _pinned(self, case: Case, *, is_question: bool) -> list[str]:
        """Read from the vault's index, in exactly the scopes asked for: the universal ones are the persona's."""
        rows = self.memory.index().execute(
            "SELECT id, coalesce(project, '') FROM documents WHERE pinned AND owner = ? AND superseded_by IS NULL "
            "AND (valid_until IS NULL OR valid_until >= ?) AND (type = 'open_question') = ? ORDER BY path",
            (case.user, NOW.date().isoformat(), is_question),
        )
        scopes = {project_of(scope) or "" for scope in case.scope}
        return [str(note_id) for note_id, project in rows if project in scopes]

    def _participants(self, case: Case, found: Iterable[str]) -> Iterable[str]:
        for relation in (self.beliefs[i] for i in found if self.beliefs[i]["type"] == "relation"):
            for other in (self.beliefs[i] for i in relation.get("participants", ())):
                in_scope = set(other["scope"]) & set(case.scope)
                if other["type"] != "open_question" and other["user_id"] == case.user and in_scope:
                    yield other["_id"]


def main() -> None:
    options = _arguments()
    if not (DATA / "retrieval.cases.json").exists():
        sys.exit(f"PrecisionMemBench is not at {DATA}: set QUAID_DATA to the folder that holds precisionmembench/")
    singles = [read_case(row) for row in _load("retrieval.cases.json")]
    with tempfile.TemporaryDirectory(prefix="quaid-precision-") as folder:
        bench = Bench(Path(folder) / "single", _load("beliefs.seed.json"), options.set)
        rows = {name: [judge(bench, case, rank) for case in singles] for name, rank in bench.rankers().items()}
        table = {name: summarise(results, bench.beliefs) for name, results in rows.items()}
        latencies, degraded = bench.latencies, sorted(bench.degraded)
        bench.memory.close()
        sessions = {
            name: replay(Bench(Path(folder) / f"session-{place}", _load("beliefs.seed.json"), options.set), name)
            for place, name in enumerate(("top 10, no cut", "recall", "oracle"))
        }
    session_table = {name: summarise_session(results) for name, results in sessions.items()}
    figures = {
        "single": table,
        "recall_by_category": by_category(rows["recall"]),
        "p50_ms": statistics.median(latencies),
        "degraded": degraded,
        "sessions": session_table,
        "machine": describe_machine(),
    }
    _report(figures, len(singles))
    if options.verbose:
        _explain([*rows["recall"], *sessions["recall"]])
    save(options.json, figures)


def judge(bench: Bench, case: Case, rank: Ranker) -> Result:
    context = bench.context(case, rank)
    gold = gold_of(case, bench.beliefs)
    anywhere = frozenset(
        i for tier in case.expect.values() for rule in ("mustInclude", "shouldOnlyInclude") for i in tier.get(rule, ())
    )
    scores = {
        "theirs": score(context.relevant, gold),
        "unaided": score(context.found, gold),
        "any tier": score(context.found, anywhere, empty=1.0),
    }
    return Result(case, context, scores, tuple(find_failures(case, context)))


def gold_of(case: Case, beliefs: Mapping[str, Belief]) -> frozenset[str]:
    """What the relevant tier should hold."""
    only = case.wanted("relevantBeliefs", "shouldOnlyInclude")
    if only is not None:
        return frozenset(only)
    return frozenset(i for i in case.wanted("relevantBeliefs", "mustInclude") or () if not beliefs[i]["pinned"])


def score(returned: Iterable[str], gold: frozenset[str], empty: float | None = None) -> Score:
    """`empty` is what an empty answer is worth where nothing is wanted."""
    found = set(returned)
    hits = len(found & gold)
    precision = hits / len(found) if found else (0.0 if gold else empty)
    return Score(precision, hits / len(gold) if gold else (empty if not found else None))


def find_failures(case: Case, context: Context) -> Iterable[str]:
    """What their test would say; a case passes when this is empty."""
    both = {*context.relevant, *context.pinned}
    only = case.wanted("relevantBeliefs", "shouldOnlyInclude")
    if only is not None:
        yield from (f"not wanted: {i}" for i in context.relevant if i not in only)
        yield from (f"missed: {i}" for i in only if i not in context.relevant)
    tiers = (("relevantBeliefs", both), ("pinnedFacts", context.pinned), ("openQuestions", context.questions))
    for tier, ids in tiers:
        yield from (f"missed in {tier}: {i}" for i in case.wanted(tier, "mustInclude") or () if i not in ids)
        yield from (f"forbidden in {tier}: {i}" for i in case.wanted(tier, "mustExclude") or () if i in ids)
    yield from (f"noise: {i}" for i in case.wanted("noiseCheck", "mustNotSurface") or () if i in both)


def replay(bench: Bench, row: str) -> list[Result]:
    """Both sessions in one vault: ask with each turn's words, then keep the turn and what it changed."""
    results = []
    for session in _load("session-retrieval.cases.json"):
        said: list[Turn] = []
        for turn in session["turns"]:
            case = Case(
                f"{session['caseId']}/{turn['turnIndex']}", turn["label"], turn["userMessage"], tuple(turn["scope"]),
                turn["expect"],
            )  # fmt: skip
            results.append(judge(bench, case, bench.rankers()[row]))
            said += [Turn("User", turn["userMessage"]), Turn("Assistant", turn["assistantMessage"], "assistant")]
            bench.memory.extract(said, session=session["caseId"])
            if made := turn.get("createBeliefAtTurn"):
                bench.put(made)
            if changed := turn.get("updateBeliefAtTurn"):
                old = bench.beliefs[changed["beliefId"]]
                bench.put({**old, "aliases": [*old["aliases"], *changed["addAliases"]]})
    bench.memory.close()
    return results


def summarise(results: Sequence[Result], beliefs: Mapping[str, Belief]) -> dict[str, Any]:
    """One row of the table."""
    returned = [(result.case, beliefs[i]) for result in results for i in result.context.found]
    means = {
        name: {part: _mean(getattr(r.scores[name], part) for r in results) for part in ("precision", "recall")}
        for name in ("theirs", "unaided", "any tier")
    }
    return means | {
        "passed": sum(not result.failures for result in results),
        "active": sum(result.is_active for result in results),
        "returned": len(returned),
        "superseded": sum(belief["superseded_by"] is not None for _, belief in returned),
        "of others": sum(belief["user_id"] != case.user for case, belief in returned),
    }


def by_category(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Their score of each category, the largest first."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.case.category, []).append(result)
    return {
        category: {
            "cases": len(part),
            "passed": sum(not result.failures for result in part),
            "precision": _mean(result.scores["theirs"].precision for result in part),
            "recall": _mean(result.scores["theirs"].recall for result in part),
        }
        for category, part in sorted(found.items(), key=lambda item: -len(item[1]))
    }


def summarise_session(results: Sequence[Result]) -> dict[str, Any]:
    """Their session figures. Precision counts where something came back; drift is what of it was not wanted."""
    precision = [result.scores["theirs"].precision for result in results if result.context.relevant]
    return {
        "turns": len(results),
        "passed": sum(not result.failures for result in results),
        "precision": _mean(precision),
        "recall": _mean(result.scores["theirs"].recall for result in results),
        "drift": sum(1 - (value or 0.0) for value in precision) / len(results),
    }


def read_case(row: Mapping[str, Any]) -> Case:
    return Case(
        row["caseId"], row["category"], row["query"], tuple(row["scope"]), row["expect"],
        row.get("userId", USER), row.get("budget", {}).get("maxBeliefs", BUDGET),
    )  # fmt: skip


def write_belief(root: Path, belief: Belief, beliefs: Mapping[str, Belief]) -> None:
    """The belief as a note, as its owner could have typed it. Why it matters is kept and not searched (theirs too)."""
    name = belief["canonical_name"]
    created = datetime.fromisoformat(belief["created_at"])
    is_entity = belief["type"] == "entity"
    path = root / (layout.entity_path(name) if is_entity else f"facts/{created:%Y/%m}/{name}.md")
    fields = {
        "id": belief["_id"],
        "type": "thing" if is_entity else belief["type"],
        "status": "pending" if belief["epistemic_status"] in {"exploratory", "inferred"} else "active",
        "owner": belief["user_id"],
        "confidence": belief["confidence"],
        "created": belief["created_at"],
        "valid_until": belief["resolved_at"],
        "superseded_by": belief["superseded_by"],
        "project": next((project for scope in belief["scope"] if (project := project_of(scope))), None),
        "pinned": belief["pinned"] or None,
        "title": name.replace("_", " "),
        "aliases": [name.replace("_", " "), *belief["aliases"]],
        "why_it_matters": belief["why_it_matters"],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(frontmatter.render(fields) + belief["content"] + "\n" + _edge(belief, beliefs), encoding="utf-8")


def _edge(belief: Belief, beliefs: Mapping[str, Belief]) -> str:
    """A relation between two beliefs as an edge between what they are about; theirs names the object first."""
    if belief["type"] != "relation":
        return ""
    target, subject = (beliefs[i]["canonical_name"] for i in belief["participants"])
    return f"\n- [[{subject}]] {belief['relation_type']} [[{target}]]\n"


def project_of(scope: str) -> str | None:
    """`domain:code` is the project `code`. Scopes are matched exactly by them, so `user:universal` is one too."""
    return scope.partition(":")[2] or None


def _commit(root: Path, message: str) -> None:
    for command in (["add", "-A"], ["commit", "-q", "-m", message]):
        subprocess.run(["git", "-C", str(root), *IDENTITY, *command], check=True)


def _load(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / name).read_text(encoding="utf-8"))
    return found


def _mean(values: Iterable[float | None]) -> float | None:
    counted = [value for value in values if value is not None]
    return statistics.fmean(counted) if counted else None


def _report(figures: Mapping[str, Any], cases: int) -> None:
    print(f"PrecisionMemBench, {cases} questions, 35 beliefs of two users in one vault; {figures['machine']}")
    if figures["degraded"]:
        print(f"degraded: {', '.join(figures['degraded'])}")
    print(f"{'':16}{'theirs':>13}{'unaided':>13}{'any tier':>13}{'passed':>8}{'active':>8}{'returned':>10}"
          f"{'superseded':>12}{'of others':>11}")  # fmt: skip
    for name, row in figures["single"].items():
        pairs = "".join(f"{_pair(row[column]):>13}" for column in ("theirs", "unaided", "any tier"))
        counts = f"{row['passed']:8}{row['active']:8}{row['returned']:10}{row['superseded']:12}{row['of others']:11}"
        print(f"{name:16}{pairs}{counts}")
    print(f"precision/recall; recall p50 {figures['p50_ms']:.1f} ms\nrecall by category (theirs):")
    for category, row in figures["recall_by_category"].items():
        print(f"  {category:34}{_pair(row):>11}  {row['passed']}/{row['cases']} passed")
    print("sessions:       precision/recall   drift  turns passed")
    for name, row in figures["sessions"].items():
        print(f"  {name:16}{_pair(row):>14}{row['drift']:8.3f}  {row['passed']}/{row['turns']}")


def _pair(row: Mapping[str, float | None]) -> str:
    return "/".join("-" if row[part] is None else f"{row[part]:.3f}" for part in ("precision", "recall"))


def _explain(results: Sequence[Result]) -> None:
    for result in results:
        print(f"\n{'ok  ' if not result.failures else 'FAIL'} {result.case.id}: {result.case.query[:90]!r}")
        print(f"     returned: {', '.join(result.context.found) or 'nothing'}")
        for failure in result.failures:
            print(f"     {failure}")


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--set", action="append", default=[], help="a setting, e.g. recall.profile=classic")
    parser.add_argument("--verbose", action="store_true", help="each question: what came back, and what was wrong")
    return parser.parse_args()


if __name__ == "__main__":
    main()
