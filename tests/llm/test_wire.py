"""Anthropic, OpenAI-compatible services and Ollama, against a real HTTP server that speaks their formats."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest
from model_service import RED, Service, colour
from vaults import PATIENCE_S

from quaid.errors import ModelAnswerError, ModelError, ModelRefusedError, ModelTimeoutError, ModelUnavailableError
from quaid.llm import providers
from quaid.llm.models import _build_request
from quaid.llm.providers import OllamaProvider
from quaid.settings import ModelSettings

PROVIDERS = ("anthropic", "openai", "ollama")
each = pytest.mark.parametrize("provider", PROVIDERS)


def ask(models, text="a red door", tier="fast", **options):
    return models.ask(colour(tier), {"text": text}, **options)


def refused(models, kind=ModelError, **options):
    with pytest.raises(kind) as caught:
        ask(models, **options)
    assert "sk-secret" not in str(caught.value)
    assert len(str(caught.value).split()) >= 6
    return str(caught.value)


@each
def test_an_answer_says_who_gave_it_and_what_it_took(service, provider):
    models = service.models(provider)
    answer = ask(models)
    assert answer.value == RED
    assert (answer.provider, answer.prompt) == (provider, colour().label)
    assert answer.model == ("quick-20260101" if provider == "anthropic" else "quick")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.calls) == (150, 20, 1)
    assert answer.usage.cached_tokens == (0 if provider == "ollama" else 40)
    ask(models, tier="deep")
    assert [body["model"] for body in service.asked] == ["quick", "wise"]


def test_anthropic_is_asked_as_its_version_wants(service):
    ask(service.models("anthropic"))
    path, body, headers = service.requests[0]
    assert path == "/v1/messages"
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("sk-secret", "2026-10-21")
    assert not {"temperature", "top_p", "top_k"} & body.keys()
    (system,) = body["system"]
    assert system["cache_control"] == {"type": "ephemeral"}
    assert "a red door" not in system["text"]
    assert "a red door" in body["messages"][0]["content"]
    assert body["output_config"]["effort"] == "low"
    schema = body["output_config"]["format"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["colour"] == {"type": "string"}
    assert body["max_tokens"] > 500


def test_anthropic_takes_a_token_for_a_key(service):
    ask(service.models("anthropic", environ={"ANTHROPIC_AUTH_TOKEN": "sk-secret"}))
    headers = service.requests[0][2]
    assert headers["authorization"] == "Bearer sk-secret"
    assert "x-api-key" not in headers


def test_openai_is_asked_with_a_strict_schema_and_nothing_newer_models_refuse(service):
    ask(service.models("openai"))
    path, body, headers = service.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer sk-secret"
    assert body.keys() == {"model", "messages", "response_format", "stream"}
    assert body["stream"] is False
    assert body["response_format"]["json_schema"]["strict"] is True
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_ollama_is_given_room_for_the_whole_question(service):
    models = service.models("ollama")
    ask(models)
    path, body, _ = service.requests[0]
    assert path == "/api/chat"
    assert (body["stream"], body["think"], body["keep_alive"]) == (False, False, "5m")
    assert body["format"]["required"] == ["colour", "sure"]
    assert body["options"]["temperature"] == 0
    assert body["options"]["num_ctx"] == 8192
    ask(models, "red " * 10_000)
    assert service.asked[-1]["options"]["num_ctx"] == 16384


@each
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_trouble_that_passes_is_waited_for_and_what_stays_is_said(service, provider, status):
    service.script = [(status, {"error": {"message": "not now"}}, {}), (status, "<html>", {})]
    assert ask(service.models(provider)).value == RED
    assert len(service.requests) == 3
    service.script = [(status, {"error": {"message": "not now"}}, {})] * 9
    assert "not now" in refused(service.models(provider), ModelUnavailableError)
    assert len(service.requests) == 6


def test_retry_after_is_honoured(service):
    date = formatdate(time.time() + 2, usegmt=True)
    for header, min_s in (
        ({"retry-after": date}, 0.5),
        ({"retry-after": "0.4"}, 0.4),
        ({"retry-after-ms": "300", "retry-after": "300"}, 0.3),
    ):
        service.script = [(429, {"error": "slow down"}, header)]
        began = time.monotonic()
        ask(service.models("openai"))
        assert min_s <= time.monotonic() - began < PATIENCE_S


@each
def test_a_retry_after_beyond_the_deadline_is_not_waited_for(service, provider):
    service.script = [(429, {"error": {"message": "slow down"}}, {"retry-after": "300"})]
    began = time.monotonic()
    assert "slow down" in refused(service.models(provider), ModelUnavailableError, deadline_s=2.0)
    assert time.monotonic() - began < PATIENCE_S


def test_a_service_may_say_whether_to_try_again(service):
    service.script = [(500, {"error": "for good"}, {"x-should-retry": "false"})]
    refused(service.models("anthropic"), ModelUnavailableError)
    assert len(service.requests) == 1
    service.script = [(404, {"error": "starting"}, {"x-should-retry": "true"})]
    assert ask(service.models("anthropic")).value == RED


@each
def test_a_silent_service_is_not_waited_for(service, provider):
    service.delay_s = 300.0
    began = time.monotonic()
    refused(service.models(provider), ModelTimeoutError, deadline_s=0.4)
    assert time.monotonic() - began < PATIENCE_S


@each
def test_nobody_there_is_said_soon(service, provider):
    service.close()
    began = time.monotonic()
    assert service.url in refused(service.models(provider), ModelUnavailableError)
    assert time.monotonic() - began < PATIENCE_S


@each
def test_json_is_found_in_what_is_written_around_it(service, provider):
    service.script = [
        'Sure! {"colour": "red", "sure": 4} Hope this helps {really}.',
        '```json\n{"colour": "red", "sure": 4}\n```',
        '<think>{"colour": "blue", "sure": 1}?</think>\n{"colour": "red", "sure": 4}',
        'thought aloud {"colour": "blue", "sure": 0}</think>{"colour": "red", "sure": 4}',
    ]
    for _ in range(4):
        assert ask(service.models(provider)).value == RED
    assert len(service.requests) == 4


@each
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("red, I think", "no JSON object"),
        ('{"colour": "red"', "no JSON object"),
        ('{"colour": "red"}', "'sure' is a required property"),
        ('{"colour": "red", "sure": 9}', "must be 5 or less"),
        ('{"colour": "red", "sure": true}', "must be integer"),
        ('{"colour": "' + "r" * 50 + '", "sure": 1}', "20 characters or fewer"),
        ("", "no JSON object"),
    ],
)
def test_an_answer_that_does_not_fit_is_sent_back_once(service, provider, text, complaint):
    service.script = [text]
    answer = ask(service.models(provider))
    assert answer.value == RED
    assert (answer.usage.calls, answer.usage.output_tokens) == (2, 40)
    turns = [turn for turn in service.asked[1]["messages"] if turn["role"] != "system"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert complaint in turns[2]["content"]
    service.script = [text, text]
    assert complaint in refused(service.models(provider), ModelAnswerError)


UNSAID = {"finish_reason": "stop", "message": {"content": None, "refusal": "I can't help"}}


@pytest.mark.parametrize(("step", "named"), [
    ({"choices": [UNSAID]}, "I can't help"),
    ({"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}, "content_filter"),
    ({"choices": [{"finish_reason": "content_filter: PROHIBITED_CONTENT", "message": {}}]}, "PROHIBITED_CONTENT"),
    ({"choices": [{"finish_reason": "SAFETY", "message": {"content": None}}]}, "SAFETY"),
    ({"choices": []}, "filter"), ({"choices": None, "usage": {}}, "filter"),
    ({"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY"),
    (None, "stop_reason refusal"),
])  # fmt: skip
def test_a_refusal_names_what_has_filtered_and_is_not_repeated(service, step, named):
    provider = "openai" if step else "anthropic"
    service.script = [(200, step, {}) if step else service.stopped("I cannot", "refusal")]
    assert named in refused(service.models(provider), ModelRefusedError)
    assert len(service.requests) == 1


@each
def test_a_filter_before_the_model_is_a_refusal_and_costs_nothing(service, provider, records):
    said = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
    service.script = [(400, {"error": {"code": "content_filter", "message": said}}, {})]
    models = service.models(provider, usage=records)
    assert "content management policy" in refused(models, ModelRefusedError)
    service.script = [(200, {"error": {"code": "content_filter", "message": said}}, {})]
    assert "content management policy" in refused(models, ModelRefusedError)
    assert models.spent.tokens == 0
    assert len(service.requests) == 2


# The form of requests and answers

NOT_IN_THIS_FORM = [
    (400, "Unknown parameter in this context: response_format"),
    (404, "no endpoint supports the requested json_schema"),
    (405, "structured output format is off"),
    (500, "failed to load model vocabulary required for format"),
    (500, "number of repetitions exceeds sane defaults: failed to parse grammar"),
    (501, "JSON schema is not implemented"),
]


@each
@pytest.mark.parametrize(("status", "said"), NOT_IN_THIS_FORM)
def test_an_error_that_names_the_form_leads_to_the_next(service, provider, status, said):
    service.script = [(status, {"error": {"message": said}}, {"x-should-retry": "false"})]
    assert ask(service.models(provider)).value == RED
    first, second = service.asked
    assert first != second


@each
@pytest.mark.parametrize("said", ["see our information page", "your credit balance is too low"])
def test_an_error_that_names_something_else_does_not(service, provider, said):
    service.script = [(402, {"error": {"message": said}}, {})]
    refused(service.models(provider), ModelUnavailableError)
    assert len(service.requests) == 1


@each
@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("said", ["System role not supported", "Developer instruction is not enabled for this model"])
def test_a_model_without_a_system_message_gets_it_with_the_question(service, provider, status, said):
    if provider == "anthropic":
        pytest.skip("its system text is no message")
    service.script = [(status, {"error": said}, {"x-should-retry": "false"})]
    models = service.models(provider)
    assert ask(models).value == RED
    ask(models)
    assert [[turn["role"] for turn in body["messages"]] for body in service.asked] == [
        ["system", "user"],
        ["user"],
        ["user"],
    ]
    assert "Name the colour" in service.asked[1]["messages"][0]["content"]
    assert "a red door" in service.asked[1]["messages"][0]["content"]


@each
@pytest.mark.parametrize("form", ["top", "choice", "text"])
def test_an_error_inside_a_success_is_retried_as_its_code_says(service, provider, form):
    error = {"code": 429, "message": "slow down"}
    body = {"top": {"error": error}, "choice": {"choices": [{"error": error, "message": {"content": ""}}]},
            "text": {"error": "slow down, the model runner has stopped"}}[form]  # fmt: skip
    service.script = [(200, body, {})]
    assert ask(service.models(provider)).value == RED
    assert len(service.requests) == 2
    service.script = [(200, body, {})] * 3
    assert "slow down" in refused(service.models(provider), ModelUnavailableError)
    service.requests.clear()
    service.script = [(200, {"error": {"code": 401, "message": "no such user"}}, {})]
    assert "no such user" in refused(service.models(provider), ModelUnavailableError)
    assert len(service.requests) == 1


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": '{"colour": "blue", "sure": 0}'}]}


@pytest.mark.parametrize("provider", ["openai", "ollama"])
@pytest.mark.parametrize(
    "before",
    [THOUGHT, {"type": "reasoning", "text": '{"colour": "blue", "sure": 0}'}, {"type": "thinking", "text": "{}"}],
)
def test_only_the_text_of_a_message_in_parts_is_the_answer(service, provider, before):
    def parts():
        path, body, _ = service.requests[-1]
        whole = service.wrap(path, body, "")
        message = whole["message"] if provider == "ollama" else whole["choices"][0]["message"]
        message["content"] = [
            before,
            {"type": "text", "text": '{"colour": '},
            {"type": "text", "text": '"red", "sure": 4}'},
        ]
        return 200, whole, {}

    service.script = [parts]
    assert ask(service.models(provider)).value == RED
    assert len(service.requests) == 1


def lines(*pieces):
    return "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)


def choices(text, finish=None):
    return {"model": "quick", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def block(number, **delta):
    return {"type": "content_block_delta", "index": number, "delta": delta}


def said(text, **more):
    return {"model": "quick", "message": {"role": "assistant", "content": text}, "done": bool(more), **more}


HALVES = ('{"colour": "red", ', '"sure": 4}')
STREAMS = {
    "openai": ": keep-alive\n\n"
    + lines(
        choices(""),
        choices(HALVES[0]),
        choices(HALVES[1], "stop"),
        {"model": "quick", "choices": [], "usage": {"prompt_tokens": 150, "completion_tokens": 20}},
    )
    + "data: [DONE]\n\n",
    "ollama": "".join(
        json.dumps(piece) + "\n"
        for piece in (*map(said, HALVES), said("", done_reason="stop", prompt_eval_count=150, eval_count=20))
    ),
    "anthropic": "event: message_start\n"
    + lines(
        {"type": "message_start", "message": {"model": "quick", "content": [], "usage": {"input_tokens": 150}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        block(0, type="thinking_delta", thinking='{"colour": "blue"}'),
        *(block(1, type="text_delta", text=half) for half in HALVES),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ),
}


@each
def test_a_stream_that_nobody_wanted_is_read(service, provider):
    service.script = [(200, STREAMS[provider], {"content-type": "text/event-stream"})]
    answer = ask(service.models(provider))
    assert answer.value == RED
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (150, 20)
    assert len(service.requests) == 1


@pytest.mark.parametrize(("provider", "forms"), [
    ("openai", ["  {}/v1 ", "{}/v1/", "{}/v1/chat/completions", "{}/v1/chat/completions/ "]),
    ("anthropic", ["{}", "{}/v1", "{}/v1/messages ", " {}/v1/"]),
])  # fmt: skip
def test_an_address_may_be_copied_with_more_than_it_needs(service, provider, forms):
    for form in forms:
        assert ask(service.models(provider, url=form.format(service.url))).value == RED


def test_the_query_of_an_address_goes_with_every_request(service, monkeypatch):
    paths = []
    wrap = Service.wrap
    monkeypatch.setattr(
        Service, "wrap", lambda self, path, *rest: (paths.append(path), wrap(self, path.partition("?")[0], *rest))[1]
    )
    url = f"{service.url}/v1/chat/completions?api-version=2026-10-01"
    assert ask(service.models("openai", url=url)).value == RED
    assert paths == ["/v1/chat/completions?api-version=2026-10-01"]


MAX_REPETITION_THRESHOLD = 2_000
"""Of llama.cpp's grammar parser: a rule that repeats anything more often is refused."""
COUNTED = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "format"}
"""What its converter makes repetitions, or long lists of alternatives, of."""


