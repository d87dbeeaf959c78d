"""Do two texts say the same, contradict each other, differ in a number, a date, a name or a negation?

`is_same_claim`: do both have the same words in the same order? `difference`: does each say what the other does not? If
only one says more, they do not differ. `problem_of`: is a new wording what its sources say? `find_lost_words`: which
words does only the dropped one have? In doubt texts differ: a duplicate fact is better than a lost one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from quaid.text.dates import find_dates
from quaid.text.language import language
from quaid.text.stop_words import STOP_WORDS, read_lists, stop_words
from quaid.text.words import find_words, fold

if TYPE_CHECKING:
    from quaid.text.date_patterns import Window

_LISTS = {name: frozenset(words.split()) for name, words in read_lists("claim_words.txt").items()}
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*")
_THOUSANDS = r",(?=\d{3}\b)"
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty""".split()  # noqa: SIM905
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
     "hundred": "100", "thousand": "1000", "million": "1000000", "dozen": "12", "once": "1", "twice": "2"}  # fmt: skip
_NEGATIONS = _LISTS["negations"]
"""Words with `n't` are negations too."""
_OF_MANY = frozenset({"want", "wants", "like", "likes", "love", "loves", "need", "needs", "dislikes", "owns", "plans"})
"""What says by itself no attribute: one may want or own many things at once."""
_OPENERS = _LISTS["openers"]
"""What begins a correction, before a comma or a colon."""
_OF_THE_PRESENT = frozenset({"now", "currently", "nowadays", "new"})
_OF_NUMBERS = frozenset({"am", "pm", "st", "nd", "rd", "th"})
_TELLING = _LISTS["telling"]
"""Small words that models find alike and people do not."""
_CARDINALS = {word: int(number) for word, number in _NUMBER_WORDS.items() if word not in {"dozen", "once", "twice"}} | {
    word: 2 + place // 3
    for place, word in enumerate(
        """zwei dos deux drei tres trois vier cuatro quatre fünf cinco cinq sechs seis six sieben siete sept
        acht ocho huit neun nueve neuf zehn diez dix""".split()  # noqa: SIM905
    )
}
_QUOTES = str.maketrans("‘’“”„", '\'\'"""')  # noqa: RUF001
_ARTICLES = _LISTS["articles"]
"""Articles and possessives, alone or with a preposition, at the beginning of a sentence."""

# Compiled by the first text that needs them, not by the import: `re` keeps what it has compiled.
_FINAL_STOP = r"(?:(?<![\s!#$&*-/:-@\[-`{-~])[.。।]|(?<=[^\W\d_])[!！])$"  # noqa: RUF001
"""A stop behind a sign may be a part of it: `*.`, `..`"""
_LEADING_THE = r"(?i)^the (?!few\b|little\b|less\b|many\b|more\b|most\b)"
_CONTRACTION = r"(?i)(\w+)'(t|m|re|ve|ll|s)(\W*)"
_SHORT_FOR = {"m": "am", "re": "are", "ve": "have", "ll": "will"}
_WITH_IS = frozenset({"he", "here", "it", "she", "that", "there", "what", "where", "who"})
"""Behind any other word `'s` may be a genitive."""
_GROUPED_DIGITS = r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])"
_TRAITS = [
    (
        rf"\b(?:(?:{be}) {trait} to (\w{{3,}}?)|(?:{have}) an? (?:(\w{{3,}}?)e?s? {noun}|{noun} to (\w{{3,}}?)))e?s?$",
        rf"{be[:2]} {noun} \1\2\3",
    )
    for be, have in (("is|am|are", "has|have"), ("was|were", "had"))
    for trait, noun in (("allergic", "allergy"), ("intolerant", "intolerance"), ("sensitive", "sensitivity"))
]
_CAPITALISED = r"(?:[AI]|[^\W\d_][^\W\d_A-Z]+)(?:['-][^\W\d_A-Z]+)*[,;:]?"
_SENTENCE_END = r"(?s)[^.!?:]*[.!?:].*\s"
_YEAR = r"\b(?:19|20)\d\d\b"
_VAGUE = r"(?i)\b(?:few|several|some|shortly|soon|around|about|roughly|circa|early|late|mid)\b"
_VAGUE_LEAD = r"(?i)\b(?:around|about|roughly|circa|early|late|mid)[\s-]*$"
_SIDE = r"(?i)\b(?:before|after)\b"
_WEEKDAY = r"(?i)(?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SENTENCES = r"(?<=[.!?])\s+|\n"
_CLAUSE = (
    r"(?i)[,;:()\u2013\u2014]|\s-\s|\b(?:but|and|because|although|aber|und|sondern|weil|pero|y|mais|et|e|ma|en|maar)\b"
)
_IN_PLACE = r"(?i)\b(?:instead of|rather than|no longer|anstatt|statt|en lugar de|au lieu de)\b"
_EMPHASIS = (
    r"(?i)\b(?:can['’]?t wait|not (?:just|only)|couldn['’]?t be|no (?:doubt|problem|worries))\b|^no(?:[,.!]| wait\b)"  # noqa: RUF001
)
_OPENS = r"[\s,]*\($"
_SLACK = timedelta(days=7)


