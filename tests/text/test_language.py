"""The language of a text: told by script and function words, and not at all where nothing tells."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.text.language import language
from quaid.text.stop_words import known_languages, stop_words

TEXTS = {
    "en": ["Who is Maya?", "The die is cast and the war was lost", "I visited Rio de Janeiro and La Paz in June.",
           "What did Tom say about la casa?", "The Chinese word for cat is 猫.", "Zoë and José went to the café in Łódź."],
    "de": ["Wo wohnt Maya?", "Die Datenbank läuft auf Port 5432.", "Wann war der Umzug?", "Ich mag keine Erdnüsse."],
    "fr": ["Où habite Maya ?", "Notre chat s’appelle Miso.", "Quand est son anniversaire ?"],
    "es": ["¿Dónde vive Maya?", "donde vive maya", "Soy alérgico a los cacahuetes.", "No me gusta el café."],
    "pt": ["Onde mora a Maya?", "Quem é o chefe do Tom?", "Eu sou alérgico a amendoim."],
    "it": ["Dove abita Maya?", "Chi è il capo di Tom?", "Sono allergico alle arachidi."],
    "nl": ["Waar woont Maya?"], "pl": ["Gdzie mieszka Maja?"], "tr": ["Maya nerede ve ne iş yapıyor?"],
    "ru": ["Где живёт Майя?", "Спасибо"], "uk": ["Де живе Майя?"], "bg": ["Къде живее Мая и какво работи тя?"],
    "zh": ["我对花生过敏", "使用Python3开发后端", "在カ店买咖啡，天气很好。"], "ja": ["うちの猫の名前はミソです。", "ﾐｿ", "東京タワー"],
    "ko": ["저는 땅콩 알레르기가 있어요"], "th": ["ฉันแพ้ถั่ว"], "ar": ["أين تعيش مايا؟"], "fa": ["گربه ما میسو نام دارد"],
    "hi": ["मैं शाकाहारी हूँ"], "km": ["ខ្ញុំមិនស៊ីសាច់"], "bo": ["ང་ཤ་མི་ཟ།"], "el": ["Είμαι χορτοφάγος"], "he": ["אני צמחוני"],
}  # fmt: skip
UNDECIDED = [
    "", "Maya Chen", "x = 1", "con = sqlite.connect(); con.close()", "12:30", "git push", "OK", "🙂", "import os",
    "```python\ndie Katze ist da\n```", "https://example.org/die/katze/ist/da", "`la casa`",
]  # fmt: skip


@for_each(("code", "text"), [(code, text) for code, texts in TEXTS.items() for text in texts])
def test_a_sentence_has_its_language(code, text):
    assert language(text) == code
    assert language(unicodedata.normalize("NFD", text)) in {code, None}


@for_each("text", UNDECIDED)
def test_names_code_and_addresses_have_none(text):
    assert language(text) is None


@given(st.text())
def test_any_text_has_a_language_or_none_and_always_the_same(text):
    assert language(text) == language(text)


def test_code_in_a_note_does_not_count():
    note = "---\ntitle: die Katze\n---\nUnsere Katze heißt Miso.\n\n```\nfor each in the list: print(it)\n```\n"
    assert language(note) == "de"


def test_stop_words_are_in_lower_case_and_in_the_form_that_is_compared():
    for code in known_languages():
        assert all(word == unicodedata.normalize("NFKC", word.lower()) for word in stop_words(code)), code
    assert stop_words(None) == stop_words("xx") == frozenset()
