"""What the table of guarantees counts. Each function makes a vault of its own, tries to break one promise, and returns how
often it tried (`of`) and how often the promise was broken (`broken`). Short forms take seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "torture"), str(TESTS / "security")]

import kills  # noqa: E402
import poison  # noqa: E402
from ground import git, new_vault  # noqa: E402

Figures = dict[str, Any]
QUAID = [sys.executable, "-m", "quaid"]


# -- wrong merges ----------------------------------------------------------------------------------------------------


def list_pairs(path: Path) -> list[dict[str, str]]:
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def make_pairs() -> list[dict[str, str]]:
    """Facts beside what they say with another name, number or negation, or with two words exchanged."""
    lines = (TESTS / "benchmarks" / "injections.tsv").read_text("utf-8").splitlines()
    facts = [line.split("\t")[3] for line in lines if line.startswith("fact\t")]
    names = sorted({name for fact in facts for name in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}", fact)})
    dice = random.Random(1)
    changed = ((fact, other) for fact in facts for other in change_fact(fact.split(" "), names, dice) if other != fact)
    return [{"expected": "different", "first": fact, "second": other} for fact, other in changed]


def change_fact(words: list[str], names: list[str], dice: random.Random) -> Iterator[str]:
    for place, word in enumerate(words):
        before, after, name = words[:place], words[place + 1 :], re.sub(r"\W|s$", "", word)
        if name in names:
            other = dice.choice([each for each in names if each != name])
            yield " ".join([*before, word.replace(name, other), *after])
        if re.search(r"\d", word):
            yield " ".join([*before, re.sub(r"\d+", lambda found: str(int(found[0]) + 1), word, count=1), *after])
        if word in {"is", "has", "was", "can", "will", "are", "were", "does", "should", "must"}:
            yield " ".join([*before, word, "not", *after])
            yield " ".join([*before, "no longer", word, *after])
    places = [place for place, word in enumerate(words) if len(word) > 3]
    for _ in range(2 if len(places) > 3 else 0):
        one, two = dice.sample(places, 2)
        exchanged = list(words)
        exchanged[one], exchanged[two] = words[two].rstrip("."), words[one].rstrip(".")
        if words[one].rstrip(".").lower() != words[two].rstrip(".").lower():
            yield " ".join(exchanged)


def count_wrong_merges(pairs: Sequence[Mapping[str, str]], *, is_short: bool) -> Figures:
    """Pairs of different claims, told one after the other to a vault: how many became one fact. And how many pairs of
    equal claims were kept as two, which costs nothing but room.
    """
    from quaid import Memory
    from quaid.claims import is_same_claim

    wrong, apart = [], []
    known: dict[str, str] = {}
    with new_vault() as root, Memory.open(root) as memory:
        for pair in pairs:
            first, second = pair["first"], pair["second"]
            is_one = is_same_claim(first, second) or is_same_claim(second, first)
            if not is_short and min(len(first.split()), len(second.split())) > 2:  # a fact has three words
                known = {first: known[first]} if first in known else {first: memory.remember(first).path}
                is_one |= memory.remember(second).path == known[first]
            if is_one and pair["expected"] == "different":
                wrong.append(pair)
            elif not is_one and pair["expected"] == "same":
                apart.append(pair)
    different = sum(pair["expected"] == "different" for pair in pairs)
    figures = {"of": different, "broken": len(wrong), "per 1,000": round(1000 * len(wrong) / different, 1)}
    return figures | {"equal pairs": len(pairs) - different, "equal ones kept apart": len(apart)}


# -- private notes ---------------------------------------------------------------------------------------------------


def count_leaks(*, is_short: bool) -> Figures:
    """Maya asks a vault in which Jon keeps notes private, at every door: answers that tell anything of them."""
    from memory.test_owners import REFERENCES
    from recall.test_owners import OPEN, QUESTIONS, SECRET, WORDS, note

    more = {
        f"facts/more{n}.md": note(
            f"01s{n + 20}", f"Jon keeps {word} number {n} in the cabin by the fern.", "jon", privacy
        )
        for n, (word, privacy) in enumerate(zip(WORDS * 12, ["", "private"] * 48, strict=True))
    }
    secret = dict([*SECRET.items(), *more.items()])
    asked = QUESTIONS[::6] if is_short else QUESTIONS
    references = REFERENCES[::6] if is_short else [*REFERENCES, *list(more)[:20]]
    leaked, counts = [], {}
    with new_vault() as root:
        files = {
            **OPEN,
            **secret,
            "quaid.toml": 'owner = "maya"\n',
            "USER.md": "---\nowner: jon\n---\nThe numbat is shy.\n",
        }
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "notes of two")
        os.environ |= {"QUAID_OWNER": "maya", "QUAID_HOOKS_RECALL": "on"}
        for door, question, told in answers_at_doors(root, asked, references):
            counts[door] = counts.get(door, 0) + 1
            text = told.lower()
            secrets = [word for word in WORDS if word[:5] not in question.lower()]
            for word in sorted(question.lower().replace("?", " ").split(), key=len, reverse=True):
                text = text.replace(word, "")  # many an answer repeats what was asked
            if any(word in text for word in secrets):
                leaked.append((door, question))
    return {"of": sum(counts.values()), "broken": len(leaked), "private notes": len(secret) + 1, "doors": counts}


def answers_at_doors(root: Path, questions: list[str], references: list[str]) -> Iterator[tuple[str, str, str]]:
    """(door, question, all that is said), for the owner whom the environment names."""
    from command_line import quaid
    from mcp_host import talk
    from memory.test_owners import COMMANDS

    from quaid import Memory
    from quaid.agents.prompt_context import build_prompt_context
    from quaid.config import load_settings

    at = ("--vault", str(root))
    with open_page(root) as client:
        for path in (
            "/review",
            "/nights",
            "/timeline",
            "/graph",
            "/health",
            "/projects",
        ):  # later they list what was asked
            yield "page", path, client.get(path).text
    with Memory.open(root) as memory:
        for question in questions:
            for way in ({}, {"keyword_only": True}, {"superseded": True}, {"as_of": "HEAD"}, {"budget": 400}):
                found = memory.recall(question, keep=False, **way)
                yield "library", question, json.dumps([asdict(hit) for hit in found.hits], default=str)
            settings = load_settings(root)
            yield "hook", question, build_prompt_context(root, settings, memory.recall, question, question).text
        yield "context", "", memory.context(20_000)
        yield "export", "", json.dumps(list(memory.export()), default=str)
    for command in COMMANDS:
        yield "command line", " ".join(command), "\n".join(map(str, quaid(*at, *command)))
    for door in ("get", "why", "history"):
        for reference in references:
            yield "command line", reference, "\n".join(map(str, quaid(*at, door, reference)))
    told: list[tuple[str, str]] = []

    async def ask(client: Any) -> None:
        asked = [("memory_recall", "query", question) for question in questions]
        asked += [(f"memory_{tool}", "ref", ref) for tool in ("get", "history") for ref in references]
        for tool, name, value in asked:
            result = await client.call_tool(tool, {name: value})
            told.append((value, "\n".join(content.text for content in result.content)))

    talk(root, ask)
    yield from (("MCP", question, text) for question, text in told)
    with open_page(root) as client:
        for question in questions:
            yield "page", question, client.get("/", params={"q": question}).text
        for reference in references:
            yield "page", reference, client.get(f"/memory/{reference.replace('#', '%23')}").text


@contextmanager
def open_page(root: Path) -> Iterator[Any]:
    """A browser that was let in to `quaid view`."""
    from starlette.testclient import TestClient

    from quaid.web.app import make_app
    from quaid.web.guard import Keys

    keys, port = Keys("printed", "started", "cookie", "form"), 7438
    with TestClient(make_app(root, keys, port, asyncio.Event()), base_url=f"http://127.0.0.1:{port}") as client:
        client.cookies.set(f"quaid-view-{port}", keys.cookie)
        yield client


# -- answers that were out of date -----------------------------------------------------------------------------------


def count_stale_answers(rounds: int) -> Figures:
    """A note is edited on the disk and asked about at once, by turns at doors that keep the memory open and at new
    processes, with and without a process that answers for others: answers that do not have the edit.
    """
    from command_line import quaid
    from mcp_host import call, talk

    from quaid import Memory

    stale, counts = [], {}
    with new_vault() as root:
        note = root / "facts/code.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        for number in range(200):
            (note.parent / f"other{number}.md").write_text(fact(f"other{number}", f"Maya owns boat {number}"), "utf-8")
        at = ("--vault", str(root))

        def edit(number: int) -> str:
            word = f"quoll{number}zebra"
            note.write_text(fact("code", f"The code of the shed is {word} now"), "utf-8")
            return word

        def judge(door: str, word: str, told: str) -> None:
            counts[door] = counts.get(door, 0) + 1
            if word not in told:
                stale.append((door, word))

        asked, told = "What is the code of the shed?", iter(range(10**6))
        with ExitStack() as stack:
            memory = stack.enter_context(Memory.open(root))
            for _ in range(rounds):
                word = edit(next(told))
                judge("library, kept open", word, str(memory.recall(asked, 3, keep=False).hits))
                word = edit(next(told))
                judge("command line", word, quaid(*at, "recall", asked, "--limit", "3")[1])
        for resident in ("off", "auto"):
            environ = {**os.environ, "QUAID_RESIDENT": resident}
            for _ in range(rounds):
                word = edit(next(told))
                done = subprocess.run(
                    [*QUAID, *at, "recall", asked], env=environ, capture_output=True, text=True, check=True
                )
                judge(f"new processes, resident {resident}", word, done.stdout)
        stop_resident(root)

        async def ask(client: Any) -> None:
            for _ in range(rounds):
                word = edit(next(told))
                judge("MCP, kept open", word, json.dumps(await call(client, "memory_recall", query=asked)))

        talk(root, ask)
        watch = subprocess.Popen([*QUAID, *at, "watch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(rounds):
                word = edit(next(told))
                done = subprocess.run([*QUAID, *at, "recall", asked], capture_output=True, text=True, check=True)
                judge("new processes, watcher", word, done.stdout)
        finally:
            watch.terminate()
            watch.wait()
    return {"of": sum(counts.values()), "broken": len(stale), "doors": counts}


def fact(name: str, text: str) -> str:
    return f"---\nid: 01{name}\ntype: fact\nstatus: active\nowner: default\n---\n{text}\n"


def stop_resident(root: Path) -> None:
    from quaid.resident.finding import find_listening

    if (found := find_listening(root)) is not None:
        os.kill(found.pid, 15)
    until = time.monotonic() + 20
    while find_listening(root) is not None and time.monotonic() < until:
        time.sleep(0.05)


# -- purge -----------------------------------------------------------------------------------------------------------


def count_residue() -> Figures:
    """A text planted wherever a vault can hold one, purged, and looked for with nothing of what purges it."""
    from purge import test_purging as planting
    from vaults import Vault

    with new_vault() as root:
        vault = planting.planted.__wrapped__(Vault(root))
        held = list(planting.find_places(vault))
        proof = planting._purge(vault)
        left = list(planting.find_places(vault))
    return {"of": len(held), "broken": len(left), "proof": proof.holds}


# -- writes, poison, and what leaves ---------------------------------------------------------------------------------


def count_lost_writes(count: int) -> Figures:
    with new_vault() as root:
        found = kills.kill_often(root, 600.0, random.Random(1), kills=count)
    return {"of": found["acknowledged"], "broken": found["facts lost"] + found["reverted"], "kills": found["kills"]}


def count_poison(*, is_short: bool) -> Figures:
    payloads = poison.read_payloads()[:: 5 if is_short else 1]
    return poison.measure(payloads) | {"harmless": poison.measure_harmless(poison.read_harmless())}


def count_bytes_out() -> Figures:
    """The main job in a network of its own, where the kernel counts; `control` is what the same counters say of a program
    that does reach out. None where the system gives no such network.
    """
    import main_job
    from network_watch import run_alone
    from replay import facts_of, write_claude, write_talk
    from vaults import has_weights

    if not shutil.which("unshare") or run_alone("true")[0].returncode:
        return {"of": 0, "broken": None}
    with tempfile.TemporaryDirectory() as folder, new_vault():
        work, home = Path(folder), Path(folder) / "home"
        home.mkdir()
        write_talk(work / "talk.jsonl", "We adopted a quokka called Biscuit.")
        environ = write_claude(work / "bin", {"s1": facts_of("Maya adopted a quokka called Biscuit.")})
        environ |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "QUAID_RESIDENT": "off"}
        if has_weights():
            from quaid.embed.weights import cache_folder

            del os.environ["QUAID_EMBEDDING_PROVIDER"]
            environ["QUAID_CACHE_DIR"] = str(cache_folder())
        runs = [run_alone(sys.executable, main_job.__file__, folder, *more, **environ) for more in ((), ("view",))]
        control, bytes_of_control = run_alone(sys.executable, main_job.__file__)
    for done, _ in runs:
        if done.returncode:
            raise RuntimeError(done.stderr)
    counted = {"bytes": runs[0][1], "job": json.loads(runs[0][0].stdout), "page": json.loads(runs[1][0].stdout)}
    tried = sum(counted["job"].values()) + sum(counted["page"].values())
    noticed = {**json.loads(control.stdout), "bytes": bytes_of_control}
    return {
        "of": len(main_job.COMMANDS) + 2,
        "broken": tried + counted["bytes"],
        "counted": counted,
        "control": noticed,
    }
