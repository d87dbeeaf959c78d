"""Words of any script are found: whatever a note says, in whatever width, whole or in part."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from recall_index import make_index, put

from quaid.index import fulltext
from quaid.text.words import find_words

SAID = {
    "zh": "玛雅使用Python3开发后端，她对花生过敏。", "ja": "うちの猫の名前はミソで、東京タワーの近くに住んでいる。", "th": "มายาแพ้ถั่วลิสงและอาศัยอยู่ที่เชียงใหม่",
    "km": "ខ្ញុំមិនស៊ីសាច់គោទេ", "lo": "ຂ້ອຍແພ້ຖົ່ວດິນ", "my": "ကျွန်တော် မြေပဲ မစားဘူး", "bo": "ང་ལ་བ་དམ་ལ་ཕོག་ཐུག་ཡོད།",
    "ko": "마야는 땅콩 알레르기가 있어요", "hi": "माया को मूँगफली से एलर्जी है", "ru": "Майя не ест арахис🥜и орехи",
}  # fmt: skip
JOINED = ("zh", "ja", "th", "km", "lo", "my")
LETTERS = {
    "ideographs and kana": st.characters(min_codepoint=0x3041, max_codepoint=0x9FFF, categories=["Lo"]),
    "Thai to Lao": st.characters(min_codepoint=0x0E01, max_codepoint=0x0EDF, categories=["Lo", "Mn"]),
    "any": st.characters(max_codepoint=0x1F6FF, exclude_categories=["Cn", "Cs", "Co", "Cc"]),
}


@pytest.fixture(scope="module")
def index():
    connection = make_index({f"facts/{code}.md": f"---\nid: 01{code}\n---\n{text}\n" for code, text in SAID.items()})
    yield connection
    connection.close()


def found(index, question: str) -> set[str]:
    rows = fulltext.search(index, fulltext.match_any(fulltext.terms(question)), 100)
    return {path_of(index, chunk_id) for chunk_id, _ in rows}


def path_of(index, chunk_id: int) -> str:
    row = index.execute(
        "SELECT path FROM chunks JOIN documents USING (doc_id) WHERE chunk_id = ?", (chunk_id,)
    ).fetchone()
    return row[0].removeprefix("facts/").removesuffix(".md")


@pytest.mark.parametrize(("code", "question"), [
    ("zh", "花生"), ("zh", "python3"), ("zh", "ＰＹＴＨＯＮ３"), ("zh", "她用Python3吗"), ("zh", "敏"), ("ja", "猫"), ("ja", "ﾐｿ"), ("ja", "タワー"),
    ("th", "ถั่วลิสง"), ("km", "សាច់គោ"), ("lo", "ຖົ່ວ"), ("my", "မြေပဲ"), ("bo", "བ་དམ"), ("ko", "땅콩"), ("hi", "मूँगफली"), ("ru", "арахис"),
])  # fmt: skip
def test_a_word_is_found_in_its_script(index, code, question):
    assert code in found(index, question)


@given(st.data())
def test_any_part_of_a_run_is_found(index, data):
    code = data.draw(st.sampled_from(JOINED))
    run = max(re.findall(r"[^\x00-\x7f，。、]+", SAID[code]), key=len)
    length = data.draw(st.integers(2, len(run)))
    start = data.draw(st.integers(0, len(run) - length))
    part = run[start : start + length]
    assume(find_words(part))
    assert code in found(index, part)


@pytest.mark.parametrize("letters", LETTERS)
@given(st.data())
def test_whatever_is_written_is_found_by_each_of_its_words(index, letters, data):
    text = data.draw(st.text(LETTERS[letters], min_size=1))
    index.execute("SAVEPOINT one")
    try:
        put(index, "notes/drawn.md", f"{text}\n")
        chunks = [str(row[0]) for row in index.execute("SELECT text FROM chunks JOIN documents USING (doc_id) "
                                                       "WHERE path = 'notes/drawn.md'")]  # fmt: skip
        for word in find_words(" ".join(chunks)):
            assert fulltext.search(index, fulltext.match_any([word]), 100), (text, word)
    finally:
        index.execute("ROLLBACK TO one")
        index.execute("RELEASE one")


def test_a_phrase_is_found_where_its_letters_follow_each_other(index):
    assert fulltext.search(index, fulltext.match_any([fulltext.as_phrase("花生过敏")]), 9)
    assert not fulltext.search(index, fulltext.match_any([fulltext.as_phrase("敏过生花")]), 9)
    assert not fulltext.search(index, fulltext.match_any([fulltext.as_phrase("花生玛雅")]), 9)


def test_english_words_beside_others_keep_their_stems(index):
    put(index, "facts/mixed.md", "---\nid: 01mixed\n---\n我们在running测试，deploys每天\n")
    assert "mixed" in found(index, "run")
    assert "mixed" in found(index, "deployed")


def test_pairs_of_letters_are_no_spelling(index):
    stems = {stem for word in ("花生酱好吃", "ミソラーメン", "ถั่วลิสง") for stem in fulltext.list_stems(index, word)}
    assert not {stem for stem in stems if not stem.isascii()}


@pytest.mark.parametrize(("question", "language", "words"), [
    ("Wann war der Umzug?", "de", ["umzug"]), ("When was the war?", "en", ["war"]), ("When was the war?", None, ["war"]),
    ("¿Dónde vive Maya?", "es", ["vive", "maya"]), ("Где живёт Майя?", "ru", ["живёт", "майя"]), ("什么", "zh", ["什么"]),
    ("who", "en", ["who"]),
])  # fmt: skip
def test_stop_words_are_those_of_the_language(question, language, words):
    assert fulltext.terms(question, language) == words
