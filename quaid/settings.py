"""Every setting, its default, the values that fit it, and what it is for. quaid.toml has the same tables and keys.

May import nothing of the house.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf, isfinite
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args, get_origin, get_type_hints


class Range(NamedTuple):
    """The numbers that a setting may have, both ends included."""

    least: float = -inf
    most: float = inf


class Cautious(NamedTuple):
    """The value that replaces an unreadable one where the default would be less private."""

    value: Any


VISIBLE_FOLDER = "a folder within the vault that is not hidden"
TIME_ZONE = "a time zone by its name, or nothing"
DERIVED = "set by the setting `offline`"
"""Marks a field that is not a key of quaid.toml."""
Count = Annotated[int, Range(0)]
Share = Annotated[float, Range(0, 1)]
Amount = Annotated[float, Range(0)]
Duration = Annotated[float, Range(0.001)]
Number = Annotated[int, Range(1)]
VisibleFolder = Annotated[str, VISIBLE_FOLDER]
TimeZone = Annotated[str, TIME_ZONE]
Derived = Annotated[bool, DERIVED]
MAX_NOTE_BYTES = 2_000_000
"""A longer note is searched up to this size, which `quaid status` reports."""


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """The notes of the vault that are Quaid's, and their place."""

    folder: VisibleFolder = ""
    """The folder that holds Quaid's folders (facts, entities, journal …); empty means the vault itself."""
    hand_written: Literal["own", "managed"] = "own"
    """`own`: Quaid never edits a note it did not make. `managed`: it does, in its folders or with a type it knows."""


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """The parts of a conversation that are stored."""

    episodes: Literal["keep", "facts-only"] = "keep"
    """`facts-only` stores no conversation text, only what was learned from it."""
    facts: bool = True
    """A model, if there is one, extracts facts from conversations."""
    redact_numbers: bool = True
    """Numbers of cards, accounts (IBAN) and identity documents are redacted like secrets."""
    people: str = ""
    """Who speakers are: "mchen, openclaw:User = Maya; tom87 = Tom Reed (tom)". In brackets: the owner of it."""


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """The model that turns text into vectors."""

    provider: Literal["local", "ollama", "openai", "none"] = "local"
    """Where texts are embedded; `none` searches by words and graph only."""
    model: str = "auto"
    """A built-in name, a folder with an ONNX or BERT-type model, or the service's name; `auto` is the English model."""
    precision: Literal["fp32", "int8"] = "int8"
    """int8 finds as much on LoCoMo (R@10 within .006), twice as fast and in half the memory."""
    url: str = ""
    """Base address of the service; empty means the provider's usual one."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key, never the key itself."""
    dimensions: Count = 0
    """Requested from the service; 0 means the model's own."""
    offline: Derived = False

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Return the settings that an index has stored, without those of other versions."""
        return cls(**{name: value for name, value in stored.items() if name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The language models, and what they may cost. 0 as a cap means that there is none."""

    provider: Literal["", "auto", "none", "anthropic", "openai", "ollama", "claude-code"] = ""
    """Empty until you agree that a model is used; `auto`: a key in the environment, else Ollama, else Claude Code."""
    agreed: str = ""
    """The day you agreed, written by `quaid init`, `quaid install` and `quaid config`."""
    deep: str = ""
    """The model that thinks (extraction, review); empty means the provider's usual one."""
    fast: str = ""
    """The model that is quick and cheap (reranking, yes or no); empty means the provider's usual one."""
    url: str = ""
    """Base address of the service; empty means the provider's usual one."""
    api_key_env: str = ""
    """The environment variable that holds the key, never the key itself; empty means the provider's usual one."""
    max_tokens_per_day: Count = 5_000_000
    """The most tokens that all calls of a day may take."""
    max_usd_per_run: Amount = 2.0
    """The most that one run of the janitor, or one command, may cost."""
    max_usd_per_day: Amount = 5.0
    """The most that a day may cost."""
    deep_price: str = ""
    """Dollars per million tokens in and out, as "4/20"; empty means the price Quaid knows of the model."""
    fast_price: str = ""
    """The same of the fast model."""
    cache_days: Count = 30
    """An answer is stored this long for the same question; 0 stores none."""
    offline: Derived = False


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """Search and ranking."""

    profile: Literal["default", "classic"] = "default"
    """`classic` ranks by the formulas of the systems Quaid grew from (docs/explanation/recall.md compares them)."""
    limit: Count = 0
    """The maximum of hits; 0 means by the size of the memory, from 10 to 50."""
    depth: Literal["fast", "auto", "deep"] = "auto"
    """`fast` never calls a language model, `auto` only when its answer is doubtful, `deep` always."""
    reranker: str = ""
    """A local cross-encoder that orders the best hits: a built-in name or a folder; empty means none."""
    log: Annotated[Literal["text", "hashes", "off"], Cautious("off")] = "text"
    """The form in which `quaid stats --recall` stores a question, in local.db on this machine only."""
    gaps: Annotated[Literal["hashes", "text", "off"], Cautious("off")] = "hashes"
    """The form in which `quaid stats --gaps` stores a question that found nothing."""


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Keeping the index up to date with the files."""

    poll: bool = False
    """Poll instead of using the system's change notifications (network mounts, some containers)."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """Commits by Quaid."""

    wait_s: Amount = 10.0
    """A write waits this long for a lock, a rebase or a merge to end."""
    name: str = "Quaid"
    """The author of Quaid's commits."""
    email: str = "quaid@localhost"
    """The author's address."""
    sync: Annotated[Literal["off", "ask", "auto"], Cautious("off")] = "off"
    """Exchange with trusted remotes: `auto` pulls and pushes after a write and every 10 minutes, `ask` only reports."""
    timeout_s: Duration = 120.0
    """A remote that does not answer, or is not done, in this time counts as offline."""
    addresses: str = ""
    """The e-mail addresses under which you commit by hand besides git's user.email, with commas between them."""
    sign: Literal["off", "auto"] = "auto"
    """`auto`: where your git config signs commits, nothing unsigned replaces what you signed without asking."""
    maintenance: Annotated[Literal["auto", "off"], Cautious("off")] = "auto"
    """`auto`: the janitor has git pack loose objects and write its commit graph when that is due."""


