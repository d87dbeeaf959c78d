"""What a question marks itself: quoted phrases, to be found as they stand, and the names in wikilinks."""

from __future__ import annotations

import re

MOST_PHRASES = 8
LONGEST_PHRASE = 200

_MARKS = frozenset("\"'“„«‘")  # noqa: RUF001 - people type all of these

# Compiled when a question has a mark: `re` keeps what it has compiled, and most questions have none. An inch sign
# follows its number and an apostrophe its letter, so neither opens. No inner part may hold an opening mark, else a row
# of unclosed ones would be read to its end again and again.
_QUOTED = r"""(?xi)
      (?<![^\W_])(?<!")"(?P<straight>[^\s"][^"\n]*)"(?![^\W_])
    | “(?P<curly>[^“”"\n]+)[”"]
    | „(?P<low>[^„“”\n]+)[“”]
    | «(?P<angle>[^«»\n]+)»
    | (?<!\w)['‘](?!(?:tis|twas|til|em|cause|n|bout|round|\d\ds?)\b)
      (?: (?<=‘)(?P<single>[^‘\n]*?[^‘\s])’(?!\w)
        | (?<=')(?P<typed>[^\W_](?:[^'\n]|(?<=\w)'(?=\w))*?(?<!\s))'(?![\w'])
      )
"""  # noqa: RUF001
_WIKILINK = r"\[\[([^\[\]|#^\n]+)[^\[\]\n]*\]\]"


def find_phrases(text: str) -> tuple[str, ...]:
    """The quoted phrases of `text` in their order, once each, without their marks.

    `"…"`, `“…”`, `„…“`, `«…»` and, only where no apostrophe can be meant, `'…'` and `‘…’`.
    """  # noqa: RUF002
    if _MARKS.isdisjoint(text):
        return ()
    found = (match[match.lastgroup or 0] for match in re.finditer(_QUOTED, text))
    phrases = (" ".join(phrase.split()).strip(" ,.;:!?") for phrase in found)
    return tuple(dict.fromkeys(phrase for phrase in phrases if _is_worth_finding(phrase)))[:MOST_PHRASES]


def find_names(text: str) -> tuple[str, ...]:
    """The targets of the wikilinks in `text`: `Maya Chen` for `[[Maya Chen]]`, `[[entities/Maya Chen.md#Job|her]]`."""
    if "[[" not in text:
        return ()
    targets = (match[1].strip().rsplit("/", 1)[-1] for match in re.finditer(_WIKILINK, text))
    names = (" ".join(target.removesuffix(".md").split()) for target in targets)
    return tuple(dict.fromkeys(name for name in names if name))[:MOST_PHRASES]


def _is_worth_finding(phrase: str) -> bool:
    return len(phrase) <= LONGEST_PHRASE and sum(map(str.isalnum, phrase)) > 1