def test_the_schema_of_each_prompt_compiles_in_llama_cpp(service):
    from quaid.llm.prompts import load_prompt
    from quaid.place import data_folder

    def walk(schema):
        yield schema
        for part in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
            yield from walk(part)

    names = [path.stem for path in sorted(data_folder("prompts").glob("*.md"))]
    assert len(names) > 10
    for name in names:
        prompt = load_prompt(name)
        request = _build_request(prompt, "quick", "text")
        sent = OllamaProvider(ModelSettings(), {}).payload(request, "schema")["format"]
        parts = list(walk(sent))
        assert not [part for part in parts if COUNTED & part.keys()], name
        assert len(json.dumps(sent)) < 20_000, name
        assert max(len(part.get("enum", ())) for part in parts) < MAX_REPETITION_THRESHOLD, name
        assert [part["required"] for part in parts if "required" in part] == [
            part["required"] for part in walk(prompt.schema) if "required" in part
        ], "a property that may be missing still may"


@each
@pytest.mark.parametrize(
    "body", ["<html>", "[]", "null", "{}", '{"choices": [5], "content": 5, "message": "x"}', "[" * 100_000]
)
def test_another_format_is_one_clear_sentence(service, provider, body):
    service.script = [(200, body, {})]
    assert "speaks another format" in refused(service.models(provider), ModelAnswerError)


