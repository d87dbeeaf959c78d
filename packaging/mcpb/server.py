"""The server of the bundle: make the vault that was chosen where there is none, then serve it."""

import os
import subprocess
import sys
from pathlib import Path

QUAID = [sys.executable, "-m", "quaid"]


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 and "${" not in sys.argv[1] else ""  # a setting that was left empty
    vault = Path(chosen or os.environ.get("QUAID_HOME") or "~/quaid").expanduser()
    if not (vault / "quaid.toml").is_file():
        # stdout belongs to the protocol
        subprocess.run([*QUAID, "init", str(vault)], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True)
    os.execv(sys.executable, [*QUAID, "mcp", "--vault", str(vault)])


if __name__ == "__main__":
    main()
