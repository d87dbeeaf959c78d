"""Language models: two tiers, providers, prompts, stored answers and a budget.

May import the base only. No provider is searched before a model is called.
Begin with models.py.
"""

from quaid.llm.exchange import Answer
from quaid.llm.models import Models
from quaid.llm.prompts import Prompt

__all__ = ["Answer", "Models", "Prompt"]
