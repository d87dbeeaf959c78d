"""Many vaults behind one or several servers: the catalogue of vaults, mirrors, the queue and its workers, leases,
writing, tokens and scopes, limits, figures and the log. What the vaults hold stays in their git repositories.

May import what memory may, and memory.
Begin with vault_server.py.
"""
