"""Adapters of other makers' memory interfaces. Each module imports its maker's package, which no extra brings.

May import what `memory` may, `memory` and `resident`; no other package imports an adapter.
Begin with `QuaidMemoryTool`, `QuaidStore` or `QuaidSession`; each has a page in docs/integrations.
"""