class Reading:
    """A text as it is compared; all but its words is looked for when it is asked for.

    `words` are in lower case and without the `'s` of a genitive, and so is every word below.
    """

    def __init__(self, text: str) -> None:
        self.text = fold(text.replace("’", "'"))  # noqa: RUF001
        self._in_order = [word.lower().removesuffix("'s") for word in _WORD.findall(self.text)]
        self.words = frozenset(self._in_order)

    @cached_property
    def negations(self) -> int:
        """The number of negations."""
        return sum(word in _NEGATIONS or word.endswith("n't") for word in self._in_order)

    @cached_property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """Each number, in digits, with the word behind it, which mostly is what is counted; in their order."""
        return tuple(
            (_NUMBER_WORDS.get(word) or re.sub(_THOUSANDS, "", word), following.rstrip("s"))
            for word, following in zip_longest(self._in_order, self._in_order[1:], fillvalue="")
            if word[0].isdecimal() or word in _NUMBER_WORDS
        )

    @cached_property
    def capitalised(self) -> tuple[tuple[str, bool], ...]:
        """Each capitalised word, and whether it begins a sentence (no article then); in their order."""
        found, begins, is_initial, end = [], True, False, 0
        for match in _WORD.finditer(self.text):
            between = self.text[end : match.start()]
            begins = begins or (not is_initial and re.match(_SENTENCE_END, between) is not None)
            word = match[0].lower().removesuffix("'s")
            if match[0][0].isupper() and not (begins and word in _ARTICLES):
                found.append((word, begins))
            begins, is_initial, end = False, len(match[0]) == 1, match.end()
        return tuple(found)

    @cached_property
    def uncapitalised(self) -> frozenset[str]:
        """The words that are written in small letters somewhere."""
        return frozenset(word.removesuffix("'s") for word in _WORD.findall(self.text) if word.islower())


def is_same_claim(one: str, other: str) -> bool:
    """Return whether both texts are the same words in the same order, as `normal_form` writes them. Where one of them
    has no capital letter at all, names may be in small letters.
    """
    left, right = normal_form(one), normal_form(other)
    return left == right or ((one == one.lower() or other == other.lower()) and claim_key(one) == claim_key(other))


def claim_key(text: str) -> str:
    """Return what is equal for all texts that make the same claim, and for few others."""
    return " ".join(map(_decapitalise, normal_form(text).split()))


@lru_cache(maxsize=8192)
def normal_form(text: str) -> str:
    """Return the words of `text`, with all signs on them, in the form in which statements that say the same are equal.

    These make no difference: a final full stop, the shape of quotation marks, `the` or a capital at the very beginning,
    contractions, numbers in words or digits, and whether one has an allergy or is allergic. All else does: commas tell
    the members of a list apart, capitals tell `Polish` from `polish`, and signs are what differs in code.
    """
    text = " ".join(unicodedata.normalize("NFC", text).translate(_QUOTES).split())
    text = re.sub(_LEADING_THE, "", text[:-2] + re.sub(_FINAL_STOP, "", text[-2:]))
    if "," in text:
        text = re.sub(_GROUPED_DIGITS, lambda number: number[0].replace(",", ""), text)
    text = " ".join(_with_digits(map(_in_full, text.split())))
    if any(trait in text for trait in ("allerg", "intoleran", "sensitiv")):
        for pattern, form in _TRAITS:
            text = re.sub(pattern, form, text)
    first, space, rest = text.partition(" ")
    return f"{_decapitalise(first)}{space}{rest}"


