"""The words of a commit: the message Quaid writes, and the log read back into commits."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from quaid.history.repository import Repository
from quaid.model import Commit, Message
from quaid.redaction import admit
from quaid.text.invisible import escaped

SUBJECT_LENGTH = 72
LOG_FORMAT = "/ %H %aI %an %ae %s %b".replace(" ", "%x00")
_PICKED = "(cherry picked from commit "
"""The line that `git cherry-pick -x` puts among the trailers."""
_TRAILER = re.compile(r"([A-Za-z0-9-]+)[ \t]*:[ \t]*(.*)")


def render(message: Message) -> str:
    """Return the text for git, without secrets: subject of at most 72 characters, body, trailers as last paragraph."""
    subject = on_one_line(admit(message.subject).text)
    if len(subject) > SUBJECT_LENGTH:
        words = subject[:SUBJECT_LENGTH].rpartition(" ")[0]
        shown = words if len(words) > SUBJECT_LENGTH // 2 else subject[: SUBJECT_LENGTH - 1]
        subject = shown.rstrip(" ,;:.") + "…"
    trailers = "\n".join(f"{key}: {on_one_line(admit(value).text)}" for key, value in message.trailers)
    parts = (subject, re.sub(r"(?im)^(?=quaid-)", " ", escaped(admit(message.body).text.strip("\n"))), trailers)
    return "\n\n".join(part for part in parts if part) + "\n"


def on_one_line(text: str) -> str:
    """A text as a subject or the value of a trailer."""
    return escaped(" ".join(text.split()))


def build_commit(fields: Sequence[str], repository: Repository, files: Sequence[str]) -> Commit:
    """A commit from what `LOG_FORMAT` prints of it and the paths it touches. Its trailers are a last paragraph that is
    nothing else.
    """
    commit_id, when, author, email, subject, body = fields
    with suppress(ValueError, OverflowError):
        when = datetime.fromisoformat(when).astimezone(UTC).isoformat().replace("+00:00", "Z")
    # Not left to git's `%(trailers)`, which sees none in a body that shows a scissors line or a patch.
    body = body.strip("\n")
    text, _, block = body.rpartition("\n\n")
    lines = re.sub(r"\n[ \t]+", " ", block).split("\n")
    found = [_TRAILER.fullmatch(line) for line in lines if not line.startswith(_PICKED)]
    trailers: dict[str, tuple[str, ...]] = {}
    for key, value in (match.groups() for match in found if match and None not in found):
        trailers[key] = (*trailers.get(key, ()), value.strip())
    text = text.rstrip("\n") if None not in found else body
    inside = tuple(repository.to_vault(path) for path in files if repository.is_in_vault(path))
    return Commit(commit_id, when, author, email, subject, text, trailers, inside)


def grep_trailer(key: str, value: str) -> str:
    """The option of `git log` that finds a trailer, and any line of a body that looks the same."""
    return f"--grep=^{escape(key)}: *{escape(value)}$"


def escape(text: str) -> str:
    """`text` as an extended regular expression that matches just it."""
    return re.sub(r"([][(){}.*+?^$|\\])", r"\\\1", text)
