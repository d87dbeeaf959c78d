"""Model judgements: items in numbered batches, checked answers, and stored judgements so that each is made once.

A batch that the model refuses, or whose answer cannot be used, is split until the item that causes it is alone. An
item that fails twice alone is set aside: it is held back under its name and not judged again before its evidence, the
model or the prompt changes. What exceeds a limit is split too; the rest is left for a later run. Any other problem
ends the task's questions. No ModelError is raised, the report has it: what was judged is still carried out.
"""

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from quaid.errors import BudgetExceededError, ModelAnswerError, ModelError, ModelRefusedError
from quaid.janitor.decision import SET_ASIDE
from quaid.janitor.model_text import CarelessAnswerError, quote, read_change, without_empty
from quaid.janitor.task_context import TaskContext
from quaid.janitor.vetoes import MAX_EXAMPLES
from quaid.llm import Models, Prompt
from quaid.llm.exchange import Answer, ItemProblem
from quaid.llm.prices import batches, estimate_tokens
from quaid.local.runs import Decision, evidence_key

T = TypeVar("T")
MAX_UNUSABLE = 20
"""After this many unusable answers and no usable one, the model is the cause and not an item."""
MAX_LABEL = 200
"""Characters of the text by which the owner recognises an item that was set aside."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A model's judgement of an item. `says` is the verdict in one word; each task uses the fields its prompt asks for.

    `text` is a new wording, `section` a heading of a core note, `replaces` are lines of it. `keep` is what becomes of
    two facts: `a`, `b`, `merge` or `both`; `days` (ISO) are when each of them holds: `a_from`, `a_until`, `b_from`,
    `b_until`. `edges` are read in a fact; `reject_edges` are the numbers, from 1, of edges that were not stated. With
    `until`, a day (ISO), the item is judged again after it.
    """

    says: str = ""
    reason: str = ""
    text: str = ""
    section: str = ""
    keep: str = ""
    days: Mapping[str, str] = field(default_factory=dict)
    edges: Sequence[Sequence[str]] = ()
    reject_edges: Sequence[int] = ()
    replaces: Sequence[str] = ()
    until: str = ""
    model: str | None = None
    prompt: str | None = None

    def render(self) -> str:
        """Return it as JSON, without empty fields."""
        return json.dumps(without_empty(asdict(self)), ensure_ascii=False)


def read_judgements(context: TaskContext, keys: Iterable[str]) -> dict[str, Judgement]:
    """Return the stored judgements of `keys`. Those in a form that is not readable are left out and made again."""
    wanted = list(keys)
    stored = context.judgements.known(wanted)
    found: dict[str, Judgement] = {}
    for key in wanted:
        try:
            found[key] = Judgement(**json.loads(stored[key]))
        except (KeyError, ValueError, TypeError):
            continue
    return found


