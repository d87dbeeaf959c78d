"""Put the figures of all benchmarks into docs/reference/benchmarks.md, and those of the held-out sets into README.md.

    bash tests/benchmarks/all.sh OUT        # measures everything into OUT, then calls this
    python tests/benchmarks/report.py OUT

The page is written by hand, but for what stands between `<!-- figures: NAME -->` and `<!-- end: NAME -->`: that is made
from OUT/NAME.json (some tables from several). What OUT has no file for stays as it is and is named on stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import answers
import projects
from ablation import Change
from locomo_data import CATEGORIES
from rankings import CUTS, PEERS, QUAID
from scale import TARGETS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"
README = Path(__file__).parents[2] / "README.md"
MADE = {
    "locomo-none": "locomo.py",
    "locomo-observation": "locomo.py --facts observation",
    "locomo-extraction": "locomo.py --facts extraction",
    "answers-none": "answers.py",
    "answers-observation": "answers.py --facts observation",
    "answers-beam": "answers.py --beam",
    "precision": "precision.py",
    "ablation": "ablation.py",
    "weights": "learn_weights.py",
    "beam": "beam.py",
    "beam-held-out": "beam.py --held-out",
    "beam-500k": "beam.py --size 500K --pool user",
    "realtalk": "locomo.py --realtalk",
    "longmemeval": "longmemeval.py --pool user --pool both",
    "stages": "stages.py --all",
    "scale": "scale.py --notes 1000 --notes 10000 --notes 100000",
    "as-of": "as_of.py",
    "projects": "projects.py",
}
"""The command behind each file; all.sh runs these."""
LABELS = [*CATEGORIES.values()]
SETS = {
    "none": "LoCoMo",
    "observation": "LoCoMo with facts",
    "user": "BEAM, user's messages",
    "both": "BEAM, both sides",
}
README_SETS = {"beam-held-out": "BEAM 15–20", "beam-500k": "BEAM 500K", "realtalk": "REALTALK"}
DASH = "–"
SHOWN = (*CUTS, "MRR")
LEFT_OUT = {"random", "oracle", "limit 10", "default limit"}
"""They show that a harness is sound, and are in its file."""
BUDGETS = ("500", "1500", "4000")
STAGE_FIGURES = ("R@10", "multi-hop", "precision", "recall")
_BLOCK = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n)(?P<old>.*?)(<!-- end: (?P=name) -->)", re.DOTALL)

Figures = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the benchmarks have put their figures")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    filled, missing = fill(options.page.read_text(encoding="utf-8"), options.folder)
    options.page.write_text(filled, encoding="utf-8")
    if options.page == PAGE:
        README.write_text(fill_readme(README.read_text(encoding="utf-8"), options.folder), encoding="utf-8")
    for name in missing:
        print(f"{name}: no {name}.json in {options.folder}; what the page has stays as it is", file=sys.stderr)


def fill(page: str, folder: Path) -> tuple[str, list[str]]:
    """The page with every block made anew for which there are figures, and the names of the others."""
    missing = []

    def render(block: re.Match[str]) -> str:
        name = block["name"]
        path = folder / f"{name}.json"
        if not path.exists():
            missing.append(name)
            return block[0]
        figures = json.loads(path.read_text(encoding="utf-8"))
        day = datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
        source = f"*{day}, {figures['machine']}:* `python tests/benchmarks/{MADE[name]}`"
        source = textwrap.fill(source, 100, break_long_words=False, break_on_hyphens=False)
        return f"{block[1]}{source}\n\n{RENDERERS[name](figures)}\n{block[4]}"

    return _BLOCK.sub(render, page), missing


def fill_readme(page: str, folder: Path) -> str:
    """README.md with its table of held-out sets made anew, where their figures are there."""
    sets: dict[str, Figures] = {}
    for name, title in README_SETS.items():
        path = folder / f"{name}.json"
        if not path.exists():
            return page
        figures = json.loads(path.read_text(encoding="utf-8"))
        pools = figures.get("pools")
        sets |= (
            {SETS[pool].replace("BEAM", title): found for pool, found in pools.items()} if pools else {title: figures}
        )
    retrievers = [name for name in (*PEERS, "fusion", QUAID) if all(name in found["rows"] for found in sets.values())]
    rows = [
        [f"{name} ({found['questions']} questions)", *(_bounded(found["rows"][each]) for each in retrievers)]
        for name, found in sets.items()
    ]
    table = _table(
        ["R@10 (95%)", *("plain fusion" if each == "fusion" else each for each in retrievers[:-1]), "Quaid"], rows
    )
    return _BLOCK.sub(lambda block: f"{block[1]}{table}{block[4]}", page)


def _bounded(row: Mapping[str, Any]) -> str:
    return f"{_share(row['R@10'])} ({_bounds(row['interval']['R@10'])})"


def render_locomo(figures: Figures) -> str:
    categories = [
        [name, *(_share(rows[QUAID][cut]) for cut in CUTS)]
        for name, rows in sorted(figures["by_category"].items(), key=lambda item: LABELS.index(item[0]))
    ]
    return f"{_head_of(figures)}{_rankings(figures)}\n{_table(['hybrid', *CUTS], categories)}"


def render_beam(figures: Figures) -> str:
    return "\n".join(f"{SETS[pool]}: {_head_of(found)}{_rankings(found)}" for pool, found in figures["pools"].items())


def render_held_out(figures: Figures) -> str:
    """Quaid against its bare channels and other retrievers, with intervals."""
    pools = {SETS[pool]: found for pool, found in figures["pools"].items()} if "pools" in figures else {"": figures}
    return "\n".join(
        f"{f'{name}: ' if name else ''}{_counts(found)}.\n\n{_against_peers(found)}" for name, found in pools.items()
    )


def _against_peers(figures: Figures) -> str:
    rows = [
        [
            f"**{name}**" if name == QUAID else name,
            *(_share(row[cut]) for cut in CUTS),
            _bounds(row["interval"]["R@10"]),
            f"{_bounds(row['ahead']['R@10'][:1], '+')} ({_bounds(row['ahead']['R@10'][1:], '+')})"
            if "ahead" in row
            else "",
        ]
        for name, row in figures["rows"].items()
        if name == QUAID or "ahead" in row
    ]
    return _table(["", *CUTS, "R@10, 95%", "Quaid ahead, R@10 (95%)"], rows)


def render_longmemeval(figures: Figures) -> str:
    return "\n".join(
        f"`{figures['file']}`, {pool}: {_head_of(found)}{_any_and_all(found)}"
        for pool, found in figures["pools"].items()
    )


def _any_and_all(figures: Figures) -> str:
    shown = ("R@5", "R@10", "any@5", "all@5", "any@10", "all@10")
    named = {name: row for name, row in figures["rows"].items() if name not in LEFT_OUT}
    named |= {
        f"{category}: {name}": row for category, rows in figures["by_category"].items() for name, row in rows.items()
    }
    rows = [
        [name, *(f"{_share(row[m])} ({_bounds(row['interval'][m])})" for m in shown)] for name, row in named.items()
    ]
    return _table(["", *shown], rows)


def _head_of(figures: Figures) -> str:
    return f"{_counts(figures)}; {_latency(figures)}.\n\n"


def _counts(figures: Figures) -> str:
    return f"{figures['questions']:,} questions, {figures['conversations']} stores, {figures['turns']:,} memories"


def _rankings(figures: Figures) -> str:
    shown = {name: row for name, row in figures["rows"].items() if name not in LEFT_OUT}
    return _table(["", *SHOWN], [[name, *(_share(row[metric]) for metric in SHOWN)] for name, row in shown.items()])


def _bounds(interval: Sequence[float], sign: str = "") -> str:
    return " … ".join(f"{each:{sign}.3f}".replace("0.", ".", 1) for each in interval)


def _latency(figures: Figures) -> str:
    return f"recall p50 {figures['p50_ms']:.0f} ms, p95 {figures['p95_ms']:.0f} ms"


def render_answers(figures: Figures) -> str:
    """By way and budget the share held, and of recall by category at the budget in the middle."""
    ways = (answers.ALL, answers.HELD_OUT, answers.LISTING)
    rows = [
        [way, f"{int(budget):,}", *(_share(groups.get(name, {}).get("held")) for name in ways),
         _share(groups[answers.ALL].get("turns"))]
        for way, budgets in figures["rows"].items()
        for budget, groups in budgets.items()
        if budget in BUDGETS and (not way.startswith("sessions") or budget == BUDGETS[-1])
    ]  # fmt: skip
    groups = figures["rows"][answers.RECALL][BUDGETS[1]]
    categories = [
        [name.replace("_", " "), f"{group['questions']:,}", _share(group["held"])]
        for name, group in sorted(groups.items())
        if name not in answers.WHOLE
    ]
    changes = "".join(
        f"- held at {int(budget):,}, against before: {change['difference']:+.3f}, 95% interval {change['low']:+.3f} to "
        f"{change['high']:+.3f}\n"
        for budget, change in figures["change"].items()
        if budget in BUDGETS
    )
    by = f"Answered and judged by {figures['models']}.\n\n" if figures["models"] else ""
    head = ["", "budget", "held", answers.HELD_OUT, answers.LISTING, "gold turns"]
    return (
        f"{figures['what']}; {groups[answers.ALL]['questions']:,} questions.\n\n{by}{_table(head, rows)}\n"
        f"{changes}{chr(10) if changes else ''}{_table(['recall, 1,500 tokens', 'questions', 'held'], categories)}"
    )


def render_precision(figures: Figures) -> str:
    rows = [
        [
            f"*{name}*" if name.startswith("random") or name == "oracle" else name,
            *(_pair(row[column]) for column in ("theirs", "unaided", "any tier")),
            *(f"{row[column]:,}" for column in ("passed", "active", "returned", "superseded", "of others")),
        ]
        for name, row in figures["single"].items()
    ]
    cases = sum(row["cases"] for row in figures["recall_by_category"].values())
    head = ["precision / recall", "theirs", "unaided", "any tier", f"passed of {cases}", "active", "returned",
            "superseded", "of others"]  # fmt: skip
    sessions = [
        [name, _pair(row), _share(row["drift"]), f"{row['passed']} of {row['turns']}"]
        for name, row in figures["sessions"].items()
    ]
    return (
        f"Recall p50 {figures['p50_ms']:.1f} ms.\n\n{_table(head, rows)}\n"
        f"{_table(['two sessions', 'precision / recall', 'drift', 'turns passed'], sessions)}"
    )


def render_ablation(figures: Figures) -> str:
    asked = figures["questions"]
    rows = [["**default**", "", *(_share(figures["default"][name]) for name in STAGE_FIGURES), ""]]
    for name, row in figures["stages"].items():
        if row["answers_changed"]:
            changes = [Change(**row["changes"][figure]) for figure in STAGE_FIGURES]
            rows.append([f"`{name}`", row["toggled"], *map(_signed, changes), row["verdict"]])
    unseen = [f"`{name}`" + (f" ({row['why']})" if row["why"] else "")
              for name, row in figures["stages"].items() if not row["answers_changed"]]  # fmt: skip
    unasked = [f"`{name}` ({why})" for name, why in figures["not_asked"].items()]
    left = f"\nChange no answer of these sets: {', '.join(unseen)}.\n" if unseen else ""
    left += f"\nNot asked: {', '.join(unasked)}.\n" if unasked else ""
    return (
        f"{asked['locomo']:,} questions of {asked['conversations']} conversations with facts, {asked['precision']} of "
        f"PrecisionMemBench. Bold: at least {figures['least']:g}, and the {figures['confidence']:.0%} interval leaves out "
        f"zero.\n\n{_table(['stage', 'toggled', *STAGE_FIGURES, 'when on it'], rows, words=2)}{left}"
    )


def render_weights(figures: Figures) -> str:
    weights = figures["weights"]
    folds = weights["folds"].values()
    rows = [
        [
            f"`{name}`",
            f"{weights['in the code'][name]:.2f}",
            f"{mean:.2f}",
            f"{min(fold[name] for fold in folds):.2f} to {max(fold[name] for fold in folds):.2f}",
        ]
        for name, mean in weights["mean"].items()
    ]
    names = list(next(iter(figures["sets"].values()))["rows"])
    found = [
        [name, *(_against_fusion(name, each["rows"][name]) for each in figures["sets"].values())] for name in names
    ]
    return (
        f"L2 {figures['l2']:g}.\n\n{_table(['evidence', 'in the code', 'learned, mean', 'folds'], rows)}\n"
        f"{_table(['R@5 / R@10 / R@20', *(SETS[pool] for pool in figures['sets'])], found)}"
    )


def _against_fusion(name: str, row: Mapping[str, float]) -> str:
    scores = " / ".join(_share(row[cut]) for cut in CUTS)
    return scores if name == "fusion" else f"{scores} ({row['low']:+.3f} … {row['high']:+.3f})"


def render_stages(figures: Figures) -> str:
    by_size = figures["notes"]
    columns = [("1000", "p50"), ("10000", "p50"), ("10000", "cold"), ("100000", "p50")]
    columns = [(size, name) for size, name in columns if size in by_size]
    head = ["ms", *(f"{int(size):,}: {name}" for size, name in columns)]
    names = dict.fromkeys(name for found in by_size.values() for name in found["stages"])
    stages = [[name, *(_number((by_size[size]["stages"].get(name) or {}).get(part)) for size, part in columns)]
              for name in names]  # fmt: skip
    scoped = [
        [name, *(_number(by_size[size]["scoped_process_ms"][name] if part == "cold" else by_size[size]["scoped"][name][part]) for size, part in columns)]
        for name in next(iter(by_size.values()))["scoped"]
    ]  # fmt: skip
    return (
        f"{figures['questions']} questions each.\n\n{_table(head, stages)}\nBy what may be seen; *cold* is `quaid recall`, "
        f"the process:\n\n{_table(head, scoped)}"
    )


def render_scale(figures: Figures) -> str:
    by_size = figures["notes"]
    names = dict.fromkeys(name for found in by_size.values() for name in found)
    rows = [[name, *(_number(found.get(name)) for found in by_size.values()), TARGETS.get(name, "")] for name in names]
    return _table(["", *(f"{int(notes):,} notes" for notes in by_size), "target at 10,000"], rows)


def render_as_of(figures: Figures) -> str:
    present = figures["the present"]
    rows = [
        [name, f"{row['first']:.2f}", f"{row['first'] / present['reindex']:.0%}", f"{row['cached']:.2f}"]
        for name, row in figures.items()
        if isinstance(row, dict) and "first" in row
    ]
    return (
        f"{figures['notes']:,} notes; reindex {present['reindex']:.2f} s; a process that asks the present "
        f"{present['recall']:.2f} s.\n\n{_table(['as of', 'first, s', 'of reindex', 'cached, s'], rows)}"
    )


def render_projects(figures: Figures) -> str:
    promised = projects.TARGETS
    return _table(["", "measured", "target"], [[name, _number(value), promised.get(name, "")]
                                               for name, value in figures["figures"].items()])  # fmt: skip


RENDERERS: dict[str, Callable[[Figures], str]] = {
    "locomo-none": render_locomo,
    "locomo-observation": render_locomo,
    "locomo-extraction": render_locomo,
    "answers-none": render_answers,
    "answers-observation": render_answers,
    "answers-beam": render_answers,
    "precision": render_precision,
    "ablation": render_ablation,
    "beam": render_beam,
    "beam-held-out": render_held_out,
    "beam-500k": render_held_out,
    "realtalk": render_held_out,
    "longmemeval": render_longmemeval,
    "weights": render_weights,
    "stages": render_stages,
    "scale": render_scale,
    "as-of": render_as_of,
    "projects": render_projects,
}


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Markdown; all but the first columns, which are words, to the right."""
    rule = ["---"] * words + ["--:"] * (len(head) - words)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def _share(value: float | None) -> str:
    """.728, as the literature writes it."""
    return DASH if value is None else f"{value:.3f}".removeprefix("0")


def _pair(row: Mapping[str, float | None]) -> str:
    return f"{_share(row['precision'])} / {_share(row['recall'])}"


def _signed(change: Change) -> str:
    text = f"{change.difference:+.3f}".replace("0.", ".", 1)
    return f"**{text}**" if change.is_real else text


def _number(value: float | None) -> str:
    """Two digits that mean something, no more."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    main()
