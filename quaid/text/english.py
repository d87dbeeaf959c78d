"""Tells English from other languages, roughly: by script, and by the words that no sentence does without."""

from __future__ import annotations

import re
import unicodedata

_LINK = re.compile(r"\[\[[^\[\]]*\]\]")
_CODE = frozenset("/\\_@#{}<>=")
_JOINED = re.compile(r"\w[.(:]\w")
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH_WORDS = (
    "the and is are was were of to that this with for it he she they we you i my your his her our their not has have "
    "had be been will would can what when where who how does do did from at by an or if but about which there"
)
_FOREIGN_WORDS = (
    # German, Dutch, Scandinavian
    "der das und ist nicht ein eine einen mit auf für sich dem den von zu auch wird wir ich sie er es bei nach "
    "het een niet dat zijn voor met ook och att det som är på inte jag har og ikke jeg til af "
    # French, Spanish, Portuguese, Italian, Romanian
    "le la les des du une est et dans pour que qui ne pas sur avec au je nous vous il elle ce "
    "el los las una es y en por con para su se del al lo como más pero mi "
    "o os um uma não em da dos das na com é mais meu minha ao "
    "gli di che non per sono della nel alla anche è si și nu este cu pe "
    # Polish, Czech, Hungarian, Turkish, Vietnamese, Indonesian, Finnish
    "w z nie jest się że jak v že az nem hogy és egy bir ve bu için çok "
    "và là của có không một tôi yang dan di ini itu dengan untuk tidak saya ja ei se että oli"
)
"""None of them is an English word."""
_ENGLISH, _FOREIGN = frozenset(_ENGLISH_WORDS.split()), frozenset(_FOREIGN_WORDS.split())
_LATIN = "LATIN"
_LEAST_WORDS = 2
"""Words of other languages that a text must have: a single one may be part of a name."""


def is_english(text: str) -> bool | None:
    """Return whether `text` is English prose; None where it does not tell, as names, numbers and code do not."""
    prose = _prose_of(text)
    letters = [character for character in prose if character.isalpha()]
    if not letters:
        return None
    others = sum(not character.isascii() and not _is_latin(character) for character in letters)
    if 2 * others > len(letters):
        return False
    words = [word.casefold() for word in _WORD.findall(prose)]
    english, foreign = sum(word in _ENGLISH for word in words), sum(word in _FOREIGN for word in words)
    if english == foreign or (english < foreign < _LEAST_WORDS):
        return None
    return english > foreign


def _prose_of(text: str) -> str:
    """Return `text` without code, links, addresses, paths and options."""
    for mark in ("```", "`"):
        text = " ".join(text.split(mark)[::2])
    words = _LINK.sub(" ", text).split()
    return " ".join(
        word for word in words if _CODE.isdisjoint(word) and not word.startswith("-") and not _JOINED.search(word)
    )


def _is_latin(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_LATIN)
