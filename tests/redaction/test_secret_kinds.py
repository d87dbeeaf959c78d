"""Which kinds of secrets the gate finds, in the wordings that it was tuned on and in others, and what stays."""

from __future__ import annotations

from threading import Event

import pytest
from secret_kinds import CARDS, HARMLESS, SECRETS
from secret_kinds_held_out import CARDS_HELD_OUT, HARMLESS_HELD_OUT, HELD_OUT

from quaid import redaction
from quaid.redaction import admit

MIN_SHARE = 0.93
"""Of what was set aside before the gate was tuned: 0.91 were found at first sight, 0.95 in the end."""


def leaks(place: str, value: str) -> bool:
    """Whether a line of the value is left."""
    kept = admit(place.format(value) if "{" in place else place).text
    return any(line in kept for part in value.split("\n") if len(line := part.strip(' \\"+>,-')) > 2)


def found(rows: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    return [(kind, place) for kind, place, value in rows if leaks(place, value)]


def test_every_kind_is_found():
    assert len({kind for kind, _, _ in SECRETS}) > 104
    assert found(SECRETS) == []


def test_other_wordings_are_found_as_well():
    assert len(found(HELD_OUT)) <= (1 - MIN_SHARE) * len(HELD_OUT)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_stays(text):
    assert admit(text).text == text


def test_what_is_harmless_in_other_wordings_stays():
    assert len([text for text in HARMLESS_HELD_OUT if admit(text).text != text]) <= 1


def test_numbers_of_cards_and_accounts_are_secrets_where_that_is_set(monkeypatch):
    rows = [*CARDS, *CARDS_HELD_OUT]
    assert [kind for kind, _, _ in rows] == [kind for kind, _ in found(rows)]
    monkeypatch.setattr(redaction, "_numbers", Event())
    redaction.look_for_numbers(wanted=True)
    assert found(rows) == []
    for text in ("order 4111 1111 1111 1112", "+49 30 90182000 1234", "ISBN 978-0-306-40615-7", "DE89 is not enough"):
        assert admit(text).text == text


def test_a_secret_is_told_in_the_turn_after_the_question():
    assert admit("swordfish", after="What is the password?").text == "[redacted: password]"
    assert admit("4821", after="And the PIN, please?").text == "[redacted: pin]"
    for answer in ("no", "I forgot it", "later", "Done, see PR-4821"):
        assert admit(answer, after="Can you reset the password?").text == answer


def test_what_stands_under_a_name_is_told_of_it():
    assert redaction.admit_all({"password": "swordfish", "user": "maya"}) == (
        {"password": "[redacted: password]", "user": "maya"},
        ("password",),
    )
