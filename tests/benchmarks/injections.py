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
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench import describe_machine, make_parser, save

from quaid import Memory
from quaid.agents.prompt_context import build_prompt_context
from quaid.agents.session_context import SessionContext, read_context, render_context
from quaid.capture.facts import NewFact, plan_fact
from quaid.config import load_settings
from quaid.local import recall_trail, sessions
from quaid.place import state_folder
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
    shape = {name: {title: asdict(row) for title, row in table.items()} for name, table in result.items()}
    save(options.json, shape)


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
    parser = make_parser(__doc__)
    parser.add_argument("--verbose", action="store_true", help="print each prompt that was answered wrong")
    parser.add_argument("--known", action="store_true", help="leave out the fresh prompts")
    return parser.parse_args()


if __name__ == "__main__":
    main()
