"""Keys that machines make, by their form: what the detector of `detector` does not know or knows only unbroken.

A key that was wrapped over lines, or put together from strings, is looked for with its parts joined; one in base64 in
what that says.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator

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
        if broken is not None and (end := _end_of_broken(broken)):
            yield Span(beginning.start(), end, "api-key")


def _end_of_broken(broken: re.Match[str]) -> int:
    """Return where a broken key ends, its start if it is not a key.

    It takes as few parts as make a key, as the text below does not belong to it, and then those that can only be parts.
    """
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
    return broken.start() + found


def find_encoded(text: str) -> Iterator[Span]:
    """Base64 that says a key, a password or who is who."""
    for run in _BASE64.finditer(text):
        decoded = _decoded(run[0])
        if decoded is not None and (_SECRET_IN_BASE64.search(decoded) or _KEY.search(decoded.decode("ascii"))):
            yield Span(run.start(), run.end(), "base64-secret")


def _decoded(run: str) -> bytes | None:
    """Return the beginning of what base64 encodes; None if that is not text."""
    start = run[:_MAX_DECODED].rstrip("=")
    start = start.translate(_URLSAFE)[: len(start) - (len(start) % 4 == 1)]
    try:
        decoded = b64decode(start + "=" * (-len(start) % 4))
    except (binascii.Error, ValueError):
        return None
    return decoded if decoded and decoded.isascii() and not _UNPRINTABLE.search(decoded) else None
