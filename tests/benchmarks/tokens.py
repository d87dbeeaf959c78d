"""The tokens that a session, a fact and a night cost: what a model is sent and what it answers, by prompt.

    python tests/benchmarks/tokens.py [--old 14] [--new 2] [--json after.json] [--before before.json] [--show FOLDER]

The sessions are conversation 26 of LoCoMo with the recorded answers of a real model, and the transcripts of agents, for
which no answer is recorded: what they are sent is counted alone. The night is one over the facts of `--new` sessions,
after a night over the `--old` ones before; a local service answers each prompt in full, as a real model has where it was
asked about the same. Every request is counted as it goes over the wire in the format of Anthropic's Messages. Answers
leave out what the schema in the request does not demand where it is empty or the default. Four bytes are a token.
`fixed` is what each request of a prompt repeats, which a provider's cache gives for a tenth of the price.

    with watching(service) as calls: ...     # any service of the tests: janitor_context.Scripted, replay.Replay
    print_table(by_prompt(calls))
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bench import make_parser, save, use_model
from janitor_judge import Judge
from model_service import Service
from replay import DATA, Replay, answers, write_sessions

from quaid import Memory
from quaid.errors import QuaidError
from quaid.janitor.runner import RunOptions
from quaid.llm.prompts import Prompt, load_prompt
from quaid.llm.schema import coerce
from quaid.place import data_folder

BYTES_PER_TOKEN = 4
COLUMNS = ("calls", "fixed", "input", "output", "sum")
USUAL = {"confidence": [place / 100 for place in range(90, 100)], "source": ["user"], "privacy": ["private"]}
HAPPENED = {"event", "experience"}
"""What a recorded fact has and one that leaves out what is usual does not: outright statements of the cited speaker."""
NOTHING = {"v": 1, "facts": []}
REASONS = (
    "It is a lasting fact about her that stands alone, and what she said bears it out in so many words.",
    "One is about the camping trip with her family in June, the other about what the children did there.",
    "It is what she wants to do with her life, and somebody may well ask about it in a few months.",
)
"""As long as a real model's: 40 judgements of facts have 21 words in the mean, those of pairs 23."""


class Call(NamedTuple):
    """One call: its prompt, and its tokens. `fixed` is a part of `input`."""

    prompt: str
    fixed: int
    input: int
    output: int


Table = dict[str, dict[str, int]]
"""Prompt -> the sums of `COLUMNS`; the sum of all prompts is the last row."""


@contextmanager
def watching(service: Service, show: Path | None = None) -> Iterator[list[Call]]:
    """Yield the calls that `service` answers meanwhile; write each question and answer into the folder `show`."""
    calls: list[Call] = []
    wrap = service.wrap

    def count_and_wrap(path: str, body: dict[str, Any], text: str, *rest: Any) -> dict[str, Any]:
        prompt, schema = prompt_of(body), _schema_of(body)
        answer = without_defaults(coerce(json.loads(text), prompt.schema), prompt.schema, schema)
        text = json.dumps(answer, ensure_ascii=False)
        fixed = [_text_of(body["system"]), json.dumps(schema) if schema else ""]
        said = [_text_of(turn["content"]) for turn in body["messages"]]
        calls.append(Call(prompt.name, tokens(*fixed), tokens(*fixed, *said), tokens(text)))
        if show is not None:
            show.mkdir(parents=True, exist_ok=True)
            shown = "\n\n".join([*fixed, *said, "=== ANSWER", text])
            (show / f"{len(calls):02}-{prompt.name}.txt").write_text(shown, encoding="utf-8")
        return wrap(path, body, text, *rest)

    service.wrap = count_and_wrap
    try:
        yield calls
    finally:
        service.wrap = wrap


def by_prompt(calls: Sequence[Call]) -> Table:
    """Return the sums of `calls` for each prompt, the most expensive first, and of all."""
    table: Table = {}
    for call in calls:
        for name in (call.prompt, "all"):
            row = table.setdefault(name, dict.fromkeys(COLUMNS, 0))
            for column, value in zip(COLUMNS, (1, *call[1:], call.input + call.output), strict=True):
                row[column] += value
    rows = sorted(table.items(), key=lambda item: (item[0] == "all", -item[1]["sum"]))
    return dict(rows)


def print_table(table: Table, before: Mapping[str, Any] | None = None) -> None:
    print(f"{'prompt':<20}" + "".join(f"{column:>9}" for column in COLUMNS) + ("   before" if before else ""))
    for name, row in table.items():
        was = f"{before.get(name, {}).get('sum', 0):>9,}" if before else ""
        print(f"{name:<20}" + "".join(f"{value:>9,}" for value in row.values()) + was)


def prompt_of(body: Mapping[str, Any]) -> Prompt:
    """Return the prompt of a request."""
    said = _text_of(body["system"])
    return next(p for p in map(load_prompt, _prompt_names()) if said.startswith(p.instructions[:200]))


