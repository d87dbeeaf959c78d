"""Secrets and private passages are taken out here of all that goes to a disk, a model, a log or an answer.

May import nothing of Quaid: every room calls it where all texts of a kind pass (`llm.Prompt.fill`, `history.messages`).
Begin with `admit`; what secrets look like is in detector.py, which takes 50 ms to load.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from quaid.redaction.name_hints import HINTS, may_have_number, may_name
from quaid.redaction.private_spans import PLACEHOLDER, without_private

VERSION = 2
"""Grows when redaction finds more than before: stored texts are then redacted again."""
_HINTS = (
    *HINTS,
    *("cred", "login", "log in", "sign", "user", "://", "bearer", "x-a", " -p", " -u", "identified", "cookie", "wifi:"),
    *("2fa", "otp", "mfa", "bindpw", "community", "zugangsdaten", "@", "code", "$", "/rp ", "net use"),
)
"""Without one of these words, or a run that could be a key or a phrase, nothing is a secret."""
_PATH = r"/(?:\.?[A-Z]?[a-z]+/)*\.?[A-Z]?[a-z]*"
"""A path of the system, `/home/maya/.local/state`: words have too little chance in them to be a key."""
_LONG_RUN = re.compile(rf"(?<![\w~.:*/+=-])(?!{_PATH}(?![\w~.:*/+=-]))[\w~.:*/+=-]{{20}}|-----")
_LONG_LIST = re.compile(r"(?:\d{1,3}\s?,\s?){20}|(?:[a-z]{3,8}[\s,]{1,3}(?:\d{1,2}[.)]?\s)?){11}[a-z]{3,8}")
_OUR_IDS = re.compile(r"(?<!\w)01[0-9a-hjkmnp-tv-z]{20,24}(?!\w)")
_OURS = re.compile(_OUR_IDS.pattern + r"|(?<![^\s\"'(])(?:entities|episodes|facts)/[a-z0-9/-]{1,200}\.md")
"""The ids and names that Quaid gives its notes: they are in every answer, and loading the detector takes 30 ms."""
_MAX_BEFORE = 300
"""Characters of the text before that can be the question whose answer is a secret."""


class Admitted(NamedTuple):
    """A text as it may be written, and the kind of each secret that was taken out, in the order in which kinds appear."""

    text: str
    redacted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocatedSecret:
    """A secret of `kind` and the number of the line it begins in. `text` distinguishes it from others; it must never be shown."""

    kind: str
    line: int
    text: str = field(repr=False)


def admit(text: str, *, after: str = "", keep_lines: bool = False) -> Admitted:
    """`text` without `<private>` spans and secrets; all else stays as it is, with `keep_lines` also the number of each
    line: what is taken out leaves its newlines. `after` is the text before it: `the password?` makes a secret of
    `swordfish`. Pure, idempotent, raises nothing.
    """
    text = without_private(text, keep_lines=keep_lines)
    after = after[-_MAX_BEFORE:]
    if not _may_tell(text) and not (after and text.strip() and may_name(after)):
        return Admitted(text, ())
    from quaid.redaction.detector import redact

    return Admitted(*redact(text, after=after, keep_lines=keep_lines))


def locate(text: str) -> tuple[LocatedSecret, ...]:
    """Return the secrets of `text` in their order, also those in `<private>` spans. Secrets in one line that have only
    been found together are the same only together.
    """
    if not _may_tell(text):
        return ()
    from quaid.redaction.detector import redact

    safe, _ = redact(text, keep_lines=True)
    found: list[LocatedSecret] = []
    for number, (held, left) in enumerate(zip(text.split("\n"), safe.split("\n"), strict=True), 1):
        if held == left:
            continue
        start = len(os.path.commonprefix([held, left]))  # noqa: RUF071 - of characters, not of paths
        end = len(held) - len(os.path.commonprefix([held[start:][::-1], left[start:][::-1]]))  # noqa: RUF071
        kinds = Counter(PLACEHOLDER.findall(left)) - Counter(PLACEHOLDER.findall(held))
        found += [LocatedSecret(kind, number, held[start:end]) for kind in kinds]
        if not kinds and found:  # a key goes on in this line
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{held}")
    return tuple(found)


def admit_name(name: str) -> str:
    """Return the name of a file without secrets; a placeholder has no character that is invalid in names."""
    return PLACEHOLDER.sub(r"redacted-\1", admit(name).text)


def admit_all(value: Any, *, keep_lines: bool = False) -> tuple[Any, tuple[str, ...]]:
    """`value`, of JSON's types, with every string in it admitted, a value in the context of its name, and
    the kinds of what was taken out. `keep_lines` as for `admit`.
    """
    kinds: list[str] = []

    def admitted(part: Any, name: str = "") -> Any:
        if isinstance(part, str):
            found = admit(part, after=name and f"{name}:", keep_lines=keep_lines)
            kinds.extend(found.redacted)
            return found.text
        if isinstance(part, dict):
            return {
                admitted(key): admitted(inner, key if isinstance(key, str) and "/" not in key else "")
                for key, inner in part.items()
            }
        if isinstance(part, list | tuple):
            return [admitted(inner, name) for inner in part]
        return part

    return admitted(value), tuple(kinds)


def admit_each(messages: Iterable[Mapping[str, object]], *, keep_lines: bool = False) -> Iterator[Any]:
    """Yield messages as `admit_all` returns them, each text in the context of the one before."""
    before = ""
    for message in messages:
        texts = {key: text for key in ("content", "text") if isinstance(text := message.get(key), str)}
        safe, _ = admit_all(
            {key: "" if key in texts else value for key, value in message.items()}, keep_lines=keep_lines
        )
        for key, text in texts.items():
            safe[key] = admit(text, after=before, keep_lines=keep_lines).text
            before = text
        yield safe


def admit_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request as it may leave the machine. Each text in a list is read separately: the vector of
    a text must not depend on its neighbours. The name of a model is a setting and stays as it is.
    """
    model = {name: payload[name] for name in ("model",) if name in payload}
    messages = {name: list(admit_each(payload[name], keep_lines=True)) for name in ("messages",) if name in payload}
    rest = {name: value for name, value in payload.items() if name not in ("model", "messages")}
    return {**model, **messages, **admit_all(rest, keep_lines=True)[0]}


def _may_tell(text: str) -> bool:
    """Return True if `text` may have a secret. Every text that is shown passes here: what costs time comes last."""
    without_ids = _OUR_IDS.sub("", text) if "01" in text else text
    lowered = without_ids.lower()  # a hint of two letters is in the ids of every third answer
    for hint in _HINTS:
        if hint in lowered:
            return True
    text = _OURS.sub("", text) if "01" in text or ".md" in text else text
    return _LONG_RUN.search(text) is not None or may_have_number(lowered) or _LONG_LIST.search(text) is not None
