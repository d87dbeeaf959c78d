"""Every setting, its default, the values that fit it, and what it is for. quaid.toml has the same tables and keys.

May import nothing of the house.
Begin with Settings; types.py reads and checks their values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from quaid.settings.types import Amount, Cautious, Count, Duration, Positive, Range, Share, VisibleFolder


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """The parts of a conversation that are kept."""

    episodes: Literal["keep", "facts-only"] = "keep"
    """`facts-only` keeps no conversation text, only what was learned from it."""
    facts: bool = True
    """A model, if there is one, extracts facts from conversations."""
    snippets: bool = True
    """It collects observations for the core notes."""
    journal: bool = True
    """It writes a journal."""
    redact_numbers: bool = True
    """Numbers of cards, accounts (IBAN) and identity documents are redacted like secrets."""
    max_facts: Count = 500
    """The maximum of facts from one conversation; 0 means no limit."""
    piece_tokens: Positive = 12_000
    """A longer conversation is given to the model in overlapping pieces of this size."""


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """The model that turns text into vectors."""

    provider: Literal["local", "ollama", "openai", "none"] = "local"
    model: str = "auto"
    """A built-in name, a folder with a BERT-type sentence-transformers model, or the service's name for it; `auto` is
    the English one, and `quaid status` says when notes are in other languages."""
    precision: Literal["fp32", "int8"] = "int8"
    """Measured on LoCoMo: int8 finds as much (R@10 within .006), twice as fast and in half the memory."""
    url: str = ""
    """Base address of the service; empty means the provider's usual one."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key, never the key itself."""
    offline: bool = False
    """No weights are downloaded and no service on another machine is asked; set by the setting `offline`."""
    dimensions: Count = 0
    """Asked of the service; 0 means the model's own."""
    threads: Count = 0
    """0 means as many as the machine has cores."""
    timeout_s: Duration = 60.0
    duplicate_similarity: Share = 0.0
    """Cosine from which two facts say the same; 0 means the value measured for the model."""
    relevant_similarity: Share = 0.0
    """Cosine from which a text answers a question though it has none of its words; 0 means the model's."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The language models that are asked, and what that may cost. 0 as a cap means that there is none."""

    provider: Literal["", "auto", "none", "anthropic", "openai", "ollama", "claude-code"] = ""
    """Empty until the user has agreed that a model is asked. `auto`: a key in the environment, else a running Ollama,
    else Claude Code; `quaid doctor` says which and why.
    """
    offline: bool = False
    """No model on another machine is asked; set by the setting `offline`."""
    agreed: str = ""
    """The day on which the user agreed, written by `quaid init`, `quaid install` and `quaid config`."""
    deep: str = ""
    """The model that thinks (extraction, review); empty means the provider's usual one."""
    fast: str = ""
    """The model that is quick and cheap (reranking, yes or no); empty means the provider's usual one."""
    url: str = ""
    """Base address of the service; empty means the provider's usual one."""
    api_key_env: str = ""
    """The environment variable that holds the key, never the key itself; empty means the provider's usual one."""
    deep_timeout_s: Duration = 300.0
    """An extraction of forty facts is 6,000 tokens of answer."""
    fast_timeout_s: Duration = 30.0
    temperature: Annotated[float, Range(most=2)] = -1.0
    """Below 0 none is sent: newer models refuse it."""
    context_tokens: Count = 8192
    """The context size that Ollama is asked for; a longer question gets a larger one."""
    output_limit_field: Literal["", "max_tokens", "max_completion_tokens"] = ""
    """The field in which an OpenAI-compatible service takes the limit of its answer; empty sends no limit."""
    anthropic_version: str = "2026-10-21"
    max_tokens_per_call: Count = 200_000
    max_tokens_per_run: Count = 2_000_000
    max_tokens_per_day: Count = 5_000_000
    max_usd_per_run: Amount = 2.0
    max_usd_per_day: Amount = 5.0
    deep_price: str = ""
    """Dollars per million tokens in and out, as "4/20"; empty means the price Quaid knows of the model."""
    fast_price: str = ""
    cache_days: Count = 30
    """An answer is kept this long for the same question; 0 keeps none."""