def difference(one: str, other: str) -> str | None:
    """Return what tells two statements apart for certain: `dates`, `numbers`, `names`, `words` or `negation`. None if
    nothing does: that one says more is not a difference.
    """
    left, right = _understand(one, other), _understand(other, one)
    if left.is_negated != right.is_negated:
        return "negation"
    if not _all_meet(left.windows, right.windows) and not _all_meet(right.windows, left.windows):
        return "dates"
    shared_units = {unit for _, unit in left.numbers} & {unit for _, unit in right.numbers}
    for unit in (None, *shared_units):  # 2 cats and 3 dogs, 3 cats and 2 dogs
        if _each_has_more(*({number for number, of in side.numbers if unit in {None, of}} for side in (left, right))):
            return "numbers"
    if _each_has_more(left.words & _TELLING, right.words & _TELLING):
        return "words"
    if not (left.words.issuperset(right.names) or right.words.issuperset(left.names)):
        return "names"
    shared = [
        [name for name in side if name in left.names and name in right.names] for side in (left.names, right.names)
    ]
    return None if shared[0] == shared[1] else "names"


def list_values(text: str) -> frozenset[tuple[str, str]]:
    """Return each number in a text with the word behind it, which mostly is its unit; without those of dates."""
    return _understand(text, text).numbers


@lru_cache(maxsize=8192)  # every fact of an answer is compared with every other
def _claim_words(text: str) -> list[str]:
    """Return the words of a statement without the signs next to them, without what opens a correction (`Actually,`) and
    without `now` and `new`.
    """
    words = normal_form(text).split()
    while words and (words[0] == "actually" or words[0][-1] in ",:;") and words[0].rstrip(",;:") in _OPENERS:
        words = normal_form(" ".join(words[1:])).split()
    return [word for each in words if (word := each.strip(",;:")) not in _OF_THE_PRESENT]


def has_other_value(one: str, other: str) -> bool:
    """Return whether two statements differ in one stretch of words behind the first, as those of two values of one
    attribute do. They share two words that say something, and not names alone: those are of the subject. Of two
    numbers or dates one such word is enough.
    """
    left, right = _claim_words(one), _claim_words(other)
    if left[:1] != right[:1]:
        return False
    shorter = min(len(left), len(right))
    first = next((n for n in range(shorter) if left[n] != right[n]), shorter)
    last = next((n for n in range(shorter - first) if left[-1 - n] != right[-1 - n]), shorter - first)
    same = {*left[:first], *left[len(left) - last :]} - STOP_WORDS
    if not same or first == 0 or first + last >= shorter:
        return False
    if len(same) > 1 and any(word.islower() for word in same - {*left[:1]} - _OF_MANY):
        return True
    return all(_is_quantity(" ".join(words[first : len(words) - last])) for words in (left, right))


def _is_quantity(text: str) -> bool:
    """Return whether a part of a statement is nothing but numbers, times and dates."""
    dated = "on " + re.sub(r"(?<=day)s\b", "", text)  # `Mondays` is a date too
    words = _without_dates(dated, 2000)[2].words - STOP_WORDS
    return all(word[0].isdecimal() or word in _OF_NUMBERS for word in words)


def is_about_others(one: str, other: str) -> bool:
    """Return whether both name somebody or something, and nothing that both name."""
    left, right = _understand(one, other), _understand(other, one)
    has_names = bool(left.names and right.names)
    return has_names and right.words.isdisjoint(left.names) and left.words.isdisjoint(right.names)


