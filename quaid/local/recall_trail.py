"""The reasons of each recall, as ids and numbers: a JSON line in log/recall.log of the state folder.

It says what was given to whom, for what evidence, and what was left out and why. Texts of memories are never in it;
the question is where `recall.log` allows it, and with `off` there is no line.
"""

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from quaid.local import state_files
from quaid.place import LOG_DIR
from quaid.redaction import admit

if TYPE_CHECKING:
    from quaid.local.recall_log import Storage
    from quaid.model import Recall

LOG_FILE = "recall.log"
MAX_BYTES = 1_000_000
MAX_LEFT_OUT = 20


class Reasons(NamedTuple):
    """One recall. `given` are (id, score, evidence) and `left_out` (id, score, why), best first; `query` is None where
    its words may not be stored. `weighed` says of what went before a prompt what spoke for it by itself, by id.
    """

    at: str
    door: str
    session: str
    query: str | None
    took_ms: float
    doubt: str | None
    degraded: tuple[str, ...]
    given: tuple[tuple[str, float, Mapping[str, float]], ...]
    left_out: tuple[tuple[str, float, str], ...]
    weighed: Mapping[str, str] = MappingProxyType({})
    asker: str = "default"
    """The owner who asked."""


def add(
    state: Path,
    storage: "Storage",
    found: "Recall",
    *,
    door: str,
    session: str,
    asker: str,
    withheld: Mapping[str, str],
    weighed: Mapping[str, str] | None = None,
) -> None:
    """Add a line on an answer. `withheld` are the hits that were not given after all, with the reason."""
    if storage == "off":
        return
    cut = cast("Iterable[Mapping[str, Any]]", found.trace.get("cut", ()))
    left_out = [(hit.id, hit.score, withheld[hit.id]) for hit in found.hits if hit.id in withheld]
    left_out += [(str(item["id"]), float(item["score"]), str(item["why"])) for item in cut]
    reasons = Reasons(
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        door=door,
        session=admit(session).text,
        query=admit(found.query).text if storage == "text" else None,
        took_ms=round(found.took_ms, 1),
        doubt=found.doubt,
        degraded=found.degraded,
        given=tuple(
            (hit.id, hit.score, {name: round(share, 3) for name, share in hit.evidence.items()})
            for hit in found.hits
            if hit.id not in withheld
        ),
        left_out=tuple(left_out[:MAX_LEFT_OUT]),
        weighed=dict(weighed or {}),
        asker=asker,
    )
    path = state / LOG_DIR / LOG_FILE
    with suppress(OSError):  # no recall fails for its log
        state_files.rotate(path, MAX_BYTES)
        state_files.append(path, json.dumps(reasons._asdict(), ensure_ascii=False))


def read_last(state: Path, session: str | None = None, askers: Collection[str] | None = None) -> Reasons | None:
    """Return the last recall, or the last of `session`, of those by one of `askers`; None where there is none."""
    asked = (entry for entry in list_recalls(state) if askers is None or entry.asker in askers)
    return next((entry for entry in asked if session is None or entry.session == session), None)


def list_recalls(state: Path) -> Iterator[Reasons]:
    """Yield the recalls of the log, the last first; lines that cannot be read are left out."""
    path = state / LOG_DIR / LOG_FILE
    for each in (path, path.with_name(f"{LOG_FILE}.1")):
        with suppress(OSError):
            for line in reversed(state_files.read(each).decode("utf-8", "replace").splitlines()):
                with suppress(ValueError, TypeError):
                    entry = Reasons(**json.loads(line))
                    given = tuple((str(one), float(score), dict(why)) for one, score, why in entry.given)
                    left_out = tuple((str(one), float(score), str(why)) for one, score, why in entry.left_out)
                    yield entry._replace(given=given, left_out=left_out, degraded=tuple(entry.degraded))
