"""`quaid doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from quaid import Memory
from quaid.cli.init import embed, fetch_model
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import styled
from quaid.errors import QuaidError
from quaid.model import Finding, Recall
from quaid.report.doctor import examine
from quaid.report.merging import set_up_merging
from quaid.trust import locate_vault

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


def run_doctor(
    ctx: typer.Context,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Download the embedding model first if it is missing.")
    ] = False,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="Start what is installed in other programs and check that it works.")
    ] = False,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="Look for secrets in the whole history, and do nothing else.")
    ] = False,
) -> int:
    """Check everything Quaid needs on this machine; exit code 1 when something is broken.

    Examples:
      quaid doctor
      quaid doctor --fetch
      quaid doctor --hooks
      quaid doctor --secrets
      quaid doctor --json | jq '.findings[] | select(.level != "ok")'
    """
    invocation: Invocation = ctx.obj
    root, remark = locate_vault(invocation.vault)
    if remark:
        invocation.say(remark)
    if secrets:
        return _tell_secrets(invocation)
    if fetch:
        with invocation.open() as memory:
            if fetch_model(invocation, memory, force=True) is None:
                embed(invocation, memory)
    with suppress(QuaidError, OSError), Memory.open(root) as memory:  # why it cannot be is a finding
        for done in set_up_merging(memory):
            invocation.say(done)
    findings = examine(root)
    if hooks:
        from quaid.agents.canary import check_hosts
        from quaid.agents.installation import this_machine

        def recall(root: Path, query: str) -> Recall:
            with Memory.open(root) as memory:
                return memory.recall(query)

        findings += check_hosts(this_machine(), invocation.say, lambda folder: Memory.create(folder)[0].close(), recall)
    ok = all(finding.level != "error" for finding in findings)
    shape = {"ok": ok, "vault": root, "findings": [asdict(finding) for finding in findings]}
    invocation.tell(lambda: render_findings(findings), **shape)
    return 0 if ok else 1


def _tell_secrets(invocation: Invocation) -> int:
    """Name where the history holds secrets, never the secrets themselves; 1 when there are some."""
    from quaid.report.secrets import find_secrets

    with invocation.open() as memory, invocation.progress(memory) as bar:
        found = find_secrets(memory.root, bar.update)
    lines = [
        f"{secret.kind}  {secret.path or 'a message'}  {secret.commit[:10] or 'never committed'}"
        for secret in found.secrets
    ]
    step = "Next: change each secret where it is used, then: quaid purge --text -" if lines else ""
    looked = f"Looked at {found.objects:,} files and messages, {found.bytes / 1e6:.1f} MB; secrets: {len(lines):,}"
    left_out = f"Too large to be looked at: {found.left_out:,}" if found.left_out else ""
    shape = asdict(found) | {"ok": not lines}
    invocation.tell(lambda: "\n".join(filter(None, [*lines, looked, left_out, step])), **shape)
    return 1 if lines else 0


def render_findings(findings: Sequence[Finding]) -> str:
    """One line a finding, and below it the next step."""
    names = max(len(finding.name) for finding in findings)
    levels = max(len(finding.level) for finding in findings)
    lines = []
    for finding in findings:
        level = styled(finding.level.ljust(levels), _COLOURS[finding.level])
        lines.append(f"{level}  {finding.name.ljust(names)}  {finding.sentence}")
        if finding.next_step:
            lines.append(f"{'':{levels}}  {'':{names}}  Next: {finding.next_step}")
    return "\n".join(lines)
