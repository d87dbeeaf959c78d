"""Git, and only here: commits, staging, worktrees, lineage, branches, merges, source repositories.

May import the base and vault.
Begin with vault_history.py.
"""
