"""Which texts are English, which are not, and which do not tell."""

from __future__ import annotations

import pytest
from matrices import for_each

from quaid.text.language import language


@pytest.mark.parametrize(
    "text",
    [
        "My sister works as a nurse in Boston.",
        "We had Gnocchi alla Romana at the Café de la Paix, and it was the best.",
        "Is this the señor you told me about?",
    ],
)
def test_english_with_foreign_names_is_english(text: str) -> None:
    assert language(text) == "en"


@for_each(
    "text",
    [
        "Im Sommer sind wir von Hamburg nach Leipzig gezogen, das ist nicht weit.",
        "Le chat s'appelle Moustache et déteste l'aspirateur de la voisine.",
        "La contraseña del wifi está debajo del router.",
        "O relatório deve ser enviado até o quinto dia útil.",
        "Мой брат работает в Казани.",
        "我的护照放在卧室衣柜的抽屉里。",
        "自転車の鍵は玄関にあります。",
        "กุญแจสำรองอยู่หน้าประตู",
        "أختي طبيبة في مستشفى القاهرة.",
    ],
)
def test_other_languages_and_scripts_are_not(text: str) -> None:
    assert language(text) not in {None, "en"}


@for_each(
    "text",
    [
        "José Muñoz, Zoë Łukasz, Köln",
        "def la(el): return self.de(las)",
        "```python\nle = la.les(des)\nfor y in des: el\n```",
        "https://de.wikipedia.org/wiki/Der_und_das",
        "npm install --save-dev el/la @le/des",
        "2026-11-23 14:05",
        "[[der und das]]",
        "",
    ],
)
def test_names_code_links_and_numbers_do_not_tell(text: str) -> None:
    assert language(text) is None
