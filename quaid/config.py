"""quaid.toml -> typed settings.

Every setting has a default here, may be set in the vault's quaid.toml, and may be overridden by an environment
variable named after it: `recall.limit` is `QUAID_RECALL_LIMIT`. An unknown key or a wrong type is an error with
the key's name, never a silent default.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from quaid.errors import ConfigError

CONFIG_FILE = "quaid.toml"


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

    provider: Literal["auto", "none", "anthropic", "openai", "ollama", "claude-code"] = "auto"
    """`auto`: a key in the environment, else a running Ollama, else Claude Code; `quaid doctor` says which and why."""
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
    """A .log or .txt file, from the vault's folder; empty means .quaid/log/news.log."""
    webhook: str = ""
    """The address that is sent {"text": …}. Whoever has it can post there: keep it in the environment, not in git."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of quaid.toml."""

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


def load_settings(root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Read `root`/quaid.toml (absent means all defaults) and apply the environment.

    Raises:
        ConfigError: unreadable TOML, an unknown key, or a value of the wrong type.
    """
    path = root / CONFIG_FILE
    table: dict[str, Any] = {}
    if path.exists():
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise ConfigError(CONFIG_FILE, str(error)) from error
    settings: Settings = _build(Settings, table, "")
    overridden: Settings = _override(settings, "", environ if environ is not None else os.environ)
    return overridden


def list_settings(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Every setting as (dotted key, value), in the order they are declared."""
    yield from _walk(settings, "")


def parse_value(key: str, raw: str) -> Any:
    """`raw`, as typed in a shell, as the type the setting `key` has.

    Raises:
        ConfigError: no such setting, or `raw` does not fit it.
    """
    cls: Any = Settings
    *sections, name = key.split(".")
    for section in sections:
        cls = get_type_hints(cls).get(section)
        if cls is None or not is_dataclass(cls):
            raise ConfigError(key, "there is no such setting")
    hint = get_type_hints(cls).get(name)
    if hint is None or is_dataclass(hint):
        raise ConfigError(key, "there is no such setting")
    return _from_text(raw, hint, key)


def render_setting(text: str, key: str, value: object) -> str:
    """The text of a quaid.toml with `key` set; comments, order and everything else stay."""
    import tomlkit

    mark = "\ufeff" if text.startswith("\ufeff") else ""
    document = tomlkit.parse(text.removeprefix(mark))
    *sections, name = key.split(".")
    table: Any = document
    for section in sections:
        if section not in table:
            table[section] = tomlkit.table()
        table = table[section]
    table[name] = value
    return mark + tomlkit.dumps(document)


def render_value(value: object) -> str:
    """A setting as quaid.toml writes it."""
    return json.dumps(value, ensure_ascii=False)


def _walk(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for item in fields(node):
        value = getattr(node, item.name)
        if is_dataclass(value):
            yield from _walk(value, f"{prefix}{item.name}.")
        else:
            yield f"{prefix}{item.name}", value


def _build(cls: Any, table: Mapping[str, Any], prefix: str) -> Any:
    hints = get_type_hints(cls)
    known = {item.name for item in fields(cls)}
    for key in table:
        if key not in known:
            raise ConfigError(CONFIG_FILE, f"{prefix}{key} is not a setting")
    values = {key: _typed(value, hints[key], f"{prefix}{key}") for key, value in table.items()}
    return cls(**values)


def _typed(value: Any, hint: Any, key: str) -> Any:
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise ConfigError(CONFIG_FILE, f"{key} must be a table: [{key}]")
        return _build(hint, value, f"{key}.")
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ConfigError(CONFIG_FILE, f"{key} is {value!r}, must be one of {', '.join(get_args(hint))}")
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise ConfigError(CONFIG_FILE, f"{key} is {value!r}, must be {_type_name(hint)}")
    return value


def _override(node: Any, prefix: str, environ: Mapping[str, str]) -> Any:
    hints = get_type_hints(type(node))
    changed: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        key = f"{prefix}{item.name}"
        if is_dataclass(value):
            changed[item.name] = _override(value, f"{key}.", environ)
            continue
        raw = environ.get("QUAID_" + key.replace(".", "_").upper())
        changed[item.name] = value if raw is None else _from_text(raw, hints[item.name], key)
    return type(node)(**changed)


def _from_text(raw: str, hint: Any, key: str) -> Any:
    if get_origin(hint) is Literal or hint is str:
        return _typed(raw, hint, key)
    if hint is bool:
        if raw.lower() in {"1", "true", "yes", "on"}:
            return True
        if raw.lower() in {"0", "false", "no", "off"}:
            return False
    else:
        try:
            return hint(raw)
        except ValueError:
            pass
    raise ConfigError(key, f"{raw!r} must be {_type_name(hint)}")


def _type_name(hint: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(hint, str(hint))
