"""Numbers that give access to money or to a person: of cards, of accounts, of identity documents.

Without its name a number is a secret only where its form and its check digits leave no doubt. One check digit lets every
tenth telephone or order number pass, so that most identity numbers need their name before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from quaid.redaction.secret_values import Span

_GAP = r"[ \u00a0\u2007\u2009\u202f-]"
_CARD = re.compile(
    rf"(?<![\w.-])(?:\d{{4}}(?P<gap>{_GAP}?|\.)\d{{4}}(?:(?P=gap)|\r?\n)\d{{4}}(?P=gap)\d{{4}}(?:(?P=gap)\d{{3}})?"
    rf"|3\d{{3}}(?P<wide>{_GAP}?)\d{{6}}(?P=wide)\d{{4,5}})(?!\w|-\w|\.\d)"
)
_ISSUED = re.compile(r"3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|(?:4\d|5[0-8]|2[2-7]|35|6\d|81)\d{14}|62\d{17}")
"""The first digits and the lengths of cards. Old ones of 13 digits are left out: so many digits has the code of a book."""
_CVV = re.compile(r"(?<![a-z])(?:cvv|cvc)2?\s{0,3}(?:is|:|=)?\s{0,3}(?P<number>\d{3,4})(?!\d)", re.IGNORECASE)
_IBAN = re.compile(rf"(?<![A-Za-z0-9])(?<!\w-)[A-Za-z]{{2}}\d\d(?:(?:{_GAP}|\r?\n)?[A-Za-z0-9]){{11,29}}")
_GOES_ON = re.compile(r"-?\w")
_IBAN_LENGTHS = {
    country[:2]: int(country[2:])
    for country in """AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18
    DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30
    KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28
    PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20
    YE30""".split()  # noqa: SIM905 - as the registry lists them
}
_IDS = re.compile(  # of Italy and Brazil by their form, of France with its check digits
    r"(?<![\w.-])(?:[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]|\d{3}\.\d{3}\.\d{3}-\d\d"
    rf"|(?P<french>[12](?:{_GAP}?\d\d){{3}}(?:{_GAP}?\d{{3}}){{2}}{_GAP}?\d\d))(?![\w-])",
    re.IGNORECASE,
)
_ID_NAMES = (
    r"ssn|social(?=\s(?:security|is\s\d|number|insurance))|national\sinsurance|ni\snumber|(?-i:NINO|NIE|NIF|NIR)|dni|bsn|cpf"
    r"|burgerservicen|steuer-?\s?id|steuer-?n|idnr|insee|s[ée]cu(?:rit[ée])?(?!\w)|codice\sfiscale|pesel|person-?n(?:umme|r)|aadhaa?r"
    r"|f[øo]dselsn|cpr-?n|henkilötunnus|tax\s(?:id|number)|身份证|주민등록번호|マイナンバー"
)
_NAMED = re.compile(
    rf"(?<![^\W_])(?:{_ID_NAMES})[^\d\n.,!?;\u25a1]{{0,40}}?(?<![^\W_])(?<!\+)(?P<number>(?!(?:19|20)\d\d-\d)(?:[A-Z]{{1,2}}{_GAP}?\d(?:{_GAP}?\d){{5,7}}"
    rf"(?:{_GAP}?[A-Z])?|\d{{8}}{_GAP}?[A-Z]|\d(?:{_GAP}?\d){{8,17}}[A-Z]?))(?!\w|-\w)",
    re.IGNORECASE,
)


def find_numbers(text: str) -> Iterator[Span]:
    """Yield the numbers of cards, accounts and persons in `text`, in no order."""
    for card in _CARD.finditer(text):
        digits = re.sub(r"\D", "", card[0])
        if _ISSUED.fullmatch(digits) and _passes_luhn(digits):
            yield Span(*card.span(), "card-number")
    for code in _CVV.finditer(text):
        yield Span(*code.span("number"), "card-code")
    for iban in _IBAN.finditer(text):
        if end := _end_of_iban(iban[0]):
            yield Span(iban.start(), iban.start() + end, "iban")
    for number in _IDS.finditer(text):
        digits = re.sub(r"\D", "", number["french"] or "")
        if not digits or (0 < int(digits[3:5]) <= 12 and (int(digits[:-2]) + int(digits[-2:])) % 97 == 0):
            yield Span(*number.span(), "national-id")
    for number in _NAMED.finditer(text):
        yield Span(*number.span("number"), "national-id")


def _passes_luhn(digits: str) -> bool:
    doubled = (sum(divmod(int(digit) * (1 + place % 2), 10)) for place, digit in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


def _end_of_iban(text: str) -> int:
    """Return the end of the IBAN that `text` begins with, as its country writes it; 0 if it is none."""
    signs = list(re.finditer("[A-Za-z0-9]", text))
    length = _IBAN_LENGTHS.get(text[:2].upper(), 0)
    if not 0 < length <= len(signs) or _GOES_ON.match(text, end := signs[length - 1].end()):
        return 0
    return end if int("".join(str(int(sign[0], 36)) for sign in (*signs[4:length], *signs[:4]))) % 97 == 1 else 0
