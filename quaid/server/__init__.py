"""Many vaults for many callers: catalogue, mirrors, queue and workers, leases, writing, tokens, limits, figures, log.

May import what memory may, and memory.
Begin with vault_server.py.
"""
