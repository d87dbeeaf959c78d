"""The nouns of Quaid as frozen data. Nothing here touches a disk, a database or a network."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple
from unicodedata import normalize

from quaid.errors import BudgetExceededError

FACT_TYPES = ("fact", "preference", "belief", "experience", "event", "decision")
STATUSES = ("pending", "approved", "active")
SOURCES = ("user", "assistant", "tool", "import")
DURABILITIES = ("mutable", "immutable", "contextual")
Tier = Literal["deep", "fast"]
"""The language model that a prompt is for: the one that thinks, or the one that is quick and cheap."""
PRIVACIES = ("private", "shared", "public")
ENTITY_TYPES = ("person", "place", "organization", "project", "event", "pet", "concept", "thing")
NOTE_ENDINGS = (".md", ".markdown")
"""The endings of the names of notes, in small letters."""
CORE_FILES = ("SOUL.md", "USER.md", "MEMORY.md", "AGENTS.md")


CONFLICT_PROBLEM = "it has the marks of a merge conflict; whether git knows of one says: quaid conflicts"
"""The sentence in `Note.problems` for marks of a merge conflict that are not in code."""


class Kind(StrEnum):
    """The kind of a note. Its folder says so; elsewhere its frontmatter `type` does."""

    FACT = "fact"
    ENTITY = "entity"
    EPISODE = "episode"
    CORE = "core"
    SNIPPET = "snippet"
    JOURNAL = "journal"
    DOC = "doc"
    REVIEW = "review"
    NOTE = "note"


def name_key(name: str) -> str:
    """Return a name, alias or link target as it is compared: NFKC, case folded, white space collapsed."""
    return " ".join(normalize("NFKC", name).casefold().split())


FIRST_PERSON = frozenset("i me myself ich je moi yo io eu ik я 我 私".split())  # noqa: SIM905
"""The keys of first-person words used as a name."""
OWNER_LABELS = FIRST_PERSON | {
    *("user", "the user", "human", "you", "the owner"),
    *("der nutzer", "die nutzerin", "el usuario", "用户"),
}
"""The keys of what transcripts and models call the owner of a memory, who has no name there."""


def is_owner_label(name: str) -> bool:
    """Return whether `name` is not a name but a word for the owner of the memory: User, Human, me."""
    return name_key(name) in OWNER_LABELS


def note_name(path: str) -> str:
    """Return the name of the note at `path` in links and citations: its file name without the ending."""
    return without_ending(path.rsplit("/", 1)[-1])


def without_ending(path: str) -> str:
    """Return `path` without the ending of a note, in any case."""
    ending = next((each for each in NOTE_ENDINGS if path.lower().endswith(each)), "")
    return path[: len(path) - len(ending)]


class Edge(NamedTuple):
    """`[[subject]] relation [[object]]`; names as written."""

    subject: str
    relation: str
    object: str


class Citation(NamedTuple):
    """A fact's pointer at the turn it rests on: `[[20-1402-2f1c9a#^t3]]`."""

    episode: str
    turn: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A searchable piece of a note.

    `text` is what a reader is shown; `context` (a date and speaker, a heading path, a title) is searched and
    embedded with it but not shown. `passage` is the ordinal of the passage that it finds, if there is one.
    """

    ordinal: int
    text: str
    context: str = ""
    keywords: str = ""
    turn: int | None = None
    speaker: str | None = None
    said_at: str | None = None
    passage: int | None = None

    @property
    def embedded_text(self) -> str:
        return f"{self.context}: {self.text}" if self.context else self.text


class Passage(NamedTuple):
    """A stretch of a doc as it is shown: its markdown under `heading` (the path of headings, outermost first), and its
    first and last line in the file, from 1. The chunks with its `ordinal` as their `passage` find it.
    """

    ordinal: int
    heading: tuple[str, ...]
    text: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Note:
    """A parsed note: the frontmatter Quaid knows, typed, and what is searched, linked and cited.

    `problems` are sentences about what could not be understood; such a note is still indexed.
    Times are ISO 8601 strings as written; dates compare as text. `text_hash` (facts only) is what exact duplicates
    share. `pending` are the facts that a question would replace or reject: each with why, in words, and its successor,
    if it has one. A doc has `passages`, and `redacted` are the kinds of the secrets that were taken out of it.
    """

    rel_path: str
    content_hash: str
    kind: Kind
    id: str
    title: str
    text: str
    text_hash: str | None = None
    chunks: tuple[Chunk, ...] = ()
    type: str | None = None
    status: str | None = None
    owner: str = "default"
    privacy: str = "private"
    confidence: float | None = None
    durability: str | None = None
    speaker: str | None = None
    source: str | None = None
    session: str | None = None
    project: str | None = None
    technical: bool = False
    pinned: bool = False
    verified: bool = False
    confirmations: int = 0
    created: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    superseded_by: str | None = None
    names: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()
    links: tuple[str, ...] = ()
    citations: tuple[Citation, ...] = ()
    pending: tuple[Edge, ...] = ()
    problems: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """One planned change of one file, guarded by the bytes it was planned on.

    `before` is None when the file must not exist yet, `after` is None when it is to be removed.
    """

    rel_path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """One planned change of a file in a repository that is not the vault: it is put on a branch there.

    `path` is relative to `folder`, which is in that repository. `message` is that of the commit.
    """

    folder: str
    path: str
    before: bytes
    after: bytes
    message: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation. `text` is clean: no tool output, no thinking, no injected memory."""

    speaker: str
    text: str
    role: str = "user"
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A transcript as read: `skipped` counts what was left out, by reason; `title` is what its program calls it."""

    turns: tuple[Turn, ...]
    session: str | None = None
    source: str = "text"
    started: datetime | None = None
    project: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as `quaid log` shows it. `trailers` keep every value of a repeated key."""

    id: str
    when: str
    author: str
    email: str
    subject: str
    body: str
    trailers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()


