"""The names of secrets, in any language, and the values that sentences assign to them: `my password is hunter2`,
`DB_PASSWORD=…`, `hunter2 is my password`.

Each pattern has bounds, so that no text takes long.
"""

import re
from collections.abc import Iterable, Iterator

from quaid.redaction.name_hints import HINTS
from quaid.redaction.secret_values import (
    APP_PASSWORD,
    CODE,
    ENDS_LIKE_HOW,
    IN_CODE,
    MEASURE,
    PIN,
    PLAIN_WORD,
    SAYS_HOW,
    Span,
    end_of,
    is_made,
    is_opaque,
    is_placeholder,
    is_strong,
    span_of,
    value_of,
)

# Words of these languages change their ends: `пароля`, `lösenordet`, `şifresi`.
_PASSWORDS = (
    r"contrase[nñ]a|contrasenya|mot\s?de\s?passe|code\sd['’]acc[eè]s|palavra-passe|palavra\sde\spasse|senha|clave"
    r"|parol[aăeo](?:\sd['’]\w{3,12})?|parool|wachtwoord|has[lł]o|heslo|lösenord|losenord|adgangskode|kodeord|passord|salasana|[sş]ifre"
    r"|jelsz[oó]|jelszav|lozink|slaptažod|lykilorð|geslo|zaporka|kata\s?sandi|sandi|mật\s?khẩu|mat\s?khau|zugangscode"
    r"|пароль|парол[яюеі]|лозинк|κωδικός|κωδικό|συνθηματικό|كلمة\s(?:السر|المرور)|סיסמ[הא]|ססמ[הא]|पासवर्ड|कूटशब्द|parolă"
)
# Written without spaces, these end where the next word begins.
_UNSPACED = "密码|密碼|口令|通行码|通行碼|パスワード|パスフレーズ|合言葉|비밀\\s?번호|비번|암호|패스워드|รหัสผ่าน|พาสเวิร์ด"
_DOORS = r"(?:front|back|side|main)?\s?(?:door|gate|alarm|entry|entrance|garage|keypad|lock(?:er|box)?|safe|vault|building|lobby)"
_KEYS = (
    r"(?:api|access|auth|private|secret|encryption|signing|master|account|service|storage|shared|preshared|app|deploy"
    r"|subscription|licen[cs]e|product|activation|registration|serial|cd|fernet|django|rails|session|webhook|setup|recovery)[ _-]?key(?:[ _-]?(?:base|hash|data))?"
)

