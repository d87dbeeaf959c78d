"""Break Quaid in small ways, one after the other, and see that the named tests notice each.

    python tests/mutations.py [WORD...]     those whose package or text has one of these words; by default all

A mutation is a package, a text that its modules hold exactly once, what stands there instead, and the tests to run.
They are run on a copy of this checkout. Exit status 1 when a mutation survives or its text is not there any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("quaid", "tests", "docs", "prompts", "vault-template", "hooks", "pyproject.toml", "README.md")
MUTATIONS = (
    ("claims", "window[0] <= other[1] and", "window[0] < other[1] and", "base/test_claims.py"),
    ("claims", "number >= 100 and not", "number > 100 and not", "base/test_claims.py text"),
    ("claims", "whole.negations > 0", "whole.negations > 1", "base/test_claims.py"),
    ("user_config", " or about.st_mode & stat.S_IWOTH", "", "base/test_config.py base/test_trust.py"),
    ("http", "time.monotonic() + wait_s >= deadline", "time.monotonic() >= deadline", "llm/test_wire.py"),
    ("http", "or response.status >= 500", "or response.status > 500", "llm/test_wire.py"),
    ("text", "max(first, second) <= 12", "max(first, second) < 12", "text/test_dates.py"),
    ("text", "(month <= today.month)", "(month < today.month)", "text/test_dates.py"),
    ("text", "window[1] < today][-1]", "window[1] <= today][-1]", "text/test_dates.py"),
    ("text", '(fact.valid_from or "")[:10] > day', '(fact.valid_from or "")[:10] >= day', "text/test_endings.py recall"),
    ("text", "start < end <= start + most", "start < end < start + most", "text recall/test_exact_names.py"),
    ("redaction", "max(0, span.start - start)", "span.start - start", "redaction/test_redaction.py redaction/test_locate.py"),
    ("redaction", "if len(value) >= 12 and _has_both", "if len(value) > 12 and _has_both", "redaction"),
    ("redaction", "len(words) >= MIN_WORDS", "len(words) > MIN_WORDS", "redaction"),
    ("redaction", "% 97 == 0)", "% 97 == 1)", "redaction"),
    ("vault", "else min(numbers[1:])", "else max(numbers[1:])", "vault/test_merging.py"),
    ("vault", "else least, int(item in keep)", "else most, int(item in keep)", "vault/test_merging.py"),
    ("vault", "zeros > len(data) // 20", "zeros > len(data) // 2", "vault/test_notes.py"),
    ("vault", " and len(name.encode()) <= _MAX_SLUG_BYTES", "", "vault/test_layout.py"),
    ("vault", "ends[-1] > limit // 3", "ends[-1] > 0", "vault/test_markdown.py"),
    ("vault", "len(text) > MAX_CHARACTERS or", "len(text) >= MAX_CHARACTERS or", "vault/test_notes.py"),
    ("index", "if len(rows) <= limit:", "if len(rows) < limit:", "index"),
    ("index", "cosines.min()]]", "cosines.max()]]", "index"),
    ("index", "if not _MIN_ID_PART <= len(text)", "if not _MIN_ID_PART < len(text)", "index/test_references.py"),
    ("embed", "- 1.0) < TOLERANCE", "- 1.0) > TOLERANCE", "embed/test_services.py"),
    ("embed", "(norms > 0) & ", "", "embed/test_services.py"),
    ("llm", "and abs(value) != math.inf", "and abs(value) >= 0", "llm"),
    ("llm", "if len(opened) > _MAX_DEPTH", "if len(opened) >= 2 * _MAX_DEPTH", "llm"),
    ("local", "if for_good or tried.attempts >= ATTEMPTS", "if for_good or tried.attempts > ATTEMPTS", "local/test_queue.py"),
    ("local", "if not 200 <= status < 300", "if not 200 <= status <= 300", "local/test_notifications.py"),
    ("recall", "max(MIN_HITS, min(MAX_HITS,", "max(MIN_HITS, max(MAX_HITS,", "recall/test_cutoff.py recall/test_pipeline.py"),
    ("recall", "min(1.0, use.accesses / ", "max(1.0, use.accesses / ", "recall/test_scoring.py"),
    ("recall", "return day < ended[:10]", "return day <= ended[:10]", "recall"),
    ("recall", "if began is not None and began[:10] > day", "if began is not None and began[:10] >= day", "recall"),
    ("recall", "best.like > best.unlike", "best.like < best.unlike", "recall memory"),
    ("recall", "len(part) >= _MIN_ID_PART and ", "", "recall/test_evaluation.py recall/test_expected_answers.py"),
    ("capture", "shared < _MIN_SHARED_TURNS", "shared <= _MIN_SHARED_TURNS", "capture/test_episode_plans.py capture/test_growth.py"),
    ("capture", "answered <= MAX_ANSWERED", "answered < MAX_ANSWERED", "capture/test_nothing_to_learn.py"),
    ("janitor", "age >= MIN_AGE_DAYS and", "age > MIN_AGE_DAYS and", "janitor/test_promotion.py"),
    ("janitor", "if score >= MIN_IMPORTANCE", "if score >= 0", "janitor/test_promotion.py"),
    ("janitor", "_modified(path) < then]", "_modified(path) > then]", "janitor/test_gaps.py"),
    ("timeline", "if len(one.changes) <= log.MAX_READ", "if len(one.changes) < log.MAX_READ", "timeline"),
    ("docs", "if not size <= 2 * left < 2 * size", "if not size < 2 * left < 2 * size", "docs/test_updates.py janitor/test_docs.py"),
    ("docs", "if size >= TINY and 2 * sum", "if 2 * sum", "docs/test_updates.py"),
    ("sync", "return len(removed) > MAX_REMOVED and ", "return ", "sync"),
    ("sync", "age_s < 3 * HEARTBEAT_S and ", "", "sync/test_watch.py report cli/test_cli.py"),
    ("remotes", "now < lease.until <= now + 2 * LASTS", "now < lease.until", "remotes"),
    ("purge", "len(line.split()) >= _MIN_WORDS", "len(line.split()) > _MIN_WORDS", "purge"),
    ("hooks", "item.attempts * RETRY_S", "RETRY_S", "hooks"),
    ("hooks", " and not admit(path).redacted", "", "hooks/test_hooks.py hooks/test_hooks_docs.py"),
    ("report", "int(found[2])) < MIN_GIT", "int(found[2])) <= MIN_GIT", "report cli/test_cli.py"),
    ("report", "if foreign < MIN_FOREIGN or", "if", "report cli/test_model_change.py"),
    ("agents", "if len(text) <= budget:", "if len(text) < budget:", "agents/test_session_context.py"),
    ("web", 'method not in {"GET", "HEAD", "POST"}', 'method not in {"GET", "HEAD", "POST", "PUT"}', "web/test_guard.py web/test_attacks.py"),
    ("web", "max(len(old), len(new)) > MAX_LINES", "min(len(old), len(new)) > MAX_LINES", "web/test_parts.py web/test_nights.py"),
    ("mcp", "if first and last and first > last", "if first and last and first < last", "mcp/test_tools.py"),
    ("mcp", "if len(token) < MIN_TOKEN or", "if", "mcp/test_http.py"),
    ("cli", "if took_s < 1 else", "if took_s <= 1 else", "cli"),
    ("cli", "if not 1 <= number <=", "if not 0 <= number <=", "cli"),
    ("server", "        if left < 1:", "        if left <= 1:", "server"),
    ("server", '["expires"] <= datetime.now(UTC)', '["expires"] > datetime.now(UTC)', "server"),
    ("history", "len(subject) > SUBJECT_LENGTH", "len(subject) >= SUBJECT_LENGTH", "history/test_messages.py"),
    ("history", "is_part and len(reference) >= 4", "is_part", "history/test_log.py"),
)  # fmt: skip


def find(package: str, text: str) -> Path | None:
    """The one module of a package that holds a text exactly once; None where it is not there, or more than once."""
    folder = ROOT / "quaid" / package
    modules = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    found = [module for module in modules for _ in range(module.read_text(encoding="utf-8").count(text))]
    return found[0].relative_to(ROOT) if len(found) == 1 else None


def survives(mutation: tuple[str, str, str, str]) -> str:
    """What is wrong with a mutation: nothing notices it, or its text is not there. Empty where a test fails."""
    package, before, after, tests = mutation
    if (module := find(package, before)) is None:
        return "stale"
    with tempfile.TemporaryDirectory(prefix="q-mutation-") as name:
        copy = Path(name)
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("benchmarks", "node_modules"))
            else:
                shutil.copyfile(ROOT / part, copy / part)
        text = (copy / module).read_text(encoding="utf-8")
        (copy / module).write_text(text.replace(before, after), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *(f"tests/{test}" for test in tests.split())],
            cwd=copy, env=os.environ | {"PYTHONPATH": name}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    return {0: "survives", 1: ""}.get(done.returncode, f"pytest ended with {done.returncode}:\n{done.stdout[-500:]}")


def main(words: list[str]) -> int:
    """Try the mutations and print those that nothing notices."""
    chosen = [each for each in MUTATIONS if not words or any(word in " ".join(each) for word in words)]
    bad = 0
    with ThreadPoolExecutor(2) as pool:
        for mutation, problem in zip(chosen, pool.map(survives, chosen), strict=True):
            print(
                f"{problem or 'noticed':8}  {mutation[0]}: {mutation[1].strip()} -> {mutation[2].strip()}", flush=True
            )
            bad += bool(problem)
    print(f"{len(chosen) - bad} of {len(chosen)} mutations are noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