class ModelQuestion(Generic[T]):
    """A prompt that asks for one verdict on each of many numbered items. A task describes its own in a subclass."""

    prompt: str
    items = "verdicts"
    """The property of the answer that lists the verdicts."""
    bare: tuple[str, Mapping[str, Any]] = ("", {})
    """The property that lists numbers alone, and the verdict that such a number means."""
    input_tokens = 8_000
    """The size of one question: a model that reads too much at once judges carelessly."""
    output_tokens = 0
    """The usual answer to one item."""
    needs_all = True
    """Whether to ask the model again for numbers it left out."""
    needs_any = False
    """Whether an answer without any usable verdict is an error, so that its batch is split."""

    def __init__(self, context: TaskContext) -> None:
        self.context = context

    def label(self, item: T) -> str:
        """The text by which the owner recognises an item."""
        return str(self.show(item)["text"])

    def show(self, item: T) -> Mapping[str, Any]:
        """The fields of an item that the model sees: none that changes from day to day, as a judgement is made once."""
        raise NotImplementedError

    def inputs(self, batch: Sequence[T]) -> dict[str, str]:
        """The texts for the slots of the prompt, except `today` and the refused decisions."""
        return {"facts": numbered_lines(map(self.show, batch))}

    def size(self, item: T) -> int:
        return estimate_tokens(numbered_lines([self.show(item)]))

    def find_problems(self, _item: T, _given: Mapping[str, Any]) -> Iterable[str]:
        """Yield why the verdict `given` on an item should be given again."""
        return ()

    def find_carelessness(self, _batch: Sequence[T], _given: Sequence[Mapping[str, Any]]) -> str:
        """Return why an answer treats too many items alike to be a judgement; empty where it does not."""
        return ""

    def read(self, item: T, given: Mapping[str, Any], answer: Answer) -> Judgement | None:
        """Return the judgement in the verdict `given` of `answer`; None to leave the item without one."""
        raise NotImplementedError

    def group(self, _item: T) -> str:
        """The name of a group whose items are numbered one after the other."""
        return ""

    def judge(self, items: Mapping[str, T], most: int | None = None) -> Iterator[tuple[str, Judgement]]:
        """Yield the judgement of each item by the key of its evidence, the stored ones first; a model judges `most`
        others, batch by batch. Without a model, and for items it does not judge, there is none.
        """
        stored = read_judgements(self.context, items)
        known = {key: judgement for key, judgement in stored.items() if not judgement.until}
        yield from known.items()
        new = [key for key in items if key not in known][:most]
        for batch, answer in self.ask_all({key: items[key] for key in new}):
            judged = {
                key: judgement
                for (key, item), given in by_number(self.given(answer.value), batch)
                if (judgement := self.read(item, given, answer)) is not None
            }
            self.context.judgements.add(self.prompt, {key: judgement.render() for key, judgement in judged.items()})
            yield from ((key, judged[key]) for key, _ in batch if key in judged)

    def ask_all(self, items: Mapping[str, T]) -> Iterator[tuple[list[tuple[str, T]], Answer]]:
        """Yield the answers of the model about `items`, each with its batch, keys and items, in numbered order."""
        context, models = self.context, self.context.models
        if models is None or not items:
            return
        tried: set[str] = set()
        failed: dict[str, str] = {}
        marks: dict[str, str] = {}
        left: list[str] = []
        has_answered, unusable = False, 0
        last: ModelError | None = None
        stopped_by: ModelError | None = None
        try:
            prompt, description = models.prompt(self.prompt), models.describe()
            model = description.deep if prompt.tier == "deep" else description.fast
            marks = {key: evidence_key(SET_ASIDE, model, prompt.label, key) for key in items}
            known = context.judgements.known(list(marks.values()))  # what an earlier run set aside, and why
            failed = {key: known[mark] for key, mark in marks.items() if mark in known}
            left = [key for key in items if key not in failed]
            sized = [(key, self.size(items[key])) for key in left]
            pending = deque(batches(sized, self.input_tokens, self.output_tokens, prompt.max_output_tokens))
            while pending:
                if context.progress is not None:
                    context.progress(f"Judging ({self.prompt})", len(left) - sum(map(len, pending)), len(left))
                keys = pending.popleft()
                try:
                    found = self._ask(models, prompt, [(key, items[key]) for key in keys])
                except (ModelRefusedError, ModelAnswerError, BudgetExceededError) as error:
                    has_answered = has_answered or isinstance(error, ModelRefusedError)
                    unusable += isinstance(error, ModelAnswerError)
                    if isinstance(error, CarelessAnswerError) or (unusable == MAX_UNUSABLE and not has_answered):
                        raise
                    half = len(keys) // 2
                    again = [keys[:half], keys[half:]] if half else [keys] if keys[0] not in tried else []
                    tried.update(() if half else keys)
                    pending += again  # behind the others, which are judged whatever ends the questions later
                    last = error
                    if not again and isinstance(error, BudgetExceededError):
                        stopped_by = error
                    elif not again:
                        failed[keys[0]] = str(error)
                    continue
                has_answered = True
                yield found
        except ModelError as error:
            stopped_by = error
        if not has_answered and len(left) > 1:  # nothing shows that the model answers about other items
            failed = {key: problem for key, problem in failed.items() if key not in tried}
            stopped_by = stopped_by or last
        context.judgements.add(self.prompt, {marks[key]: problem for key, problem in failed.items()})
        self._report({key: (items[key], problem) for key, problem in failed.items()}, stopped_by)

    def _report(self, failed: Mapping[str, tuple[T, str]], stopped_by: ModelError | None) -> None:
        """Report the items that the model cannot judge, and what ended the questions."""
        report = self.context.report
        for key, (item, problem) in failed.items():
            subject = f"judge {quote(self.label(item), MAX_LABEL)}"
            report.held_back.append((Decision(self.prompt, SET_ASIDE, key, (), subject, ""), problem))
        if stopped_by is not None:
            report.failed[self.prompt] = str(stopped_by)

    def _ask(self, models: Models, prompt: Prompt, batch: list[tuple[str, T]]) -> tuple[list[tuple[str, T]], Answer]:
        """Ask about one batch.

        Raises:
            ModelError: as `Models.ask`; CarelessAnswerError where all items are treated alike.
        """
        groups = list(dict.fromkeys(self.group(item) for _, item in batch))
        batch = sorted(batch, key=lambda keyed: groups.index(self.group(keyed[1])))
        items = [item for _, item in batch]
        inputs = {"today": f"{self.context.now:%A %Y-%m-%d}", **self.inputs(items)}
        inputs |= dict.fromkeys(prompt.slots & {"refused", "vetoes"}, list_refused(self.context))
        answer = models.ask(prompt, inputs, check=lambda value: self.check(items, value))
        given = self.given(answer.value)
        raw = json.dumps(answer.value, ensure_ascii=False)
        if careless := self.find_carelessness(items, given):
            raise CarelessAnswerError(answer.model, answer.prompt, careless, raw)
        if self.needs_any and not by_number(given, items):
            raise ModelAnswerError(answer.model, answer.prompt, "no item has one judgement", raw)
        return batch, answer

    def check(self, batch: Sequence[T], value: Mapping[str, Any]) -> list[str | ItemProblem]:
        """Return what is wrong with an answer: numbers that are missing or given twice, and verdicts that cannot be
        used. Nothing is read of a number that was not asked about, so it is no problem.
        """
        given, count = value[self.items], len(batch)
        times = Counter(item["n"] for item in self.given(value))
        problems: list[str | ItemProblem] = []
        for place, item in enumerate(given):
            if item["n"] > count:
                continue
            if times[item["n"]] > 1:
                sentence = f"is one of {times[item['n']]} answers about number {item['n']}: give one"
                problems.append(ItemProblem(self.items, place, sentence))
            found = self.find_problems(batch[item["n"] - 1], item)
            problems += [ItemProblem(self.items, place, problem) for problem in found]
        missing = [n for n in range(1, count + 1) if n not in times] if self.needs_all else []
        return [*problems, *(ItemProblem(self.items, None, f"number {n} is missing") for n in missing)]

    def given(self, value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The verdicts in an answer, those that it gives as bare numbers too."""
        bare, meaning = self.bare
        return [*value.get(self.items, ()), *({"n": n, **meaning} for n in value.get(bare, ()))]


def by_number(given: Sequence[Mapping[str, Any]], batch: Sequence[T]) -> list[tuple[T, Mapping[str, Any]]]:
    """Return each item with its verdict, in the order of the verdicts, leaving out numbers without exactly one."""
    count = Counter(item["n"] for item in given)
    return [(batch[item["n"] - 1], item) for item in given if item["n"] <= len(batch) and count[item["n"]] == 1]


def numbered_lines(items: Iterable[Mapping[str, Any]]) -> str:
    """Return a line of JSON for each item, numbered from 1: no text can end its own line and begin another one."""
    lines = ({"n": n, **item} for n, item in enumerate(items, 1))
    return "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)


def list_refused(context: TaskContext) -> str:
    """Return for a prompt the decisions of this task that the owner refused: the facts before and after, if known."""
    newest = context.vetoes[:MAX_EXAMPLES]
    lines: list[Mapping[str, object]] = [read_change(veto.body) or {"change": veto.subject} for veto in newest]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) or "(nothing so far)"


def set_aside_keys(context: TaskContext) -> set[str]:
    """Return the keys of the items that this run has set aside."""
    return {decision.key for decision, _ in context.report.held_back if decision.kind == SET_ASIDE}
