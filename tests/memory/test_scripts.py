"""Memories in scripts with and without spaces: kept, named after their words, linked, found, told apart."""

from __future__ import annotations

import pytest

FACTS = {
    "我对花生过敏": "花生", "犬が好きです": "犬", "ฉันแพ้ถั่วลิสง": "ถั่ว", "저는 채식주의자입니다": "채식주의자",
    "أنا نباتي": "نباتي", "मैं शाकाहारी हूँ": "शाकाहारी", "Я вегетарианец": "вегетарианец", "Είμαι χορτοφάγος": "χορτοφάγος",
    "Ich esse kein Fleisch": "Fleisch", "Tôi thích đậu phụ": "đậu phụ",
}  # fmt: skip


@pytest.mark.slow
def test_facts_of_any_script_are_kept_and_found_by_a_word(vault):
    with vault.memory() as memory:
        for text in FACTS:
            memory.remember(text)
        memory.remember("Maya drinks oat milk")
        for _ in range(2):
            found = {text: [hit.text for hit in memory.recall(word).hits[:1]] for text, word in FACTS.items()}
            assert found == {text: [text] for text in FACTS}
            memory.reindex()
    names = [path.name for path in (vault.root / "facts").rglob("*.md")]
    assert not [name for name in names if name.startswith("note-")]


def test_a_name_in_a_run_of_letters_is_linked_and_found(vault):
    with vault.memory() as memory:
        memory.link("王小明", "lives_in", "北京")
        kept = memory.remember("王小明喜欢喝绿茶")
        memory.remember("小红住在上海的公寓")
        assert memory.recall("王小明喜欢什么").hits[0].text == "王小明喜欢喝绿茶"
        memory.link("राम शर्मा", "lives_in", "पुणे")
        memory.remember("राम शर्मा को चाय पसंद है")
        assert memory.recall("राम शर्मा कहाँ रहता है?").hits[0].text.startswith("राम शर्मा")
    assert (vault.root / "entities" / "王小明.md").exists()
    assert (vault.root / kept.path).read_text("utf-8").endswith("[[王小明]]喜欢喝绿茶\n")
