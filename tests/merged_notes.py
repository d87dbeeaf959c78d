"""Notes of each kind and what a machine makes of them, at random; what of it a merge must not lose."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

ID = "01kagx3m7r9q2d5w8t0v7k3qd"
NAMES = ("Ada", "Bo", "Cleo", "Dag", "Eva", "Finn")
WORDS = ("oat milk", "a red bicycle", "the lease", "chess", "rye bread", "long walks", "opera", "tea", "the garden")
SENTENCES = tuple(f"{name} {verb} {word}." for name in NAMES for verb in ("likes", "misses") for word in WORDS)
EDGES = tuple(f"- [[{name}]] {verb} [[{word}]]" for name in NAMES for verb in ("likes", "owns") for word in WORDS)
SETTLED = re.compile(r"^(?:id|created|status|confidence|confirmations|privacy|turn_count|last_turn|ended): ")
"""Keys of which one value is the right one, so that the other is not kept."""


@dataclass(frozen=True)
class Sort:
    """A sort of note: where it lies, how it is made, and what its lines are drawn from."""

    path: str
    make: Callable[[Random], str]
    lines: Sequence[str]
    has_head: bool = True


def _head(rng: Random, *lines: str) -> str:
    return "\n".join(["---", *(line for line in lines if line.endswith("!") or rng.random() < 0.8), "---", ""]).replace(
        "!\n", "\n"
    )


def _some(rng: Random, pool: Sequence[str], most: int) -> list[str]:
    return rng.sample(pool, rng.randint(0, most))


def _fact(rng: Random) -> str:
    said = " ".join(_some(rng, SENTENCES, 3)) or SENTENCES[0]
    edges = "".join(f"{edge}\n" for edge in _some(rng, EDGES, 3))
    head = _head(
        rng, f"id: {ID}z!", "type: fact!", "status: pending!", f"confidence: 0.{rng.randint(1, 9)}", "speaker: Maya",
        "created: 2026-11-20T14:30:00Z", f"keywords: [{', '.join(_some(rng, NAMES, 3))}]", 'turns: ["[[20-1#^t3]]"]',
        "valid_until: 2026-12-01  # when the lease ends", "tags:\n  - home\n  - food",
    )  # fmt: skip
    return f"{head}{said}\n" + (f"\n{edges}" if edges else "")


def _entity(rng: Random) -> str:
    head = _head(rng, f"id: {ID}1!", "type: person!", "created: 2026-11-20T14:30:00Z!", "aliases: [Maya]")
    return head + "".join(f"{edge}\n" for edge in _some(rng, EDGES, 4))


def _core(rng: Random) -> str:
    pool = _some(rng, SENTENCES, 9)
    parts = [
        f"# About\n\n{' '.join(pool[:3])}\n",
        f"\n## Likes\n\n{_list(pool[3:6])}",
        f"\n## Work\n\n{_list(pool[6:])}",
    ]
    return "".join(parts[: rng.randint(1, 3)])


def _list(items: Sequence[str]) -> str:
    return "".join(f"- {item}\n" for item in items)


def _snippets(rng: Random) -> str:
    days = sorted(rng.sample(range(10, 28), rng.randint(0, 3)))
    said = rng.sample(SENTENCES, 6)
    return "\n".join(f"## Reset - 2026-02-{day} 14:30\n\n{_list([said.pop(), said.pop()])}" for day in days)


def _journal(rng: Random) -> str:
    days = sorted(rng.sample(range(10, 28), rng.randint(0, 3)), reverse=True)
    said = rng.sample(SENTENCES, 6)
    return "\n".join(f"## 2026-02-{day} - Reset\n\n{said.pop()} {said.pop()}\n" for day in days)


def _question(rng: Random) -> str:
    head = _head(
        rng, "type: review!", "task: compare!", "kind: merge!", "key: 3f0c9a1b2c3d4e5f!",
        f"created: 2026-11-{rng.randint(10, 28)}T03:30:00Z!",
    )  # fmt: skip
    return f"{head}# merge?\n\nBoth say the same.\n\n- [ ] Yes, do it\n- [ ] No, and do not ask again\n"


def _episode(rng: Random) -> str:
    turns = rng.sample(SENTENCES, rng.randint(0, 4))
    head = f"---\ntype: episode\nsession: 2f1c9a\nstarted: 2026-11-20T14:02:00Z\nturn_count: {len(turns)}\n---\n"
    return head + "\n".join(f"**Maya**: {said} ^t{number}\n" for number, said in enumerate(turns, 1))


SORTS = {
    "fact": Sort("facts/2026/11/ada-likes-tea-k3qdz.md", _fact, (*SENTENCES, *EDGES)),
    "entity": Sort("entities/Maya Chen.md", _entity, EDGES),
    "core": Sort("SOUL.md", _core, (*SENTENCES, *(f"- {said}" for said in SENTENCES)), has_head=False),
    "snippets": Sort("snippets/SOUL.snippets.md", _snippets, tuple(f"- {said}" for said in SENTENCES), has_head=False),
    "journal": Sort("journal/SOUL.journal.md", _journal, SENTENCES, has_head=False),
    "question": Sort("review/merge-3f0c9a1b.md", _question, SENTENCES),
    "episode": Sort("episodes/2026/11/20-1402-2f1c9a.md", _episode, ()),
}


LINES, SENTENCES_OF_LINES = ("add", "add", "remove"), ("add", "append")


def change(rng: Random, sort: Sort, text: str, kinds: Sequence[str] = (*LINES, "reword", "append")) -> str:
    """What one machine has made of a note since: a few changes of its head and its body, the latter of some `kinds`."""
    if not text:  # made on two machines, each on its own
        text = sort.make(rng)
    before = text
    for _ in range(rng.randint(0, 3)):
        is_head = sort.has_head and rng.random() < 0.5
        head, mark, body = text.rpartition("\n---\n") if sort.has_head else ("", "", text)
        text = (
            f"{_change_head(rng, head)}{mark}{body}"
            if is_head
            else f"{head}{mark}{_change_body(rng, sort, body, kinds, before)}"
        )
    return text


def _change_head(rng: Random, head: str) -> str:
    lines = head.split("\n")
    place = rng.randrange(1, len(lines))
    name = lines[place].partition(":")[0]
    edited = {
        "confidence": f"confidence: 0.{rng.randint(10, 99)}",
        "status": f"status: {rng.choice(['approved', 'active'])}",
        "created": f"created: 2026-11-{rng.randint(10, 28)}T14:30:00Z",
        "keywords": f"keywords: [{', '.join(_some(rng, NAMES, 4))}]",
        "aliases": f"aliases: [{', '.join(_some(rng, NAMES, 3))}]",
        "speaker": f"speaker: {rng.choice(NAMES)}",
        "valid_until": f"valid_until: 2027-01-{rng.randint(10, 28)}",
        "privacy": f"privacy: {rng.choice(['shared', 'public'])}",
        "confirmations": f"confirmations: {rng.randint(1, 9)}",
    }
    if name in edited:
        lines[place] = edited[name]
    elif rng.random() < 0.6:
        more = rng.choice(["privacy", "confirmations", "speaker", "valid_until"])
        if not any(line.startswith(f"{more}:") for line in lines):
            lines.append(edited[more])
    return "\n".join(lines)


def _change_body(rng: Random, sort: Sort, body: str, kinds: Sequence[str], before: str) -> str:
    if sort.path.startswith("episodes/"):
        return _change_episode(rng, body)
    if "- [ ]" in body and rng.random() < 0.5:
        return body.replace("- [ ]", "- [x]", 1)
    lines = body.split("\n")
    places = [place for place, line in enumerate(lines) if line.strip() and not line.startswith(("#", "- ["))]
    kind = rng.choice(kinds)
    if kind == "add" or not places:
        fresh = [line for line in sort.lines if line.removeprefix("- ") not in body + before]
        lines.insert(rng.choice([*(place + 1 for place in places), max(len(lines) - 1, 0)]), rng.choice(fresh))
    elif kind == "remove":
        del lines[rng.choice(places)]
    else:
        prose = [place for place in places if lines[place].endswith(".")]
        if prose:
            place = rng.choice(prose)
            new = rng.choice([said for said in SENTENCES if said not in body + before])
            said = re.split(r"(?<=\.) ", lines[place])
            kept = said if kind == "append" else said[1:]
            lead = "- " if said[0].startswith("- ") and kind == "reword" else ""
            lines[place] = lead + " ".join([*kept, new])
    return "\n".join(lines)


def _change_episode(rng: Random, body: str) -> str:
    turns = re.findall(r"^\*\*.*\^t(\d+)$", body, re.MULTILINE)
    kind = rng.choice(["grow", "grow", "forget", "edit"])
    if kind == "grow" or not turns:
        said = rng.choice([said for said in SENTENCES if said not in body])
        return f"{body}{chr(10) * bool(body)}**Maya**: {said} ^t{len(turns) + 1}\n"
    number = rng.choice(turns)
    said = "*(forgotten)*" if kind == "forget" else rng.choice([said for said in SENTENCES if said not in body])
    return re.sub(rf"^\*\*Maya\*\*: .* \^t{number}$", f"**Maya**: {said} ^t{number}", body, flags=re.MULTILINE)


def list_statements(text: str) -> set[str]:
    """What a note says: its sentences, its edges, and the values of its head."""
    found = {piece for piece in (*SENTENCES, *EDGES) if piece in text}
    head = text.rpartition("\n---\n")[0] if text.startswith("---\n") else ""
    for line in head.split("\n")[1:]:
        name, _, value = line.partition(": ")
        if value.startswith("["):
            found |= {f"{name}: {item}" for item in value.strip("[]").split(", ") if item}
        elif value and not SETTLED.match(line):
            found.add(f"{name}: {value.partition('  #')[0]}")
    return found | {f"{name}: {value}" for name, value in re.findall(r"^%%merged: (\w+): (.*)%%$", text, re.MULTILINE)}


def find_lost(base: str, ours: str, theirs: str, merged: str) -> set[str]:
    """Return the statements that a side made, or that both have kept, and that are not in `merged`. What was said in a
    turn that a side has forgotten is not one of them.
    """
    before, one, other, after = map(list_statements, (base, ours, theirs, merged))
    forgotten = {
        number for text in (ours, theirs) for number in re.findall(r"\*\(forgotten\)\* \^t(\d+)$", text, re.MULTILINE)
    }
    gone = {
        said
        for text in (base, ours, theirs)
        for said, number in re.findall(r"^\*\*Maya\*\*: (.*) \^t(\d+)$", text, re.MULTILINE)
        if number in forgotten
    }
    return ((one - before) | (other - before) | (one & other)) - after - gone
