"""Numbers of cards and accounts, which a person may want to remember: looked for only where its owner says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quaid.redaction.secret_values import Span

_CARD = re.compile(r"(?<![\w.-])[3-6]\d{3}(?:[ -]?\d{2,6}){2,4}(?![\w-])")
_CVV = re.compile(r"(?<![a-z])(?:cvv|cvc)2?\s{0,3}(?:is|:|=)?\s{0,3}(?P<number>\d{3,4})(?!\d)", re.IGNORECASE)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}(?![A-Za-z0-9])")


def find_numbers(text: str) -> Iterator[Span]:
    """Card numbers and IBANs whose check digits are right, and the codes on the back of cards."""
    for card in _CARD.finditer(text):
        if _is_card(re.sub(r"\D", "", card[0])):
            yield Span(*card.span(), "card-number")
    for code in _CVV.finditer(text):
        yield Span(*code.span("number"), "card-code")
    for iban in _IBAN.finditer(text):
        if _is_iban(iban[0].replace(" ", "")):
            yield Span(*iban.span(), "iban")


def _is_card(digits: str) -> bool:
    """Luhn's check, over as many digits as cards have."""
    doubled = (sum(divmod(int(digit) * (1 + place % 2), 10)) for place, digit in enumerate(reversed(digits)))
    return 14 <= len(digits) <= 19 and sum(doubled) % 10 == 0


def _is_iban(iban: str) -> bool:
    return 15 <= len(iban) <= 34 and int("".join(str(int(sign, 36)) for sign in iban[4:] + iban[:4])) % 97 == 1