NAME = re.compile(
    rf"(?P<password>(?<!/etc/)pass(?:[ _-]?(?:word|phrase|code)|wd|wort|ord[^\W\d_]{{0,4}})|(?<![a-z])(?:pwd|pw|(?<!/etc/)pass)|(?<=smtp_)pass|(?<=ssh_)pass"
    rf"|kennwort|(?<![^\W\d_])(?:{_PASSWORDS})[^\W\d_]{{0,5}}|{_UNSPACED}|(?:wpa[23]?|wi-?fi|network)[ _-]?key)"
    rf"|(?P<pin>(?<![a-z])pin(?:[ _-]?(?:code|number|kodu))?(?![a-z])|geheimzahl|暗証番号)"
    rf"|(?P<code>(?<![a-z])(?:{_DOORS}\s(?:code|combination)|code\s(?:of|for|to)\s(?:the|my|our)\s{_DOORS}"
    rf"|combination\s(?:of|for|to)\s(?:the|my|our)\s(?:{_DOORS}|(?:bike\s)?lock))(?![a-z]))"
    rf"|(?P<key>{_KEYS}|(?<![a-z])(?:psk|sig|pk|_?auth|php_?sessid|jsessionid|session_?id)(?![a-z])|secret|token"
    r"|signature|master\.key|(?:lizenz|produkt|aktivierungs)-?schl(?:ü|ue)ssel|cl[ée]\sde\s(?:licence|produit))",
    re.IGNORECASE,
)
_ONES = r"\s+(?:is|was|are|ist|war|lautet|heißt|heisst|es|est|è|é|är|είναι|equals|remains"
_SET = (
    r"|(?:(?:(?:has|have|had) been|was|is|got) )?(?:set|changed|reset|updated) to|(?:will|should|would|can|might|may|could)"
    r" be|used to be)"
)
_STILL = r"(?:\s+(?:now|still|just|simply|always|currently|again|actually|probably|called|literally)){0,2}"
IS = rf"(?:['’]s|[\s,]+c['’]est|{_ONES}{_SET}){_STILL}"
IS_ABROAD = rf"(?:\s*(?:是|为|為|는|은|が|は|คือ)|[\s,]+c['’]est|{_ONES}|ė|jest|to(?:\sje)?|je|er|on|este|adalah|là|هي|هو|היא|הוא|है))"
"""After a name that is not an English word: `to` and `on` say there what `is` does here."""
_TELLING = (
    r"is|was|were|are|be|it['’]s|from|to|as|with|using|used?|typed?|entered|enter|tried|try|chose|picked|got|says?|said"
    r"|now|still|just|all|lowercase|capital|ist|lautet|heißt|c['’]est|est|es|è|é|nuova|nueva|nuevo|neu(?:e[sr]?)?|nouveau"
)
TELLS = re.compile(rf"(?:{_TELLING})\Z", re.IGNORECASE)
"""The last word between a name and a value that could be its says that it is."""
TELLS_ABROAD = re.compile(
    rf"(?:{_TELLING}|jest|je|är|er|on|este|adalah|là|είναι|هي|היא|है|такой|это|mój|moje|mitt|min|mea|saya|μου)\Z",
    re.IGNORECASE,
)
IS_ENGLISH = re.compile(r"pass(?!ord)|pwd|pw|wi-?fi|wpa|network", re.IGNORECASE)
UNSPACED = re.compile(_UNSPACED)
ASKS = re.compile(
    r"\b(?:what|which|what['’]?s|enter|type|tell|give|send|need|share|provide|paste|please|was|wie|welches|quel|quelle|cu[aá]l|"
    r"qu[eé]|qual|wat|welk|jakie|jaké|vad|hva|hvad|mikä|nedir|какой|скажи|bitte)\b|什么|是多少|何です|뭐|무엇",
    re.IGNORECASE,
)

_BEFORE_HINT, _BEHIND_HINT = 40, 80
"""The distance that a name may reach around its hint."""