def without_defaults(value: Any, schema: Mapping[str, Any], sent: Mapping[str, Any] | None) -> Any:
    """Return an answer as a model gives it that writes no more than the schema in the request, `sent`, demands."""
    if isinstance(value, list) and "items" in schema:
        return [without_defaults(item, schema["items"], sent and sent["items"]) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    needed = (sent or schema)["required"]
    has_usual = {name: part in USUAL.get(name, ()) or name == "speaker" for name, part in value.items()}
    has_usual["durability"] = (value.get("durability") == "immutable") == (value.get("category") in HAPPENED)
    return {
        name: without_defaults(part, schema["properties"][name], sent and sent["properties"][name])
        for name, part in value.items()
        if name in schema["properties"]
        if name in needed
        or not (part in (None, [], {}, "", schema["properties"][name].get("default")) or has_usual[name])
    }


def tokens(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN


def _prompt_names() -> list[str]:
    return sorted(path.stem for path in data_folder("prompts").glob("*.md"))


def _schema_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    return body.get("output_config", {}).get("format", {}).get("schema")


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


class TalkativeJudge(Judge):
    """Gives a reason where the schema lets it, folds what it is given, and finds themes in a journal."""

    def __init__(self) -> None:
        super().__init__()
        self.answers |= {"snippets": self._fold}

    def answer_to(self, body: dict) -> dict:
        answer = super().answer_to(body)
        for number, item in enumerate(item for items in answer.values() if isinstance(items, list) for item in items):
            if isinstance(item, dict) and len(item.get("reason") or "") < len("It is clear and so on."):
                item.update(reason=REASONS[number % len(REASONS)]) if "reason" in item else None
        return answer

    def _fold(self, question: str) -> dict:
        asked = [json.loads(line) for line in question.splitlines() if line.startswith('{"n"')]
        theme = "The owner is at their best when they make things with their hands."
        entries = [line["n"] for line in asked if line.get("from") == "journal"]
        texts = {n: theme if n == min(entries) else None for n in entries}
        verdicts = [
            (n, "rewrite" if texts.get(n) else "fold" if n % 2 and n not in texts else "discard")
            for n in (line["n"] for line in asked)
        ]
        return {"observations": [
            {"n": n, "verdict": verdict, "section": "About", "text": texts.get(n), "reason": REASONS[n % len(REASONS)]}
            for n, verdict in verdicts
        ]}  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--old", type=int, default=14, help="sessions of the night before")
    parser.add_argument("--new", type=int, default=2, help="sessions of the measured night")
    parser.add_argument("--before", help="figures of another run, to compare with")
    parser.add_argument("--show", type=Path, help="write each question and its answer into this folder")
    options = parser.parse_args()
    before = json.loads(Path(options.before).read_text("utf-8")) if options.before else {}
    found = {"transcripts": measure_transcripts(options.show)} | measure_talk(options.old, options.new, options.show)
    for name, figures in found.items():
        was = before.get(name, {})
        print(f"\n{name}: {figures['sessions']} sessions, {figures['facts']} facts")
        print_table(figures["prompts"], was.get("prompts"))
        for each in ("a session", "a fact"):
            print(f"{each:<20}{figures[each]:>45,.0f}" + (f"{was[each]:>9,.0f}" if was else ""))
    save(options.json, found)


def measure_transcripts(show: Path | None) -> dict[str, Any]:
    """What the transcripts of agents cost before the answer, each in a new vault."""
    service = Replay({})
    service.answers = _Anything()
    use_model(service.url)
    sessions = 0
    with tempfile.TemporaryDirectory() as folder, watching(service, show and show / "transcripts") as calls:
        memory, _ = Memory.create(Path(folder) / "vault")
        with memory:
            for path in sorted((DATA / "transcripts").rglob("*.json*")):
                try:
                    sessions += sum(not done.waiting for done in memory.extract_each(path))
                except QuaidError as error:
                    print(f"{path.name}: {error}")
    service.close()
    return _figures(calls, sessions, 0)


def measure_talk(old: int, new: int, show: Path | None) -> dict[str, dict[str, Any]]:
    """What the sessions of conversation 26 cost, and the second of two nights over their facts."""
    replay, judge = Replay(answers()), TalkativeJudge()
    use_model()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        Memory.create(root)[0].close()
        sessions = write_sessions(Path(folder) / "talk")
        facts = 0
        with watching(replay, show and show / "sessions") as read:
            for days, part in enumerate((sessions[:old], sessions[old : old + new])):
                os.environ["QUAID_MODELS_URL"] = replay.url
                with Memory.open(root) as memory:
                    learned = sum(len(memory.extract(path).facts) for path in part)
                os.environ["QUAID_MODELS_URL"] = judge.url
                with Memory.open(root) as memory, watching(judge, show and show / f"night {days}") as night:
                    report = memory.janitor.run(RunOptions(), datetime.now(UTC) + timedelta(days=days))
                assert not report.failed, report.failed
                facts += learned
    replay.close()
    judge.close()
    print(f"the night: {report.notes} notes, {len(report.done)} decisions, {len(report.asked)} questions")
    return {"sessions": _figures(read, old + new, facts), "night": _figures(night, new, learned)}


class _Anything(dict):
    """Answers about every session that it teaches nothing."""

    def __getitem__(self, _: str) -> dict[str, Any]:
        return NOTHING


def _figures(calls: Sequence[Call], sessions: int, facts: int) -> dict[str, Any]:
    table = by_prompt(calls)
    total = table.get("all", {}).get("sum", 0)
    shares = {"a session": total / max(1, sessions), "a fact": total / facts if facts else 0.0}
    return {"sessions": sessions, "facts": facts, "prompts": table, **shares}


if __name__ == "__main__":
    main()
