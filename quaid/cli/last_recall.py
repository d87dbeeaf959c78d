"""`quaid recall --last`: what an agent or its owner was given last, for what evidence, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quaid.cli.explanation import draw_evidence, list_left_out
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import clipped, line_width, milliseconds, moment, paragraphs, section, styled
from quaid.errors import QuaidError
from quaid.local import recall_trail
from quaid.local.recall_trail import Reasons
from quaid.model import Hit
from quaid.place import state_folder

if TYPE_CHECKING:
    from quaid.memory import Memory

_DOORS = {"hook": "before a prompt", "mcp": "asked by an agent", "cli": "asked here", "python": "asked by a program"}


def show_last(invocation: Invocation, session: str | None) -> None:
    """Show the last recall, or the last of `session`."""
    with invocation.open() as memory:
        told = recall_trail.read_last(state_folder(memory.root), session, memory.owners)
        if told is None:
            is_off = memory.settings.recall.log == "off"
            whose = f" of session {session}" if session else ""
            why = "recall.log is off. Keep some with: quaid config recall.log hashes"
            invocation.notify(why if is_off else f"No recall{whose} is known yet. Ask something: quaid recall QUERY")
            return
        hits = [_hit_of(memory, *given) for given in told.given]
    given = [{"id": hit.id, "text": hit.text, "score": hit.score, "evidence": hit.evidence} for hit in hits]
    left_out = [{"id": each, "score": score, "why": why} for each, score, why in told.left_out]
    shape = {**told._asdict(), "given": given, "left_out": left_out}
    del shape["asker"]
    invocation.respond(_render(told, hits, left_out), **shape)


def _hit_of(memory: Memory, hit_id: str, score: float, evidence: Mapping[str, float]) -> Hit:
    """The hit as the memory has it today; the log keeps no texts."""
    hit = Hit(hit_id, "", "(no longer there)", score, "", evidence=evidence)
    try:
        view = memory.get(hit_id)
    except QuaidError:
        return hit
    return replace(hit, kind=view.document.kind, text=" ".join(view.text.split()), path=view.document.path)


def _render(told: Reasons, hits: list[Hit], left_out: list[dict[str, Any]]) -> str:
    best = max((1.0, *(hit.score for hit in hits)))
    heads = [
        f"{styled(f'{hit.score:.2f}', 'cyan')}  {clipped(f'{hit.id}: {hit.text}', line_width() - 6)}" for hit in hits
    ]
    asked = [moment(told.at), _DOORS.get(told.door, told.door), *([f"session {told.session}"] if told.session else [])]
    rows = {
        "when": ", ".join(asked),
        "question": told.query or "(its words are not kept: recall.log)",
        "in doubt": told.doubt or "no",
        "missing": ", ".join(told.degraded) or "nothing",
        "took": milliseconds(told.took_ms),
    }
    return paragraphs(
        section("Recall", rows.items()),
        styled("Given", "bold") if hits else styled("Nothing was given", "bold"),
        *(f"{head}\n{draw_evidence(hit, best)}" for head, hit in zip(heads, hits, strict=True)),
        section("By themselves", ((hit.id, told.weighed[hit.id]) for hit in hits if hit.id in told.weighed)),
        section("Left out", list_left_out({"cut": left_out})),
    )
