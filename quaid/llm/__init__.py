"""Language models in two tiers, deep and fast: over HTTP, or through Claude Code.

Callers name a tier, by way of a prompt, and never a model. Nothing heavy is imported here and nothing is looked for
before a model is asked: httpx waits until then.
"""

from __future__ import annotations

from quaid.llm.discovery import Description
from quaid.llm.exchange import Answer, AnswerStore, Check, UsageStore
from quaid.llm.models import Models
from quaid.llm.prompts import Prompt
from quaid.model import ModelUsage, PlannedCall, Tier

__all__ = [
    "Answer",
    "AnswerStore",
    "Check",
    "Description",
    "ModelUsage",
    "Models",
    "PlannedCall",
    "Prompt",
    "Tier",
    "UsageStore",
]
