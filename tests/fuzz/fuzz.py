"""Look for inputs that break a parser, guided by coverage: python tests/fuzz/fuzz.py [TARGET…] [--seconds N] [--keep]

It begins with the inputs in corpus/, writes one table and the same figures as a line of JSON, and exits with 1 when an
input broke a promise of targets.py. That input is printed, and appended to the corpus with `--keep`, as are inputs that
reached new code: mend the parser, and tests/fuzz/test_corpus.py keeps it mended. It needs atheris ('.[dev]' on Linux).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]
CORPUS = HERE / "corpus"
NAMES = ("frontmatter", "markdown", "transcripts", "merge", "answers", "requests")
MAX_BYTES = 4096
MAX_INPUT_S = 60
"""A hang, however busy the machine is."""


def read_corpus(name: str) -> list[bytes]:
    """Return the stored inputs of a target: a literal of bytes in each line."""
    return [ast.literal_eval(line) for line in (CORPUS / f"{name}.txt").read_text(encoding="ascii").splitlines()]


def write_corpus(name: str, inputs: list[bytes]) -> None:
    """Store the inputs of a target, in the order in which they are given."""
    (CORPUS / f"{name}.txt").write_text("".join(f"{data!r}\n" for data in dict.fromkeys(inputs)), encoding="ascii")


def run_target(name: str, arguments: list[str]) -> None:
    """Fuzz a target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["quaid", "frontmatter", "mistune"], enable_loader_override=False):
        import targets

        if name == "requests":  # it imports more, and says something of each request
            os.environ.update(QUAID_EMBEDDING_PROVIDER="none", QUAID_STATE_DIR=tempfile.gettempdir())
            sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
            targets.TARGETS[name](b"GET /healthz")
    atheris.Setup(arguments, targets.TARGETS[name])
    atheris.Fuzz()


def fuzz(name: str, seconds: float, *, keep: bool) -> dict[str, object]:
    """Fuzz a target in a process of its own; what came of it."""
    from targets import DICTIONARY

    with tempfile.TemporaryDirectory() as folder:
        found, stored, merged, dictionary = (Path(folder, each) for each in ("found", "stored", "merged", "dictionary"))
        dictionary.write_text("".join(f'"{_escape(token)}"\n' for token in DICTIONARY[name]))
        for each in (found, stored, merged):
            each.mkdir()
        known = read_corpus(name)
        for number, data in enumerate(known):
            (stored / f"{number:05}").write_bytes(data)
        # The fuzzer starts itself again by this name when it looks for the smallest corpus.
        program = Path(folder, "fuzz.sh")
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} --child {name} "$0" "$@"\n')
        program.chmod(0o700)
        command = [str(program)]
        limits = [
            f"-dict={dictionary}",
            f"-max_len={MAX_BYTES}",
            f"-timeout={MAX_INPUT_S}",
            "-rss_limit_mb=4096",
            f"-artifact_prefix={folder}/",
        ]
        done = subprocess.run(
            [*command, *limits, f"-max_total_time={round(seconds)}", "-print_final_stats=1", "-seed=1", found, stored],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        broken = [
            path.read_bytes()
            for path in Path(folder).glob("*-????????????????????????????????????????")
            if path.is_file()
        ]
        if keep and not broken:
            subprocess.run(
                [*command, *limits, "-merge=1", "-use_counters=0", merged, stored, found],
                capture_output=True,
                check=True,
            )
            smallest = [path.read_bytes() for path in merged.iterdir()]
            write_corpus(name, sorted(smallest, key=lambda data: (len(data), data)))
        elif keep:
            write_corpus(name, [*known, *broken])
    runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)|^#(\d+)", done.stderr, re.MULTILINE)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    return {
        "target": name, "stored": len(known), "runs": max((int(a or b) for a, b in runs), default=0),
        "covered": int(covered[-1]) if covered else 0, "broken": [repr(data) for data in broken],
        "reason": done.stdout[-3000:] + done.stderr[-3000:] if done.returncode else "",
    }  # fmt: skip


def _escape(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


def main() -> int:
    """Fuzz the targets, two at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", choices=[[], *NAMES], metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--keep", action="store_true", help="store what was found in corpus/")
    chosen = parser.parse_args()
    if find_spec("atheris") is None:
        print("atheris, which has no wheel for every system, is not installed: nothing was fuzzed.")
        return 0
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda name: fuzz(name, chosen.seconds, keep=chosen.keep), chosen.targets or NAMES))
    print("| target | stored inputs | runs | places covered | broken |\n|---|--:|--:|--:|--:|")
    for row in results:
        print(f"| {row['target']} | {row['stored']:,} | {row['runs']:,} | {row['covered']:,} | {len(row['broken'])} |")
    for row in results:
        if row["reason"]:
            print(f"\n{row['target']}: {', '.join(row['broken']) or 'it could not run'}\n{row['reason']}")
    print(json.dumps([{key: value for key, value in row.items() if key != "reason"} for row in results]))
    return int(any(row["reason"] for row in results))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run_target(sys.argv[2], sys.argv[3:])
    sys.exit(main())