def is_denied(statement: str, source: str) -> bool:
    """Return whether one of `statement` and the clause of `source` that it is about is a denial, and not the other.

    Without a clause that has half of the words there is nothing to compare.
    """
    usual = stop_words(language(statement) or "en") | _NEGATIONS
    wanted = {_stem(word) for word in find_words(statement) if word not in usual}
    is_negated, shares = _denies(statement), dict[int, set[bool]]()
    for sentence in (each for each in re.split(_SENTENCES, source) if not each.endswith("?")):
        for clause in re.split(_CLAUSE, sentence):
            words = {_stem(word) for word in find_words(clause) if word not in usual}
            shared = len(wanted & words)
            if shared and 2 * shared >= min(len(wanted), len(words)):
                # `A, not B` may be worded as `not B`, and never as `B`.
                shares.setdefault(shared, set()).add(_denies(sentence if is_negated else clause))
    return bool(shares) and shares[max(shares)] == {not is_negated}


def _denies(text: str) -> bool:
    return Reading(re.sub(_EMPHASIS, "", text)).negations > 0 or re.search(_IN_PLACE, text) is not None


def find_lost_detail(winner: str, dropped: str) -> str | None:
    """Return a number (not of a date) or a name that `dropped` has and `winner` has not."""
    have, had = _understand(winner, dropped), _understand(dropped, winner)
    counted = {"1", *(number for number, _ in have.numbers)}  # `one of them` counts nothing
    lost = [number for number, _ in sorted(had.numbers) if number not in counted]
    lost += [name for name in had.names if name not in have.words]
    return lost[0] if lost else None


def find_lost_words(merged: str, dropped: str) -> list[str]:
    """Return the content words of `dropped` that `merged` has in no form; those of dates are compared as dates."""
    usual = stop_words(language(dropped) or "en") - _TELLING - _NEGATIONS
    have = {"1", *map(_stem, find_words(merged))}  # `one of them` counts nothing
    undated = _without_dates(dropped, _latest_year(dropped) or 2000)[2].text
    return [word for word in dict.fromkeys(find_words(undated)) if word not in usual and _stem(word) not in have]


def problem_of(statement: str, sources: Sequence[str], names: str = "") -> str | None:
    """Return why `statement` is not a wording of all that `sources` say: it loses or adds a number, a date, a name or a
    negation. None if it does not. Those in `names` may be added.
    """
    together = " ".join(sources)
    merged = _understand(statement, together)
    each = [_understand(source, together) for source in sources]
    for source in sources:
        if lost := find_lost_detail(statement, source):
            return f"{lost!r} is lost"
    windows = [window for part in each for window in part.windows]
    if not _all_meet(windows, merged.windows):
        return "a date is lost"
    if not _all_meet(merged.windows, windows):
        return "a date is added"
    words = Reading(names).words.union(*(part.words for part in each))
    numbers = {number for part in each for number, _ in part.numbers}
    written, given = ({number for number, _ in Reading(text).numbers} for text in (statement, together))
    added = sorted(written - given)
    added += [number for number, _ in sorted(merged.numbers) if number not in numbers]
    added += [name for name in merged.names if name not in words]
    if added:
        return f"{added[0]!r} is added"
    return "a negation is lost or added" if merged.is_negated != any(part.is_negated for part in each) else None


def _decapitalise(word: str) -> str:
    """Return a word that only begins with a capital in small letters; `US`, `C` and `getUser` as they are."""
    is_usual = word[1:] == word[1:].lower() and re.fullmatch(_CAPITALISED, word)
    return word.lower() if is_usual else word


def _stem(word: str) -> str:
    """Return a word without what an English ending adds, if three letters are left; a number word as digits."""
    return re.sub(r"(?<=\w{3})(?:ies|ied|ing|ed|es|[seyd])$", "", str(_CARDINALS.get(word, word)))


def _in_full(word: str) -> str:
    """Return a word as it is, or as two words where it is short for them."""
    found = re.fullmatch(_CONTRACTION, word) if "'" in word else None
    if found is None:
        return word.replace("annot", "an not") if word.lower().startswith("cannot") else word
    first, short, signs = found[1], found[2].lower(), found[3]
    if short == "t" and first[-1] in "nN":
        return f"{first if first.lower() == 'can' else 'will' if first.lower() == 'won' else first[:-1]} not{signs}"
    second = _SHORT_FOR.get(short) or ("is" if short == "s" and first.lower() in _WITH_IS else "")
    return f"{first} {second}{signs}" if second else word


