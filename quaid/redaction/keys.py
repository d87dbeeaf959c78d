"""Secrets by their form alone: keys that machines make, phrases of wallets, numbers of cards, accounts and persons.

The detector of `detector` does not know these, or knows them only unbroken. A key that was wrapped over lines, or put
together from strings, is looked for with its parts joined; one in base64 in what that says.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from quaid.redaction.secret_values import Span, is_placeholder

_BASE58 = "1-9A-HJ-NP-Za-km-z"
_KEYS = {
    "aws-access-key": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "anthropic-key": r"sk-ant-[\w-]{20,}",
    # The detector knows these, but only with the right checksum: one with a slip of the pen is a secret all the same.
    "openai-key": r"sk-(?:(?:proj|svcacct|admin|None)-[\w-]{20,}|[A-Za-z0-9]{32,})",
    "github-pat": r"gh[pousr]_[A-Za-z0-9]{30,}",
    "gitlab-pat": r"gl(?:pat|ptt|dt|rt|cbt|soat)-[\w-]{20,}",
    "slack-token": r"xox[abeoprs]-[\w-]{10,}",
    "huggingface-token": r"hf_[A-Za-z0-9]{30,}",
    "npm-token": r"npm_[A-Za-z0-9]{30,}",
    "stripe-key": r"(?:(?:sk|rk)_(?:live|test)|whsec)_[A-Za-z0-9+/=]{16,}",
    "google-oauth": r"(?:GOCSPX-|ya29\.)[\w-]{20,}",
    "mailgun-key": r"key-[0-9a-f]{32}(?![A-Za-z0-9])",
    "mailchimp-key": r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])",
    "discord-webhook": r"(?<=/webhooks/)\d{15,20}/[\w-]{60,}",
    "discord-token": r"[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,45}(?![\w-])",
    "telegram-token": r"\d{8,10}:AA[\w-]{30,}",
    "azure-secret": r"[A-Za-z0-9_~.]{3}\dQ~[\w.~-]{31,34}",
    "notion-key": r"(?:ntn|secret)_[A-Za-z0-9]{40,}",
    "hubspot-key": r"pat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "mapbox-key": r"sk\.eyJ[\w-]{20,}\.[\w-]{20,}",
    "new-relic-key": r"NRAK-[A-Z0-9]{27}",
    "password-hash": r"\$(?:1|2[abxy]|5|6|7|y|gy|apr1|md5|sha1|argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,10})\$[\w./$=,+-]{20,}"
    r"|(?:pbkdf2_\w{3,8}|scrypt|argon2|bcrypt\w{0,8})[$:][\w:$]{1,24}\$[\w./$=,+-]{20,}|\{S?SHA\d{0,3}\}[\w+/=]{20,}",
    "wallet-key": rf"[xyztuv]prv[{_BASE58}]{{70,}}|(?:5[{_BASE58}]{{50}}|[KL][{_BASE58}]{{51}})(?![A-Za-z0-9])"
    r"|S[A-D][A-Z2-7]{54}(?![A-Za-z0-9])",
    "licence-key": r"(?<!-)(?=[A-Z-]*\d)(?=[\d-]*[A-Z])(?:[A-Z0-9]{5}-){4}[A-Z0-9]{5}(?![\w-])",
    "api-key": r"(?:pscale_(?:tkn|pw)_|nf[pc]_|tvly-|sntry[su]_|fo1_)[\w=.-]{24,}"
    r"|pk_\d{6,10}_[A-Z0-9]{32}|sk_[0-9a-f]{48}",
}
_KEY = re.compile("(?<![A-Za-z0-9$])(?:" + "|".join(f"(?P<k{n}>{form})" for n, form in enumerate(_KEYS.values())) + ")")
_KINDS_OF_KEYS = dict(zip((f"k{number}" for number in range(len(_KEYS))), _KEYS, strict=True))
_LONG_RUN = re.compile(r"(?<![\w~.:/+=$,{}-])[\w~.:/+=$,{}-]{20,}")
"""A run that can be a key: nothing shorter is one. What is between the runs need not be looked at."""

_BLOCK_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_LINES = re.compile(r"(?:\s{1,3}[>| \t]{0,8}[A-Za-z0-9+/=]{8,100}(?=\s|\Z))*")
_ROW = r"(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70})"
_NEXT_ROW = r"(?:\r?\n[ \t>|]{0,8}| )"
_ROWS = re.compile(
    r"-----(?P<mark>BEGIN|END) (?P<of>[A-Z0-9 ]{1,40})-----"
    rf"|(?<![\w+/=-])(?P<rows>{_ROW}(?:{_NEXT_ROW}{_ROW})*)(?P<last>{_NEXT_ROW}[A-Za-z0-9+/]{{4,70}}={{0,2}})?(?![\w+/=-])"
)
_KEY_BYTES = re.compile(r"MII.{3}IBA(?:AK|DAN)|MHcCAQEE|MIGkAgEBBD|MIGHAgEAMBMG|MC4CAQAwBQYDK2Vw|b3BlbnNzaC1rZXktdjE")
"""The beginnings of private keys in base64."""
_IS_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[^\d+/=]*[\d+/=]")

_BEGINNING = re.compile(
    r"(?<![A-Za-z0-9])(?:A(?:KIA|SIA)|sk-(?:ant|proj|or)-|(?:gh[pousr]|github_pat|hf|npm|gsk|whsec)_|gl(?:pat|dt|rt)-|xox[abeoprs]-"
    r"|[sr]k_(?:live|test)_|AIza|SG\.|GOCSPX-|dop_v1_|shpat_|pypi-|dckr_pat_|glsa_|hvs\.|lin_api_|eyJ)"
)
"""The beginning of a key that may go on in the next line."""
_BREAK = r"(?:\\?\r?\n[ \t>|]*|[\"'`]\s{0,3}(?:\+|\.|\\)?\s{0,40}[\"'`])"
_PART = r"[\w./+=-]"
_BROKEN = re.compile(rf"{_PART}{{6,160}}(?:{_BREAK}{_PART}{{4,160}}){{1,8}}")
_BREAKS = re.compile(_BREAK)
_MIN_KEY = 20

_BASE64 = re.compile(r"(?<![\w+/-])[A-Za-z0-9+/_-]{16,}={0,2}")
_MAX_DECODED = 2_048
_URLSAFE = str.maketrans("-_", "+/")
_UNPRINTABLE = re.compile(rb"[^\t\n\r -~]")
_IS_MADE = re.compile(r"(?=[^\d]*\d)(?=[\w./+=-]*[A-Za-z])[\w./+=-]{12,}")
_SECRET_IN_BASE64 = re.compile(
    rb"PRIVATE KEY-----|\A[\w.@-]{1,64}:[!-~]{6,64}\Z|(?:pass(?:word|wd)?|secret|token|api_?key)[\"']?\s?[:=]\s?[\"']?[!-~]{6,}",
    re.IGNORECASE,
)


def find_keys(text: str) -> Iterator[Span]:
    """Keys in `text`, also those in parts and those in base64."""
    for run in _LONG_RUN.finditer(text):
        for key in _KEY.finditer(text, run.start(), run.end()):
            if not is_placeholder(key[0]):
                yield Span(key.start(), key.end(), _KINDS_OF_KEYS[str(key.lastgroup)])


def find_blocks(text: str) -> Iterator[Span]:
    """Private keys from BEGIN to END; of one without an END the lines that look like it."""
    last = max((end.end() for end in _BLOCK_END.finditer(text)), default=0)
    position = 0
    while begin := _BLOCK_BEGIN.search(text, position):
        end = _BLOCK_END.search(text, begin.end()) if begin.end() < last else _BLOCK_LINES.match(text, begin.end())
        position = end.end() if end else begin.end()
        yield Span(begin.start(), position, "private-key")


def find_bodies(text: str) -> Iterator[Span]:
    """Yield the rows of private keys whose first and last line are missing. Those of certificates are public."""
    is_public = False
    for found in _ROWS.finditer(text):
        if found["mark"]:
            is_public = found["mark"] == "BEGIN" and "PRIVATE" not in found["of"]
        elif not is_public and _IS_MIXED.match(rows := found["rows"]) and (len(rows) > 70 or _KEY_BYTES.match(rows)):
            yield Span(
                found.start(), found.end("last" if _IS_MIXED.match(found["last"] or "") else "rows"), "private-key"
            )


def find_broken(text: str) -> Iterator[Span]:
    """Keys that go on in the next line or string."""
    for beginning in _BEGINNING.finditer(text):
        broken = _BROKEN.match(text, beginning.start())
        if broken is None:
            continue
        # It takes as few parts as make a key, as the text below does not belong to it, and then those that can only be
        # parts.
        ends = [gap.start() for gap in _BREAKS.finditer(broken[0])] + [len(broken[0])]
        joined, found, position = "", 0, 0
        for number, end in enumerate(ends):
            part = _BREAKS.sub("", broken[0][position:end])
            if found and not _IS_MADE.fullmatch(part):
                break
            joined += part
            position = end
            if found or ((_KEY.match(joined) or _IS_MADE.fullmatch(joined)) and len(joined) >= _MIN_KEY):
                found = end if number else found or end
        if found:
            yield Span(broken.start(), broken.start() + found, "api-key")


def find_encoded(text: str) -> Iterator[Span]:
    """Base64 that says a key, a password or who is who."""
    for run in _BASE64.finditer(text):
        start = run[0][:_MAX_DECODED].rstrip("=").translate(_URLSAFE)
        start = start[: len(start) - (len(start) % 4 == 1)]
        with suppress(ValueError):
            decoded = b64decode(start + "=" * (-len(start) % 4))
            is_text = decoded.isascii() and not _UNPRINTABLE.search(decoded)
            if is_text and (_SECRET_IN_BASE64.search(decoded) or _KEY.search(decoded.decode("ascii"))):
                yield Span(run.start(), run.end(), "base64-secret")


# -- wallets -----------------------------------------------------------------------------------------------------------
# The words that a wallet is restored with: twelve or more of the 2,048 of BIP-39, in a row.

MIN_WORDS = 12
MIN_DISTINCT = 8
"""Words of a phrase are drawn by chance: one that says the same again and again is prose."""
# Words of three to eight letters, numbered or not, in rows of any form.
_PHRASE_ROW = re.compile(
    r"(?<![^\W_])(?:\d{1,2}[.):]?[ \t]*)?[A-Za-z]{3,8}(?:[\s,;|]{1,6}(?:[>*-][ \t]*)?(?:\d{1,2}[.):]?[ \t]*)?[A-Za-z]{3,8}){11,}"
)
_WORD = re.compile(r"[A-Za-z]+")
_NAMED_PHRASE = re.compile(
    r"(?<![a-z])(?:(?:pass|seed|recovery|backup|secret)[ _-]?phrase|mnemonic)(?:\s+(?:is|was)|\s?[:=])\s{1,3}"
    r"(?P<words>[^\W\d_]{2,16}(?:[ -][^\W\d_]{2,16}){2,24})(?=[.!]?\s*(?:\n|\Z))",
    re.IGNORECASE,
)
_IN_SENTENCES = re.compile(
    r"(?<![a-z])(?:the|is|was|are|an?|to|of|in|on|my|your|it|not|be|been|for|with|and|or|that)(?![a-z])", re.IGNORECASE
)


def find_phrases(text: str) -> Iterator[Span]:
    """Phrases that open a wallet or a key: by their words, or assigned to their name."""
    for row in _PHRASE_ROW.finditer(text):
        for is_known, run in groupby(_WORD.finditer(row[0]), lambda word: word[0].lower() in _wallet_words()):
            words = list(run)
            if is_known and len(words) >= MIN_WORDS and len({word[0].lower() for word in words}) >= MIN_DISTINCT:
                yield Span(row.start() + words[0].start(), row.start() + words[-1].end(), "seed-phrase")
    lowered = text.lower()
    if "phrase" in lowered or "mnemonic" in lowered:
        for named in _NAMED_PHRASE.finditer(text):
            if not _IN_SENTENCES.search(named["words"]):
                yield Span(*named.span("words"), "passphrase")


@lru_cache(maxsize=1)
def _wallet_words() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("bip39.txt").read_text("ascii").split())


# -- numbers -----------------------------------------------------------------------------------------------------------
# Without its name a number is a secret only where its form and its check digits leave no doubt. One check digit lets
# every tenth telephone or order number pass, so that most identity numbers need their name before them.

_NUMBER_GAP = r"[ \u00a0\u2007\u2009\u202f-]"
_CARD = re.compile(
    rf"(?<![\w.-])(?:\d{{4}}(?P<gap>{_NUMBER_GAP}?|\.)\d{{4}}(?:(?P=gap)|\r?\n)\d{{4}}(?P=gap)\d{{4}}(?:(?P=gap)\d{{3}})?"
    rf"|3\d{{3}}(?P<wide>{_NUMBER_GAP}?)\d{{6}}(?P=wide)\d{{4,5}})(?!\w|-\w|\.\d)"
)
_ISSUED = re.compile(r"3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|(?:4\d|5[0-8]|2[2-7]|35|6\d|81)\d{14}|62\d{17}")
"""The first digits and the lengths of cards. Old ones of 13 digits are left out: so many digits has the code of a book."""
_CVV = re.compile(r"(?<![a-z])(?:cvv|cvc)2?\s{0,3}(?:is|:|=)?\s{0,3}(?P<number>\d{3,4})(?!\d)", re.IGNORECASE)
_IBAN = re.compile(rf"(?<![A-Za-z0-9])(?<!\w-)[A-Za-z]{{2}}\d\d(?:(?:{_NUMBER_GAP}|\r?\n)?[A-Za-z0-9]){{11,29}}")
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
    rf"|(?P<french>[12](?:{_NUMBER_GAP}?\d\d){{3}}(?:{_NUMBER_GAP}?\d{{3}}){{2}}{_NUMBER_GAP}?\d\d))(?![\w-])",
    re.IGNORECASE,
)
_ID_NAMES = (
    r"ssn|social(?=\s(?:security|is\s\d|number|insurance))|national\sinsurance|ni\snumber|(?-i:NINO|NIE|NIF|NIR)|dni|bsn|cpf"
    r"|burgerservicen|steuer-?\s?id|steuer-?n|idnr|insee|s[ée]cu(?:rit[ée])?(?!\w)|codice\sfiscale|pesel|person-?n(?:umme|r)|aadhaa?r"
    r"|f[øo]dselsn|cpr-?n|henkilötunnus|tax\s(?:id|number)|身份证|주민등록번호|マイナンバー"
)
_NAMED_ID = re.compile(
    rf"(?<![^\W_])(?:{_ID_NAMES})[^\d\n.,!?;\u25a1]{{0,40}}?(?<![^\W_])(?<!\+)(?P<number>(?!(?:19|20)\d\d-\d)(?:[A-Z]{{1,2}}{_NUMBER_GAP}?\d(?:{_NUMBER_GAP}?\d){{5,7}}"
    rf"(?:{_NUMBER_GAP}?[A-Z])?|\d{{8}}{_NUMBER_GAP}?[A-Z]|\d(?:{_NUMBER_GAP}?\d){{8,17}}[A-Z]?))(?!\w|-\w)",
    re.IGNORECASE,
)


def find_numbers(text: str) -> Iterator[Span]:
    """Yield the numbers of cards, accounts and persons in `text`, in no order."""
    for card in _CARD.finditer(text):
        digits = re.sub(r"\D", "", card[0])
        doubled = (sum(divmod(int(digit) * (1 + place % 2), 10)) for place, digit in enumerate(reversed(digits)))
        if _ISSUED.fullmatch(digits) and sum(doubled) % 10 == 0:
            yield Span(*card.span(), "card-number")
    for code in _CVV.finditer(text):
        yield Span(*code.span("number"), "card-code")
    for iban in _IBAN.finditer(text):
        # What follows an IBAN may look like more of it: its country says how long it is.
        signs = list(re.finditer("[A-Za-z0-9]", iban[0]))
        length = _IBAN_LENGTHS.get(iban[0][:2].upper(), 0)
        if not 0 < length <= len(signs) or _GOES_ON.match(iban[0], end := signs[length - 1].end()):
            continue
        if int("".join(str(int(sign[0], 36)) for sign in (*signs[4:length], *signs[:4]))) % 97 == 1:
            yield Span(iban.start(), iban.start() + end, "iban")
    for number in _IDS.finditer(text):
        digits = re.sub(r"\D", "", number["french"] or "")
        if not digits or (0 < int(digits[3:5]) <= 12 and (int(digits[:-2]) + int(digits[-2:])) % 97 == 0):
            yield Span(*number.span(), "national-id")
    for number in _NAMED_ID.finditer(text):
        yield Span(*number.span("number"), "national-id")
