"""What `quaid install` says a day costs with the models that the user has chosen."""

from __future__ import annotations

import pytest

from quaid.cli.install import describe_cost
from quaid.llm.discovery import Description
from quaid.settings import ModelSettings


def sentence(deep, fast="", provider="anthropic", goes_to="api.anthropic.com", **settings):
    return describe_cost(Description(provider, deep, fast or deep, "", goes_to=goes_to), ModelSettings(**settings))


def test_a_day_is_told_with_its_assumption_and_its_models():
    told = sentence("claude-opus-5-5", "claude-haiku-5-5")
    assert told == (
        "A day (ten conversations of 5,000 tokens and the night after them) costs about $0.63 with claude-opus-5-5 and "
        "claude-haiku-5-5."
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (sentence("opus", "haiku", "claude-code"), "unless a plan of yours covers it"),
        (sentence("qwen3:8b", provider="ollama", goes_to=""), "costs nothing"),
        (sentence("brand-new"), "quaid config models.deep_price IN/OUT"),
        (sentence("brand-new", deep_price="1/2", fast_price="1/2"), "about $0.19 with brand-new."),
    ],
)
def test_it_says_what_is_not_paid_and_what_is_not_known(told, words):
    assert words in told
