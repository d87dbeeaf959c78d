"""Words without which a text names no secret. Apart from the forms of names, which take long to load."""

from __future__ import annotations

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
