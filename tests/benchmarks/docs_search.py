"""How well passages of docs are found: forty questions about Quaid's own docs, each with the page and heading it wants.

    python tests/benchmarks/docs_search.py
    python tests/benchmarks/docs_search.py --misses      # what was found instead

The questions were written from reading the pages, in other words than theirs, before anything was searched; the twenty
searches *by name* (options, files, words of a page) as an agent may type them after the first figures were seen, and no
question was changed. A hit is right when it is on the page and under the heading, or shows the heading. R@k: the share of questions with a right hit
among the first k; MRR: the mean of 1 / rank of the first right one among ten, 0 without one.

*chunks* embeds a passage in chunks of some 200 tokens and lets it count as its best one; *one vector* embeds (and ranks
by words) each passage in whole, of which the built-in model reads the first 256 tokens.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench import describe_machine

from quaid.docs import search
from quaid.docs.catalogue import Doc
from quaid.docs.search import DocHit, DocsIndex
from quaid.index.sqlite import database
from quaid.index.vectors import VectorMatrix
from quaid.model import Note
from quaid.recall.options import RecallOptions
from quaid.recall.search import Sources
from quaid.settings import RecallSettings, Settings
from quaid.sync.embedding import Embedding

ROOT = Path(__file__).parents[2]
MOST = 10
QUESTIONS = (
    ("how do I turn an existing Obsidian folder into a memory without it being messed up?", "cli.md", "quaid init"),
    ("what does exit code 75 tell me?", "cli.md", "Every command"),
    ("which formats of other memory tools can be taken over?", "cli.md", "quaid import"),
    ("get everything out as one file of JSON lines", "cli.md", "quaid export"),
    ("use git bisect to see which commit made an answer disappear", "cli.md", "quaid recall"),
    ("look something up by plain words, no embeddings involved", "cli.md", "quaid search"),
    ("undo a forget", "cli.md", "quaid restore"),
    ("my disk was unmounted and all the notes look deleted, what does syncing do?", "cli.md", "quaid sync"),
    ("prove that two computers hold the same index", "cli.md", "quaid verify"),
    ("check that git, sqlite and the embedding model are fine on this computer", "cli.md", "quaid doctor"),
    ("settings for how much money language models may spend per day", "cli.md", "quaid config"),
    ("take the tool back out of my editor", "cli.md", "quaid uninstall"),
    ("which file does it touch for the Windsurf editor?", "install.md", "What is written"),
    ("does it destroy comments in my JSON settings of other programs?", "install.md", "How your config is treated"),
    ("OpenClaw loads the plugin but nothing happens", "install.md", "What is left to you"),
    ("has anybody tried it on Windows?", "install.md", "Tested programs"),
    ("what happens to passwords that somebody says in a chat?", "capture.md", "The gate"),
    ("somebody says the same thing twice, does that make two notes?", "capture.md", "Comparison with what is known"),
    ("the model's answer is broken JSON, where does it go?", "capture.md", "Checks"),
    ("power cut in the middle of learning from a chat", "capture.md", "Crashes"),
    ("chats that are too big for the context window", "capture.md", "Long conversations"),
    ("are tool outputs and thinking part of the stored chat?", "capture.md", "What is kept"),
    ("steps of a nightly clean-up, from worktree to merge commit", "janitor.md", "A run"),
    ("run the clean-up automatically with cron", "janitor.md", "Every night"),
    ("I disagree with something the clean-up did", "janitor.md", "Undo"),
    ("how do I answer yes or no to what it wants to know?", "janitor.md", "Questions"),
    ("which tools does a model see by default and why so few?", "mcp.md", "Tools"),
    ("no API key: can the host's own model do the extracting?", "mcp.md", "Learning without a key"),
    ("connect over the network port with a bearer token", "mcp.md", "Over HTTP"),
    ("will server processes pile up after the editor closed?", "mcp.md", "The process"),
    ("memories that are put in front of what the user typed", "agents.md", "Before a prompt"),
    ("can a hook slow down or crash Claude Code?", "agents.md", "Hooks never block the agent"),
    ("weights of the different signals in ranking", "recall.md", "Evidence"),
    ("ask what was believed last spring", "recall.md", "As it was known then"),
    ("write down questions that must keep being answered", "recall.md", "Evaluation"),
    ("which ranking stages are disabled out of the box, and for what reason?", "recall.md", "Profiles"),
    ("why is the database safe when two programs write at once or one is killed?", "architecture.md",
     "How a write survives a crash"),
    ("who decides which language model provider is called?", "architecture.md", "How a model is asked"),
    ("how is the number of times a memory was used kept per machine?", "architecture.md",
     "Where Quaid differs from the systems it grew from, and why"),
    ("milliseconds per question with a hundred thousand notes", "performance.md", "Performance"),
)  # fmt: skip
"""(question, page, heading)."""
BY_NAME = (
    ("QUAID_NO_HOOKS", "agents.md", "Hooks never block the agent"),
    ("removal_brake_share", "cli.md", "quaid config"),
    ("janitor undo commit", "janitor.md", "Undo"),
    ("pending.json", "file-format.md", "State"),
    ("memory_create_edge", "mcp.md", "Tools"),
    ("codex config.toml mcp_servers", "install.md", "What is written"),
    ("allowConversationAccess openclaw", "install.md", "What is left to you"),
    ("RRF convex fusion vector_weight setting", "cli.md", "quaid config"),
    ("fork inherited continues frontmatter", "file-format.md", "An episode: episodes/2026/11/20-1402-2f1c9a.md"),
    ("quarantine schema quaid extract", "capture.md", "Checks"),
    ("--compacted-at --session option", "cli.md", "quaid recall"),
    ("Host header 421 Origin 403", "mcp.md", "Over HTTP"),
    ("text_hash content_hash inode mtime sweep", "architecture.md", "How an index row stays true"),
    ("session_best first_person tells", "recall.md", "Evidence"),
    ("systemd launchd janitor.env", "janitor.md", "Every night"),
    ("--expect 125 bisect", "cli.md", "quaid recall"),
    ("memory://recent resource", "mcp.md", "Resources and prompts"),
    ("caused_by parent_of relation tables", "capture.md", "What is kept"),
    ("onnxruntime cold start ms", "performance.md", "Performance"),
    ("MassRemoval --accept-removals", "cli.md", "quaid sync"),
)
"""The same as an agent may type it: names, options, words of the page."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--misses", action="store_true", help="show what was found instead of what was wanted")
    options = parser.parse_args()
    settings = Settings()
    print(describe_machine())

    print(f"{'':24}{'questions':^18}   {'by name':^18}")
    print(f"{'':24}{'R@1':>6}{'R@5':>6}{'MRR':>6}   {'R@1':>6}{'R@5':>6}{'MRR':>6}{'ms':>8}")
    with tempfile.TemporaryDirectory(prefix="quaid-docs-") as made:
        for name, index in {"chunks": DocsIndex, "one vector": _WholePassages}.items():
            sources = _index(Path(made) / name.replace(" ", "-"), settings, index)
            for channels, recall in _channels(settings.recall).items():
                _measure(f"{name}, {channels}", sources, recall, misses=options.misses and channels == "both")


