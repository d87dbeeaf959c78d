"""Standing instructions are told from habits."""

import pytest

from quaid.text.instructions import is_instruction


@pytest.mark.parametrize("text", [
    "Always format dates as Month Day, Year when I ask about timelines.",
    "Thanks! From now on, answer in metric units.",
    "Please never use emoji.",
    "Whenever I ask about money, show the tax.",
    "Antworte immer auf Deutsch.",
    "Ab jetzt bitte ohne Fachwörter.",
    "Réponds toujours en français.",
    "A partir de ahora usa euros.",
    "Usa sempre o sistema métrico.",
    "以后请用中文回答。",
    "今後は敬語で答えてください。",
])  # fmt: skip
def test_an_instruction_is_recognised(text):
    assert is_instruction(text)


@pytest.mark.parametrize("text", [
    "I always wanted a dog.",
    "She never called back.",
    "We have always lived here.",
    "Ich gehe immer zu Fuß.",
    "Je bois toujours du thé.",
    "It rained, as always.",
    "When does the shop open?",
])  # fmt: skip
def test_a_habit_is_none(text):
    assert not is_instruction(text)
