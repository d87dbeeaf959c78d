"""The names of secrets, in any language, and the words between such a name and its value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quaid.redaction.name_hints import HINTS

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
    return [name for start, end in _near_hints(text) for name in NAME.finditer(text, start, end)]


def _near_hints(text: str) -> Iterator[tuple[int, int]]:
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that is two in lower case moves all behind it
        yield 0, len(text)
        return
    start = end = 0
    for place in sorted(_places(lowered)):
        if place - _BEFORE_HINT > end:
            if end:
                yield start, end
            start = place - _BEFORE_HINT
        end = min(len(text), place + _BEHIND_HINT)
    if end:
        yield start, end


def _places(lowered: str) -> Iterator[int]:
    for hint in HINTS:
        place = lowered.find(hint)
        while place >= 0:
            yield place
            place = lowered.find(hint, place + len(hint))