class Use(NamedTuple):
    """The uses of a memory on this machine.

    `last_access` is ISO 8601 in UTC, None if it was never used. `strength` is Bjork's storage strength.
    """

    accesses: int = 0
    last_access: str | None = None
    strength: float = 0.0


class ChannelRank(NamedTuple):
    """The place of a hit in one channel: `rank` from 1, `score` as that channel measures it."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The context of a hit: another piece of its note or conversation, or the turn that a fact cites (`cited`).
    `ordinal` is its place in the note at `path`.
    """

    path: str
    ordinal: int
    text: str
    turn: int | None = None
    speaker: str | None = None
    created: str | None = None
    heading: str = ""
    cited: bool = False

    @property
    def stated_at(self) -> str | None:
        """The moment to which its words are relative."""
        return None if self.turn is None else self.created

    @property
    def id(self) -> str:
        """The id of the hit that it would be."""
        return self.path if self.turn is None else f"{note_name(self.path)}#t{self.turn}"


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer. `score` is in [0, 1], a little more with a rare feature. `channels` are the channels that found it,
    with its rank in each, and `evidence` is the contribution of each feature to the score.

    `provenance` is its origin: owner, other (`speaker`), agent, tool, import or conversation. `contradicts` are the ids
    of hits that cannot be true together with this one; those of them that began or were stated before it are also in
    `later_than`, with what it replaces, those after it in `earlier_than`, with what replaces it. `marks` are in words
    what a reader must know of it: that it is no longer true, or what replaces it.
    `ordinal` is the place of `text` in its note, `heading` the title and the headings over it, and `beside` its
    neighbours: only within a budget. `vault` is the name of its vault, if several were searched, and `also_in` are the
    others that have the same text.
    """

    id: str
    kind: str
    text: str
    score: float
    path: str
    session: str | None = None
    turn: int | None = None
    speaker: str | None = None
    created: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    type: str | None = None
    durability: str | None = None
    status: str | None = None
    confidence: float | None = None
    project: str | None = None
    provenance: str = "owner"
    superseded: bool = False
    edges: tuple[Edge, ...] = ()
    channels: Mapping[str, ChannelRank] = field(default_factory=dict)
    stands_for: int = 1
    via: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    later_than: tuple[str, ...] = ()
    earlier_than: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    evidence: Mapping[str, float] = field(default_factory=dict)
    ordinal: int = 0
    heading: str = ""
    beside: tuple[Neighbour, ...] = ()
    vault: str = ""
    also_in: tuple[str, ...] = ()

    @property
    def stated_at(self) -> str | None:
        """The moment to which relative days in its text refer: the time of a turn, None for anything else."""
        return None if self.turn is None else self.created


@dataclass(frozen=True, slots=True)
class Scale:
    """The features that make the scores of an answer, which are relative to its vault, comparable with another vault's.

    The cosine `unlike` counts 0 and `like`, the highest in the vault, 1, by the embedder with the fingerprint
    `embedder`, which is empty without a vector search. `chunks` is the number of chunks that the caller may see, and
    `matches` how many of them have each word of the question. `called` are the ids of hits with the question as their
    name: they rank first.
    """

    unlike: float = 0.0
    like: float = 0.0
    embedder: str = ""
    chunks: int = 0
    matches: Mapping[str, int] = field(default_factory=dict)
    called: frozenset[str] = frozenset()

    @property
    def rarity(self) -> dict[str, float]:
        """Return how rare each word of the question is, from 0 to 1 for a word that no chunk has."""
        size = self.chunks + 200  # in a small vault chance decides which words are rare
        most = math.log1p((size + 0.5) / 0.5)
        return {word: math.log1p((size - n + 0.5) / (n + 0.5)) / most for word, n in self.matches.items()}


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to one question. `degraded` names every channel or guarantee that was missing. `doubt` is why the
    answer is low-confidence, or None. `context` are the requested core notes, as (path, text). `more` means that other
    memories matched too. `text` is the rendered answer within the budget, None without one. `scale` makes the scores
    comparable with another vault's.
    """

    query: str
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0
    trace: Mapping[str, object] = field(default_factory=dict)
    doubt: str | None = None
    context: tuple[tuple[str, str], ...] = ()
    more: bool = False
    text: str | None = None
    scale: Scale | None = None


