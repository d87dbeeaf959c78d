"""`quaid doctor`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from quaid import Memory
from quaid.cli.init import embed, fetch_model
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import aligned, columns, count, known, one_line, paragraphs, section, size, styled
from quaid.errors import BadInputError, QuaidError, UsageError
from quaid.model import Finding
from quaid.report.doctor import examine
from quaid.report.merging import set_up_merging
from quaid.trust import locate_vault

if TYPE_CHECKING:
    from quaid.report.repository_size import RepositorySize

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
    repo: Annotated[
        bool, typer.Option("--repo", help="Measure the git repository: what takes space, who maintains it.")
    ] = False,
) -> int:
    """Check everything Quaid needs on this machine; exit code 1 when something is broken.

    Examples:
      quaid doctor
      quaid doctor --fetch
      quaid doctor --hooks
      quaid doctor --secrets
      quaid doctor --repo
      quaid doctor --json | jq '.findings[] | select(.level != "ok")'
    """
    if repo and (fetch or hooks or secrets):
        raise UsageError("--repo does nothing else. Ask for it alone.")
    invocation: Invocation = ctx.obj
    root, remark = locate_vault(invocation.vault)
    if remark:
        invocation.notify(remark)
    if secrets:
        return _tell_secrets(invocation)
    if repo:
        return _tell_repository(invocation)
    if fetch:
        with invocation.open() as memory:
            if fetch_model(invocation, memory, force=True) is None:
                embed(invocation, memory)
    with suppress(QuaidError, OSError), Memory.open(root) as memory:  # why it cannot be is a finding
        for done in set_up_merging(memory):
            invocation.notify(done)
    findings = examine(root)
    if hooks:
        findings = (*findings, *_check_hooks(invocation))
    ok = all(finding.level != "error" for finding in findings)
    shape = {"ok": ok, "vault": root, "findings": [asdict(finding) for finding in findings]}
    invocation.respond(render_findings(findings), **shape)
    return 0 if ok else 1


def _check_hooks(invocation: Invocation) -> Iterator[Finding]:
    """Run what is installed in the programs of agents, and yield what was found."""
    from quaid.agents.installation import this_machine
    from quaid.report.canary import check_hosts

    for found in check_hosts(this_machine()):
        if isinstance(found, str):
            invocation.notify(found)
        else:
            yield found


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
    invocation.respond("\n".join(filter(None, [*lines, looked, left_out, step])), **shape)
    return 1 if lines else 0


def _tell_repository(invocation: Invocation) -> int:
    """Tell what the repository takes and what to do about it; 1 when there is none."""
    from quaid.history.repository import find_repository
    from quaid.report.repository_size import examine_size, measure

    with invocation.open() as memory, invocation.progress(memory) as bar:
        repository = find_repository(memory.root)
        if repository is None:
            raise BadInputError(
                f"{memory.root} is in no git repository. Make one with: git init {quote(str(memory.root))}"
            )
        found = measure(repository, is_off=memory.settings.git.maintenance == "off", tick=bar.update)
    findings = examine_size(repository, found)
    shape = asdict(found) | {"files": found.files._asdict(), "findings": [asdict(finding) for finding in findings]}
    invocation.respond(paragraphs(render_size(found), render_findings(findings)), ok=True, **shape)
    return 0


def render_size(found: RepositorySize) -> str:
    """What the repository takes, and its biggest files."""
    kept = (("today", found.today_bytes), ("older", found.past_bytes), ("commits and folders", found.other_bytes))
    files, absent = found.files, ["its old versions"] * found.partial + ["its old commits"] * found.shallow
    rows = known(
        ("repository", f"{found.folder}, {size(found.folder_bytes)}"),
        ("holds", ", ".join(f"{name} {size(taken)}" for name, taken in kept)),
        ("history", f"{count(found.commits, 'commit')}, {count(found.today_files, 'file')} today"),
        (
            "objects",
            f"{files.packed:,} in {count(files.packs, 'pack')} ({size(files.pack_bytes)}), {files.loose:,} loose",
        ),
        (
            "left out",
            f"This clone lacks some of {' and '.join(absent)}: the figures are of what is here." if absent else "",
        ),
    )
    tables = (
        section(
            title,
            aligned(
                [
                    (
                        size(file.bytes),
                        f"{size(file.disk_bytes)} on disk",
                        one_line(file.path) or f"{file.blob[:10]} (no branch has it)",
                    )
                    for file in big
                ],
                right=(0, 1),
            ),
        )
        for title, big in (("Biggest files today", found.biggest_today), ("Biggest older versions", found.biggest_past))
    )
    return paragraphs(columns(rows), *tables)


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