@dataclass(frozen=True, slots=True)
class StageSettings:
    """The stages of recall that are on. docs/recall.md has measured each; those that are off did not help."""

    metadata: bool = True
    """Metadata that a chat gateway puts around the question is removed."""
    aliases: bool = True
    """A name is searched by all the names of what it means."""
    owner: bool = True
    """`my` and `our` mean the owner's person note."""
    intent: bool = True
    """The intent (WHO, WHEN, WHERE …) is derived from the question's words."""
    intent_weights: bool = False
    """The intent sets the shares of the vector and keyword channels."""
    type_boosts: bool = False
    """The intent raises the types of notes it asks for."""
    dates: bool = True
    """Notes from the time that the question names are raised."""
    phrases: bool = True
    """Notes with the question's quoted phrase are raised."""
    keyword: bool = True
    vector: bool = True
    episodes: bool = True
    """Whole conversations are searched for the question's words."""
    graph: bool = True
    exact: bool = True
    """A note whose id, title or alias is the whole question goes first."""
    company: bool = True
    """A turn gains from the turns beside it and from its session."""
    provenance: bool = True
    """A fact lends its score to the turns it cites, and they theirs to it."""
    speaker: bool = True
    """If the question names one person, what that person said is raised."""
    form: bool = True
    """Long turns are raised and questions lowered; for WHEN, notes that mention a time are raised."""
    composite: bool = False
    """Recency, frequency and confidence count besides relevance."""
    decay: bool = False
    """Memories that were not used for long score less."""
    technical: bool = True
    """Technical facts score a little lower for all but PROJECT questions."""
    contiguity: bool = False
    """Facts from the sessions of the best hits are added."""
    spread: bool = True
    """Turns of one session are spread over the hits."""
    mmr: bool = False
    """Hits that are like better ones come later (maximal marginal relevance)."""
    fold: bool = True
    """Near-duplicates are shown once."""
    contradictions: bool = True
    """Facts that contradict each other are both shown."""
    cut: bool = True
    """Hits that are not relevant are not shown, however few that leaves."""
    second_pass: bool = True
    """In doubt, recall searches a second time, more broadly."""
    rerank: bool = True
    """In doubt, a model grades the hits, if there is one."""
    inhibition: bool = True
    """Hits that ranked high and were graded wrong lose storage strength."""
    neutralise: bool = True
    """Instructions and markup that could act on the reader are neutralised in recalled text."""


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """Search, ranking and selection of hits."""

    limit: Count = 0
    """The maximum of hits; 0 means by the size of the memory, between `k_least` and `k_most`."""
    k_least: Positive = 10
    k_most: Positive = 50
    fusion: Literal["convex", "rrf"] = "convex"
    vector_weight: Share = 0.6
    """Share of the vector score in convex fusion; the rest is keyword."""
    rrf_k: Positive = 60
    candidates: Positive = 400
    """The number of candidates from each channel."""
    depth: Literal["fast", "auto", "deep"] = "auto"
    """`fast` never asks a language model, `auto` only in doubt, `deep` always."""
    gate: Share = 0.5
    """A best score under this means doubt."""
    cut_share: Share = 0.62
    """Hits under this share of the best score are not shown."""
    spread_strength: Share = 0.02
    """The score that the second turn of a session loses; the fifth loses twice as much."""
    mmr_share: Share = 0.7
    """Share of relevance in maximal marginal relevance; the rest is dissimilarity to the better hits."""
    contiguity_decay: Share = 0.7
    """The share that a fact gets of the score of the hit whose session it is from."""
    embed_budget_s: Amount = 2.0
    """A read embeds new chunks for at most this long; the rest waits and is named in `degraded`."""
    log: Annotated[Literal["text", "hashes", "off"], Cautious("off")] = "text"
    """The form in which `quaid stats --recall` keeps a question, in local.db on this machine only."""
    gaps: Annotated[Literal["hashes", "text", "off"], Cautious("off")] = "hashes"
    """The form in which `quaid stats --gaps` keeps a question that found nothing."""
    rerank_share: Share = 0.6
    """Share of the model's grade in the score of a hit that it has graded."""
    rerank_budget_s: Amount = 2.5
    """A recall waits this long for the model's grades in total; late ones are dropped."""
    stages: StageSettings = field(default_factory=StageSettings)


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Keeping the index up to date with the files."""

    debounce_ms: Count = 200
    poll: bool = False
    """Poll instead of using the system's change notifications (network mounts, some containers)."""
    poll_interval_s: Duration = 1.0
    max_note_mb: Duration = 2.0
    """A longer note is searched up to this size, which `quaid status` reports."""
    removal_brake_count: Count = 10
    removal_brake_share: Share = 0.2
    """If more notes than both of these vanish, and git does not explain it, the sync stops."""

    @property
    def max_note_bytes(self) -> int:
        """The number of bytes of a note that are searched."""
        return int(self.max_note_mb * 1_000_000)


