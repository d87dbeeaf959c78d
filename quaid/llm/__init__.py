"""Language models: two tiers, providers, prompts, kept answers and a budget.

May import the base only; nothing is looked for before a model is asked.
Begin with models.py.
"""

from __future__ import annotations

from quaid.llm.exchange import Answer
from quaid.llm.models import Models
from quaid.llm.prompts import Prompt

__all__ = ["Answer", "Models", "Prompt"]
