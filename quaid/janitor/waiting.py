"""Learn from conversations that were stored while no model was there."""

from collections.abc import Sequence

from quaid.capture.extractor import ExtractOptions, Extractor
from quaid.errors import TROUBLE_FOR_ALL, count
from quaid.janitor.decision import SET_ASIDE, RunReport
from quaid.local.runs import Decision, Judgements, evidence_key
from quaid.open_vault import OpenVault
from quaid.vault import files, notes

EXTRACT = "extract"
MAX_LEARNED = 20
"""Conversations that one run learns from: an archive that was imported without a model takes several."""


def learn_waiting(vault: OpenVault, waiting: Sequence[str], judgements: Judgements, report: RunReport) -> None:
    """Learn from the first of the episodes `waiting`. One whose answer cannot be used is set aside until it, or the
    model, is another one.
    """
    extractor = Extractor(vault)
    model, facts, read = vault.models.describe().deep or "", 0, 0
    for path in waiting[:MAX_LEARNED]:
        key = evidence_key(EXTRACT, model, path, notes.content_hash(files.read_note(vault.root, path) or b""))
        problem = judgements.known([key]).get(key)
        if problem is None:
            done = extractor.extract_stored(path, ExtractOptions())
            report.usage += done.usage
            if isinstance(done.problem, TROUBLE_FOR_ALL):
                report.failed[EXTRACT] = str(done.problem)
                break
            if done.problem is None:
                facts, read = facts + len(done.facts), read + 1
                continue
            problem = str(done.problem)
            judgements.add(EXTRACT, {key: problem})
        report.held_back.append((Decision(EXTRACT, SET_ASIDE, key, (), f"learn from {path}", ""), problem))
    if read:
        report.remarks.append(f"Learned {count(facts, 'fact')} from {count(read, 'conversation')} that had waited.")
        vault.sync(None)
