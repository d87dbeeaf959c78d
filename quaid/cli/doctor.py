"""`quaid doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from shlex import quote
from typing import Annotated

from quaid.agents.installation import this_machine
from quaid.cli.init import embed, fetch_model
from quaid.cli.invocation import Invocation
from quaid.cli.options import flag
from quaid.cli.terminal import columns, count, known, lines, one_line, paragraphs, section, size, styled
from quaid.errors import BadInputError, QuaidError, UsageError
from quaid.history.repository import find_repository
from quaid.memory import Memory
from quaid.model import Finding
from quaid.report.canary import check_hosts
from quaid.report.checks import examine, set_up_merging
from quaid.report.repository_size import RepositorySize, examine_size, measure
from quaid.report.secrets import find_secrets
from quaid.shapes import json_object
from quaid.trust import locate_vault

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


def run_doctor(
    invocation: Invocation,
    fetch: Annotated[bool, flag("Download the embedding model first if it is missing.", "--fetch")] = False,
    hooks: Annotated[
        bool, flag("Start what is installed in other programs and check that it works.", "--hooks")
    ] = False,
    secrets: Annotated[bool, flag("Look for secrets in the whole history, and do nothing else.", "--secrets")] = False,
    repo: Annotated[bool, flag("Measure the git repository: what takes space, who maintains it.", "--repo")] = False,
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
    root, remark = locate_vault(invocation.vault)
    if remark:
        invocation.notify(remark)
    if secrets:
        return _list_secrets(invocation)
    if repo:
        return _measure_repository(invocation)
    if fetch:
        with invocation.open() as memory:
            if fetch_model(invocation, memory, force=True) is None:
                embed(invocation, memory)
    with suppress(QuaidError, OSError), Memory.open(root) as memory:  # why it cannot be opened is a finding
        for done in set_up_merging(memory):
            invocation.notify(done)
    findings = list(examine(root))
    for found in check_hosts(this_machine()) if hooks else ():
        if isinstance(found, str):
            invocation.notify(found)
        else:
            findings.append(found)
    is_ok = all(finding.level != "error" for finding in findings)
    invocation.respond(render_findings(findings), ok=is_ok, vault=root, findings=findings)
    return 0 if is_ok else 1


def _list_secrets(invocation: Invocation) -> int:
    """Name where the history holds secrets, never the secrets themselves; 1 when there are some."""
    with invocation.open() as memory, invocation.progress(memory) as bar:
        found = find_secrets(memory.root, bar.update)
    rows = [
        f"{secret.kind}  {secret.path or 'a message'}  {secret.commit[:10] or 'never committed'}"
        for secret in found.secrets
    ]
    text = lines(
        *rows,
        f"Looked at {found.objects:,} files and messages, {found.bytes / 1e6:.1f} MB; secrets: {len(rows):,}",
        f"Too large to be looked at: {found.left_out:,}" if found.left_out else "",
        "Next: change each secret where it is used, then: quaid purge --text -" if rows else "",
    )
    invocation.respond(text, **json_object(found, ok=not rows))
    return 1 if rows else 0


def _measure_repository(invocation: Invocation) -> int:
    with invocation.open() as memory, invocation.progress(memory) as bar:
        repository = find_repository(memory.root)
        if repository is None:
            raise BadInputError(
                f"{memory.root} is in no git repository. Make one with: git init {quote(str(memory.root))}"
            )
        found = measure(repository, is_off=memory.settings.git.maintenance == "off", tick=bar.update)
    findings = examine_size(repository, found)
    text = paragraphs(_render_size(found), render_findings(findings))
    invocation.respond(text, ok=True, **json_object(found, findings=findings))
    return 0


def _render_size(found: RepositorySize) -> str:
    """Return what the repository takes, and its biggest files."""
    sizes = (("today", found.today_bytes), ("older", found.past_bytes), ("commits and folders", found.other_bytes))
    files, absent = found.files, ["its old versions"] * found.partial + ["its old commits"] * found.shallow
    packs = f"{files.packed:,} in {count(files.packs, 'pack')} ({size(files.pack_bytes)})"
    rows = known(
        ("repository", f"{found.folder}, {size(found.folder_bytes)}"),
        ("holds", ", ".join(f"{name} {size(taken)}" for name, taken in sizes)),
        ("history", f"{count(found.commits, 'commit')}, {count(found.today_files, 'file')} today"),
        ("objects", f"{packs}, {files.loose:,} loose"),
        (
            "left out",
            f"This clone lacks some of {' and '.join(absent)}: the figures are of what is here." if absent else "",
        ),
    )
    tables = []
    for title, big in (("Biggest files today", found.biggest_today), ("Biggest older versions", found.biggest_past)):
        table = [
            (
                size(file.bytes),
                f"{size(file.disk_bytes)} on disk",
                one_line(file.path) or f"{file.blob[:10]} (no branch has it)",
            )
            for file in big
        ]
        tables.append(section(title, table, right=(0, 1)))
    return paragraphs(columns(rows), *tables)


def render_findings(findings: Sequence[Finding]) -> str:
    """Return one line a finding, and below it the next step."""
    names = max(len(finding.name) for finding in findings)
    levels = max(len(finding.level) for finding in findings)
    rows = []
    for finding in findings:
        level = styled(finding.level.ljust(levels), _COLOURS[finding.level])
        rows.append(f"{level}  {finding.name.ljust(names)}  {finding.sentence}")
        if finding.next_step:
            rows.append(f"{'':{levels}}  {'':{names}}  Next: {finding.next_step}")
    return "\n".join(rows)
