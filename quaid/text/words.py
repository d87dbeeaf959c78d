"""The words of a text, in scripts with and without spaces between them.

Indexing and searching fold a text first: half and full width, ligatures and composed letters are one. In scripts
without spaces, pairs of neighbouring letters take the place of words.
"""

import re
from functools import cache
from itertools import pairwise
from math import ceil
from unicodedata import category, normalize

MINIMUM_WORDS = 3

# Patterns are compiled by the first text that needs them, not by the import, which every command waits for: ranges of
# letters take 4 ms, and most texts are ASCII.
_MAX_PART = 8
_MAX_RUN = 60
_MAX_RUNS = 10
_HAN = r"\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SYLLABLES = (
    r"\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul, where particles and endings hang on the words
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"  # Thai to Burmese
)
_JOINED = f"[{_HAN}{_SYLLABLES}]+"
_HANGUL = r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]{2}"
_KATAKANA = r"[\u30a1-\u30fa\u30fc\u31f0-\u31ff]{2}"
_ONE_HAN = f"[{_HAN}]"
_LATIN = r"[0-9A-Za-z\u00aa-\u024f\u1e00-\u1eff]"
_NOT_LATIN = r"[^\W\d_\x00-\u024f\u1e00-\u1eff]"
_ENGLISH = r"\w+(?:['’-]\w+)*"  # noqa: RUF001
_NO_LETTERS = str.maketrans("™℠", "  ")
"""Signs that NFKC would make letters of the word before them."""


