"""Replies that ask nothing: `ok`, `yes, go ahead`, `merci beaucoup`, `はい`. Light, for the hook of each prompt.

The words are in replies.txt. Its greetings are whole phrases: `morning` with another word may be a statement. Words of
courtesy (`thanks, my friend`) ask nothing after a reply or a greeting, unless a question word is among them.
"""

import re
from functools import cache
from unicodedata import combining, normalize

from quaid.text.stop_words import known_languages, read_lists, stop_words
from quaid.text.words import fold, list_words

_MAX_GREETING_WORDS = 4
_JOINED = ("zh", "ja", "th")
"""Languages whose words have no spaces between them."""
_ASKING = frozenset("who what when where which why how wer wann wo warum wie qui quand quién cuándo".split())  # noqa: SIM905
_PARTICLES = frozenset("はがをにのかねよとでも的了吗吧呢啊")
"""Letters that are words only next to another: `かに` is a crab."""
_LETTER = r"[^\W\d_]|[\u0e31-\u0e4e]"
_MAX_JOINED = 60
"""Characters up to which a reply in such a language is taken apart."""


def asks_nothing(text: str) -> bool:
    """Return whether all words of `text` are function words, replies and digits of one language, or greetings, with
    words of courtesy.
    """
    replies, greetings, courtesy = _read_replies()
    folded = fold(text.replace("’", "'")).lower()  # noqa: RUF001
    words = [word for word in list_words(folded, "'") if not word.isdigit()]
    place, count = 0, len(words)
    while place < len(words):
        lengths = range(_MAX_GREETING_WORDS, 0, -1)
        length = next((n for n in lengths if _unmarked(" ".join(words[place : place + n])) in greetings), 0)
        words[place : place + length] = []
        place += not length
    for code in known_languages():
        of_language = replies.get(code, frozenset())
        is_reply = len(words) < count or not of_language.isdisjoint(words)
        polite = courtesy if is_reply and _ASKING.isdisjoint(words) else frozenset()
        if (stop_words(code) | of_language | polite).issuperset(words):
            return True
    letters = "".join(re.findall(_LETTER, folded))
    if letters.isascii() or len(letters) > _MAX_JOINED:
        return False
    for code in _JOINED:
        left = letters
        for reply in sorted(replies[code], key=len, reverse=True):
            left = left.replace(reply, " ")
        if left != letters and set(left) <= _PARTICLES | {" "}:
            return True
    return False


@cache
def _read_replies() -> tuple[dict[str, frozenset[str]], frozenset[str], frozenset[str]]:
    """Return the replies by language, the greetings of all, and the words of courtesy."""
    lists = read_lists("replies.txt")
    courtesy = frozenset(lists.pop("courtesy").split())
    phrases = lists.pop("greetings").strip().replace("\n", "|").split("|")
    replies = {code: frozenset(words.split()) for code, words in lists.items()}
    return replies, frozenset(map(_unmarked, phrases)), courtesy


def _unmarked(text: str) -> str:
    """Return `text` without accents, which many leave out (`buenos dias`), as they do the hamza of an alif."""
    return text if text.isascii() else "".join(part for part in normalize("NFD", text) if not combining(part))
