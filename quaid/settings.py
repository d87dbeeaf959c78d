"""Every setting, its default, and what it is for. quaid.toml has the same tables and keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """What is kept of a conversation."""

    episodes: Literal["keep", "facts-only"] = "keep"
    """`facts-only` keeps no conversation text, only what was learned from it."""
    facts: bool = True
    """A model, if there is one, draws facts from conversations."""
    snippets: bool = True
    """It notes observations for the core notes."""
    journal: bool = True
    """It writes a journal about them."""
    redact_numbers: bool = False
    """Numbers of cards and accounts (IBAN) are secrets, and taken out as such."""
    max_facts: int = 500
    """The most facts of one conversation; 0 means that there is no limit."""
    piece_tokens: int = 12_000
    """A longer conversation is read by the model in pieces of this size, overlapping."""


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Which model turns text into vectors."""

    provider: Literal["local", "ollama", "openai", "none"] = "local"
    model: str = "all-MiniLM-L6-v2"
    """A built-in name, a folder with a BERT-type sentence-transformers model, or the service's name for it."""
    precision: Literal["fp32", "int8"] = "int8"
    """Measured on LoCoMo: int8 finds as much (R@10 within .006), twice as fast and in half the memory."""
    url: str = ""
    """Base address of the service; empty means the provider's usual one."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key, never the key itself."""
    offline: bool = False
    """No weights are downloaded and no service on another machine is asked; the setting `offline` brings this about."""
    dimensions: int = 0
    """Asked of the service; 0 means the model's own."""
    threads: int = 0
    """0 means as many as the machine has cores."""
    timeout_s: float = 60.0
    duplicate_similarity: float = 0.0
    """Cosine from which two facts say the same; 0 means the value measured for the model."""
    relevant_similarity: float = 0.0
    """Cosine from which a text answers a question though it has none of its words; 0 means the model's."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which language models are asked, and what that may cost. 0 as a cap means that there is none."""

    provider: Literal["", "auto", "none", "anthropic", "openai", "ollama", "claude-code"] = ""
    """Empty until the user has agreed that a model is asked. `auto`: a key in the environment, else a running Ollama,
    else Claude Code; `quaid doctor` says which and why.
    """
    offline: bool = False
    """No model on another machine is asked; the setting `offline` brings this about."""
    agreed: str = ""
    """The day on which the user agreed, as `quaid init`, `quaid install` and `quaid config` note it."""
    deep: str = ""
    """The model that thinks (extraction, review); empty means the provider's usual one."""
    fast: str = ""
    """The model that is quick and cheap (reranking, yes or no); empty means the provider's usual one."""
    url: str = ""
    """Base address of the service; empty means the provider's usual one."""
    api_key_env: str = ""
    """The environment variable that holds the key, never the key itself; empty means the provider's usual one."""
    deep_timeout_s: float = 300.0
    """An extraction of forty facts is 6,000 tokens of answer."""
    fast_timeout_s: float = 30.0
    temperature: float = -1.0
    """Below 0 none is sent: newer models refuse it."""
    context_tokens: int = 8192
    """What Ollama is told to make room for; a longer question is given more."""
    output_limit_field: Literal["", "max_tokens", "max_completion_tokens"] = ""
    """How an OpenAI-compatible service wants the length of its answer limited; empty sends no limit."""
    anthropic_version: str = "2026-10-21"
    max_tokens_per_call: int = 200_000
    max_tokens_per_run: int = 2_000_000
    max_tokens_per_day: int = 5_000_000
    max_usd_per_run: float = 2.0
    max_usd_per_day: float = 5.0
    deep_price: str = ""
    """Dollars per million tokens in and out, as "4/20"; empty means the price Quaid knows of the model."""
    fast_price: str = ""
    cache_days: int = 30
    """How long an answer is kept for the same question; 0 keeps none."""


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Which stages of recall are on. What each is worth is measured in docs/recall.md; those that are off help nothing
    there.
    """

    metadata: bool = True
    """What a chat gateway put around the question is taken off."""
    aliases: bool = True
    """A name is searched by all the names of what it means."""
    owner: bool = True
    """`my` and `our` mean the owner's person note."""
    intent: bool = True
    """WHO, WHEN, WHERE … is told from the question's words."""
    intent_weights: bool = False
    """The intent sets the shares of the vector and keyword channels."""
    type_boosts: bool = False
    """The intent raises the types of notes it asks for."""
    dates: bool = True
    """What is from the time that the question names is raised."""
    phrases: bool = True
    """What has the question's quoted phrase is raised."""
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
    """What the one person said whom the question names is raised."""
    form: bool = True
    """Long turns say more, questions less; WHEN is answered by what speaks of a time."""
    composite: bool = False
    """Recency, frequency and confidence count beside relevance."""
    decay: bool = False
    """What has not been used for long scores less."""
    technical: bool = True
    """Technical facts are shown for PROJECT questions only."""
    contiguity: bool = False
    """Facts from the sessions of the best hits are taken in."""
    spread: bool = True
    """Turns of one session are taken apart."""
    mmr: bool = False
    """Hits that are like better ones come later (maximal marginal relevance)."""
    fold: bool = True
    """Near-duplicates are shown once."""
    contradictions: bool = True
    """Of facts that contradict each other both are shown."""
    cut: bool = True
    """What is not relevant is not shown, however few hits that leaves."""
    second_pass: bool = True
    """In doubt, the question is asked once more, more broadly."""
    rerank: bool = True
    """In doubt, the model grades what was found, if there is one."""
    inhibition: bool = True
    """What looked right and was graded wrong loses storage strength."""
    neutralise: bool = True
    """What would act on its reader is disarmed in recalled text."""


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """How a question becomes hits."""

    limit: int = 0
    """Hits of a recall at most; 0 means by the size of the memory, between `k_least` and `k_most`."""
    k_least: int = 3
    k_most: int = 50
    fusion: Literal["convex", "rrf"] = "convex"
    vector_weight: float = 0.6
    """Share of the vector score in convex fusion; the rest is keyword."""
    rrf_k: int = 60
    candidates: int = 400
    """So many are taken from each channel."""
    depth: Literal["fast", "auto", "deep"] = "auto"
    """`fast` never asks a language model, `auto` only in doubt, `deep` always."""
    gate: float = 0.7
    """A best score under this is doubt."""
    cut_share: float = 0.55
    """Hits under this share of the best score are not shown."""
    spread_strength: float = 0.02
    """What the second turn of a session loses, the fifth twice as much."""
    mmr_share: float = 0.7
    """Share of relevance in maximal marginal relevance; the rest is being unlike the better hits."""
    contiguity_decay: float = 0.6
    """What a fact has of the score of the hit whose session it is from."""
    collapse_similarity: float = 0.95
    """Hits whose words overlap this much are shown once."""
    embed_budget_s: float = 2.0
    """A read embeds what is new for at most this long; the rest waits and is named in `degraded`."""
    log: Literal["text", "hashes", "off"] = "text"
    """What `quaid stats --recall` keeps of a question, in local.db on this machine alone."""
    gaps: Literal["hashes", "text", "off"] = "hashes"
    """What `quaid stats --gaps` keeps of a question that found nothing."""
    rerank_share: float = 0.6
    """Share of the model's grade in the score of a hit it has judged."""
    rerank_budget_s: float = 2.5
    """How long a recall waits for the model's judgement, all in all; a late one is dropped."""
    stages: StageSettings = field(default_factory=StageSettings)


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """How the index follows the files."""

    debounce_ms: int = 200
    poll: bool = False
    """Poll instead of using the system's change notifications (network mounts, some containers)."""
    poll_interval_s: float = 1.0
    max_note_mb: float = 2.0
    """A longer note is searchable up to here, and says so in `quaid status`."""
    removal_brake_count: int = 10
    removal_brake_share: float = 0.2
    """More vanished notes than both of these, without git explaining it, stop the sync."""

    @property
    def max_note_bytes(self) -> int:
        """How much of a note is searched."""
        return int(self.max_note_mb * 1_000_000)


