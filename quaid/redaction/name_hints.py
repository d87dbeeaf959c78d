"""Words and digits without which a text has no secret. The forms of secrets, which take long to load, are elsewhere."""

import re

HINTS = (
    *"""pass pw kennwort contrase pin psk sig secret token key phrase mnemonic pk auth sessid sessionid session_id
    combination schlüssel schluessel clé geheimzahl palavra senha clave parol parool wachtwoord hasl hasł heslo senord adgangskode kodeord
    salasana sifre şifre jelsz lozink slaptažod lykilor geslo zaporka sandi khẩu khau zugangscode парол лозинк
    κωδικ συνθηματικ كلمة סיסמ ססמ पासवर्ड कूटशब्द 密码 密碼 口令 通行 パスワ パスフ 暗証 合言葉 비밀 비번 암호 패스워드 รหัสผ่าน พาสเวิร์ด
    """.split(),  # noqa: SIM905 - words read best as words
    " code",
    "code ",
)
"""Without one of these (lower case) a text names no secret; they are looked for first, which is quick."""


def may_name(text: str) -> bool:
    """Return True if `text` may name a secret; cheap."""
    lowered = text.lower()
    return any(hint in lowered for hint in HINTS)


_GAP = r"[\s.*\\\u200b-\u200d\u2060\ufeff-]{0,5}"
_NUMBER = re.compile(
    rf"\d(?:{_GAP}\d){{13}}|cv[vc]2?\s{{0,3}}(?:is|:|=)?\s{{0,3}}\d{{3}}|(?<![a-z0-9])[a-z]{{2}}\d\d{_GAP}[a-z0-9]{{4}}"
    r"|[a-z]{6}\d\d[a-z]\d|\.\d{3}-\d\d"
)
_ID_NUMBER = re.compile(rf"\d(?:{_GAP}\d){{5}}")
_ID_HINT = re.compile(
    r"ssn|social|insurance|\b(?:ni|nino|ni[efr]|dni|bsn|cpf|cpr|tax|s[eé]cu)\b|burgerserv|steuer|idnr|insee|curit|codice|pesel"
    r"|person-?n|aadha|dselsn|cpr-n|henkil|身份证|주민|マイナン"
)
_wanted: set[bool] = set()


def look_for_numbers(*, wanted: bool) -> None:
    """Note whether the owner of a vault wants the numbers of cards, accounts and persons to be redacted. They are, in the
    whole process, unless no owner wants it: no caller knows whose text it has.
    """
    _wanted.add(wanted)


def may_have_number(lowered: str) -> bool:
    """Return True if a text in lower case may have the number of a card, an account or a person; cheap."""
    if _wanted == {False} or re.search(r"\d\d", lowered) is None:
        return False
    is_person = _ID_NUMBER.search(lowered) is not None and _ID_HINT.search(lowered) is not None
    return is_person or _NUMBER.search(lowered) is not None