class ModelUsage(NamedTuple):
    """The usage of one call of a language model, or of several. Counts are tokens."""

    input_tokens: int = 0
    """All that was read, whatever of it came out of the provider's cache."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input that the provider had in its cache."""
    written_tokens: int = 0
    """The part of the input that the provider put into its cache, where that costs extra."""
    cost_usd: float | None = 0.0
    """None where no price is known; a sum is of the known ones."""
    calls: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "ModelUsage") -> "ModelUsage":  # type: ignore[override] # a sum, not a longer tuple
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return ModelUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.written_tokens + other.written_tokens,
            sum(costs) if costs else None,
            self.calls + other.calls,
        )


class PlannedCall(NamedTuple):
    """A call of a language model that is about to be made, and the most it can take."""

    tier: Tier
    provider: str
    model: str
    prompt: str
    """`name@version`."""
    most: ModelUsage


class SpendingCap(NamedTuple):
    """The most that models may take in a period, `run` or `day`; 0 is no limit."""

    period: str
    max_tokens: int
    max_usd: float

    def check(self, most: ModelUsage, spent: ModelUsage) -> None:
        """Raise BudgetExceededError if a call that may take `most` would exceed the cap after what was `spent`."""
        if self.max_tokens and spent.tokens + most.tokens > self.max_tokens:
            given = (f"{tokens:,} tokens" for tokens in (self.max_tokens, spent.tokens, most.tokens))
            raise BudgetExceededError(f"models.max_tokens_per_{self.period}", *given)
        cost = spent.cost_usd or 0.0
        if self.max_usd and most.cost_usd is not None and cost + most.cost_usd > self.max_usd:
            dollars = (f"${amount:.4g}" for amount in (self.max_usd, cost, most.cost_usd))
            raise BudgetExceededError(f"models.max_usd_per_{self.period}", *dollars)


@dataclass(frozen=True)
class Message:
    """The message of a commit of Quaid's. Line breaks in the subject and in trailer values become spaces, characters
    that are not seen become escapes, and no line of the body looks like a trailer of Quaid's.
    """

    subject: str
    body: str = ""
    trailers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Committed:
    """The outcome of a commit of edits. `id` is None when there was nothing to commit; the changes of the paths in
    `left` are still uncommitted, those `refused` not for the owner's own work in them but for the `refusal`.
    """

    id: str | None
    left: tuple[str, ...] = ()
    refused: tuple[str, ...] = field(default=(), compare=False)
    refusal: str = field(default="", compare=False)


Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """The outcome of one check of `quaid doctor`. `next_step` is a command or a hint, empty when all is well."""

    name: str
    level: Level
    sentence: str
    next_step: str = ""
