"""Facts in a vault, and a model that judges pairs of them."""

from __future__ import annotations

import json
import re
from itertools import count

from quaid.vault import frontmatter

DIFFERENT = {"verdict": "different"}
UPDATE = {"verdict": "update", "reason": "The later one replaces it."}
CONFLICT = {"verdict": "conflict", "reason": "They cannot both be true."}
COMPATIBLE = {"verdict": "compatible", "resolution": "keep_both"}
_CREATED = count()


def write_fact(vault, name, text, edges="", **head):
    """facts/NAME.md, a minute younger than the one before; its path."""
    number = next(_CREATED)
    fields = {
        "id": f"01{name}",
        "type": "fact",
        "status": "active",
        "confidence": 0.9,
        "created": f"2026-11-01T{number // 60 % 24:02}:{number % 60:02}:00Z",
        **head,
    }
    vault.write(f"facts/{name}.md", frontmatter.render(fields) + f"{text}\n" + (f"\n{edges}\n" if edges else ""))
    return f"facts/{name}.md"


def pairs_in(question):
    """The pairs that a model was asked about: (number, what a says, what b says)."""
    lines = question.partition("<facts>")[2].splitlines()
    facts = {line["n"]: line["text"] for line in map(json.loads, (each for each in lines if each.startswith('{"n"')))}
    pairs = [[int(number) for number in found] for found in re.findall(r"(?m)^(\d+): (\d+) (\d+)", "\n".join(lines))]
    return sorted((n, facts[a], facts[b]) for n, a, b in pairs)


def answer_pairs(judgements):
    """The answer with these judgements: to `resolve` all of them, to `compare` the numbers alone of what is different."""
    if any("resolution" in judgement for judgement in judgements):
        return {"pairs": judgements}
    return {
        "different": [judgement["n"] for judgement in judgements if judgement["verdict"] == "different"],
        "pairs": [judgement for judgement in judgements if judgement["verdict"] != "different"],
    }


def judging(judgement_of):
    """An answer with what `judgement_of(a, b)` says of each pair; sent back for repair, it says so again."""
    asked = []

    def answer(question):
        asked[:] = pairs_in(question) or asked
        return answer_pairs([{"n": n, **judgement_of(a, b)} for n, a, b in asked])

    return answer


def saying(table, otherwise):
    """Verdicts by the two texts in either order, `keep` turned round with them; `otherwise` for all others."""
    turned = {"a": "b", "b": "a", "keep_a": "keep_b", "keep_b": "keep_a"}

    def judgement_of(a, b):
        if (a, b) in table:
            return table[a, b]
        if (b, a) in table:
            found = table[b, a]
            return {
                key: turned.get(value, value) if key in {"keep", "resolution"} else value
                for key, value in found.items()
            }
        return otherwise

    return judging(judgement_of)


def keep(which, reason="It says all.", text=None):
    return {"verdict": "same", "keep": which, "merged_text": text, "reason": reason}


def head_of(vault, path):
    return frontmatter.parse((vault.root / path).read_text()).fields


def body_of(vault, path):
    return frontmatter.parse((vault.root / path).read_text()).body.strip()
