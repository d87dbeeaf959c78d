"""What hooks put before prompts: is it what the prompt asks, and nothing before prompts that ask nothing of the memory?

    python tests/benchmarks/injections.py                     # with vectors, then by words alone
    python tests/benchmarks/injections.py --verbose --json result.json

`injections.tsv` has the facts of one vault, of somebody's life and work and of two software projects, with category,
project and flag as extraction writes them, and prompts in four groups: natural questions about the first (`personal`) and about the
projects (`technical`), prompts that ask nothing but touch a memory (`task`), and everyday programming that has nothing
to do with the vault (`unrelated`). Each question and task has the one fact that is wanted. Every prompt begins a session
of its own, which was told the preferences when it began, as sessions are, and nothing else. The thresholds of `quaid/agents/prompt_evidence.py` were chosen on the even rows of each group; `held out`
are the odd ones. `fresh` are prompts that nothing was chosen on: written before what they measure was changed, and
measured once before and once after.

*found* are the prompts that have the fact that is wanted, *begun* those that had it from the beginning, *given* those that are given anything, *others* the
memories a prompt besides the one that is wanted, *tokens* what goes before a prompt in the mean.

`injections_vaults.tsv` has prompts to eleven other vaults: conversations of LoCoMo and BEAM, the beliefs of PrecisionMemBench, and three that
are in the file, of one owner, of another, and of a group. A row of a prompt is its part, its vault, patterns of which one is in the
right memory, and the prompt; one without a vault wants nothing and is sent to each vault of its part. Thresholds may be
chosen on the part `tuned`; the part `held out` has other vaults and other words.

*wrong only* are the prompts that got memories, none of them right, *tokens* the median of what goes before a prompt that wants a memory and got
some, *answer* the share of these tokens that the right lines are, *first* and *in 3* how many of the right memories are at these places
in recall. The intervals are of 95 % (Wilson).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import beam_data
import locomo_data
import precision
from bench import describe_machine, kept_folder, make_parser, save

from quaid import Memory
from quaid.agents.prompt_context import build_prompt_context
from quaid.agents.session_context import SessionContext, read_context, render_context
from quaid.capture.facts import NewFact, plan_fact
from quaid.config import load_settings
from quaid.local import recall_trail, sessions
from quaid.place import state_folder
from quaid.recall.blocks import CONTEXT, MATCH
from quaid.recall.cutoff import tokens
from quaid.recall.intent import is_technical
from quaid.vault import files
from quaid.vault.layout import Layout

DATA = Path(__file__).with_suffix(".tsv")
FACTS = ("fact", "preference")
KINDS = ("prompt", "fresh")
GROUPS = ("personal", "technical", "task", "unrelated")
PROJECTS = frozenset({"larder", "tollgate"})
OWNER = "Hanna"
VAULTS = Path(__file__).with_name("injections_vaults.tsv")
PARTS = ("tuned", "held out")
OWNERS = {"sofia": "Sofia Duarte", "marek": "Marek Zielony"}
"""The vaults of one owner."""
NOW = datetime(2026, 11, 27, tzinfo=UTC)
"""The day of the questions."""


@dataclass(frozen=True)
class Row:
    """A fact of the vault, or a prompt with the key of the fact that is wanted, of a group."""

    kind: str
    group: str
    key: str
    text: str


@dataclass(frozen=True)
class Given:
    """What one prompt was given."""

    prompt: Row
    keys: tuple[str, ...]
    begun: bool
    tokens: int
    why: Mapping[str, str]


@dataclass(frozen=True)
class Figures:
    """The figures of a group, or of half of one."""

    prompts: int
    found: int
    begun: int
    given: int
    others: float
    tokens: float


def main() -> None:
    options = _arguments()
    if options.vaults:
        save(options.json, measure_vaults(options))
        return
    rows = [row for row in read_rows() if not (options.known and row.kind == "fresh")]
    result: dict[str, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        keys = make_vault(root, rows)
        for name in ("vectors", "words alone"):
            answers = list(ask(root, rows, keys, provider="local" if name == "vectors" else "none"))
            result[name] = {title: figures_of(some) for title, some in _cuts(answers)}
            _print(name, result[name])
            if options.verbose:
                _print_wrong(answers)
    print(f"{len(keys)} facts; {describe_machine()}")
    shape: dict[str, Any] = {
        name: {title: asdict(row) for title, row in table.items()} for name, table in result.items()
    }
    shape["vaults"] = measure_vaults(options)
    save(options.json, shape)


# -- other vaults ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """What one prompt to a vault of a part was given. `rank` is the place of the right memory in recall, 0 without."""

    part: str
    vault: str
    wanted: str
    prompt: str
    text: str
    rank: int

    @property
    def lines(self) -> list[str]:
        """The lines of memories."""
        return [line for line in self.text.splitlines() if line.startswith((MATCH, CONTEXT))]

    @property
    def right(self) -> list[str]:
        return [line for line in self.lines if self.wanted and re.search(self.wanted, line, re.IGNORECASE)]


def measure_vaults(options: argparse.Namespace) -> dict[str, Any]:
    rows = [line.split("\t") for line in VAULTS.read_text("utf-8").splitlines()]
    parts = {part: [row for row in rows if row[0] == part] for part in PARTS}
    shown: list[Shown] = []
    with kept_folder(options.keep) as folder:
        for part, prompts in parts.items():
            for vault in dict.fromkeys(row[1] for row in prompts if row[1]):
                if options.only and vault not in options.only:
                    continue
                root = folder / f"quaid-injections-{vault}"
                if not root.exists():
                    make_other_vault(
                        root, vault, [row for row in rows if row[0] in {"turn", "fact"} and row[1] == vault]
                    )
                shown += ask_vault(root, [row for row in prompts if row[1] in {vault, ""}], part, vault)
    figures = {}
    for part in PARTS:
        for name, some in (("", [each for each in shown if each.part == part]),
                           (", one owner", [each for each in shown if each.part == part and each.vault in OWNERS])):  # fmt: skip
            if any(each.wanted for each in some):
                figures[f"{part}{name}"] = _vault_figures(some)
    for title, row in figures.items():
        print(f"{title}: " + ", ".join(f"{name} {value}" for name, value in row.items()))
    if options.verbose:
        for each in shown:
            if options.part in {"", each.part} and (not each.right if each.wanted else each.lines):
                print(f"  {each.vault} {each.prompt!r} wanted {each.wanted!r} (rank {each.rank}): {each.lines}")
    return figures


def _vault_figures(shown: Sequence[Shown]) -> dict[str, Any]:
    wanting = [each for each in shown if each.wanted]
    others = [each for each in shown if not each.wanted]
    given = [each for each in wanting if each.lines]
    answers = [tokens("\n".join(each.right)) / tokens(each.text) for each in given]
    return {
        "found": _share(sum(bool(each.right) for each in wanting), len(wanting)),
        "wrong only": _share(sum(not each.right for each in given), len(wanting)),
        "given, wanting none": _share(sum(bool(each.lines) for each in others), len(others)),
        "tokens": statistics.median(tokens(each.text) for each in given),
        "answer": round(statistics.median(answers), 2),
        "first": _share(sum(each.rank == 1 for each in wanting), len(wanting)),
        "in 3": _share(sum(0 < each.rank <= 3 for each in wanting), len(wanting)),
    }


def _share(count: int, of: int) -> str:
    """Return `count of of` and the 95 % interval of the share, by Wilson."""
    z, p = 1.96, count / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return f"{count} of {of} ({(middle - half) / (1 + z * z / of):.3f} to {(middle + half) / (1 + z * z / of):.3f})"


def ask_vault(root: Path, rows: Iterable[Sequence[str]], part: str, vault: str) -> Iterator[Shown]:
    settings = replace(load_settings(root), owner_name=OWNERS.get(vault, ""))
    if vault == "precision":
        settings = replace(settings, owner=precision.USER)
    with Memory(root, settings) as memory:
        memory.sync()
        for number, (_, _, wanted, prompt) in enumerate(rows):
            told = build_prompt_context(root, memory.settings, memory.recall, prompt, f"{vault}-{number}")
            rank = 0
            if wanted:
                hits = memory.recall(prompt, 20, depth="fast", keep=False, now=NOW).hits
                places = (place for place, hit in enumerate(hits, 1) if re.search(wanted, hit.text, re.IGNORECASE))
                rank = next(places, 0)
            yield Shown(part, vault, wanted, prompt, told.text, rank)


def make_other_vault(root: Path, name: str, rows: Sequence[Sequence[str]]) -> None:
    """Make the vault of this name, from data or from `rows`: turns, each followed by the facts that cite it."""
    kind, _, number = name.partition("-")
    if kind == "conv":
        facts = "extraction" if number == "26" else "observation"
        locomo_data.ingest(locomo_data.load([name])[0], root, facts)
    elif kind == "beam":
        beam_data.ingest(next(each for each in beam_data.load() if each["sample_id"] == name), root, "both")
    elif kind == "precision":
        beliefs = json.loads((precision.DATA / "beliefs.seed.json").read_text("utf-8"))
        precision.Bench(root, beliefs, ()).memory.close()
    else:
        Memory.create(root)[0].close()
        with Memory(root, replace(load_settings(root), owner_name=OWNERS.get(name, ""))) as memory:
            for day, of_day in groupby(rows, key=lambda row: row[2]):
                _add_day(memory, day, [(row[0], row[3]) for row in of_day])
            memory.sync()


def _add_day(memory: Memory, day: str, rows: Sequence[tuple[str, str]]) -> None:
    started = datetime.fromisoformat(f"{day}T08:00:00+00:00")
    said = [text.partition(": ") for kind, text in rows if kind == "turn"]
    lines: list[dict[str, str]] = [{"session": day, "started": started.isoformat()}]
    for speaker, _, text in said:
        is_role = speaker in {"user", "assistant"}
        lines.append(
            {"role": speaker if is_role else "user", "content": text, **({} if is_role else {"speaker": speaker})}
        )
    with tempfile.TemporaryDirectory() as folder:
        transcript = Path(folder) / f"{day}.jsonl"
        transcript.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        episode = memory.extract(transcript).path
    turn = 0
    for kind, text in rows:
        turn += kind == "turn"
        if kind == "fact":
            fact = NewFact(text, session=day, turns=(f"[[{Path(episode).stem}#^t{turn}]]",))
            _, edit = plan_fact(fact, started)
            files.write_note(memory.root, edit.rel_path, edit.before, edit.after)


# -- the first vault -------------------------------------------------------------------------------------------------


def read_rows() -> list[Row]:
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Row(kind, group, key, text.replace("\\n", "\n")) for kind, group, key, text in rows]


def make_vault(root: Path, rows: Sequence[Row]) -> dict[str, str]:
    """Make a vault of the facts; return the key of each by its id."""
    Memory.create(root)[0].close()
    keys = {}
    for row in rows:
        if row.kind in FACTS:
            project = row.group if row.group in PROJECTS else None
            is_flagged = project is not None and is_technical(row.text)
            fact = NewFact(row.text, type=row.kind, project=project, technical=is_flagged)
            fact_id, edit = plan_fact(fact, datetime.now(UTC))
            files.write_note(root, edit.rel_path, edit.before, edit.after)
            keys[fact_id] = row.key
    return keys


def ask(root: Path, rows: Sequence[Row], keys: Mapping[str, str], provider: str) -> Iterator[Given]:
    """Put each prompt to the hook, in a session of its own."""
    settings = load_settings(root)
    settings = replace(settings, owner_name=OWNER, embedding=replace(settings.embedding, provider=provider))
    with Memory(root, settings) as memory:
        memory.sync()
        begun = read_context(
            root, memory.whole_index(), frozenset({"default"}), datetime.now(UTC), place=Layout.of(settings.vault)
        )
        told_first = render_context(SessionContext(preferences=begun.preferences), settings.hooks.context_tokens)
        first = {row.key for row in rows if row.kind in FACTS and f" {row.text}\n" in told_first}
        print(f"{len(first)} preferences, {tokens(told_first)} tokens a session")
        for number, row in enumerate(row for row in rows if row.kind in KINDS):
            session = f"{provider}-{number}"
            sessions.record(state_folder(root), session, {"text": told_first})
            told = build_prompt_context(root, memory.settings, memory.recall, row.text, session)
            found = recall_trail.read_last(state_folder(root), session)
            shown = [hit for hit, *_ in found.given] if found else []
            said = {hit: why for hit, _, why in found.left_out} | {**found.weighed} if found else {}
            why = {keys.get(hit, hit): each for hit, each in said.items()}
            yield Given(row, tuple(keys.get(hit, hit) for hit in shown), row.key in first, tokens(told.text), why)


def figures_of(answers: Sequence[Given]) -> Figures:
    return Figures(
        prompts=len(answers),
        found=sum(each.begun or each.prompt.key in each.keys for each in answers if each.prompt.key),
        begun=sum(each.begun for each in answers),
        given=sum(bool(each.keys) for each in answers),
        others=round(statistics.fmean(sum(key != each.prompt.key for key in each.keys) for each in answers), 2),
        tokens=round(statistics.fmean(each.tokens for each in answers), 1),
    )


def _cuts(answers: Sequence[Given]) -> Iterator[tuple[str, Sequence[Given]]]:
    for group in GROUPS:
        of_group = [each for each in answers if each.prompt.group == group]
        known = [each for each in of_group if each.prompt.kind != "fresh"]
        yield group, known
        yield f"{group}, held out", known[1::2]
        if fresh := [each for each in of_group if each.prompt.kind == "fresh"]:
            yield f"{group}, fresh", fresh


def _print(name: str, table: Mapping[str, Figures]) -> None:
    print(f"{name:22}{'prompts':>9}{'found':>9}{'begun':>9}{'given':>9}{'others':>9}{'tokens':>9}")
    for title, row in table.items():
        found = "" if title.startswith("unrelated") else row.found
        print(f"  {title:20}{row.prompts:>9}{found:>9}{row.begun:>9}{row.given:>9}{row.others:>9.2f}{row.tokens:>9.1f}")


def _print_wrong(answers: Sequence[Given]) -> None:
    for each in answers:
        if each.prompt.key not in each.keys and not each.begun if each.prompt.key else each.keys:
            wanted = (
                f"wanted {each.prompt.key} {each.why.get(each.prompt.key, 'not found')}; " if each.prompt.key else ""
            )
            given = ", ".join(f"{key} {each.why[key]}" for key in each.keys) or "nothing"
            print(f"    {each.prompt.kind} {each.prompt.text[:60]!r}: {wanted}given {given}")


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--verbose", action="store_true", help="print each prompt that was answered wrong")
    parser.add_argument("--part", default="", help="with --verbose: of the other vaults only this part")
    parser.add_argument("--only", action="append", help="of the other vaults only this one; repeatable")
    parser.add_argument("--vaults", action="store_true", help="measure the other vaults alone")
    parser.add_argument("--known", action="store_true", help="leave out the fresh prompts")
    return parser.parse_args()


if __name__ == "__main__":
    main()