@dataclass(frozen=True, slots=True)
class GitSettings:
    """How Quaid commits."""

    wait_s: float = 10.0
    """How long a write waits for a lock, a rebase or a merge to end."""
    name: str = "Quaid"
    email: str = "quaid@localhost"


Policy = Literal["auto", "ask", "off"]
"""`auto` carries a decision out, `ask` puts it before the owner, `off` leaves it."""
Verbosity = Literal["", "off", "summary", "full"]


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """What happens to the janitor's decisions, by their kind."""

    approve: Policy = "auto"  # a new fact is good as it is
    rewrite: Policy = "auto"  # a fact says the same in better words
    reject: Policy = "ask"  # a new fact is not worth keeping, or not true
    date: Policy = "auto"  # a time that is told relative to its moment gets its date
    merge: Policy = "auto"  # facts that say the same become one
    supersede: Policy = "ask"  # of two facts that cannot both be true, one replaces the other
    keep_both: Policy = "auto"  # both hold, each in its time
    forget: Policy = "ask"  # a fact that nobody has needed for long goes; git keeps it
    pin: Policy = "ask"  # such a fact never fades
    graduate: Policy = "auto"  # an approved fact becomes active
    promote: Policy = "ask"  # a lasting, important fact goes into a core note
    fold: Policy = "auto"  # observations go into a core note
    distil: Policy = "auto"  # what the journal comes to goes into a core note
    trim: Policy = "ask"  # a core note that has grown too long is shortened
    update: Policy = "ask"  # a document that its sources have left behind is brought up to date
    shorten: Policy = "ask"  # a document that has grown is shortened
    digest: Policy = "auto"  # what was asked in vain is listed
    ledger: Policy = "auto"  # this device's recall counters are written down