@dataclass(frozen=True, slots=True)
class GitSettings:
    """Commits by Quaid."""

    wait_s: Amount = 10.0
    """A write waits this long for a lock, a rebase or a merge to end."""
    name: str = "Quaid"
    email: str = "quaid@localhost"
    sync: Annotated[Literal["off", "ask", "auto"], Cautious("off")] = "off"
    """Exchange with the remotes that the user has trusted: `auto` pulls and pushes after a write and every
    `sync_minutes`, `ask` only looks how far apart they are, and says so.
    """
    sync_minutes: Positive = 10
    timeout_s: Duration = 120.0
    """A remote that does not answer, or is not done, in this time counts as offline."""
    addresses: str = ""
    """The e-mail addresses under which you commit by hand besides git's user.email, with commas between them."""
    sign: Literal["off", "auto"] = "auto"
    """`auto`: where your own git config signs commits, what you have signed gives way to nothing unsigned unasked."""
    maintenance: Annotated[Literal["auto", "off"], Cautious("off")] = "auto"
    """`auto`: the janitor has git pack loose objects and write its commit graph, where that is due."""


Policy = Literal["auto", "ask", "off"]
"""`auto` carries a decision out, `ask` asks the owner first, `off` drops it."""
Verbosity = Literal["", "off", "summary", "full"]


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """The policy for each kind of the janitor's decisions."""

    approve: Policy = "auto"  # a new fact is good as it is
    rewrite: Policy = "auto"  # a fact says the same in better words
    reject: Policy = "ask"  # a new fact is not worth keeping, or not true
    date: Policy = "auto"  # a time that is told relative to its moment gets its date
    link: Policy = "auto"  # a fact gets the edges that it states
    merge: Policy = "auto"  # facts that say the same become one
    supersede: Policy = "ask"  # of two facts that cannot both be true, one replaces the other
    keep_both: Policy = "auto"  # both hold, each in its time
    conflict: Policy = "ask"  # which of two facts is true: always asked, or never (off)
    forget: Policy = "ask"  # a fact that nobody has needed for long goes; git keeps it
    pin: Policy = "ask"  # such a fact never fades
    graduate: Policy = "auto"  # an approved fact becomes active
    promote: Policy = "ask"  # a lasting, important fact goes into a core note
    fold: Policy = "auto"  # observations go into a core note
    distil: Policy = "auto"  # the summary of the journal goes into a core note
    trim: Policy = "ask"  # a core note that has grown too long is shortened
    update: Policy = "ask"  # a document that its sources have left behind is brought up to date
    shorten: Policy = "ask"  # a document that has grown is shortened
    digest: Policy = "auto"  # what was asked in vain is listed
    ledger: Policy = "auto"  # this device's recall counters are written down


