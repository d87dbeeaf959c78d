"""`quaid demo`: a tour of the main commands, each step a real command with its real output."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated

from quaid.cli.init import fetch_model
from quaid.cli.invocation import Invocation
from quaid.cli.main import main
from quaid.cli.options import option
from quaid.cli.terminal import styled
from quaid.errors import BadInputError
from quaid.memory import Memory

CONVERSATION = Path(__file__).parent / "demo_conversation.jsonl"
STORY = """
# A vault is a folder of markdown notes in git.
$ quaid init --name Maya --yes --quiet --no-fetch ROOT
# Store a conversation and draw facts from it. It is kept turn by turn and can be recalled at once.
$ quaid extract conversation.jsonl
$ quaid recall 'when does the dog need to see the vet?' --limit 2
# Facts are notes of their own. Saying the same twice confirms the fact instead.
$ quaid remember 'Maya takes oat milk in her coffee' --type preference --speaker Maya --keywords coffee,breakfast
$ quaid remember 'Maya takes oat milk in her coffee.'
# Connections make a graph; recall walks it.
$ quaid link Biscuit pet_of Maya
$ quaid link Ines sister_of Maya
$ quaid recall 'Maya coffee milk' --kind fact
# The notes are yours. Edit one with any editor: the next recall has seen it.
$ sed -i 's/oat milk/almond milk/' NOTE
$ quaid recall 'Maya coffee milk' --kind fact
$ git diff --unified=0
$ git commit -q -a -m 'Maya changed her mind'
# Forget a fact, and bring it back: git keeps everything.
$ quaid search 'almond milk' --kind fact --limit 1
$ quaid forget FACT
$ quaid search 'almond milk' --kind fact
$ quaid restore FACT
# Everything above is in git:
$ git log --stat '--format=%h %an: %s' --reverse
$ quaid status
"""
"""ROOT is the vault, NOTE the file of the fact, and FACT the id in the output before."""


def run_demo(
    invocation: Invocation,
    path: Annotated[
        Path | None, option("DIR", "Build the vault in this new or empty folder.", "--path", "--keep")
    ] = None,
) -> int:
    """Try everything: a vault is built, filled, asked, edited with another program, and asked again.

    Every step is shown as the command you would type, with what it really printed. Without --path the vault is in
    the system's temporary folder, for you to look into until that is cleaned.

    Examples:
      quaid demo
      quaid demo --path ~/quaid-demo
    """
    if path is None:
        root = Path(tempfile.mkdtemp(prefix="quaid-demo-"))
    else:
        root = path.expanduser().absolute()
        if root.exists() and any(root.iterdir()):
            step = f"quaid demo --path {shlex.quote(f'{root}-2')}"
            raise BadInputError(f"{root} is not empty. Give an empty or a new folder: {step}")
        root.mkdir(parents=True, exist_ok=True)
    home = os.environ.get("QUAID_HOME")
    os.environ["QUAID_HOME"] = str(root)
    try:
        with contextlib.chdir(root):
            steps = list(_play(invocation, root))
    finally:
        os.environ.pop("QUAID_HOME") if home is None else os.environ.update(QUAID_HOME=home)
    if invocation.as_json:
        invocation.print_json(vault=root, steps=steps)
    else:
        invocation.print(
            f"{styled('The vault is yours to play with:', 'bold')} {root}\n"
            f"  export QUAID_HOME={shlex.quote(str(root))}\n"
            '  quaid recall "what is Maya allergic to?"\n'
            '  quaid remember "Tom is learning to sail"\n'
            "  quaid why Maya\n"
            "Your own begins with: quaid init ~/quaid"
        )
    return 0 if all(step["exit_code"] == 0 for step in steps) else 1


def _play(invocation: Invocation, root: Path) -> Iterator[dict[str, str | int]]:
    """Run the story and yield each command with its output and exit code."""
    fact = ""
    for line in STORY.strip().splitlines():
        mark, text = line[0], line[2:]
        if mark == "#":
            if not invocation.as_json:
                invocation.print(styled(line, "cyan"))
            continue
        names = {"ROOT": str(root), "FACT": fact}
        if "NOTE" in text:
            names["NOTE"] = next((root / "facts").rglob("*.md")).relative_to(root).as_posix()
        command = [names.get(word, word) for word in shlex.split(text)]
        output, code = _run(command)
        if command[1] == "init":
            shutil.copy(CONVERSATION, root / "conversation.jsonl")
            with invocation.adopt(Memory.open(root)) as memory:
                fetch_model(invocation, memory)
        elif command[1] == "search" and not fact:
            found = re.search(r"\|ID:(\S+)", output)
            if found is None:
                raise BadInputError("The demo lost its own fact. See what is wrong with: quaid doctor")
            fact = found[1]
        if not invocation.as_json:
            invocation.print(f"{styled(f'$ {shlex.join(command)}', 'bold')}\n{output}")
        yield {"command": shlex.join(command), "output": output, "exit_code": code}


def _run(command: list[str]) -> tuple[str, int]:
    if command[0] == "quaid":
        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            code = main(command[1:])
        return output.getvalue(), code
    if command[0] == "sed":  # its -i differs between systems; the effect is the same
        _, old, new, _ = command[2].split("/")
        note = Path(command[3])
        note.write_text(note.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        return "", 0
    # The owner of the demo is nobody: no identity to borrow, no key to sign with, no hook's repository.
    options = ("-c", "user.name=Demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false")
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    line = ["git", *options, *command[1:]]
    done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False, env=env)
    return done.stdout + done.stderr, done.returncode
