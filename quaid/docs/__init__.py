"""Documentation of projects: registry, sources, staleness, significance, updates, search.

May import all that capture may, and capture.
Begin with documentation.py, which is what the doors ask. Where to look:

- what projects there are: registry.py reads, registrar.py writes, source_roots.py says what may be read
- which files are documents: catalogue.py
- what a document is about: sources.py; in which repositories that lies: source_trees.py
- when it was last true: last_true.py, over file_history.py
- what makes it stale: staleness.py; which changes matter: significance.py over lexers.py, judgements.py asks a model
- what a check answers: freshness.py
- how it becomes true again: updater.py, with what a model proposes (updates.py, prompt_inputs.py) held against
  validation.py; how it is shortened: cleanup.py
- how it is found: search.py, over the passages of chunks.py
"""