@dataclass(frozen=True, slots=True)
class JanitorSettings:
    """Limits of one run of the janitor."""

    change_budget: Share = 0.1
    """Share of the notes that a run may change, but 20 in any case; further changes are postponed."""
    gate: bool = True
    """A run is not merged if your recent questions and those of eval/ find less after it."""
    gate_questions: Count = 50
    """The number of recent questions that are asked again."""
    policies: PolicySettings = field(default_factory=PolicySettings)


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """The parts of Quaid that are on. A part that is off does nothing by itself; its notes stay."""

    memory: bool = True  # facts are drawn from conversations, and the janitor keeps them
    journal: bool = True  # snippets and journal are written and find their way into the core notes
    projects: bool = True  # the documentation of projects is kept
    workspace: bool = True  # the core notes are kept short


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """News of background work: how much the owner is told, and where."""

    level: Literal["quiet", "normal", "verbose", "debug"] = "normal"
    """The level of each feature that has no setting of its own."""
    janitor: Verbosity = ""
    extraction: Verbosity = ""
    retrieval: Verbosity = ""
    docs: Verbosity = ""
    channels: str = "terminal,desktop,file"
    """Any of terminal, desktop, file, webhook, separated by commas."""
    file: str = ""
    """A .log or .txt file, relative to the vault's folder; empty means log/news.log in the state folder."""
    webhook: str = ""
    """The address that {"text": …} is posted to. It may be a secret: keep it in the environment, not in git."""


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How much of one source is usual."""

    facts_per_day: Count = 0
    """The facts that one agent may bring in a day; with more, all of that day are asked about. 0 is no limit."""
    flood: Amount = 6.0
    """A day is a flood when it has more facts than the median of the source's days and this many times their spread."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    """Quaid's hooks in the programs that agents run in."""

    context: bool = True
    """A session begins with the core notes, preferences, recent facts and open questions for the owner."""
    context_tokens: Count = 1_500
    recall: Literal["auto", "on", "off"] = "auto"
    """Memories are added to a prompt: `on` all that are found, `auto` only those that have enough to do with it."""
    recall_tokens: Count = 600
    extract: bool = True
    """A conversation is extracted when it ends or is compacted."""
    idle_minutes: Count = 30
    """A conversation that was not ended is extracted when nothing was added to it for this long."""


@dataclass(frozen=True, slots=True)
class DocsSettings:
    """Search and maintenance of the docs of projects."""

    check: bool = True
    """Docs are compared with the present state of their sources."""
    update_on_compact: bool = False
    """Stale docs are updated when a conversation is compacted or ends, not only by the janitor."""
    most_updates: Count = 5
    """The maximum of docs that one run asks the deep model about."""
    limit: Positive = 5
    """The number of passages that a search shows."""
    chunk_tokens: Positive = 800
    """The maximum length of a passage; a table or a code block is not cut."""
    overlap_tokens: Count = 100
    """The overlap of two passages of a section that is cut."""


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """The notes of the vault that are Quaid's, and their place."""

    folder: VisibleFolder = ""
    """The folder that holds Quaid's folders (facts, entities, journal …); empty means the vault itself."""
    hand_written: Literal["own", "managed"] = "own"
    """`own`: a note that Quaid did not make is its owner's, whatever its folder and frontmatter say. `managed`: in
    Quaid's folders or with a type of Quaid's it is one of Quaid's: its frontmatter counts, and Quaid edits it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of quaid.toml and of the user's own config.toml."""

    offline: Annotated[bool, Cautious(value=True)] = False
    """Nothing leaves this machine: models, embeddings, weights and webhooks elsewhere are not asked."""
    resident: Annotated[Literal["auto", "off"], Cautious("off")] = "auto"
    """A process that has the memory open answers `quaid recall` and hooks: `quaid mcp`, `quaid watch`, else one that
    the first call starts and that ends after 15 minutes without a question. With `off` each call is alone.
    """
    owner: str = "default"
    owner_name: str = ""
    """The name of the owner's person note in entities/, whom `my` and `our` mean; empty means `owner`."""
    vault: VaultSettings = field(default_factory=VaultSettings)
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    git: GitSettings = field(default_factory=GitSettings)
    janitor: JanitorSettings = field(default_factory=JanitorSettings)
    systems: SystemSettings = field(default_factory=SystemSettings)
    notifications: NotificationSettings = field(default_factory=NotificationSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    docs: DocsSettings = field(default_factory=DocsSettings)
