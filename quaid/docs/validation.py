"""Faults that no edit may add to a document: what nobody has stated, hidden text, orders, secrets, lost structure.

The whole documents before and after are compared, because an edit that is harmless alone may form something else with
the text around it. Texts have bare newlines here.
"""

import re
from collections import Counter
from collections.abc import Iterator

from quaid.docs.changes import NUMBER, OPTION
from quaid.redaction import admit
from quaid.text.invisible import without_unseen
from quaid.text.quoting import neutralise
from quaid.text.stop_words import STOP_WORDS, read_lists
from quaid.vault import headings, markdown, replacements

_MAX_QUOTED = 80
_CODE = re.compile(r"`([^`\n]+)`")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HIDING = re.compile(
    r"%%|!\[\[|^ {0,3}\[[^\]\n]+\]:[ \t]*(?:#|<>)[^\n]*|</?(?:template|noscript|details|style)\b"
    r"|<(?:object|embed|applet|link|meta|base|form|frame)\s[^<>]*=|<[a-z][^<>]*\b(?:hidden|style[ \t]*=)[^<>]*>"
    r"|<[a-z][^<>]*(?:[\s/'\"]on[a-z]{3,}\s*=|=\s*['\"]?\s*(?:javascript|vbscript|data):)",
    re.IGNORECASE | re.MULTILINE,
)
"""Parts that machines see and readers do not: Obsidian's comments and embeds, links that lead nowhere, folded HTML; and
HTML that does something where the page is shown, besides what is disarmed: scripts, pictures. No `List<Form>`.
"""
_DISARMED = re.compile(r"[^\n]{0,200}∶|♯+[^\n]*|[‹❲][^›❳\n]*[›❳]?\S*")  # noqa: RUF001 - as neutralise writes them
_PATH = r"(?<![\w/.~-])(?:https?://[^\s)>\]`]+|[\w.~-]*/[\w./-]*[\w-]|[\w-]+\.[a-z][a-z0-9]{1,4}(?![\w.]))"
_TERM = re.compile(
    rf"(?P<ordinal>^\s*\d{{1,3}}[.)]\s)|(?P<option>{OPTION})|(?P<path>{_PATH})|(?P<number>{NUMBER})|(?P<word>\w+)"
)
_WORD = re.compile(r"\w+")
_BLOCK = re.compile(r"(?: {4}|\t)(?!\s*(?:[-*+]|\d+[.)])\s)")
"""The beginning of a line in an indented block of code."""
_LETTERS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MIN_LETTERS = 4
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ically|ings?|ions?|i?ed|i?es|ers?|ly|[seiy]){1,4}+$")
_FREE = STOP_WORDS | {"true", "false", "null", "none"}
"""Words that code may have anywhere."""


def _stem(word: str) -> str:
    """Return a word without its ending, as far as words of one meaning share it: `changes`, `changed` -> `chang`."""
    return _ENDING.sub("", word.casefold())


_COMMON = frozenset(map(_stem, {*read_lists("documentation_words.txt")["en"].split(), *STOP_WORDS}))
"""Words of every documentation, which say nothing about what one is about."""


def find_invented(before: str, after: str, changed: str, material: str = "") -> list[str]:
    """Return what `after` states and neither `before` nor the sources have: numbers, options, paths and names of code
    that are not in what `changed`, and words of prose that are in no `material`.

    A name of code is known when its parts are: `Models.ask` where something says `Models` and something `ask`. Of a
    path the whole name of the file is.
    """
    known = f"{before}\n{changed}"
    terms = {*_WORD.findall(known), *(found[0] for found in _TERM.finditer(known))}
    stems = _COMMON.union(map(_stem, _LETTERS.findall(_CAMEL.sub(" ", f"{before}\n{material}"))))

    def is_known(term: str, kind: str | None, *, is_code: bool) -> bool:
        if kind == "ordinal" or term in terms:
            return True
        if kind == "word" and term.isalpha() and not is_code:
            return len(term) < _MIN_LETTERS or _stem(term) in stems
        if kind == "option":
            return term.strip("-").replace("-", "_") in terms
        parts = [part for part in _WORD.findall(term) if not (part.isupper() and part.isalpha())]  # no NAME
        is_named = all(part in terms or part.lower() in _FREE for part in parts)
        return kind != "number" and is_named and ("/" not in term or term.rpartition("/")[2] in known)

    invented: list[str] = []
    old_lines = set(before.split("\n"))
    for line, prose in zip(after.split("\n"), markdown.blank(after, "fence", "code").split("\n"), strict=True):
        if line not in old_lines and not line.lstrip().startswith(("```", "~~~")):
            is_block = _BLOCK.match(line) is not None
            for found in _TERM.finditer(line):
                is_code = is_block or not prose[found.start() : found.end()].strip()
                if not is_known(found[0], found.lastgroup, is_code=is_code):
                    invented.append(found[0])
    return list(dict.fromkeys(invented))


def faults(before: str, after: str) -> Iterator[str]:
    """Yield what is wrong with changing `before` to `after`, a sentence each."""
    if before[: headings.text_start(before)] != after[: headings.text_start(after)]:
        yield "what stands between --- lines at the top must stay as it is"
    if not after[headings.text_start(after) :].strip():
        yield "nothing would be left of the doc"
    if _COMMENT.findall(_CODE.sub("", before)) != _COMMENT.findall(_CODE.sub("", after)):
        yield "comments (<!-- … -->) must stay as they are, and none may come"
    for problem, old, new in (
        ("hides something, or has HTML that is carried out", _HIDING.findall(before), _HIDING.findall(after)),
        ("acts on its reader, with an order or characters nobody sees", _find_acting(before), _find_acting(after)),
    ):
        if more := Counter(new) - Counter(old):
            yield f"`replace` {problem}: {min(more)[:_MAX_QUOTED]!r}"
    old_lines = set(before.split("\n"))
    new_lines = "\n".join(line for line in after.split("\n") if line not in old_lines)
    admitted = admit(new_lines)
    if admitted.text != new_lines:
        yield f"`replace` has a secret: {', '.join(sorted(set(admitted.redacted))) or 'private'}"
    if replacements.has_open_fence(after) and not replacements.has_open_fence(before):
        yield "a code fence is left open"
    titles, known = (Counter(section.titles for section in headings.sections(text)) for text in (after, before))
    twice = [titles_[-1] for titles_, count in titles.items() if titles_ and count > max(1, known[titles_])]
    if twice:
        yield f"the heading {twice[0]!r} would be there twice"


def _find_acting(text: str) -> list[str]:
    """Return the parts of `text` that would act on its reader, and the characters that nobody sees."""
    unseen = Counter(text) - Counter(without_unseen(text))
    return [*unseen.elements(), *_DISARMED.findall(neutralise(text))]