def _with_digits(words: Iterable[str]) -> list[str]:
    """Return `words` with `two`, `twenty-one` and `2 hundred` as digits."""
    written: list[str] = []
    for word in words:
        head, _, tail = word.partition("-")
        stem = head.rstrip(",;:")
        number = _CARDINALS.get(stem.lower())
        last = tail.rstrip(",;:")
        unit = _CARDINALS.get(last.lower(), 0)
        if number is None or (number >= 100 and not (written and re.fullmatch(r"\d{1,3}", written[-1]))):
            written.append(word)
        elif number >= 100:
            written[-1] = f"{int(written[-1]) * number}{word[len(stem) :]}"
        elif number >= 20 and 0 < unit < 10:
            written.append(f"{number + unit}{tail[len(last) :]}")
        else:
            written.append(f"{number}{word[len(stem) :]}")
    return written


def _each_has_more(left: Collection[str], right: Collection[str]) -> bool:
    return bool(set(left) - set(right) and set(right) - set(left))


class _Meaning(NamedTuple):
    """The parts of a text that must not be mixed up with another's: `numbers` and `names` leave out those of its dates.

    A named tuple, as a dataclass takes half a millisecond of every start to make.
    """

    windows: tuple[Window, ...]
    numbers: frozenset[tuple[str, str]]
    names: tuple[str, ...]
    words: frozenset[str]
    is_negated: bool


@lru_cache(maxsize=8192)  # three tasks look at the same pairs
def _understand(text: str, other: str) -> _Meaning:
    year = _latest_year(text) or _latest_year(other) or 2000
    windows, whole, undated = _without_dates(text, year)
    _, whole_other, _ = _without_dates(other, _latest_year(other) or year)
    # Capitalised words in the midst of a sentence; at its beginning only those that neither text has in small letters.
    names = dict.fromkeys(
        word
        for word, begins in undated.capitalised
        if len(word) > 1  # `US` is the `U.S.` too
        and word.partition("'")[0] not in STOP_WORDS
        and word not in _NUMBER_WORDS
        and not (begins and (word.endswith("ing") or word in whole.uncapitalised or word in whole_other.uncapitalised))
    )
    return _Meaning(windows, frozenset(undated.numbers), tuple(names), whole.words, whole.negations > 0)


def _latest_year(text: str) -> int | None:
    return max(map(int, re.findall(_YEAR, text)), default=None)


@lru_cache(maxsize=32768)  # a text is in many pairs
def _without_dates(text: str, year: int) -> tuple[tuple[Window, ...], Reading, Reading]:
    """Return when a text says that something was, and the text with and without its dates; `year` is that of dates
    without.
    """
    mentions = find_dates(text, datetime(year, 12, 31, tzinfo=UTC))
    undated = text
    for mention in reversed(mentions):
        first, last = mention.span
        undated = f"{undated[:first]} . {undated[last:]}"
    windows: list[Window] = []
    for place, mention in enumerate(mentions):
        following = mentions[place + 1] if place + 1 < len(mentions) else None
        # `(8-9 July)` after a date explains it.
        if following is not None and re.fullmatch(_OPENS, text[mention.span[1] : following.span[0]]):
            continue
        if len(mentions) > 1 and re.fullmatch(_WEEKDAY, mention.text):
            continue
        start, end = mention.start, mention.end
        lead = text[max(0, mention.span[0] - 12) : mention.span[0]]
        # Vague times are as wide as they may be.
        if re.search(_VAGUE, mention.text) or re.search(_VAGUE_LEAD, lead):
            side = re.search(_SIDE, mention.text)
            if side is not None:  # `a few weeks before 15 July`: any day until then
                for anchor in find_dates(mention.text[side.end() :], datetime(end.year, 12, 31, tzinfo=UTC)):
                    start, end = min(start, anchor.start), max(end, anchor.end)
            start, end = max(start, date.min + _SLACK) - _SLACK, min(end, date.max - _SLACK) + _SLACK
        windows.append((start, end))
    whole = Reading(text)
    return tuple(windows), whole, Reading(undated) if mentions else whole


def _all_meet(windows: Iterable[Window], others: Sequence[Window]) -> bool:
    """Return whether each of `windows` has a day in common with one of `others`."""
    return all(any(window[0] <= other[1] and other[0] <= window[1] for other in others) for window in windows)
