"""Record the outward behaviour of a checkout on a small vault, and compare two recordings.

    python tests/behaviour.py [--checkout FOLDER] > FILE.json
    python tests/behaviour.py --compare BEFORE.json AFTER.json

Recorded are names and shapes, never prose: the commands with their arguments and options, the keys and types of every
`--json` output that needs no model, the MCP tools with their schemas and results, the frontmatter keys of the notes
that commands write, and exit codes, also those of wrong uses.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
TALK = [
    {"session": "kitchen", "started": "2026-11-14T18:05:00Z"},
    {
        "role": "user",
        "speaker": "Maya",
        "timestamp": "2026-11-14T18:05:00Z",
        "content": "We moved to Lisbon on Tuesday.",
    },
    {"role": "assistant", "speaker": "Assistant", "timestamp": "2026-11-14T18:05:20Z", "content": "How is the dog?"},
]
FACT = "Maya takes oat milk in her coffee"

# Commands that answer in JSON, in this order: each begins with the vault that the ones before it left.
COMMANDS = """
init {vault} --name Maya+Chen --no-fetch --yes
version
status
config
config recall.limit 5
config recall.limit
remember Maya+takes+oat+milk+in+her+coffee --type preference --speaker Maya --keywords coffee,breakfast
remember maya+takes+oat+milk+in+her+coffee.
remember Maya+lives+in+Lisbon --valid-from 2024-03-01
remember Tom+is+learning+to+sail --project boat
remember Tom+has+a+red+boat
note call+Maya+back+about+the+lease
link Maya+Chen works_at Acme
extract {talk}
analyze {file}
import {mem0} --dry-run
import {mem0}
recall what+milk+does+Maya+take?
recall what+milk+does+Maya+take? --explain
recall milk --context
recall milk --budget 300
recall milk --budget 300 --ids
recall milk --kind fact --limit 1 --at 2026-06-01
recall where+did+we+move? --kind turn
recall milk --as-of HEAD~1
recall milk --superseded --from 2026-01-01
recall milk --expect {fact}
recall milk --expect Tom+has+a+red+boat
recall --last
recall nothing+whatsoever+zeppelin
search milk
list
list --kind fact --since 2026-01-01
list --paths
get {fact}
get [[Maya+Chen]]
get kitchen#t1
why {fact}
why Maya+Chen
why kitchen#t1
open {fact}
log
log --stat -n 3
log --fact {fact}
diff HEAD~3..HEAD
diff HEAD~3..HEAD --recall {questions}
stats
stats --recall
stats --gaps
stats --models
stats --health
audit
eval {evaluation}
eval {evaluation} --before HEAD~3
bisect --query what+milk? --expect {fact}
sync
reindex
verify
conflicts
context
context --tokens 200
export
export {out}
branch
branch create experiment
branch switch experiment
remember Lena+plays+the+cello+on+Sundays
branch switch main
branch compare experiment
branch merge experiment
branch delete experiment
remote
remote add {other} --own
push
pull
remote remove origin
project create boat --root {repository} --label Boat
project
project show boat
project find {repository}/src/a.py
project discover {repository} --dry-run
project allow boat
project archive boat
project activate boat
project delete boat
project list --all
project activate boat
docs sync
docs
docs search how+is+the+hull+made --project boat
docs read boat:docs/hull.md
docs check
docs check --diff
docs register {repository}/docs/hull.md --source src
docs confirm boat:docs/hull.md
docs update boat:docs/hull.md
janitor run --dry-run
janitor run
janitor list
janitor show HEAD
janitor accept nothing-like-it
janitor reject all
janitor undo HEAD
undo --last --dry-run
undo --last
forget {fact}
restore {id}
purge Tom+has+a+red+boat --dry-run
purge Tom+has+a+red+boat --yes
doctor
doctor --repo
doctor --hooks
doctor --secrets
install
install cursor --dry-run
install cursor
install git-hook
uninstall cursor
uninstall git-hook
trust --list
trust {vault}
trust --remove {vault}
trust {vault}
demo --path {demo}
completion bash
help recall
"""
WRONG_USES = """
init {vault}
nonsense
recall --nonsense
recall --limit 0
remember hi
remember
get nothing-that-is-there
forget nothing-that-is-there
why nothing-that-is-there
get Maya+takes+oat
config nothing.such
config recall.limit many
list --kind nonsense
recall milk --at someday
recall milk --as-of no-such-revision
recall milk --kind nonsense
branch switch nothing
branch nonsense
janitor nonsense
janitor show nothing
project show nothing
project nonsense
docs read nothing
docs nonsense
undo
undo nothing
bisect
eval {vault}/nothing.md
extract {vault}/nothing.jsonl
analyze {vault}/nothing.pdf
import {vault}/nothing.json
install nothing
push
pull
remote remove nothing
remote trust nothing
restore nothing
purge nothing-that-is-there
serve
status --vault {demo}/nowhere
recall x --vault {demo}/nowhere
status --vault {vault} --vault {demo}
merge-driver
hook nonsense
"""
EVENTS = ("session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "stop", "session-end", "work")
TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory_store", {"text": "Lena lives in Porto", "speaker": "Lena"}),
    ("memory_store", {"text": "Lena lives in Faro", "replaces": "Lena lives in Porto"}),
    ("memory_recall", {"query": "where does Lena live?"}),
    ("memory_recall", {"recent": True, "limit": 2}),
    ("memory_search", {"query": "Faro"}),
    ("memory_get", {"ref": "Lena lives in Faro"}),
    ("memory_history", {"ref": "Lena lives in Faro"}),
    ("memory_note", {"text": "one line"}),
    ("memory_stats", {}),
    ("memory_create_edge", {"subject": "Lena", "relation": "works_at", "object": "Acme"}),
    ("memory_extract", {"transcript": "Lena: I sold the boat.\nTom: To whom?", "session": "sale"}),
    ("docs_search", {"query": "hull"}),
    ("docs_list", {}),
    ("docs_read", {"ref": "boat:docs/hull.md"}),
    ("docs_register", {"path": "{repository}/docs/hull.md", "sources": ["src"]}),
    ("project_create", {"name": "garden", "source_roots": ["{repository}"]}),
    ("memory_forget", {"ref": "Lena lives in Faro"}),
    ("memory_forget", {"ref": "nothing that is there"}),
    ("memory_recall", {"query": "x", "limit": 0}),
    ("memory_recall", {"nonsense": 1}),
    ("nonsense", {}),
)
RESOURCES = ("memory://recent", "memory://projects", "memory://core/USER.md", "memory://entities/Maya Chen")


def shape(value: Any) -> Any:
    """Keys and types; the shapes of a list's items are merged, keys that name a thing of this run are left out."""
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = key if re.fullmatch(r"[A-Za-z$][A-Za-z_ $-]*\d?", key) else "<name>"
            found[name] = merge(found[name], shape(item)) if name in found else shape(item)
        return found
    if isinstance(value, list):
        items = [shape(item) for item in value]
        for item in items[1:]:
            items[0] = merge(items[0], item)
        return items[:1]
    return {bool: "bool", str: "text", type(None): "null"}.get(type(value), "number")