Policy = Literal["auto", "ask", "off"]


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """The policy for each kind of the janitor's decisions: `auto` applies it, `ask` asks the owner, `off` drops it."""

    rewrite: Policy = "auto"
    """A fact says the same in better words, gets a date for "yesterday", or the links that it states."""
    reject: Policy = "ask"
    """A new fact is not worth keeping, or not true."""
    merge: Policy = "auto"
    """Facts that say the same become one."""
    supersede: Policy = "auto"
    """Of two facts that cannot both be true, one replaces the other; asked in any case if nobody stated the change."""
    conflict: Policy = "ask"
    """Which of two facts is true: always asked, or never (off)."""
    forget: Policy = "ask"
    """A fact that nobody has needed for long is removed, or pinned; git still has it."""
    promote: Policy = "ask"
    """A lasting, important fact is added to a core note."""
    fold: Policy = "auto"
    """Observations and the journal are summarised in a core note."""
    trim: Policy = "ask"
    """A core note that has grown too long is shortened."""
    update: Policy = "ask"
    """A document that its sources have left behind is brought up to date."""
    shorten: Policy = "ask"
    """A document that has grown is shortened."""

    def of(self, kind: str) -> Policy:
        """Return the policy for a kind of decision."""
        policy: Policy = getattr(self, find_policy_key(kind), "auto" if kind in _ALWAYS_APPLIED else "ask")
        return policy


_ALWAYS_APPLIED = ("approve", "graduate", "keep_both", "digest")
_COVERED_BY = {"correct": "supersede", "date": "rewrite", "link": "rewrite", "pin": "forget"}


def find_policy_key(kind: str) -> str:
    """Return the key in `janitor.policies` that covers a kind of decision."""
    return _COVERED_BY.get(kind, kind)


