"""What leaves this machine, in words: to which models, embeddings and webhooks, and since when."""

from __future__ import annotations

from quaid.embed import destination
from quaid.http import host_of
from quaid.llm import Models
from quaid.settings import ModelSettings, Settings


def list_outbound(settings: Settings) -> list[str]:
    """A phrase for each kind of data that goes to another machine; none where nothing does.

    No model is asked for it; a local Ollama may be knocked at.
    """
    said = [_models(settings.models)]
    if host := destination(settings.embedding):
        said.append(f"every text and question for embedding to {host}")
    if settings.notifications.webhook:
        said.append(f"news to {host_of(settings.notifications.webhook)}")
    return [phrase for phrase in said if phrase]


def describe_outbound(settings: Settings) -> str:
    """The same in one line, for `quaid status` and `quaid doctor`."""
    if settings.offline:
        return "Nothing leaves this machine (offline is set)"
    return "; ".join(list_outbound(settings)) or "Nothing leaves this machine"


def _models(settings: ModelSettings) -> str:
    found = Models(settings).describe() if settings.provider not in {"", "none"} else None
    if found is None or not found.goes_to:
        return ""
    since = f"since {settings.agreed}" if settings.agreed else "as models.provider says"
    return f"conversations and notes for {found.provider} to {found.goes_to}, {since}"