_UNREAD = (
    r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
    r"\xad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
"""What Hebrew and Arabic write for schools and scripture: points for vowels, and strokes that make a word longer. And
what nobody sees: soft hyphens, spaces without width, marks of direction.
"""


def fold(text: str) -> str:
    """Return `text` in the form in which its words are compared, case aside: NFKC, without vowel points. Folded twice
    it is the same.
    """
    if text.isascii():
        return text
    composed = normalize("NFKC", text.translate(_NO_LETTERS))
    return normalize("NFKC", re.sub(_UNREAD, "", composed))  # again: a letter may meet the next mark now


SPELLINGS = {
    **str.maketrans("άέήίόύώϊϋΐΰς", "αεηιουωιυιυσ"), **str.maketrans("ıłđøё", "ildoе"),  # noqa: RUF001
    **str.maketrans("أإآىیکة", "اااييكه"), ord("ँ"): "ं", ord("़"): None,
}  # fmt: skip
"""Letters that people type in two ways, and SQLite does not take for one, a table for `translate`: Greek with and
without an accent, Turkish and Polish on another keyboard, Arabic without its small signs, Hindi with either nasal.
"""


def count_words(text: str) -> int:
    """About how many words English would take for `text`.

    A Chinese character counts as a word, as do two letters of a script that writes words together or hangs endings on
    them (Japanese, Korean, Thai, Lao, Khmer, Burmese). Two words of an alphabet other than Latin count as three:
    Russian and Arabic say "I am a vegetarian" in two.
    """
    if text.isascii():
        return len(re.findall(_ENGLISH, text))
    total = 0.0
    for word in _find_all(fold(text), r"['’-]"):  # noqa: RUF001
        for run in re.findall(_JOINED, word):
            han = len(re.findall(_ONE_HAN, run))
            total += han + (sum(map(str.isalnum, run)) - han) / 2
        total += sum(1 if re.match(_LATIN, part) else 1.5 for part in re.split(_JOINED, word) if part)
    return ceil(total)


def count_spaced(text: str) -> int:
    """Return how many words `text` has: by its spaces where it is written in Latin letters, which is cheap enough for
    every candidate of a question, else as `count_words`.
    """
    spaced = text.count(" ") + 1
    return spaced if text.isascii() or not re.search(_NOT_LATIN, text) else max(spaced, count_words(text))


def is_long_enough(statement: str) -> bool:
    """Return whether `statement` has the words that it takes to say something of somebody or something."""
    return count_words(statement) >= MINIMUM_WORDS


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` is no part of a longer word, as far as the script says where one ends."""
    before, after = text[max(start - 1, 0) : start + 1], text[end - 1 : end + 1]
    is_begun = start > 0 and _is_one_word(before) and (re.match(_HANGUL, before) or not re.search(_JOINED, before))
    return not (is_begun or (_is_one_word(after) and not re.search(_JOINED, after))) and not any(
        re.fullmatch(_KATAKANA, pair) for pair in (before, after)
    )


def list_spans(text: str, most: int) -> set[str]:
    """Return the parts of `text`, of at most `most` characters, that begin and end where a word may."""
    pairs = (text[place - 1 : place + 1] for place in range(1, len(text)))
    inside = [n for n, pair in enumerate(pairs, 1) if not _is_one_word(pair) or re.search(_JOINED, pair)]
    places = [0, *inside, len(text)]
    return {text[start:end] for start in places for end in places if start < end <= start + most}


def list_words(text: str, joint: str = "") -> list[str]:
    """The words of `text` as they are written, their marks included; a run of a script without spaces is one, and so
    are words with `joint` between them, a pattern.
    """
    return _find_all(text, joint)


def find_words(text: str) -> list[str]:
    """The words of `text` as they are searched, in lower case: where words are not written apart, each pair of
    neighbouring letters is one.
    """
    folded = fold(text).lower()
    if text.isascii():
        return _find_all(folded)
    if folded.replace(" ", "").isalnum():  # neither marks nor signs, whose patterns take longer than a question
        return [part for word in folded.split() for part in _split_joined(word)]
    return [part for word in _pattern_with_signs().findall(folded) for part in _split_joined(word)]


def list_joined_parts(text: str) -> list[str]:
    """All that may be a name in the runs of `text` whose script has no spaces, longest first: two letters to eight."""
    runs = [] if text.isascii() else [run[0] for run in re.finditer(_JOINED, fold(text))][:_MAX_RUNS]
    return [
        run[place : place + length]
        for length in range(_MAX_PART, 1, -1)
        for run in runs
        for place in range(min(len(run), _MAX_RUN) - length + 1)
    ]


def segmented(text: str) -> str:
    """`text` as the words that `find_words` finds in it, for an index that would take letters without a space between
    them, and signs younger than itself, for a part of a word.

    The last letter of a run is a word as well, so that each letter is the beginning of a word.
    """
    if text.isascii():
        return text
    return " ".join(
        part
        for word in _pattern_with_signs().findall(fold(text).lower().translate(SPELLINGS))
        for part in _split_joined(word, with_last=True)
    )


def is_joined_letter(word: str) -> bool:
    """Return True for a single letter of a script without spaces: the beginning of a word of `segmented`."""
    return len(word) == 1 and re.match(_JOINED, word) is not None


def _is_one_word(pair: str) -> bool:
    """Return whether two characters are in one word: without a space, sign or end between them."""
    return len(pair) == 2 and all(char == "_" or char.isalnum() or category(char)[0] == "M" for char in pair)


def _split_joined(word: str, *, with_last: bool = False) -> list[str]:
    parts: list[str] = []
    end = 0
    for run in re.finditer(_JOINED, word):
        parts += [word[end : run.start()], *([a + b for a, b in pairwise(run[0])] or [run[0]])]
        if with_last and len(run[0]) > 1:
            parts.append(run[0][-1])
        end = run.end()
    return list(filter(None, [*parts, word[end:]]))


def _find_all(text: str, joint: str = "") -> list[str]:
    """Letters and digits with the marks on them; `joint` is a pattern of joints between two."""
    return _pattern(joint, is_marked=not text.isascii()).findall(text)


@cache
def _pattern(joint: str, *, is_marked: bool) -> re.Pattern[str]:
    r"""`\w` leaves marks out. To list them takes 10 ms, which most questions need not wait for."""
    marks = "".join(chr(code) for code in range(0x300, 0x1F000) if category(chr(code))[0] == "M") if is_marked else ""
    word = rf"[^\W_](?:[^\W_]|[{marks}])*" if marks else r"[^\W_]+"
    return re.compile(f"{word}(?:{joint}{word})*" if joint else word)


@cache
def _pattern_with_signs() -> re.Pattern[str]:
    """Emoji and similar signs too, each as a separate word."""
    codes = (*range(0x2300, 0x2400), *range(0x2600, 0x27C0), *range(0x2B00, 0x2C00), *range(0x1F000, 0x1FB00))
    signs = "".join(chr(code) for code in codes if category(chr(code)) == "So")
    return re.compile(f"{_pattern('', is_marked=True).pattern}|[{signs}]")