def find_names(text: str) -> list[re.Match[str]]:
    """The names of secrets in `text`, in order. Looked for near their hints only: a search by them is ten times as quick
    as one by all the forms of names.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that is two in lower case moves all behind it
        return list(NAME.finditer(text))
    places = []
    for hint in HINTS:  # not by a pattern, which would take ten times as long
        place = lowered.find(hint)
        while place >= 0:
            places.append(place)
            place = lowered.find(hint, place + len(hint))
    near: list[tuple[int, int]] = []
    for place in sorted(places):
        end = min(len(text), place + _BEHIND_HINT)
        if near and place - _BEFORE_HINT <= near[-1][1]:
            near[-1] = (near[-1][0], end)
        else:
            near.append((max(0, place - _BEFORE_HINT), end))
    return [name for start, end in near for name in NAME.finditer(text, start, end)]


VALUE = (
    r"""(?:"(?P<double>[^"\n]{3,512})"|'(?P<single>[^'\n]{3,512})'|`(?P<ticked>[^`\n]{3,512})`|[“„«](?P<curly>[^“”„«»\n]{3,512})[”“»]"""
    r"""|["'](?P<wrapped>[\w+/.-]{6,160}(?:\r?\n[ \t]{0,12}[\w+/.-]{4,160}){1,4}=*)["']"""
    r"""|(?P<bare>(?:(?!&\w{1,30}=)[^\s"'`“”„«»<>,;|]){3,512}))"""
)
_FOR = r"(?:\s+(?:for|to|of|on|at|in|from|für|zum|zur|von|de|para|pour)\s+[^\n.:=?!,;]{1,60}?)?"
_FENCE = r"(?:`{3}\w{0,10}\n\s{0,8})?"
_ASSIGNED = re.compile(
    r"(?:[_-](?:prod|dev|test|live|staging|value|old|new|main|base|data|b64|raw)|[_-]?\d{1,2})*[\"'`\]})]{0,3}"
    r"(?P<sign>\s{0,12}(?::\s{0,3}(?:str(?:ing)?|SecretStr)\s{0,3}=|=>|:=|={2,3}(?=\s{0,3}[\"'])|=(?!=)|:|：|→)|>(?=[^\s=])"
    r"|\s[–—-]\s|,?\s{1,24}[\"']?value[\"']?\s{0,3}[:=]|,(?=\s{0,3}[\"'])"
    r"|\s{0,3}\{[^{}]{0,400}?(?:\{[^{}]{0,80}\}[^{}]{0,200}?)?\bdefault\s{0,12}=)"
    rf"[_\s]{{0,12}}{_FENCE}{VALUE}",
    re.IGNORECASE,
)
_STATED = re.compile(rf"[\"'`”_]{{0,2}}{_FOR}{IS}[\s:=]{{1,5}}{_FENCE}{VALUE}", re.IGNORECASE)
_STATED_IN_FOREIGN_LANGUAGE = re.compile(
    rf"[\"'`”_]{{0,2}}{_FOR}{IS_ABROAD}(?:[\s:=：]{{1,5}}|(?<=[是为為는은がは])){_FENCE}{VALUE}",
    re.IGNORECASE,
)
STRONG = r"""["'“„«`(]?(?P<bare>(?=[^\s]{0,64}[\d!@#$%^&*+=~])[^\s"'`“”„«»<>,;|]{5,128})"""
# A value that can hardly be a word may come some words later: `the password I use everywhere is hunter2`.
_SOON = re.compile(
    rf"s?[\"'`”_]{{0,2}}(?P<between>(?:[^\S\n]+[^\W\d_][^\W\d_'’-]*|\s?\([^()\n]{{1,40}}\)|[^\S\n]\u25a1+){{0,7}}?)(?P<point>[,:]?)\s+{STRONG}"
)
_NEXT = re.compile(rf"[\"'`”]?(?:\s?,|\s+(?:and|or|und|oder|then|later|before that))\s+{STRONG}")
# `hunter2 is my password`
_REST = re.compile(r"[ \t]*\r?\n[ \t>|]{0,12}(?P<rest>[\w+/.-]{3,160}=*)(?=[\s\"'`,;.!?)]|\Z)")
"""What may be the rest of a value that was wrapped into the next line."""
_BEFORE = re.compile(
    rf"(?<![^\s(\"'`“]){VALUE}\s{{0,3}}[,.]?\s{{1,3}}(?:is|was|as|for|that['’]s|which is)\s+"
    r"(?:(?:my|the|our|his|her|their|your|a|all|both|every)\s+){1,2}(?:[\w-]{1,20}\s+){0,3}\Z",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<![a-z])(?:log ?in|user(?:name)?|account)[^\w\n]{1,4}\S{1,80}?[^\w\n]{1,5}\Z", re.IGNORECASE)
PAIR = re.compile(
    r"(?<![a-z])(?:creds?|credentials|log-?ins?|user(?:name)?\s?(?:/|and|&|\+)\s?pass(?:word)?)(?:\s+(?:for|to)\s[^\n.:=?!,;]{1,40}?)?"
    rf"\s{{0,3}}(?:is|are|was|were|[:=-])\s{{1,3}}[\w.@+-]{{1,64}}\s{{0,3}}[/:|,]\s{{0,3}}{VALUE}",
    re.IGNORECASE,
)
_END = re.compile(r"\s{1,3}\w{1,20}:|[\s.,;:!?)\]}'\"…]*(?:\n|\Z)|[.!?…]+\s")
_NEAR = 120
_ASCII = re.compile(r"[!-~]*")
_QUOTED = re.compile(r"[\"'][\w.-]{0,80}\Z")
_LONG_KEY = 20
_MIN_IN_ENVIRONMENT = 8


def find_named(names: Iterable[re.Match[str]], text: str) -> Iterator[Span]:
    """Yield the values that `text` gives these names, in no order."""
    for name in names:
        kind = next((kind for kind in ("password", "pin", "code") if name[kind]), re.sub("[ _.]", "-", name[0].lower()))
        found = _find_value(name, text)
        while found:
            yield span_of(found, kind)
            rest = _REST.match(text, found.end(found.lastgroup or 0)) if found.lastgroup == "bare" else None
            if rest and (found["bare"][-1] == "-" or (is_opaque(found["bare"]) and is_opaque(rest["rest"]))):
                yield Span(*rest.span("rest"), kind)
            found = _NEXT.match(text, end_of(found)) if kind == "password" else None
            found = found if found and _can_be(name, found, may_be_word=False) else None


