"""The answers of several vaults -> one, by scores that compare.

A score is relative to its vault: the best text there counts 1, however little it has to do with the question. So each
vault has a weight, by evidence that is the same everywhere: how like the question its best text is, and how much of the
question it has words for. What that finds is in docs/explanation/recall.md.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from quaid.claims import normal_form
from quaid.model import Hit, Recall, Scale
from quaid.recall import cutoff
from quaid.recall.options import PROFILES, RecallOptions
from quaid.recall.scoring import LESS, MAX_CUT_SHOWN, low_confidence_reason
from quaid.recall.trace import list_degraded, with_degraded
from quaid.settings import RecallSettings
from quaid.text.zones import order_key


def merge(answers: Mapping[str, Recall], settings: RecallSettings, options: RecallOptions) -> Recall:
    """Return the answers of vaults, by the names of these, as one: the hits best first, each with its vault.

    `settings` and `options` are as for one vault. Each answer has its `scale`, no budget, and as many hits as `limit`
    says. Hits with the same text in two vaults become one, which names both. The order of the vaults does not matter.
    """
    profile = options.profile or PROFILES[settings.profile]
    weights = weigh(answers, profile.vector_weight)
    first = next(iter(answers.values()))
    offers: list[tuple[bool, float, Hit]] = []
    for vault in sorted(answers):
        weighed = []
        for hit in answers[vault].hits:
            weight = 1.0 if _is_called(hit, answers[vault]) else weights[vault]
            evidence = {name: round(share * weight, 4) for name, share in hit.evidence.items()}
            weighed.append(replace(hit, vault=vault, score=round(hit.score * weight, 4), evidence=evidence))
        # Each vault's hits stay in their order, which puts a fact before what it contradicts.
        best_from_here = [*accumulate((hit.score for hit in reversed(weighed)), max)][::-1]
        values = zip(weighed, best_from_here, strict=True)
        offers += [(not _is_called(hit, answers[vault]), -value, hit) for hit, value in values]
    if options.recent:
        hits = sorted((hit for _, _, hit in offers), key=lambda hit: order_key(hit.created), reverse=True)
    else:
        hits = [hit for _, _, hit in sorted(offers, key=lambda offer: offer[:2])]
    relevant, behind = hits, list[Hit]()
    if profile.cut_share and not (options.keyword_only or options.recent):
        relevant, behind = _cut(hits, answers, profile.cut_share)
    chunks = sum(answer.scale.chunks for answer in answers.values() if answer.scale)
    by_size = cutoff.MAX_IN_BUDGET if options.budget is not None else cutoff.dynamic_k(chunks)
    shown, more = _fold(relevant, options.limit or settings.limit or by_size)
    best = max(shown, key=lambda hit: hit.score, default=None)
    doubt = low_confidence_reason(best.score if best else None)
    if best:
        doubt = answers[best.vault].doubt or doubt
    merged = Recall(
        first.query,
        shown,
        took_ms=max(answer.took_ms for answer in answers.values()),
        trace=_trace(answers, weights, shown, behind),
        doubt=doubt if first.query else None,
        context=tuple((f"{vault}/{path}", text) for vault in answers for path, text in answers[vault].context),
        more=more or any(answer.more for answer in answers.values()),
    )
    lacking = {vault: list_degraded(answer.degraded, answer.trace) for vault, answer in answers.items()}
    return with_degraded(merged, [f"vault {vault}: {sentence}" for vault in answers for sentence in lacking[vault]])


def weigh(answers: Mapping[str, Recall], of_meaning: float) -> dict[str, float]:
    """Return by how much the scores of each vault count: 1 for the one with the best hit, whose answer stays as it is,
    and more for another only where its own best is behind that. Likeness makes up the share `of_meaning`, words the
    rest, and all where there are no vectors to compare. A vault without hits has no say.
    """
    scales = {vault: answer.scale for vault, answer in answers.items() if answer.hits and answer.scale}
    # For how much of the question a vault has words: the rarer a word is in all vaults together, the more it counts.
    searched = [scale.matches for scale in scales.values()]
    # What one vault adds, the other names of an entity, is not of the question.
    asked = set(searched[0]).intersection(*searched[1:]) if searched else set()
    chunks = sum(scale.chunks for scale in scales.values())
    counts = {word: sum(matches[word] for matches in searched) for word in sorted(asked)}
    rarity = {word: math.log1p((chunks - n + 0.5) / (n + 0.5)) for word, n in counts.items() if n}
    total = sum(rarity.values())
    words = {
        vault: sum(worth for word, worth in rarity.items() if scale.matches[word]) / total if total else 1.0
        for vault, scale in scales.items()
    }
    best = max(
        scales.values(),
        key=lambda scale: (bool(scale.embedder), scale.like, scale.embedder, -scale.unlike),
        default=Scale(),
    )
    weights = {}
    for vault, scale in scales.items():
        weights[vault] = words[vault]
        if scale.embedder and scale.embedder == best.embedder and best.like > best.unlike:
            likeness = max(0.0, (scale.like - best.unlike) / (best.like - best.unlike))
            weights[vault] = of_meaning * likeness + (1 - of_meaning) * words[vault]

    def find_best(vault: str) -> tuple[float, str]:
        uncalled = (hit.score for hit in answers[vault].hits if hit.id not in scales[vault].called)
        return weights[vault] * max(uncalled, default=0.0), vault

    unit = weights[max(weights, key=find_best)] if weights else 1.0
    return {vault: weights[vault] / unit if vault in weights and unit else 1.0 for vault in answers}


def _is_called(hit: Hit, answer: Recall) -> bool:
    return answer.scale is not None and hit.id in answer.scale.called


def _cut(hits: Sequence[Hit], answers: Mapping[str, Recall], cut_share: float) -> tuple[list[Hit], list[Hit]]:
    """Return the hits that are not too far behind the best of all vaults, and the others. What the vault with the best
    hit has shown is not cut again.
    """
    best = max((hit for hit in hits if not _is_called(hit, answers[hit.vault])), key=_relevance, default=None)
    if best is None:
        return list(hits), []
    near, behind = list[Hit](), list[Hit]()
    for hit in hits:
        least = cut_share * _relevance(best) * (1.0 if hit.turn is None else LESS)
        is_near = hit.vault == best.vault or _is_called(hit, answers[hit.vault]) or _relevance(hit) >= least
        (near if is_near else behind).append(hit)
    return near, behind


def _relevance(hit: Hit) -> float:
    """Return the score of a hit before its session lost for what is shown of it already."""
    return max(hit.score, sum(hit.evidence.values()))


def _fold(hits: Sequence[Hit], limit: int) -> tuple[tuple[Hit, ...], bool]:
    """Return the first `limit` of `hits`, those of several vaults that say the same as one, and whether there are more.
    What one vault shows twice it has found to differ.
    """
    merged: list[Hit] = []
    forms: list[str] = []
    for hit in hits:
        form = normal_form(hit.text)
        same = (
            place
            for place, other in enumerate(merged)
            if form and form == forms[place] and hit.vault not in {other.vault, *other.also_in}
        )
        if (place := next(same, None)) is not None:
            other = merged[place]
            count = other.stands_for + hit.stands_for
            merged[place] = replace(other, also_in=tuple(sorted([*other.also_in, hit.vault])), stands_for=count)
        elif len(merged) == limit:
            return tuple(merged), True
        else:
            merged.append(hit)
            forms.append(form)
    return tuple(merged), False


def _trace(
    answers: Mapping[str, Recall], weights: Mapping[str, float], shown: Collection[Hit], behind: Sequence[Hit]
) -> dict[str, Any]:
    """Return how the answer came about: a stage for each vault, and the trace of each by its name."""
    first: Mapping[str, Any] = next(iter(answers.values())).trace
    stages = [
        {"stage": f"vault {vault}", "took_ms": round(answer.took_ms, 2), "candidates": answer.trace.get("candidates"),
         "shown": sum(hit.vault == vault for hit in shown), "weight": round(weights[vault], 3)}
        for vault, answer in answers.items()
    ]  # fmt: skip
    cut = (
        [
            {**item, "id": f"{vault}/{item['id']}"}
            for vault, answer in answers.items()
            for item in answer.trace.get("cut", ())  # type: ignore[attr-defined]
        ]
        + [
            {"id": f"{hit.vault}/{hit.id}", "score": hit.score, "why": "far behind the best of another vault"}
            for hit in behind[:MAX_CUT_SHOWN]
        ]
    )
    asked_past = {vault: answer.trace["as_of"] for vault, answer in answers.items() if "as_of" in answer.trace}
    return {
        **{name: first[name] for name in ("words", "intent") if name in first},
        "stages": stages,
        "cut": cut,
        **({"as_of": asked_past} if asked_past else {}),
        "vaults": {vault: dict(answer.trace) for vault, answer in answers.items()},
    }


def share_of(merged: Recall, vault: str, answer: Recall) -> Recall:
    """Return what of a merged answer came from the `answer` of one vault, as that vault records it."""
    given = {hit.id: hit for hit in merged.hits if hit.vault == vault}
    hits = (replace(hit, score=given[hit.id].score) for hit in answer.hits if hit.id in given)
    return replace(answer, hits=tuple(hits))
