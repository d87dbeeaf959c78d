"""What secrets look like in what people say: passwords in sentences, assignments, addresses and on command lines, and
the few keys that the detector of `gate` does not know.

A detector knows the keys of hundreds of services, but it reads code: one line, quotes, entropy. A person writes `my
password is hunter2`. Each pattern has bounds, so that no text takes long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """A secret in a text, from `start` up to `end`."""

    start: int
    end: int
    kind: str


# Keys

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
    "api-key": r"(?:pscale_(?:tkn|pw)_|nf[pc]_|tvly-|sntry[su]_|fo1_)[\w=.-]{24,}"
    r"|pk_\d{6,10}_[A-Z0-9]{32}|sk_[0-9a-f]{48}",
}
_KEY = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(f"(?P<k{n}>{form})" for n, form in enumerate(_KEYS.values())) + ")")
_KINDS_OF_KEYS = dict(zip((f"k{number}" for number in range(len(_KEYS))), _KEYS, strict=True))
_LONG_RUN = re.compile(r"(?<![\w~.:/+=-])[\w~.:/+=-]{20,}")
"""Where a key can be: nothing shorter is one. What is between the runs need not be looked at."""

_BLOCK_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_LINES = re.compile(r"(?:\s{1,3}[>| \t]{0,8}[A-Za-z0-9+/=]{8,100}(?=\s|\Z))*")

# Words that a secret is said with

_NAME = re.compile(
    r"(?P<password>pass(?:[ _-]?(?:word|phrase|code)|wd|wort)|(?<![a-z])(?:pwd|pw|pass)"
    r"|kennwort|contrase[nñ]a|mot de passe|(?:wpa[23]?|wi-?fi|network)[ _-]?key)"
    r"|(?P<pin>(?<![a-z])pin(?:[ _-]?(?:code|number))?(?![a-z]))"
    r"|(?P<key>(?:api|access|auth|private|secret|encryption|signing|master|account|service|storage|shared|app)[ _-]?key"
    r"|(?<![a-z])(?:psk|sig)(?![a-z])|secret|token|signature)",
    re.IGNORECASE,
)
_NAME_HINTS = ("pass", "pw", "kennwort", "contrase", "pin", "psk", "sig", "secret", "token", "key")
_VALUE = (
    r"""(?:"(?P<double>[^"\n]{3,512})"|'(?P<single>[^'\n]{3,512})'|`(?P<ticked>[^`\n]{3,512})`|[“„«](?P<curly>[^“”„«»\n]{3,512})[”“»]"""
    r"""|(?P<bare>(?:(?!&\w{1,30}=)[^\s"'`“”„«»<>,;|]){3,512}))"""
)
_FOR = r"(?:\s+(?:for|to|of|on|at|in|from|für|zum|zur|von|de|para|pour)\s+[^\n.:=?!,;]{1,60}?)?"
_IS = (
    r"(?:['’]s|\s+(?:is|was|are|ist|war|lautet|es|est|equals|remains|(?:(?:(?:has|have|had) been|was|is|got) )?"  # noqa: RUF001
    r"(?:set|changed|reset|updated) to|(?:will|should|would|can|might|may|could) be|used to be))"
    r"(?:\s+(?:now|still|just|simply|always|currently|again|actually|probably|called|literally)){0,2}"
)
_FENCE = r"(?:`{3}\w{0,10}\n\s{0,8})?"
_ASSIGNED = re.compile(
    r"(?:[_-](?:prod|dev|test|live|staging|value|old|new|main)|[_-]?\d{1,2})?[\"'`\]}]{0,3}"
    r"(?P<sign>\s{0,12}(?::\s{0,3}(?:str(?:ing)?|SecretStr)\s{0,3}=|=>|:=|={2,3}(?=\s{0,3}[\"'])|=(?!=)|:|→)|>(?=[^\s=])"
    r"|\s[–—-]\s|,?\s{1,24}[\"']?value[\"']?\s{0,3}[:=]|,(?=\s{0,3}[\"']))"  # noqa: RUF001
    rf"[_\s]{{0,12}}{_FENCE}{_VALUE}",
    re.IGNORECASE,
)
_TOLD = re.compile(rf"[\"'`”_]{{0,2}}{_FOR}{_IS}[\s:=]{{1,5}}{_FENCE}{_VALUE}", re.IGNORECASE)
_STRONG = r"""["'“„«`(]?(?P<bare>(?=[^\s]{0,64}[\d!@#$%^&*+=~])[^\s"'`“”„«»<>,;|]{5,128})"""
# A value that can hardly be a word may come some words later: `the password I use everywhere is hunter2`.
_SOON = re.compile(
    rf"s?[\"'`”_]{{0,2}}(?P<between>(?:[^\S\n]+[^\W\d_][^\W\d_'’-]*|\s?\([^()\n]{{1,40}}\)|[^\S\n]\u25a1+){{0,7}}?)(?P<point>[,:]?)\s+{_STRONG}"  # noqa: RUF001
)
_NEXT = re.compile(rf"[\"'`”]?(?:\s?,|\s+(?:and|or|und|oder|then|later|before that))\s+{_STRONG}")
_TELLING = re.compile(
    r"(?:is|was|were|are|be|it['’]s|from|to|as|with|using|used?|typed?|entered|enter|tried|try|chose|picked|got|says?|said|now|still|just)\Z",  # noqa: RUF001
    re.IGNORECASE,
)
# `hunter2 is my password`
_BEFORE = re.compile(
    rf"(?<![^\s(\"'`“]){_VALUE}\s{{0,3}}[,.]?\s{{1,3}}(?:is|was|as|for|that['’]s|which is)\s+"  # noqa: RUF001
    r"(?:(?:my|the|our|his|her|their|your|a|all|both|every)\s+){1,2}(?:[\w-]{1,20}\s+){0,3}\Z",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"(?<![a-z])(?:(?:pass|seed|recovery|backup|secret)[ _-]?phrase|mnemonic)(?:\s+(?:is|was)|\s?[:=])\s{1,3}"
    r"(?P<words>[^\W\d_]{2,16}(?:[ -][^\W\d_]{2,16}){2,24})(?=[.!]?\s*(?:\n|\Z))",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<![a-z])(?:log ?in|user(?:name)?|account)\W{1,4}\S{1,80}?\W{1,5}\Z", re.IGNORECASE)
