"""`quaid demo`: a tour of the main commands, each step a real command with its real output."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import styled
from quaid.errors import BadInputError

CONVERSATION = Path(__file__).parent / "demo_conversation.jsonl"
FACT = "Maya takes oat milk in her coffee"


@dataclass(frozen=True, slots=True)
class DemoStep:
    """A command that was run and what it printed."""

    command: str
    output: str
    exit_code: int


def run_demo(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Option("--path", "--keep", metavar="DIR", help="Build the vault in this new or empty folder."),
    ] = None,
) -> int:
    """Try everything: a vault is built, filled, asked, edited with another program, and asked again.

    Every step is shown as the command you would type, with what it really printed. Without --path the vault lies in
    the system's temporary folder, for you to look into until that is cleaned.

    Examples:
      quaid demo
      quaid demo --path ~/quaid-demo
    """
    invocation: Invocation = ctx.obj
    root = _choose_folder(path)
    demo = Demo(invocation, root)
    with _working_in(root):
        demo.run()
    if invocation.as_json:
        invocation.print_json(vault=root, steps=[asdict(step) for step in demo.steps])
    else:
        invocation.print(
            f"{styled('The vault is yours to play with:', 'bold')} {root}\n"
            f"  export QUAID_HOME={shlex.quote(str(root))}\n"
            '  quaid recall "what is Maya allergic to?"\n'
            '  quaid remember "Tom is learning to sail"\n'
            "  quaid why Maya\n"
            "Your own begins with: quaid init ~/quaid"
        )
    return 0 if all(step.exit_code == 0 for step in demo.steps) else 1


class Demo:
    """The story, step by step."""

    def __init__(self, invocation: Invocation, root: Path) -> None:
        self._invocation = invocation
        self._root = root
        self.steps: list[DemoStep] = []

    def run(self) -> None:
        """All of it."""
        self._begin()
        self._remember()
        self._edit_outside_quaid()
        self._forget_and_restore()
        self._tell("Everything above is in git:")
        self._shell("git", "log", "--stat", "--format=%h %an: %s", "--reverse")
        self._quaid("status")

    def _begin(self) -> None:
        self._tell("A vault is a folder of markdown notes in git.")
        self._quaid("init", "--name", "Maya", "--yes", "--quiet", "--no-fetch", str(self._root))
        self._fetch()
        self._tell("Store a conversation and draw facts from it. It is kept turn by turn and can be recalled at once.")
        shutil.copy(CONVERSATION, self._root / "conversation.jsonl")
        self._quaid("extract", "conversation.jsonl")
        self._quaid("recall", "when does the dog need to see the vet?", "--limit", "2")

    def _remember(self) -> None:
        self._tell("Facts are notes of their own. Saying the same twice confirms the fact instead.")
        self._quaid("remember", FACT, "--type", "preference", "--speaker", "Maya", "--keywords", "coffee,breakfast")
        self._quaid("remember", f"{FACT}.")
        self._tell("Connections make a graph; recall walks it.")
        self._quaid("link", "Biscuit", "pet_of", "Maya")
        self._quaid("link", "Ines", "sister_of", "Maya")
        self._quaid("recall", "Maya coffee milk", "--kind", "fact")

    def _edit_outside_quaid(self) -> None:
        self._tell("The notes are yours. Edit one with any editor: the next recall has seen it.")
        note = next((self._root / "facts").rglob("*.md"))
        self._shell("sed", "-i", "s/oat milk/almond milk/", note.relative_to(self._root).as_posix())
        self._quaid("recall", "Maya coffee milk", "--kind", "fact")
        self._shell("git", "diff", "--unified=0")
        self._shell("git", "commit", "-q", "-a", "-m", "Maya changed her mind")

    def _forget_and_restore(self) -> None:
        self._tell("Forget a fact, and bring it back: git keeps everything.")
        wanted = self._quaid("search", "almond milk", "--kind", "fact", "--limit", "1")
        found = re.search(r"\|ID:(\S+)", wanted.output)
        if found is None:
            raise BadInputError("The demo lost its own fact. See what is wrong with: quaid doctor")
        self._quaid("forget", found[1])
        self._quaid("search", "almond milk", "--kind", "fact")
        self._quaid("restore", found[1])

    def _fetch(self) -> None:
        from quaid.cli.init import fetch_model
        from quaid.memory import Memory

        with self._invocation.adopt(Memory.open(self._root)) as memory:
            fetch_model(self._invocation, memory)

    def _quaid(self, *arguments: str) -> DemoStep:
        from quaid.cli.main import main

        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            code = main(arguments)
        return self._show(("quaid", *arguments), output.getvalue(), code)

    def _shell(self, *command: str) -> DemoStep:
        if command[0] == "sed":  # its -i differs between systems; the effect is the same
            return self._show(command, self._replace(command[2], command[3]), 0)
        # The owner of the demo is nobody: no identity to borrow, no key to sign with, no hook's repository.
        options = ("-c", "user.name=Demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false")
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        line = ["git", *options, *command[1:]]
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False, env=env)
        return self._show(command, done.stdout + done.stderr, done.returncode)

    def _replace(self, expression: str, rel_path: str) -> str:
        _, old, new, _ = expression.split("/")
        note = self._root / rel_path
        note.write_text(note.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        return ""

    def _show(self, command: tuple[str, ...], output: str, code: int) -> DemoStep:
        step = DemoStep(shlex.join(command), output, code)
        self.steps.append(step)
        if not self._invocation.as_json:
            self._invocation.print(f"{styled(f'$ {step.command}', 'bold')}\n{step.output}")
        return step

    def _tell(self, text: str) -> None:
        if not self._invocation.as_json:
            self._invocation.print(styled(f"# {text}", "cyan"))


def _choose_folder(path: Path | None) -> Path:
    if path is None:
        return Path(tempfile.mkdtemp(prefix="quaid-demo-"))
    folder = path.expanduser().absolute()
    if folder.exists() and any(folder.iterdir()):
        raise BadInputError(
            f"{folder} is not empty. Give an empty or a new folder: quaid demo --path {shlex.quote(f'{folder}-2')}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _working_in(root: Path) -> Iterator[None]:
    """Inside, commands mean the demo's vault, and relative paths too."""
    before, home = Path.cwd(), os.environ.get("QUAID_HOME")
    os.chdir(root)
    os.environ["QUAID_HOME"] = str(root)
    try:
        yield
    finally:
        os.chdir(before)
        if home is None:
            del os.environ["QUAID_HOME"]
        else:
            os.environ["QUAID_HOME"] = home
