"""The language of a text, by its script and its function words.

Scripts decide where they can. Languages in Latin and Cyrillic letters are distinguished by how many different function
words of each a text has; a word that several share counts for each in part. Code, links and names are ignored. In doubt
there is no answer.
"""

import re
from collections import Counter, defaultdict
from functools import cache, lru_cache

from quaid.text.stop_words import known_languages, stop_words

_MAX_TEXT = 4_000
"""Characters that are read: a note does not change its language after two screens."""
_NOISE = (
    r"(?s)\A---\n.*?\n---\n|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|\[\[[^\[\]\n]*\]\]|<[^<>\n]*>"
    r"|(?<![!-~])[!-~]*[/\\_=(){}@$%^;#&|~<>\d][!-~]*"
)
"""Text in no language: front matter, code, targets of links, tags, addresses, paths."""
_LATIN, _CYRILLIC, _ARABIC, _HAN, _KANA = "latin", "cyrillic", "arabic", "han", "kana"
_SCRIPTS = (
    # first letter, last letter, the language or script, how many letters of an alphabet one of it is worth
    (0x0041, 0x024F, _LATIN, 1), (0x0370, 0x03FF, "el", 1), (0x0400, 0x052F, _CYRILLIC, 1), (0x0530, 0x058F, "hy", 1),
    (0x0590, 0x05FF, "he", 1), (0x0600, 0x077F, _ARABIC, 1), (0x0900, 0x097F, "hi", 1), (0x0980, 0x09FF, "bn", 1),
    (0x0A00, 0x0A7F, "pa", 1), (0x0A80, 0x0AFF, "gu", 1), (0x0B80, 0x0BFF, "ta", 1), (0x0C00, 0x0C7F, "te", 1),
    (0x0C80, 0x0CFF, "kn", 1), (0x0D00, 0x0D7F, "ml", 1), (0x0D80, 0x0DFF, "si", 1), (0x0E00, 0x0E7F, "th", 1),
    (0x0E80, 0x0EFF, "lo", 1), (0x0F00, 0x0FFF, "bo", 1), (0x1000, 0x109F, "my", 1), (0x10A0, 0x10FF, "ka", 1),
    (0x1100, 0x11FF, "ko", 1), (0x1200, 0x137F, "am", 1), (0x1780, 0x17FF, "km", 1), (0x1E00, 0x1EFF, _LATIN, 1),
    (0x3040, 0x30FF, _KANA, 2), (0x3130, 0x318F, "ko", 2), (0x3400, 0x4DBF, _HAN, 3), (0x4E00, 0x9FFF, _HAN, 3),
    (0xAC00, 0xD7AF, "ko", 3), (0xF900, 0xFAFF, _HAN, 3), (0xFF66, 0xFF9F, _KANA, 2), (0x20000, 0x323AF, _HAN, 3),
)  # fmt: skip
_MIN_KANA = 0.1
"""The part of kana that makes Chinese characters Japanese: one katakana is a name."""
_PERSIAN, _URDU, _UKRAINIAN = frozenset("پچژگیک"), frozenset("ٹڈڑںے"), frozenset("іїєґ")
_LETTERS = {
    "ß": "de", "ñ": "es", "¿": "es", "¡": "es", "ã": "pt", "õ": "pt", "ł": "pl", "ą": "pl", "ę": "pl", "ż": "pl",
    "ř": "cs", "ě": "cs", "ů": "cs", "ő": "hu", "ű": "hu", "ș": "ro", "ț": "ro", "ğ": "tr", "ş": "tr", "ı": "tr",  # noqa: RUF001
    "đ": "vi", "ơ": "vi", "ư": "vi", "ạ": "vi", "ế": "vi", "ø": "da", "æ": "da", "œ": "fr", "ù": "fr",
}  # fmt: skip
"""Letters of one language: each counts as a function word if the text has one, as foreign names have them too."""
_MORE_ENGLISH = frozenset(
    """another care don down everyone everything get gets getting go going got just let ll may maybe might much
    must only other please re really shall since something take thank thanks though us use used using ve well yes
    yet""".split()  # noqa: SIM905
)
"""English words that are no stop words."""
_MIN_SCORE = 0.4
_LEAD, _LEAD_OVER_ENGLISH = 1.05, 1.3
"""How much better than the next language the best must be: English is most vaults', and the others may be mixed up."""
_FEW_WORDS = 8
"""The longest text in which one function word is enough."""
_MIN_PART = 0.07
"""The part of its words that are function words, at least: of prose a third and more, of names and code hardly any."""

