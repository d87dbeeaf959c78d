"""The data that leaves this machine, in words: to which models, embeddings and webhooks, and since when."""

from __future__ import annotations

from collections.abc import Sequence

from quaid.embed import destination
from quaid.http import host_of
from quaid.llm import Models
from quaid.remotes.exchange import RemoteState
from quaid.settings import Settings


def list_outbound(settings: Settings) -> list[str]:
    """A phrase for each kind of data that goes to another machine; none where nothing does.

    No model is asked for it; a local Ollama may be probed.
    """
    phrases = []
    models = settings.models
    found = Models(models).describe() if models.provider not in {"", "none"} else None
    if found is not None and found.goes_to:
        since = f"since {models.agreed}" if models.agreed else "as models.provider says"
        phrases.append(f"conversations and notes for {found.provider} to {found.goes_to}, {since}")
    if host := destination(settings.embedding):
        phrases.append(f"every text and question for embedding to {host}")
    if settings.notifications.webhook:
        phrases.append(f"news to {host_of(settings.notifications.webhook)}")
    return phrases


def list_sent(settings: Settings, remotes: Sequence[RemoteState]) -> list[str]:
    """A phrase for each remote that the vault's history is pushed to without being told."""
    is_auto = settings.git.sync == "auto" and not settings.offline
    return [f"every commit to {remote.address}" for remote in remotes if is_auto and remote.trust == "yes"]


def describe_outbound(phrases: Sequence[str], *, offline: bool) -> str:
    """The phrases of `list_outbound` in one line, for `quaid status` and `quaid doctor`."""
    if offline:
        return "Nothing leaves this machine (offline is set)"
    return "; ".join(phrases) or "Nothing leaves this machine"
