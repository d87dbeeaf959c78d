"""Language models: two tiers, providers, prompts, kept answers and a budget.

May import the base only; nothing is looked for before a model is asked.
Begin with models.py.
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
