"""The programs that agents live in: their configs, installation, canary, session and prompt context.

May import the base, vault, history, local, index, sync, recall and docs.
Begin with installation.py; what hooks inject is built by session_context.py and prompt_context.py.
"""