@dataclass(frozen=True, slots=True)
class JanitorSettings:
    """How far the janitor may go in one run."""

    change_budget: float = 0.1
    """Share of the notes that a run may change, 20 of them in any case; more is put off."""
    gate: bool = True
    """A run after which your recent questions and those of eval/ find less than before is not merged."""
    gate_questions: int = 50
    """So many of the questions asked last are put again."""
    policies: PolicySettings = field(default_factory=PolicySettings)


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """Which parts of Quaid are on. Off, a part does nothing by itself; what it has made stays."""

    memory: bool = True  # facts are drawn from conversations, and the janitor keeps them
    journal: bool = True  # snippets and journal are written and find their way into the core notes
    projects: bool = True  # the documentation of projects is kept
    workspace: bool = True  # the core notes are kept short


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """What the owner is told of what goes on while nobody looks, and where."""

    level: Literal["quiet", "normal", "verbose", "debug"] = "normal"
    """Says how much each feature tells unless its own setting does."""
    janitor: Verbosity = ""
    extraction: Verbosity = ""
    retrieval: Verbosity = ""
    docs: Verbosity = ""
    channels: str = "terminal,desktop,file"
    """Any of terminal, desktop, file, webhook, separated by commas."""
    file: str = ""
    """A .log or .txt file, from the vault's folder; empty means log/news.log in the state folder."""
    webhook: str = ""
    """The address that is sent {"text": …}. Whoever has it can post there: keep it in the environment, not in git."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    """What Quaid does inside of the programs that agents live in."""

    context: bool = True
    """A session begins with the core notes, what is recent and what waits for its owner."""
    context_tokens: int = 1_500
    recall: Literal["auto", "on", "off"] = "auto"
    """Memories go before a prompt: `on` whatever is relevant, `auto` only what answers it without doubt."""
    recall_tokens: int = 600
    extract: bool = True
    """A conversation is taken in when it ends or is compacted."""
    idle_minutes: int = 30
    """One that was never ended is taken in when nothing has been added to it for so long."""


@dataclass(frozen=True, slots=True)
class DocsSettings:
    """How the docs of projects are searched and kept true."""

    check: bool = True
    """Docs are compared with what their sources became."""
    update_on_compact: bool = False
    """Stale docs are updated when a conversation is compacted or ends, not only at night."""
    most_updates: int = 5
    """The most docs one run asks the deep model about."""
    limit: int = 5
    """Passages that a search shows."""
    chunk_tokens: int = 800
    """A passage is no longer, unless a table or code that is stays whole."""
    overlap_tokens: int = 100
    """What a passage repeats of the one before it, where a section is cut."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of quaid.toml and of the user's own config.toml."""

    offline: bool = False
    """Nothing leaves this machine: models, embeddings, weights and webhooks elsewhere are not asked."""
    owner: str = "default"
    owner_name: str = ""
    """The name of the owner's person note in entities/, whom `my` and `our` mean; empty means `owner`."""
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    git: GitSettings = field(default_factory=GitSettings)
    janitor: JanitorSettings = field(default_factory=JanitorSettings)
    systems: SystemSettings = field(default_factory=SystemSettings)
    notifications: NotificationSettings = field(default_factory=NotificationSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    docs: DocsSettings = field(default_factory=DocsSettings)
