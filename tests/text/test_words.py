"""Words of any script: how many a text has, which are searched, where a name stands alone."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matrices import for_each

from quaid.text.words import (
    count_spaced,
    count_words,
    find_words,
    fold,
    is_joined_letter,
    is_long_enough,
    is_whole_word,
    list_joined_parts,
    list_spans,
    segmented,
)

STATEMENTS = [
    "我对花生过敏", "我吃素", "我用Python", "犬が好きです", "すしがすき", "ฉันแพ้ถั่ว", "저는 채식주의자입니다", "أنا نباتي",
    "मैं शाकाहारी हूँ", "Я вегетарианец", "Είμαι χορτοφάγος", "Ich mag Tee", "Tôi ăn chay", "ខ្ញុំមិនស៊ីសាច់", "Maya likes tea",
]  # fmt: skip
TOO_SHORT = [
    "", "花生", "はい", "땅콩", "Москва", "نباتي", "ถั่ว", "Fleisch", "🥜🚫", "🥜 🚫 🥛", "。。。", "Maya Chen",
    "Zoë Müller", "chà là",
]  # fmt: skip


@for_each("text", STATEMENTS)
def test_a_statement_of_any_script_is_long_enough(text):
    assert is_long_enough(text)
    assert is_long_enough(unicodedata.normalize("NFD", text))


@for_each("text", TOO_SHORT)
def test_a_word_or_a_name_is_not(text):
    assert not is_long_enough(text)


def test_words_are_counted_as_before_where_they_are_written_apart():
    assert [count_words(text) for text in ("Maya's well-being", "a, b", "isn’t so")] == [2, 2, 2]


@pytest.mark.parametrize(("text", "words"), [
    ("我对花生过敏!", ["我对", "对花", "花生", "生过", "过敏"]), ("猫", ["猫"]), ("我用Python 3", ["我用", "python", "3"]),
    ("शाकाहारी हूँ", ["शाकाहारी", "हूँ"]), ("Été à Köln", ["été", "à", "köln"]), ("Isn't it", ["isn", "t", "it"]),
])  # fmt: skip
def test_words_to_search_for(text, words):
    assert find_words(text) == words


@given(st.text())
def test_a_text_is_folded_once(text):
    assert fold(fold(text)) == fold(text)
    assert find_words(fold(text)) == find_words(text)


@for_each(("one", "other"), [
    ("ﾐｿは猫", "ミソは猫"), ("ﾊﾟｿｺﾝ", "パソコン"), ("Ｐｙｔｈｏｎ３", "python3"), ("ﬁne", "fine"), ("가", "가"), ("⽉", "月"),
    ("Quaid™ runs", "quaid runs"), ("猫・犬", "猫 犬"), ("sushi🍣", "sushi 🍣"),
    ("كِتَابٌ", "كتاب"), ("ﻛﺘـــﺎب", "كتاب"), ("שָׁלוֹם", "שלום"), ("יִלד", "ילד"), ("אֶל־עַל", "אל־על"),
])  # fmt: skip
def test_variants_of_a_letter_are_one(one, other):
    assert find_words(one) == find_words(other)


@given(st.text())
@example("0\u0e31")
@example("0\u0e33")
def test_all_words_of_a_text_are_in_what_is_indexed_of_it(text):
    # As SQLite takes it apart: letters, digits, marks and emoji, wherever they stand.
    indexed = "".join(
        char if unicodedata.category(char)[0] in "LMN" or unicodedata.category(char) == "So" else " "
        for char in segmented(text).lower()
    ).split()
    for word in find_words(text):
        assert any(term.startswith(word) if is_joined_letter(word) else term == word for term in indexed)


@for_each(("text", "name", "is_alone"), [
    ("王小明喜欢茶", "王小明", True), ("我和Maya喝茶", "Maya", True), ("민수는 차를", "민수", True), ("김민수는", "민수", False),
    ("アンナは", "アン", False), ("राम का", "राम", True), ("रामा का", "राम", False), ("Mayan", "Maya", False), ("x_Maya", "Maya", False),
    ("Иванов", "Иван", False),
])  # fmt: skip
def test_a_name_stands_alone_where_its_script_says_so(text, name, is_alone):
    start = text.index(name)
    assert is_whole_word(text, start, start + len(name)) is is_alone


def test_parts_of_a_run_may_be_names():
    assert {"王小明", "小明", "东京塔"} <= set(list_joined_parts("王小明喜欢东京塔吗"))
    assert list_joined_parts("Maya likes tea") == []
    assert len(list_joined_parts("我" * 10_000)) < 1_000


def test_a_text_is_as_long_in_a_script_without_spaces_as_in_english():
    assert [count_spaced(text) for text in ("Our cat is called Miso.", "Été à Noël — 3 °C", "")] == [5, 6, 1]
    assert count_spaced("我们的猫叫豆豆。") == 7
    assert count_spaced("うちの猫の名前はミソです。") >= 6
    assert count_spaced("Нашу кошку зовут Мисо.") == 6


def test_spans_have_at_most_so_many_characters():
    assert "milk" in list_spans("oat milk", 4)
    assert "oat milk" in list_spans("oat milk", 8)
    assert "oat milk" not in list_spans("oat milk", 7)
