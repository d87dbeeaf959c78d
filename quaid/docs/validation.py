"""Faults that no edit may add to a document: hidden text, orders, secrets, lost structure.

The whole documents before and after are compared, because an edit that is harmless alone may form something else with
the text around it. Texts have bare newlines here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from quaid.redaction import admit
from quaid.text.quoting import neutralise
from quaid.text.stop_words import STOP_WORDS
from quaid.vault import headings, replacements

MAX_NAMED = 3
_MAX_QUOTED = 80
_CODE = re.compile(r"`([^`\n]+)`")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HIDING = re.compile(
    r"%%|!\[\[|^ {0,3}\[[^\]\n]+\]:[ \t]*(?:#|<>)[^\n]*"
    r"|<[a-z][^<>]*\b(?:hidden|style[ \t]*=)[^<>]*>|<(?:template|noscript|details)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Parts that machines see and readers do not: Obsidian's comments and embeds, links that lead nowhere, folded HTML."""
_RUNNING = re.compile(
    r"<[a-z][^<>]*[\s/'\"]on[a-z]{3,}\s*=|<[a-z][^<>]*=\s*['\"]?\s*(?:javascript|vbscript|data):"
    r"|<(?:object|embed|applet|link|meta|base|form|frame)\s[^<>]*=|</style\b",
    re.IGNORECASE,
)
"""HTML that does something where the page is shown, besides what is disarmed: scripts, pictures. No `List<Form>`."""
_DISARMED = re.compile(r"[^\n]{0,200}∶|♯+[^\n]*|[‹❲][^›❳\n]*[›❳]?\S*")  # noqa: RUF001 - as neutralise writes them
_REPLACED = "<>[]:：#"  # noqa: RUF001
_TOKEN = re.compile(r"[^\s'\"()\[\]{}<>,;=|*]+")
_NAME = re.compile(r"[_/.:]|^-|[a-z][A-Z]")
_WORD = re.compile(r"\w+")
_LETTERS = re.compile(r"[^\W\d_]{4,}")
_LITERALS = frozenset({"true", "false", "null", "none"})


def invented(before: str, after: str, material: str) -> list[str]:
    """Return names of code between backticks that `after` has and neither `before` nor `material` know, as written.

    A name is known when its parts are: `Models.ask` where something says `Models` and something `ask`; of a path also
    the file's whole name.
    """
    known = f"{before}\n{material}"
    words = set(_WORD.findall(known))
    names: list[str] = []
    for span in _CODE.finditer(_new_lines(before, after)):
        code = span[1]
        found = list(_TOKEN.finditer(code))
        for token in found:  # all of it, or those of its words that do not look like plain words
            name = token[0].strip(".:/!?`")
            if name and (len(found) == 1 or _NAME.search(name) or code[token.end() : token.end() + 1] == "("):
                names.append(name)
    return list(dict.fromkeys(name for name in names if not _is_known(name, known, words)))


def find_added_words(new: str, text: str) -> list[str]:
    """Return words and numbers of `new` that `text` does not have; small words of English may come."""
    known = {word.casefold() for word in _LETTERS.findall(text)} | set(re.findall(r"\d+", text)) | STOP_WORDS
    found = [word for word in re.findall(r"[^\W\d_]{4,}|\d+", new) if word.casefold() not in known]
    return list(dict.fromkeys(found))


def faults(before: str, after: str) -> Iterator[str]:
    """Yield what is wrong with changing `before` to `after`, a sentence each."""
    if before[: headings.text_start(before)] != after[: headings.text_start(after)]:
        yield "what stands between --- lines at the top must stay as it is"
    if not after[headings.text_start(after) :].strip():
        yield "nothing would be left of the doc"
    if _comments(before) != _comments(after):
        yield "comments (<!-- … -->) must stay as they are, and none may come"
    if hiding := Counter(_HIDING.findall(after)) - Counter(_HIDING.findall(before)):
        yield f"`replace` hides something: {next(iter(hiding))[:_MAX_QUOTED]!r}"
    if running := Counter(_RUNNING.findall(after)) - Counter(_RUNNING.findall(before)):
        yield f"`replace` has HTML that is carried out where the page is shown: {next(iter(running))[:_MAX_QUOTED]!r}"
    if acting := sorted(_acting(after) - _acting(before)):
        yield f"`replace` has what acts on its reader, an order or characters nobody sees: {acting[0][:_MAX_QUOTED]!r}"
    new_lines = _new_lines(before, after)
    admitted = admit(new_lines)
    if admitted.text != new_lines:
        yield f"`replace` has a secret: {', '.join(sorted(set(admitted.redacted))) or 'private'}"
    if replacements.has_open_fence(after) and not replacements.has_open_fence(before):
        yield "a code fence is left open"
    old, new = (Counter(section.titles for section in headings.sections(text)) for text in (before, after))
    twice = [titles for titles, count in new.items() if titles and count > max(1, old[titles])]
    if twice:
        yield f"the heading {twice[0][-1]!r} would be there twice"


def _comments(text: str) -> list[str]:
    shown = _CODE.sub("", text)
    last = shown.rfind("-->") + 3 if "-->" in shown else 0  # what opens behind it never closes
    return _COMMENT.findall(shown[:last]) + ["<!--"] * shown.count("<!--", last)


def _acting(text: str) -> set[str]:
    """Return the parts of `text` that would act on its reader, and the characters that nobody sees."""
    shown = neutralise(text)
    if shown == text:
        return set()
    unseen = {char for char in Counter(text) - Counter(shown) if char not in _REPLACED}
    return unseen | set(_DISARMED.findall(shown))


def _new_lines(before: str, after: str) -> str:
    known = set(before.split("\n"))
    return "\n".join(line for line in after.split("\n") if line not in known)


def _is_known(token: str, known: str, words: set[str]) -> bool:
    parts = _WORD.findall(token)
    if token.startswith("-"):
        return "_".join(parts) in words or token in known
    name = token.rsplit("/", 1)[-1]
    if "/" in token and "." in name and name not in known:
        return False
    # A placeholder such as NAME, and a word of every language, may come.
    free = {part for part in parts if (part.isupper() and "_" not in part) or part.lower() in _LITERALS}
    return all(part in words or part.isdigit() or part in free for part in parts)