@each
@pytest.mark.parametrize(
    ("status", "word"), [(401, "refused the key in OPENAI_API_KEY"), (403, "refused"), (404, "no model quick")]
)
def test_a_refused_key_and_a_missing_model_are_named(service, provider, status, word):
    service.script = [(status, {"error": {"message": "model or key sk-secret not found"}}, {})]
    sentence = refused(service.models(provider, api_key_env="OPENAI_API_KEY"), ModelUnavailableError)
    assert word in sentence
    if (provider, status) == ("ollama", 404):
        assert "ollama pull quick" in sentence
    assert len(service.requests) == 1


LADDERS = {
    "anthropic": [lambda b: "effort" in b["output_config"], lambda b: b["output_config"].keys() == {"format"},
                  lambda b: b["tool_choice"]["name"] == "answer" and b["tools"][0]["strict"],
                  lambda b: not {"output_config", "tools"} & b.keys()],
    "openai": [lambda b: b["response_format"]["type"] == "json_schema", lambda b: b["response_format"] == {"type": "json_object"},
               lambda b: "response_format" not in b],
    "ollama": [lambda b: isinstance(b["format"], dict), lambda b: b["format"] == "json" and "think" not in b,
               lambda b: "format" not in b],
}  # fmt: skip


@each
def test_a_service_that_knows_less_is_asked_for_less_and_remembered(service, provider):
    ladder = LADDERS[provider]
    for steps in range(len(ladder)):
        providers.UNDERSTOOD.clear()
        service.requests.clear()
        service.script = [(400, {"error": {"message": "Either json_schema or grammar"}}, {})] * steps
        models = service.models(provider)
        assert ask(models).value == RED
        assert [is_it(body) for is_it, body in zip(ladder, service.asked, strict=False)] == [True] * (steps + 1)
        ask(models)
        assert len(service.asked) == steps + 2
        assert ladder[steps](service.asked[-1])
    assert "Its form" in service.asked[-1]["messages"][0]["content"] or provider == "anthropic"