def _channels(settings: RecallSettings) -> dict[str, RecallSettings]:
    return {
        "both": settings,
    }


class _WholePassages(DocsIndex):
    """Indexes each passage as one chunk."""

    def parse_file(self, key: str, data: bytes) -> Note:
        doc = super().parse_file(key, data)
        chunks = []
        for passage in doc.passages:
            parts = [chunk for chunk in doc.chunks if chunk.passage == passage.ordinal]
            if parts:
                text = "\n\n".join(part.text for part in parts)
                chunks.append(replace(parts[0], ordinal=len(chunks), text=text))
        return replace(doc, chunks=tuple(chunks))


def _index(root: Path, settings: Settings, index: type[DocsIndex]) -> Sources:
    root.mkdir()
    embedding = Embedding(root, settings.embedding)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.md"))]
    listed = [path.relative_to(ROOT).as_posix() for path in pages]
    files = {f"quaid:{path}": Doc(f"quaid:{path}", "quaid", ROOT, path) for path in listed}
    docs = index(root, files, embedding)
    report = docs.sync()
    assert report.total == len(pages)
    assert not report.pending, report.degraded
    reader, beside = database.connect_reader(docs.path), database.connect_reader(docs.path)
    return Sources(reader, beside, embedding.embedder_of, VectorMatrix())


def _measure(name: str, sources: Sources, settings: RecallSettings, *, misses: bool) -> None:
    figures = []
    times: list[float] = []
    for asked in (QUESTIONS, BY_NAME):
        ranks = [_rank(sources, settings, one, times, misses=misses) for one in asked]
        first, five = (sum(1 <= rank <= k for rank in ranks) / len(ranks) for k in (1, 5))
        mrr = sum(1 / rank for rank in ranks if rank) / len(ranks)
        figures.append(f"{first:6.3f}{five:6.3f}{mrr:6.3f}")
    print(f"{name:24}{'   '.join(figures)}{1000 * sorted(times)[len(times) // 2]:8.1f}")


def _rank(
    sources: Sources, settings: RecallSettings, asked: tuple[str, str, str], times: list[float], *, misses: bool
) -> int:
    """The place of the first right hit, 0 when there is none."""
    question, page, heading = asked
    started = time.perf_counter()
    found = search.search(sources, question, settings, RecallOptions(limit=MOST, depth="fast"))
    times.append(time.perf_counter() - started)
    right = [is_right(hit, page, heading) for hit in found.hits]
    rank = right.index(True) + 1 if True in right else 0
    if misses and rank != 1:
        print(f"    {rank or '-':>2}  {question} -> {page}: {heading}")
        print("".join(f"        {hit.doc}:{hit.first_line} {' > '.join(hit.heading)}\n" for hit in found.hits[:2]))
    return rank


def is_right(hit: DocHit, page: str, heading: str) -> bool:
    """Whether a hit is on the page and under the heading, or shows it."""
    shown = (line.lstrip("#").strip().replace("`", "") for line in hit.text.split("\n") if line.startswith("#"))
    return hit.doc.rpartition("/")[2] == page and heading in {*hit.heading, *shown}


if __name__ == "__main__":
    main()