_PAIR = re.compile(
    r"(?<![a-z])(?:creds?|credentials|log-?ins?|user(?:name)?\s?(?:/|and|&|\+)\s?pass(?:word)?)(?:\s+(?:for|to)\s[^\n.:=?!,;]{1,40}?)?"
    rf"\s{{0,3}}(?:is|are|was|were|[:=-])\s{{1,3}}[\w.@+-]{{1,64}}\s{{0,3}}[/:|,]\s{{0,3}}{_VALUE}",
    re.IGNORECASE,
)
_PAIR_HINTS = ("cred", "login", "log-in", "user")

# Forms that machines give them

_ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}://[^\s/:@\"'<>]{0,100}:(?P<bare>[^\s/\"'<>]{1,256})@(?=[\w\[.$%{-])",
    re.IGNORECASE,
)
_AUTHORIZED = re.compile(
    r"(?:authorization|x-api-key|x-auth-token)[\"']{0,2}\s{0,5}[:=]\s{0,5}[\"']?"
    r"(?:(?P<scheme>basic|bearer|token|digest|apikey|bot)\s{1,3})?(?P<bare>[^\s\"'<>,;]{8,4096})"
    r"|(?<![a-z])bearer\s{1,3}(?P<alone>[\w.~+/=-]{16,4096})",
    re.IGNORECASE,
)
_COMMANDED = re.compile(
    r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{1,3}[\"']?(?!\d+:)[^\s:\"']{1,100}:(?P<user>[^\s\"']{2,256})"
    r"|--(?:\w{1,20}-)?(?:password|passwd|pass|passphrase|token|secret|api-?key)[ =]{1,3}"
    r"(?:\"(?P<double>[^\"\n]{2,256})\"|'(?P<single>[^'\n]{2,256})'|(?P<bare>[^\s\"'|;&-][^\s\"'|;&]{2,256}))"
    r"|(?<!\w)(?:mysql\w{0,6}|mariadb|sshpass)[^\n|;]{0,120}?\s-p ?[\"']?(?P<mysql>[^\s\"'|;-][^\s\"'|;]{2,256})"
    r"|(?:identified\s{1,3}by|with\s{1,3}password)\s{1,3}'(?P<sql>[^'\n]{2,256})'",
    re.IGNORECASE,
)

# What is none

# Written in the place of a secret: a variable, a row of stars, `your-password`.
_STAND_IN = re.compile(
    r"""0x[0-9a-f]+
    |\$\{?[A-Z_][A-Z0-9_]*\}?|\$\{.*|\$\(.*|\$[a-z_]+|\{.*|%\(?\w+\)?[s%]?|[*•x.X_#?-]+|\[[\w .:-]*\]?|\(.*|\.{2,}.*
    |(?:(?:your|my|the|some|new|old|this|example|dummy|db|user)?[-_ ]?
        (?:pass(?:word|wd|phrase|code)?|pwd|secret|token|pin|(?:api)?[-_ ]?key)(?:[-_ ]?here)?)
    |.*(?:your[-_]|[-_]here|placeholder|changeme|\.\.\.).*|(?:.*[-_.])?example(?:[-_.].*)?
    |!(?:vault|env|ref|sub|secret|include|!\w+)|redacted.*|str(?:ing)?|null|none|nil|undefined|true|false|1password""",
    re.IGNORECASE | re.VERBOSE,
)
_IN_CODE = re.compile(r"[a-z_]\w*=.*|[a-z_$][\w$]*(?:\??\.[a-z_$][\w$]*)+|[\w.$]+[(\[].*|.*\(\)|\w+::.*", re.IGNORECASE)
_MEASURE = re.compile(
    r"""\d{1,3}|\d+(?:st|nd|rd|th|s|ms|m|h|d|kb|mb|gb|x|%|\+|[-\u2011]?(?:char|digit|day|hour|minute|month|year|word|bit|factor|step)\w*)
    |\d{4}-\d\d(?:-\d\d.*)?|\d{1,2}:\d\d.*|v\d[\d.]*|\w+://.*|[~.]{0,2}/.*|\S+\.(?:py|js|ts|md|txt|json|ya?ml|toml|env|com|org|net|io|html?|pem)
    |\w+v\d|(?:sha|md|bcrypt|argon|pbkdf|oauth|base|utf|aes|rsa|rc|[hre]s|ipv|http|f|web|win|python)-?\d\w{0,4}|2fa|mfa|\w+_id""",
    re.IGNORECASE | re.VERBOSE,
)
"""A number with its unit, a date, a version, an algorithm, a file."""
_PLAIN_WORD = re.compile(r"_*[^\W\d_]+(?:[-/'’&._]+[^\W\d_]+)*_*", re.UNICODE)  # noqa: RUF001
_ENDS_LIKE_HOW = re.compile(r"\w+(?:ed|ing|ly|able|ible|ous|ive|ful|less|ary|ent|ect|ong|ate)", re.IGNORECASE)
# `The password is wrong` tells none.
_SAYS_HOW = re.compile(
    r"""not|no|yes|in|on|at|to|the|an?|my|your|it|its|that|this|what|which|same|old|new|weak|secure|safe|long|short|empty
    |blank|(?:in)?valid|unique|numbers?|text|bytes|field|any|required|optional|plaintext|cleartext|hashed|encrypted|random
    |easy|hard|simple|complex|good|bad|fine|here|there|below|above|lost|n/?a|tb[acd]|todo|gone|stolen|public|private|see
    |unknown|ok(?:ay)?|due|only|also|never|always|still|now|case|enough|default|hidden|bcrypt|hash|input|value|(?:in)?correct
    |wrong|expired|missing""",
    re.IGNORECASE | re.VERBOSE,
)
_APP_PASSWORD = re.compile(r"[a-z]{4}(?: [a-z]{4}){3}")
_PIN = re.compile(r"\d{4,8}")
_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_SYMBOL = re.compile(r"[!@#$%^&*+=~?]")
_END = re.compile(r"\s{1,3}\w{1,20}:|[\s.,;:!?)\]}'\"…]*(?:\n|\Z)|[.!?…]+\s")
_TRAILING = ".,;:)]}…"
_IN_SENTENCES = re.compile(
    r"(?<![a-z])(?:the|is|was|are|an?|to|of|in|on|my|your|it|not|be|been|for|with|and|or|that)(?![a-z])", re.IGNORECASE
)
_NEAR = 120
_LONG_KEY = 20
_LEAST_IN_ENVIRONMENT = 8


def find_forms(text: str) -> Iterator[Span]:
    """The secrets in `text`, in no order; spans may overlap."""
    yield from _find_keys(text)
    if "-----BEGIN" in text:
        yield from _find_blocks(text)
    lowered = text.lower()
    if "phrase" in lowered or "mnemonic" in lowered:
        yield from (Span(*found.span("words"), "passphrase") for found in _PHRASE.finditer(text) if _is_phrase(found))
    if any(hint in lowered for hint in _NAME_HINTS):
        yield from _find_named(text)
    if any(hint in lowered for hint in _PAIR_HINTS):
        yield from (_span(pair, "password") for pair in _PAIR.finditer(text) if _is_password(pair, may_be_word=False))
    if "://" in text:
        yield from (
            _span(found, "password") for found in _ADDRESS.finditer(text) if not _STAND_IN.fullmatch(found["bare"])
        )
    if "authorization" in lowered or "bearer" in lowered or "x-a" in lowered:
        yield from (_span(found, "authorization") for found in _AUTHORIZED.finditer(text) if _is_authorization(found))
    if "-" in text or "'" in text:
        yield from (_span(found, "password") for found in _COMMANDED.finditer(text) if not _is_stand_in(_value(found)))


def _find_keys(text: str) -> Iterator[Span]:
    for run in _LONG_RUN.finditer(text):
        for key in _KEY.finditer(text, run.start(), run.end()):
            yield Span(key.start(), key.end(), _KINDS_OF_KEYS[str(key.lastgroup)])


def _find_blocks(text: str) -> Iterator[Span]:
    """Private keys from BEGIN to END; of one without an END the lines that look like it."""
    last = max((end.end() for end in _BLOCK_END.finditer(text)), default=0)
    position = 0
    while begin := _BLOCK_BEGIN.search(text, position):
        end = _BLOCK_END.search(text, begin.end()) if begin.end() < last else _BLOCK_LINES.match(text, begin.end())
        position = end.end() if end else begin.end()
        yield Span(begin.start(), position, "private-key")


def _find_named(text: str) -> Iterator[Span]:
    for name in _NAME.finditer(text):
        kind = "password" if name["password"] else "pin" if name["pin"] else re.sub("[ _]", "-", name[0].lower())
        found = _said_with(name, text)
        while found:
            yield _span(found, kind)
            found = _NEXT.match(text, _end(found)) if kind == "password" else None
            found = found if found and _can_be(name, found, may_be_word=False) else None


def _said_with(name: re.Match[str], text: str) -> re.Match[str] | None:
    """The value that is told of `name`, if it can be a secret."""
    for form in (_ASSIGNED, _TOLD):
        found = form.match(text, name.end())
        if found and _can_be(name, found, may_be_word=True):
            return found
    found = _SOON.match(text, name.end())
    if found and _tells(name, found) and _can_be(name, found, may_be_word=False):
        return found
    near = max(0, name.start() - _NEAR)
    found = _BEFORE.search(text, near, name.start())
    return found if found and _can_be(name, found, may_be_word=False) else None


def _tells(name: re.Match[str], found: re.Match[str]) -> bool:
    """Whether the words between a name and a value that could be its say that it is. `Pass x2` is an order."""
    between = found["between"].strip()
    tells = _TELLING.search(between) is not None
    if not name["password"]:
        return (tells or not (between or found["point"])) and len(_value(found)) >= _LONG_KEY
    if name[0].lower() == "pass":
        return _LOGIN.search(name.string, max(0, name.start() - _NEAR), name.start()) is not None
    return tells or not between or bool(found["point"])


def _can_be(name: re.Match[str], found: re.Match[str], *, may_be_word: bool) -> bool:
    if name["pin"]:
        return _PIN.fullmatch(_value(found)) is not None
    if name["password"]:
        is_long_name = len(name[0]) > len("pass")
        return _is_password(found, may_be_word=may_be_word, is_long_name=is_long_name)
    sign = found.groupdict().get("sign")
    if sign == "=" and name[0].isupper() and len(_value(found)) >= _LEAST_IN_ENVIRONMENT:
        return not _is_stand_in(_value(found)) and not _IN_CODE.fullmatch(_value(found))
    return _is_opaque(_value(found))


def _is_password(found: re.Match[str], *, may_be_word: bool, is_long_name: bool = True) -> bool:
    """Whether a value can be a password. A plain word is one only where nothing else can stand."""
    value = _value(found)
    is_bare = found.lastgroup == "bare"
    if _is_stand_in(value) or (is_bare and (_IN_CODE.fullmatch(value) or _MEASURE.fullmatch(value))):
        return False
    if " " in value:
        return may_be_word and (is_long_name or _APP_PASSWORD.fullmatch(value) is not None)
    if not _PLAIN_WORD.fullmatch(value):
        return any(map(str.isalnum, value))
    if not is_bare:
        return may_be_word and found.groupdict().get("sign") != "," and not _SAYS_HOW.fullmatch(value)
    says_how = _SAYS_HOW.fullmatch(value) or _ENDS_LIKE_HOW.fullmatch(value) or _NAME.search(value)
    return may_be_word and not says_how and _ends_there(found)


def _ends_there(found: re.Match[str]) -> bool:
    """Whether the sentence or line ends with the value, and an assignment is of the shell's kind, not a program's."""
    sign = found.groupdict().get("sign") or ":"
    return sign == "=" or (sign.strip() != "=" and _END.match(found.string, _end(found)) is not None)


def _is_opaque(value: str) -> bool:
    """Whether a value is no word, name, date or expression: letters and digits mixed, or too long to be a word."""
    if _is_stand_in(value) or _IN_CODE.fullmatch(value) or _MEASURE.fullmatch(value):
        return False
    runs = _RUN.findall(value)
    if len(value) >= 12 and _has_both(value) and _SYMBOL.search(value):
        return True
    return any(_has_both(run) or (len(run) >= 24 and not run.islower() and not run.isupper()) for run in runs)


def _has_both(run: str) -> bool:
    return any(map(str.isdigit, run)) and any(map(str.isalpha, run))


def _is_phrase(found: re.Match[str]) -> bool:
    """Random words, not a sentence."""
    return _IN_SENTENCES.search(found["words"]) is None


def _is_stand_in(value: str) -> bool:
    return _STAND_IN.fullmatch(value) is not None


def _is_authorization(found: re.Match[str]) -> bool:
    value = _value(found)
    return not _is_stand_in(value) and (any(map(str.isdigit, value)) or value.endswith("=") or len(value) > 40)


def _value(found: re.Match[str]) -> str:
    return found.string[found.start(found.lastgroup or 0) : _end(found)]


def _end(found: re.Match[str]) -> int:
    """Where the value ends, without the punctuation of the sentence that it stands in."""
    group = found.lastgroup or 0
    end = found.end(group)
    if group != "bare":
        return end
    value = found[group].rstrip(_TRAILING)
    return found.start(group) + len(value or found[group])


def _span(found: re.Match[str], kind: str) -> Span:
    return Span(found.start(found.lastgroup or 0), _end(found), kind)
