"""Holds the language models: two tiers, deep and fast, over HTTP or through Claude Code; prompts and budgets.

Touches only what is for all: httpx through http.py, the gate, settings. Stores of usage and answers are handed in.
The story begins at `Models.ask`, in models.py; callers name a tier, by way of a prompt, and never a model.
"""

from __future__ import annotations

from quaid.llm.exchange import Answer
from quaid.llm.models import Models
from quaid.llm.prompts import Prompt

__all__ = ["Answer", "Models", "Prompt"]
