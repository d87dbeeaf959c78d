"""The programs that agents live in: their configs, installation, canary, session and prompt context, standby.

May import the base, vault, history, local, index, sync, recall and docs.
Begin with installation.py, session_context.py (what the hook of a session injects) and prompt_context.py (that of a prompt).
"""