@dataclass(frozen=True, slots=True)
class JanitorSettings:
    """Limits of one run of the janitor."""

    change_budget: Share = 0.1
    """Share of the notes that a run may change, but 20 in any case; further changes are postponed."""
    gate: bool = True
    """A run is not merged if your recent questions and those of eval/ find less after it."""
    policies: PolicySettings = field(default_factory=PolicySettings)


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """The parts of Quaid that are on. The notes of a part that is off stay."""

    memory: bool = True
    """Facts are extracted from conversations and maintained by the janitor."""
    journal: bool = True
    """Snippets and journal are written and summarised in the core notes."""
    projects: bool = True
    """The documentation of projects is maintained."""
    workspace: bool = True
    """The core notes stay short."""


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """News of background work."""

    level: Literal["quiet", "normal", "verbose", "debug"] = "normal"
    """How much is reported."""
    channels: str = "terminal,desktop,file"
    """Any of terminal, desktop, file, webhook, host, separated by commas."""
    features: str = ""
    """What one feature does otherwise, as feature=level or feature=channel: `digest=full, digest=host, docs=off`."""
    file: str = ""
    """A .log or .txt file, relative to the vault's folder; empty means log/news.log in the state folder."""
    webhook: str = ""
    """The address that {"text": …} is posted to. It may be a secret: set it in the environment, not in git."""


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How much of one source is usual."""

    facts_per_day: Count = 0
    """The facts that one agent may bring in a day; with more, all of that day are asked about. 0 is no limit."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    """Quaid's hooks in the programs that agents run in."""

    context: bool = True
    """A session begins with the core notes, preferences, recent facts and open questions for the owner."""
    context_tokens: Count = 1_500
    """The length of that context."""
    recall: Literal["auto", "on", "off"] = "auto"
    """Memories are added to a prompt: `on` all that are found, `auto` only those that have enough to do with it."""
    recall_tokens: Count = 600
    """The length of what is added to a prompt."""
    extract: bool = True
    """A conversation is extracted when it ends or is compacted."""


@dataclass(frozen=True, slots=True)
class DocsSettings:
    """Maintenance of the docs of projects."""

    check: bool = True
    """Docs are compared with the present state of their sources."""
    update_on_compact: bool = False
    """Stale docs are updated when a conversation is compacted or ends, not only by the janitor."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of quaid.toml and of the user's own config.toml."""

    offline: Annotated[bool, Cautious(value=True)] = False
    """Nothing leaves this machine: models, embeddings, weights and webhooks elsewhere are not used."""
    resident: Annotated[Literal["auto", "off"], Cautious("off")] = "auto"
    """A process that has the memory open answers `quaid recall` and hooks, and ends after 15 minutes without one."""
    owner: str = "default"
    """Whose memory this is, and who asks."""
    owner_name: str = ""
    """The name of the owner's person note in entities/, whom `my` and `our` mean; empty means `owner`."""
    timezone: TimeZone = ""
    """The zone of the owner's days, such as Europe/Berlin, on a machine whose own zone is UTC."""
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


# -- the types of settings -------------------------------------------------------------------------------------------


_READ_HINTS = cache(get_type_hints)
"""Annotations are text until they are read, which takes a hook longer than all the rest of its settings."""


def read_hints(cls: Any) -> Mapping[str, Any]:
    """Return the type of each key of a table, with its range."""
    hints = _READ_HINTS(cls, include_extras=True)
    return {name: hint for name, hint in hints.items() if DERIVED not in getattr(hint, "__metadata__", ())}


def check_type(value: Any, hint: Any) -> Any:
    """Return the value as the type of a setting. ValueError: it does not fit; the text says what would."""
    hint, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{value!r}, must be one of {', '.join(filter(None, get_args(hint)))}")
        return value
    if hint is float and type(value) is int:
        value = float(value)
    if type(value) is not hint:
        raise ValueError(f"{value!r}, must be {_type_name(hint)}")
    for note in notes:
        if isinstance(note, Range) and not note.least <= value <= note.most:
            least, most = note
            allowed = f"{least:g} or more" if isfinite(least) else f"{most:g} or less"
            if isfinite(least) and isfinite(most):
                allowed = f"from {least:g} to {most:g}"
            raise ValueError(f"{value!r}, must be {allowed}")
        if note is VISIBLE_FOLDER and value and any(part[:1] in {"", "."} for part in value.strip("/").split("/")):
            raise ValueError(f"{value!r}, must be a visible folder within the vault")
        if note is TIME_ZONE and value:
            _check_zone(value)
    return value


def _check_zone(name: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{name!r}, must be a time zone such as Europe/Berlin") from None


def parse_text(raw: str, hint: Any) -> Any:
    """Return `raw` as the type of a setting. ValueError: it does not fit."""
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(plain) is Literal or plain is str:
        return check_type(raw, hint)
    if plain is bool:
        if raw.lower() in {"1", "true", "yes", "on"}:
            return True
        if raw.lower() in {"0", "false", "no", "off"}:
            return False
        raise ValueError(f"{raw!r}, must be {_type_name(plain)}")
    try:
        value = plain(raw)
    except ValueError as error:
        raise ValueError(f"{raw!r}, must be {_type_name(plain)}") from error
    return check_type(value, hint)


def find_substitute(hint: Any) -> Cautious | None:
    """Return what replaces an unusable value, None where the default does."""
    return next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Cautious)), None)


def _type_name(hint: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(hint, str(hint))
