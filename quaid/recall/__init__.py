"""From a question to hits: pipeline, answers, recall log, provenance, visibility, evaluation.

May import the base, vault, history, local, index, embed, llm and sync.
Begin with answers.py, then pipeline.py.
"""
