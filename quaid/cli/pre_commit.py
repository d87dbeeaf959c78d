"""`quaid pre-commit`, which git's hook calls before each commit, and which git waits for."""

import os
from collections.abc import Sequence
from pathlib import Path

from quaid.cli.invocation import print_error
from quaid.cli.terminal import safe_streams
from quaid.errors import QuaidError
from quaid.history.commit_hook import BY_QUAID, REFUSED

MAX_SHOWN = 10


def main(arguments: Sequence[str]) -> int:
    """Look for new secrets in what is staged: 0 when there are none, `REFUSED` when there are, 1 when nobody knows."""
    if os.environ.get(BY_QUAID):
        return 0
    with safe_streams():
        if arguments:
            print_error("quaid pre-commit is for git to call. Set it up with: quaid install git-hook")
            return 2
        try:
            from quaid.config import settings_for_reading
            from quaid.report.secrets import find_staged_secrets

            settings_for_reading(Path.cwd())  # whether numbers are secrets
            secrets, left_out = find_staged_secrets(Path.cwd())
            for path in left_out:
                print_error(f"{path!r} is too large to be looked at for secrets.")
            for path, secret in secrets[:MAX_SHOWN]:
                print_error(f"{path!r}, line {secret.line}: a new secret is staged ({secret.kind}).")
            if len(secrets) > MAX_SHOWN:
                print_error(f"… and {len(secrets) - MAX_SHOWN:,} more.")
            if secrets:
                print_error(
                    "Nothing was committed. Take it out of the file and stage it again (git add); to commit it "
                    "nevertheless: git commit --no-verify"
                )
        except KeyboardInterrupt:
            return 130
        except Exception as error:  # noqa: BLE001 - a failure lets the commit pass, and shows nothing of the files
            print_error(str(error) if isinstance(error, QuaidError | OSError) else type(error).__name__)
            return 1
        return REFUSED if secrets else 0