def merge(one: Any, other: Any) -> Any:
    """One shape for two values of the same place."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {k: merge(one[k], other[k]) if k in one and k in other else (one | other)[k] for k in one | other}
    if isinstance(one, list) and isinstance(other, list):
        return [merge(one[0], other[0])] if one and other else one or other
    if one == other:
        return one
    texts = {
        text for item in (one, other) for text in (item.split("|") if isinstance(item, str) else [json.dumps(item)])
    }
    return "|".join(sorted(texts))


def without_prose(schema: Any) -> Any:
    """A JSON schema without its descriptions and titles."""
    if isinstance(schema, dict):
        prose = {"description", "title"}
        return {k: without_prose(v) for k, v in schema.items() if k not in prose or not isinstance(v, str)}
    return [without_prose(item) for item in schema] if isinstance(schema, list) else schema


class Recorder:
    """A small vault in a temporary folder, and the checkout whose commands are run there."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.folder = folder
        self.places = {name: str(folder / name) for name in ("vault", "demo", "repository", "out", "other")}
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(("QUAID_", "GIT_"))}
        self.environ |= {
            "PYTHONPATH": str(checkout), "HOME": str(folder / "home"), "QUAID_HOME": self.places["vault"],
            "QUAID_CONFIG_DIR": str(folder / "config"), "QUAID_STATE_DIR": str(folder / "state"),
            "QUAID_RESIDENT": "off", "QUAID_MODELS_PROVIDER": "none", "QUAID_EMBEDDING_PROVIDER": "none",
            "QUAID_NOTIFICATIONS_CHANNELS": "", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Maya", "GIT_AUTHOR_EMAIL": "m@x", "GIT_COMMITTER_NAME": "Maya",
            "GIT_COMMITTER_EMAIL": "m@x", "NO_COLOR": "1", "COLUMNS": "100", "EDITOR": "true",
        }  # fmt: skip
        self._write_inputs()

    def _write_inputs(self) -> None:
        texts = {
            "talk": ("talk.jsonl", "\n".join(map(json.dumps, TALK))),
            "file": ("lease.md", "# Lease\n\nThe rent of the flat is 900 euros a month.\n"),
            "mem0": (
                "mem0.json",
                json.dumps({"results": [{"id": "1", "memory": "Maya has a cat", "user_id": "maya"}]}),
            ),
            "questions": ("questions.txt", "what milk does Maya take?\nwho sails?\n"),
            "evaluation": ("questions.jsonl", json.dumps({"question": "what milk?", "expect": [FACT]})),
        }
        for name, (file, text) in texts.items():
            self.places[name] = str(self.folder / file)
            (self.folder / file).write_text(text + "\n", encoding="utf-8")
        repository = Path(self.places["repository"])
        for file, text in {"docs/hull.md": "# Hull\n\nThe hull is made of oak.\n", "src/a.py": "OAK = 1\n"}.items():
            (repository / file).parent.mkdir(parents=True, exist_ok=True)
            (repository / file).write_text(text)
        for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "begin")):
            subprocess.run(["git", *words], cwd=repository, env=self.environ, check=True)
        subprocess.run(["git", "init", "-q", "--bare", self.places["other"]], env=self.environ, check=True)
        (self.folder / "home" / ".cursor").mkdir(parents=True)

    def run(self, *words: str, stdin: str = "") -> tuple[int, str]:
        """The exit code and the output of one command, in a fork of this process: all modules are imported already."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as answer:
            given.write(stdin.encode())
            given.seek(0)
            child = os.fork()
            if child == 0:
                _become_quaid(given.fileno(), answer.fileno(), words)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            answer.seek(0)
            return status, answer.read().decode()

    def words(self, line: str) -> list[str]:
        """The arguments of a line: `+` is a space, {name} a file of this run or the fact about milk."""
        places = self.places | {"fact": FACT, "id": self.id_of_fact()}
        return [word.replace("+", " ").format_map(places) for word in line.split()]

    def id_of_fact(self) -> str:
        """The id of the fact about milk, which is all that `restore` accepts."""
        if "id" not in self.places and Path(self.places["vault"]).exists():
            for note in Path(self.places["vault"]).rglob("maya-takes-oat-milk-*.md"):
                self.places["id"] = re.search(r"^id: (\S+)", note.read_text(), re.MULTILINE)[1]
        return self.places.get("id", "?")

    def commands(self, lines: str) -> dict[str, Any]:
        """Line -> exit code and shape of the answer, in order."""
        return {line: self._answer(line) for line in lines.strip().splitlines()}

    def _answer(self, line: str) -> dict[str, Any]:
        code, output = self.run(*self.words(line), "--json")
        answers = [_parse(text) for text in output.splitlines()]
        error = next((item["error"]["code"] for item in answers if isinstance(item, dict) and "error" in item), None)
        found = shape(answers)
        return {"exit": code, "error": error} if error else {"exit": code, "json": found}

    def helps(self) -> dict[str, Any]:
        """Command -> usage, arguments and options; "" is `quaid` alone."""
        names = re.findall(r"^  ([a-z]+) {2,}\S", self.run("--help")[1].partition("Begin:")[2], re.MULTILINE)
        return {name: _read_help(self.run(*name.split(), "--help")[1]) for name in ["", *names]}

    def hooks(self) -> dict[str, Any]:
        """Event -> exit code and shape of the answer."""
        event = {
            "session_id": "s1",
            "prompt": "What milk does Maya take?",
            "cwd": str(self.folder),
            "source": "startup",
        }
        answers = {name: self.run("hook", name, stdin=json.dumps(event)) for name in EVENTS}
        return {name: [code, shape(_parse(output))] for name, (code, output) in answers.items()}

    def mcp(self) -> dict[str, Any]:
        """The tools, resources and prompts of `quaid mcp`, and the shapes of results."""
        command = [sys.executable, "-m", "quaid", "mcp", "--tools", "all"]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environ,
        ) as server:
            found = {"initialize": shape(_ask(server, "initialize", HELLO))}
            _send(server, {"method": "notifications/initialized"})
            for what in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
                found[what] = without_prose(_ask(server, what, {}))
            for name, given in TOOLS:
                arguments = json.loads(json.dumps(given).replace("{repository}", self.places["repository"]))
                answer = _ask(server, "tools/call", {"name": name, "arguments": arguments})
                found[f"{name} {json.dumps(given)}"] = shape(answer)
            found |= {uri: shape(_ask(server, "resources/read", {"uri": uri})) for uri in RESOURCES}
            server.stdin.close()
        return found

    def notes(self) -> dict[str, list[list[str]]]:
        """Folder -> the orders of frontmatter keys in its notes, and which files `init` made."""
        found: dict[str, list[list[str]]] = {}
        for path in sorted(Path(self.places["vault"]).rglob("*.md")):
            folder = path.relative_to(self.places["vault"]).parts[0]
            head = re.match(r"---\n(.*?)^---$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
            keys = re.findall(r"^([\w-]+):", head[1], re.MULTILINE) if head else []
            if keys not in found.setdefault(folder, []):
                found[folder].append(keys)
        return {folder: sorted(orders) for folder, orders in found.items()}


def _become_quaid(stdin: int, stdout: int, words: tuple[str, ...]) -> NoReturn:
    """Run a command as the script `quaid` does, and end this process."""
    from quaid.__main__ import run

    try:
        for number, place in enumerate((stdin, stdout, os.open(os.devnull, os.O_WRONLY))):
            os.dup2(place, number)
        sys.argv = ["quaid", *words]
        run()
    finally:
        os._exit(99)


def _import_everything(checkout: Path) -> None:
    sys.path.insert(0, str(checkout))
    for module in pkgutil.walk_packages([str(checkout / "quaid")], "quaid."):
        with suppress(ImportError):  # of a server's database
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return "no JSON" if text else None


def _read_help(text: str) -> dict[str, Any]:
    sections = dict(re.findall(r"^(Arguments|Options):\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL))
    options = re.findall(r"^  (-\S.*?)(?:  |$)", sections.get("Options", ""), re.MULTILINE)
    arguments = re.findall(r"^  (\S+)", sections.get("Arguments", ""), re.MULTILINE)
    return {"usage": text.partition("\n")[0], "arguments": arguments, "options": options}


def _ask(server: subprocess.Popen[str], method: str, params: dict[str, Any]) -> Any:
    _send(server, {"id": 1, "method": method, "params": params})
    while "id" not in (answer := json.loads(server.stdout.readline())) or "method" in answer:
        pass
    return answer.get("result", answer.get("error"))


def _send(server: subprocess.Popen[str], message: dict[str, Any]) -> None:
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def record(checkout: Path) -> dict[str, Any]:
    """All that is recorded of a checkout."""
    with tempfile.TemporaryDirectory(prefix="q-") as folder:
        recorder = Recorder(checkout, Path(folder))
        os.environ.clear()
        os.environ.update(recorder.environ)
        os.chdir(folder)
        _import_everything(checkout)
        found = {"help": recorder.helps(), "commands": recorder.commands(COMMANDS)}
        settings = json.loads(recorder.run("config", "--json")[1])["settings"]
        found["settings"] = {setting["key"]: shape(setting["value"]) for setting in settings}
        found |= {"hooks": recorder.hooks(), "mcp": recorder.mcp(), "notes": recorder.notes()}
        return found | {"wrong uses": recorder.commands(WRONG_USES)}


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """The places where two recordings differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            there = f"{place} > {key}" if place else key
            if key not in other:
                yield f"- {there}: {json.dumps(one[key])}"
            elif key not in one:
                yield f"+ {there}: {json.dumps(other[key])}"
            else:
                yield from differences(one[key], other[key], there)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{place}[{number}]")
    elif one != other:
        yield f"~ {place}:\n    - {json.dumps(one)}\n    + {json.dumps(other)}"


def main(arguments: list[str]) -> int:
    """Record this checkout, or another, or compare two recordings."""
    if arguments[:1] == ["--compare"]:
        found = list(differences(*(json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments[1:3])))
        print("\n".join(found) or "no difference")
        return 1 if found else 0
    checkout = Path(arguments[1]) if arguments[:1] == ["--checkout"] else Path(__file__).parents[1]
    print(json.dumps(record(checkout.absolute()), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
