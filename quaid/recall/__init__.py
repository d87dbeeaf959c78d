"""From a question to hits; and the records of recall, provenance, visibility, evaluation.

May import the base, vault, history, local, index, embed, llm and sync.
Begin with answers.py, then pipeline.py: query, retrieval, candidates, scoring, hits.
"""