def test_what_one_service_does_not_know_another_may(service):
    service.script = [(400, {"error": "no response_format"}, {})]
    ask(service.models("openai"))
    other = Service()
    ask(other.models("openai"))
    other.close()
    assert [LADDERS["openai"][0](body) for body in (service.asked[-1], other.asked[0])] == [False, True]


@each
@pytest.mark.parametrize(
    "said", ["prompt is too long: 300000 tokens", "the request exceeds the available context size"]
)
def test_a_question_that_is_too_long_is_not_asked_in_another_way(service, provider, said):
    service.script = [(400, {"error": {"message": said}}, {})]
    assert said in refused(service.models(provider), ModelAnswerError)  # a shorter one may be answered
    assert len(service.requests) == 1


def test_a_service_that_counts_nothing_is_estimated(service):
    choice = {"finish_reason": "stop", "message": {"content": json.dumps(RED)}}
    service.script = [(200, {"choices": [choice]}, {})]
    usage = ask(service.models("openai")).usage
    assert usage.input_tokens > 50
    assert usage.output_tokens > 5


def test_an_address_or_a_key_that_is_none_is_an_expected_failure(service):
    for url in ("nonsense", "http://", "ftp://127.0.0.1", "http://[::1"):
        assert refused(service.models("openai", url=url), ModelUnavailableError)
    models = service.models("openai", environ={"OPENAI_API_KEY": "schlüssel"})
    assert "OPENAI_API_KEY" in refused(models, ModelUnavailableError)
    assert service.requests == []


@pytest.mark.parametrize(
    ("host", "reached"), [("127.0.0.1:{port}", True), ("0.0.0.0:{port}", True), ("localhost:x", False)]
)
def test_ollama_host_may_lack_what_an_address_needs(service, host, reached):
    environ = {"OLLAMA_HOST": host.format(port=service.server.server_port)}
    models = service.models("ollama", url="", environ=environ)
    if reached:
        assert ask(models).value == RED
    else:
        refused(models, ModelUnavailableError)
