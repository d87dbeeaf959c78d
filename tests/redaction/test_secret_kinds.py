"""Which kinds of secrets the gate finds, in the wordings that it was tuned on and in others, and what stays."""

from __future__ import annotations

import random
import uuid

import secret_numbers
from matrices import for_each
from secret_kinds import CARDS, HARMLESS, SECRETS
from secret_kinds_held_out import CARDS_HELD_OUT, HARMLESS_HELD_OUT, HELD_OUT

from quaid import redaction
from quaid.config import load_settings
from quaid.redaction import admit, name_hints

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


@for_each("text", HARMLESS)
def test_what_is_harmless_stays(text):
    assert admit(text).text == text


def test_what_is_harmless_in_other_wordings_stays():
    assert len([text for text in HARMLESS_HELD_OUT if admit(text).text != text]) <= 1


def test_numbers_of_cards_and_accounts_are_secrets():
    assert found([*CARDS, *CARDS_HELD_OUT]) == []


def test_numbers_and_keys_that_were_cut_are_found():
    assert found(secret_numbers.TUNED) == []
    assert len(found(secret_numbers.HELD_OUT)) <= (1 - MIN_SHARE) * len(secret_numbers.HELD_OUT)


@for_each("text", secret_numbers.HARMLESS)
def test_a_number_that_is_no_secret_stays(text):
    assert admit(text).text == text


def test_other_numbers_that_are_no_secrets_stay():
    assert [text for text in secret_numbers.HARMLESS_HELD_OUT if admit(text).text != text] == []


ORDINARY = {
    "uuid": lambda draw: str(uuid.UUID(int=draw.getrandbits(128))),
    "hash": lambda draw: f"{draw.getrandbits(160):040x}",
    "digest": lambda draw: f"{draw.getrandbits(256):064x}",
    "book": lambda draw: f"978{draw.randrange(10**10):010}",
    "article": lambda draw: f"40{draw.randrange(10**11):011}",
    "milliseconds": lambda draw: str(draw.randrange(10**12, 2 * 10**12)),
    "microseconds": lambda draw: str(draw.randrange(10**15, 2 * 10**15)),
    "telephone": lambda draw: f"+49 {draw.randrange(10, 999)} {draw.randrange(10**6, 10**8)}",
    "parcel": lambda draw: f"1Z{draw.getrandbits(80):016X}",
    "decimal": lambda draw: repr(draw.random()),
    "order": lambda draw: f"{draw.randrange(1000)}-{draw.randrange(10**7):07}-{draw.randrange(10**7):07}",
}


@for_each("name", ORDINARY)
def test_ordinary_numbers_are_no_cards_or_accounts(name):
    draw = random.Random(name)
    texts = [f"It is {ORDINARY[name](draw)}, as said." for _ in range(500)]
    assert [text for text in texts if admit(text).text != text] == []


def test_a_number_that_was_taken_out_does_not_give_its_name_to_the_next():
    text = "My card is 4111 1111 1111 1111, my SSN is 536-22-8145 ISBN 9783161484100, order 1234567890"
    assert admit(text).text == (
        "My card is [redacted: card-number], my SSN is [redacted: national-id] ISBN 9783161484100, order 1234567890"
    )


def test_an_owner_can_keep_numbers(monkeypatch, tmp_path):
    monkeypatch.setattr(name_hints, "_wanted", set())
    (tmp_path / "quaid.toml").write_text("[capture]\nredact_numbers = false\n")
    assert found(CARDS) == []
    load_settings(tmp_path)
    assert len(found(CARDS)) == len(CARDS)
    (tmp_path / "quaid.toml").write_text("")
    load_settings(tmp_path)  # another vault in the same process, whose owner has said nothing
    assert found(CARDS) == []


def test_a_secret_is_told_in_the_turn_after_the_question():
    assert admit("swordfish", after="What is the password?").text == "[redacted: password]"
    assert admit("4821", after="And the PIN, please?").text == "[redacted: pin]"
    assert admit("4 8 2 1", after="What's the PIN?").text == "[redacted: pin]"
    for answer in ("no", "I forgot it", "later", "Done, see PR-4821"):
        assert admit(answer, after="Can you reset the password?").text == answer


def test_what_stands_under_a_name_is_told_of_it():
    assert redaction.admit_all({"password": "swordfish", "user": "maya"}) == (
        {"password": "[redacted: password]", "user": "maya"},
        ("password",),
    )