def _find_value(name: re.Match[str], text: str) -> re.Match[str] | None:
    """Return the value that the text gives to `name`, if it can be a secret."""
    is_abroad = bool(name["password"]) and not IS_ENGLISH.match(name[0])
    found = _ASSIGNED.match(text, name.end())
    # A comma assigns where a name is alone in quotes: `getenv("DB_PASSWORD", "hunter2")`.
    if found and (found["sign"] != "," or _match_before(_QUOTED, name)) and _can_be(name, found, may_be_word=True):
        return found
    found = (_STATED_IN_FOREIGN_LANGUAGE if is_abroad else _STATED).match(text, name.end())
    if found and _can_be(name, found, may_be_word=not is_abroad):
        return found
    found = _SOON.match(text, name.end())
    if found and _tells(name, found) and _can_be(name, found, may_be_word=False):
        return found
    found = _match_before(_BEFORE, name)
    return found if found and _can_be(name, found, may_be_word=False) else None


def _match_before(form: re.Pattern[str], name: re.Match[str]) -> re.Match[str] | None:
    return form.search(name.string, max(0, name.start() - _NEAR), name.start())


def _tells(name: re.Match[str], found: re.Match[str]) -> bool:
    """Return True if the words between a name and a value say that the value belongs to it. `Pass x2` is an order."""
    between = found["between"].strip()
    if name["password"] and not IS_ENGLISH.match(name[0]):
        is_near = not between or " " not in between
        return (
            bool(found["point"]) or TELLS_ABROAD.search(between) is not None or (is_near and is_made(value_of(found)))
        )
    tells = TELLS.search(between) is not None
    if not name["password"]:
        return (tells or not (between or found["point"])) and len(value_of(found)) >= _LONG_KEY
    if name[0].lower() == "pass":
        return _match_before(_LOGIN, name) is not None
    return tells or not between or bool(found["point"])


def _can_be(name: re.Match[str], found: re.Match[str], *, may_be_word: bool) -> bool:
    if name["code"]:
        return CODE.fullmatch(value_of(found)) is not None
    if name["pin"]:
        return PIN.fullmatch(value_of(found)) is not None
    if UNSPACED.match(name[0]) and not is_strong(_ASCII.match(value_of(found))[0]):  # type: ignore[index]
        return False
    if name["password"]:
        return is_password(found, may_be_word=may_be_word, is_long_name=len(name[0]) > len("pass"))
    sign = found.groupdict().get("sign")
    if sign == "=" and name[0].isupper() and len(value_of(found)) >= _MIN_IN_ENVIRONMENT:
        return not is_placeholder(value_of(found)) and not IN_CODE.fullmatch(value_of(found))
    return is_opaque(value_of(found))


def is_password(found: re.Match[str], *, may_be_word: bool, is_long_name: bool = True) -> bool:
    """Return True if a value can be a password. A plain word is one only where nothing else is possible."""
    value = value_of(found)
    is_bare = found.lastgroup == "bare"
    if is_placeholder(value) or (is_bare and (IN_CODE.fullmatch(value) or MEASURE.fullmatch(value))):
        return False
    if " " in value:
        return may_be_word and (is_long_name or APP_PASSWORD.fullmatch(value) is not None)
    if not PLAIN_WORD.fullmatch(value):
        return any(map(str.isalnum, value))
    if not is_bare:
        return (
            may_be_word
            and found.groupdict().get("sign") != ","
            and not (SAYS_HOW.fullmatch(value) or NAME.search(value))
        )
    if not may_be_word or SAYS_HOW.fullmatch(value) or ENDS_LIKE_HOW.fullmatch(value) or NAME.search(value):
        return False
    # The sentence or line ends with the value; an assignment must be the shell's kind, not a program's.
    sign = found.groupdict().get("sign") or ":"
    return sign == "=" or (sign.strip() != "=" and _END.match(found.string, end_of(found)) is not None)