ENGLISH = frozenset({"en", None})
"""The languages of a text that may be English."""


@lru_cache(maxsize=256)
def language(text: str) -> str | None:
    """Return the language that most of `text` is in, as an ISO 639-1 code; None where that is not clear.

    Languages of one script that are not distinguished here count as the largest: Hindi for Devanagari, Russian for all
    but Ukrainian and Bulgarian.
    """
    shown = re.sub(_NOISE, " ", text[:_MAX_TEXT])
    script = _LATIN if shown.isascii() else _find_script(shown)
    if script == _ARABIC:
        letters = set(shown)
        return "ur" if letters & _URDU else "fa" if letters & _PERSIAN else "ar"
    if script in {_LATIN, _CYRILLIC}:
        return _find_by_words(shown.lower(), script)
    return {_HAN: "zh", _KANA: "ja"}.get(script or "", script)


def _find_script(text: str) -> str | None:
    """Return the script that has more than half of the letters, weighed by how much they say."""
    weights: Counter[str] = Counter()
    for code, count in Counter(text.translate(_SCRIPT_OF)).items():
        if ord(code) < len(_SCRIPTS):
            _, _, script, weight = _SCRIPTS[ord(code)]
            weights[script] += count * weight
    kana, joined = weights[_KANA], weights[_KANA] + weights[_HAN]
    is_japanese = kana > _MIN_KANA * joined
    weights[_KANA], weights[_HAN] = (joined, 0) if is_japanese else (0, joined)
    script, most = weights.most_common(1)[0]
    return script if 2 * most > weights.total() else None


class _ScriptOf(dict[int, int]):
    """Code point -> the place of its script in `_SCRIPTS`, found when it is first met."""

    def __missing__(self, code: int) -> int:
        is_letter = chr(code).isalpha()
        places = (place for place, (first, last, *_) in enumerate(_SCRIPTS) if is_letter and first <= code <= last)
        self[code] = next(places, len(_SCRIPTS))
        return self[code]


_SCRIPT_OF = _ScriptOf()


def _find_by_words(text: str, script: str) -> str | None:
    words = re.findall(r"[^\W\d_]{2,}|[^\W\d_a-z]", text)
    known = _languages_of_words()
    scores: dict[str, float] = defaultdict(float)
    hits = set(words) & known.keys()
    for word in hits:
        for code in known[word]:
            scores[code] += 1 / len(known[word])
    for letter in set(text) & _LETTERS.keys():
        if _LETTERS[letter] in scores:
            scores[_LETTERS[letter]] += 1
    first, best = max(scores.items(), key=lambda item: item[1], default=("", 0.0))
    rivals = [
        score * (_LEAD_OVER_ENGLISH if code == "en" else _LEAD) for code, score in scores.items() if code != first
    ]
    share = sum(word in hits for word in words) / max(1, len(words))
    is_prose = len(words) <= _FEW_WORDS or (len(hits) > 1 and share >= _MIN_PART)
    if is_prose and best >= max([_MIN_SCORE, *rivals]):
        return first
    if script == _CYRILLIC:
        return "uk" if set(text) & _UKRAINIAN else "ru"
    return None


@cache
def _languages_of_words() -> dict[str, tuple[str, ...]]:
    """Return each function word with the languages that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for code in known_languages():
        for word in stop_words(code).union(_MORE_ENGLISH if code == "en" else ()):
            found[word] = (*found.get(word, ()), code)
    return found
