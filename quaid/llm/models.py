"""Calls a model: by tier, within a budget, for an answer that fits the schema of its prompt."""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Self

from quaid import errors
from quaid.llm.discovery import Choice, Description, Discovery
from quaid.llm.exchange import Answer, AnswerStore, Check, Reply, Request, UsageStore
from quaid.llm.prices import Price, estimate_tokens, price_of, with_cost
from quaid.llm.prompts import Prompt, load_prompt
from quaid.llm.schema import violations
from quaid.model import ModelUsage, PlannedCall, SpendingCap, Tier
from quaid.redaction import admit_all
from quaid.settings import ModelSettings

_THINKING_TOKENS: dict[Tier, int] = {"deep": 8_000, "fast": 2_000}
"""What a model may think before it answers: providers count it as output, and some models cannot do without."""
TIMEOUT_S: dict[Tier, float] = {"deep": 300.0, "fast": 30.0}
"""An extraction of forty facts is 6,000 tokens of answer."""


class Models:
    """The models of this machine. The provider is chosen at the first `ask`. Safe to use from several threads."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        own_prompts: Path | None = None,
        usage: UsageStore | None = None,
        answers: AnswerStore | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._own_prompts = own_prompts
        self._usage = usage
        self._answers = answers
        self._discovery = Discovery(settings, os.environ if environ is None else environ)
        self._budget = Budget(settings, self._usage, is_run=False)

    def start_run(self) -> Self:
        """Return the same models with separate usage and caps, for one run of a job."""
        run = copy(self)
        run._budget = Budget(self._settings, self._usage, is_run=True)  # noqa: SLF001 - one of us
        return run

    def without_answers(self) -> Self:
        """Return the same models without stored answers."""
        other = copy(self)
        other._answers = None  # noqa: SLF001 - one of us
        return other

    @property
    def spent(self) -> ModelUsage:
        """The usage of all calls through this object."""
        return self._budget.spent

    def describe(self) -> Description:
        """Return which models are used and why, or why none is. May call a local Ollama, but no model."""
        return self._discovery.describe()

    def prompt(self, name: str) -> Prompt:
        """Return the prompt `name`, the user's version if there is one.

        Raises:
            PromptError: no such prompt, or its file cannot be used.
        """
        return load_prompt(name, self._own_prompts)

    def ask(
        self,
        prompt: Prompt,
        inputs: Mapping[str, str],
        *,
        check: Check | None = None,
        deadline_s: float | None = None,
    ) -> Answer:
        """Return the answer of the prompt's tier to `inputs`, one text per slot.

        The answer is read leniently (`schema.coerce`). Items of its lists that do not fit, that are missing or in which
        `check` finds problems are asked for once more (drafts.py); the whole answer only where it cannot be used as a
        whole. What fits by then is returned, with the items that do not and the problems that `check` still finds; only
        an answer without any is stored.

        Takes `deadline_s` seconds at most (None: the tier's timeout), retries and repair included. A late answer is
        dropped; its estimate stays counted.

        Raises:
            PromptError: the prompt has other slots.
            ModelUnavailableError: there is no model to ask, or its provider did not accept the request.
            ModelTimeoutError: no answer came in time.
            ModelRefusedError: the model refused to answer.
            ModelAnswerError: it answered twice with nothing that fits, or was cut off before the first item.
            BudgetExceededError: a usual answer would exceed a cap, and nothing was asked; or a longer one has come.
        """
        timeout_s = TIMEOUT_S[prompt.tier]
        limit_s = timeout_s if deadline_s is None else deadline_s
        deadline = time.monotonic() + limit_s
        text = prompt.fill(inputs)
        return _last_within(limit_s, f"The {prompt.tier} model", self._attempts(prompt, text, check, deadline))

    def estimate(self, prompt: Prompt, inputs: Mapping[str, str]) -> PlannedCall:
        """Return the call that `ask` would make, with the most it can take; a repair of its answer would be another.

        Raises:
            PromptError: the prompt has other slots.
            ModelUnavailableError: there is no model to ask.
        """
        choice = self._discovery.choose()
        return self._plan(choice, _build_request(prompt, choice.models[prompt.tier], prompt.fill(inputs)))

    def _attempts(self, prompt: Prompt, text: str, check: Check | None, deadline: float) -> Iterator[Answer]:
        """Yield the answers that can be given, each better than the one before: one that fits stays when its repair
        fails.
        """
        import hashlib

        started = time.monotonic()
        choice = self._discovery.choose()
        provider, model = choice.provider, choice.models[prompt.tier]
        key = hashlib.sha256(json.dumps([prompt.name, prompt.version, provider.name, model, text]).encode()).hexdigest()
        stored = self._read_stored(key, prompt, check)
        if stored is not None:
            yield stored
            return
        left_s = deadline - started
        if left_s < provider.min_s:
            problem = f"{provider.name} needs {provider.min_s:g} s or more and has {max(0.0, left_s):.1f} s"
            step = "Choose a faster provider: quaid config models.provider anthropic"
            raise errors.ModelUnavailableError(problem, step)
        request = _build_request(prompt, model, text)
        answer: Answer | None = None
        for answer in self._drafts(choice, request, check, deadline):
            yield replace(answer, took_s=time.monotonic() - started)
        if answer is None or answer.problems or answer.failed or self._answers is None or not self._settings.cache_days:
            return
        if not admit_all(answer.value)[1]:  # an answer with a secret in it is not stored
            found = json.dumps({"value": answer.value, "provider": answer.provider, "model": answer.model})
            with suppress(errors.QuaidError):  # it costs asking again, no more
                self._answers.put(key, found, utc_today().isoformat(), self._oldest_day())

    def _drafts(self, choice: Choice, request: Request, check: Check | None, deadline: float) -> Iterator[Answer]:
        """Yield what can be used of the first reply, and then of it with its repair, if it needs one.

        Raises:
            ModelRefusedError, ModelAnswerError: nothing can be used.
        """
        from quaid.llm.drafts import CUT_OFF, Draft, plan_repair, read_reply, take_repair

        def make_answer(draft: Draft, reply: Reply, usage: ModelUsage) -> Answer:
            value, provider, problems = draft.value or {}, choice.provider.name, draft.complaints
            return Answer(value, provider, reply.model, request.prompt, usage, 0.0, problems, draft.failed)

        reply = self._exchange(choice, request, deadline)
        draft = read_reply(reply, request.schema, check)
        if draft.value is None and reply.stop == "length":  # it would be cut off again
            problem = f"{CUT_OFF} after {reply.usage.output_tokens:,} tokens"
            raise errors.ModelAnswerError(reply.model, request.prompt, problem, reply.text)
        if draft.value is not None:
            yield make_answer(draft, reply, reply.usage)
        repair = plan_repair(draft, request, reply)
        if repair is None:
            return
        first, reply = reply, self._exchange(choice, repair, deadline)
        draft = take_repair(draft, reply, request.schema, check)
        if draft.value is None:
            texts = f"{first.text}\n\n---\n\n{reply.text}"
            raise errors.ModelAnswerError(request.model, request.prompt, "; ".join(draft.complaints), texts)
        yield make_answer(draft, reply, first.usage + reply.usage)

    def _exchange(self, choice: Choice, request: Request, deadline: float) -> Reply:
        """Make one call, counted at its estimate before and at its usage afterwards. ModelRefusedError: it is a
        refusal, and stays one.
        """
        price = self._price(choice, request)
        limit: errors.BudgetExceededError | None = None
        try:
            reservation = self._budget.reserve(self._plan(choice, request), utc_today().isoformat())
        except errors.BudgetExceededError as error:
            # Few answers take a tenth of what they may. Where some thoughts and an answer half as long as its question
            # fit, the model gets no more room than that.
            usual = _THINKING_TOKENS[request.tier] // 4 + _input_tokens(request) // 2
            limit, request = error, replace(request, max_output_tokens=min(usual, request.max_output_tokens))
            reservation = self._budget.reserve(self._plan(choice, request), utc_today().isoformat())
        try:
            reply = choice.provider.complete(request, deadline)
        except (errors.ModelUnavailableError, errors.ModelRefusedError):
            self._budget.settle(reservation, ModelUsage())  # it was not accepted, so it is not charged
            raise
        except errors.ModelAnswerError:
            self._budget.settle(reservation, with_cost(ModelUsage(_input_tokens(request), calls=1), price))
            raise
        usage = reply.usage
        if not usage.tokens:  # some services do not say
            usage = ModelUsage(_input_tokens(request), estimate_tokens(reply.text), cost_usd=None, calls=1)
        reply = replace(reply, usage=usage if usage.cost_usd is not None else with_cost(usage, price))
        self._budget.settle(reservation, reply.usage)
        if limit is not None and reply.stop == "length":
            raise limit
        if reply.stop == "refusal":
            raise errors.ModelRefusedError(reply.model, request.prompt, reply.text)
        return reply

    def _price(self, choice: Choice, request: Request) -> Price | None:
        price = price_of(request.model, request.tier, self._settings)
        return price or Price(0.0, 0.0, 0.0, 0.0) if choice.provider.is_local else price

    def _plan(self, choice: Choice, request: Request) -> PlannedCall:
        """Return the call with the most it can take."""
        turns = choice.provider.turns_per_call
        read = turns * (_input_tokens(request) + estimate_tokens(json.dumps(request.schema)))
        most = with_cost(ModelUsage(read, turns * request.max_output_tokens, calls=1), self._price(choice, request))
        return PlannedCall(request.tier, choice.provider.name, request.model, request.prompt, most)

    def _read_stored(self, key: str, prompt: Prompt, check: Check | None) -> Answer | None:
        if self._answers is None or not self._settings.cache_days:
            return None
        started = time.monotonic()
        try:
            found = json.loads(self._answers.get(key, self._oldest_day()) or "null")
            value, provider, model = found["value"], str(found["provider"]), str(found["model"])
        except (errors.QuaidError, ValueError, TypeError, KeyError):  # then the model answers again
            return None
        if violations(value, prompt.schema) or (check is not None and check(value)):
            return None
        took_s = time.monotonic() - started
        return Answer(value, provider, model, prompt.label, ModelUsage(), took_s=took_s)

    def _oldest_day(self) -> str:
        return (utc_today() - timedelta(days=self._settings.cache_days)).isoformat()


def utc_today() -> date:
    """Return the day of which usage is counted."""
    return datetime.now(UTC).date()


def _build_request(prompt: Prompt, model: str, text: str) -> Request:
    most = prompt.max_output_tokens + _THINKING_TOKENS[prompt.tier]
    return Request(prompt.tier, model, prompt.label, prompt.instructions, (("user", text),), prompt.schema, most)


def _input_tokens(request: Request) -> int:
    return sum(estimate_tokens(text) for _, text in request.turns) + estimate_tokens(request.system)


def _last_within(limit_s: float, who: str, answers: Iterator[Answer]) -> Answer:
    """Return the last of `answers` that comes within `limit_s` seconds: not every wait for them takes a timeout.

    Raises:
        ModelTimeoutError: none came in time. And what `answers` raises, unless a model failed after one had come.
    """
    given: list[Answer] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            for answer in answers:
                given.append(answer)  # noqa: PERF402 - it must be seen as soon as it is there
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=run, name="quaid-model", daemon=True)
    thread.start()
    thread.join(max(0.0, limit_s))
    if failed and not (given and isinstance(failed[0], errors.ModelError)):
        raise failed[0]
    if not given:
        raise errors.ModelTimeoutError(who, limit_s)
    return given[-1]


class Budget:
    """The caps of one run, of the day and of each call: a call is counted at its maximum before it is made, and at its
    usage afterwards. So two processes cannot both spend the last of a day, and the running call of a killed process is
    counted. Without a `store` a day ends with the budget. Safe to use from several threads.
    """

    def __init__(self, settings: ModelSettings, store: UsageStore | None, *, is_run: bool) -> None:
        self._day_cap = SpendingCap("day", settings.max_tokens_per_day, settings.max_usd_per_day)
        self._run_cap = SpendingCap("run", 0, settings.max_usd_per_run) if is_run else None
        self._store = store
        self._calls: list[ModelUsage] = []
        self._lock = threading.RLock()

    @property
    def spent(self) -> ModelUsage:
        """The usage of all calls within this budget."""
        with self._lock:
            return sum(self._calls, ModelUsage())

    def reserve(self, call: PlannedCall, day: str) -> tuple[int, int]:
        """Count `call` at its estimate, and return its numbers in this budget and in the store of the day.

        Raises:
            BudgetExceededError: a cap would be exceeded; nothing was counted.
            ModelUnavailableError: usage cannot be stored, so that no cap could hold.
        """
        with self._lock:
            for cap in (self._run_cap, None if self._store else self._day_cap):
                if cap is not None:
                    cap.check(call.most, self.spent)
            self._calls.append(call.most)
            number = len(self._calls) - 1
        try:
            return number, self._store.reserve(call, day, self._day_cap) if self._store else 0
        except errors.QuaidError as error:
            self._calls[number] = ModelUsage()
            if isinstance(error, errors.ModelError):
                raise
            problem = f"The usage of models could not be counted, so none was asked ({error})"
            raise errors.ModelUnavailableError(problem) from error

    def settle(self, reservation: tuple[int, int], usage: ModelUsage) -> None:
        """Count the usage of the call. Where it cannot be stored, the estimate stays counted."""
        number, day_id = reservation
        self._calls[number] = usage
        with suppress(errors.QuaidError):
            if self._store is not None:
                self._store.settle(day_id, usage)
