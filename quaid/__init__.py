"""Quaid: an AI agent's memory as markdown notes in a git repository."""

TYPE_CHECKING = False  # `typing` takes longer to import than a call that another process answers has
if TYPE_CHECKING:
    from quaid.memory import Memory as Memory
    from quaid.place import VERSION as __version__  # noqa: N811
    from quaid.resident.async_memory import AsyncMemory as AsyncMemory

__all__ = ["AsyncMemory", "Memory", "__version__"]


def __getattr__(name: str) -> object:
    # `import quaid` stays free of numpy and SQLite until someone asks for the memory itself.
    if name == "Memory":
        from quaid.memory import Memory

        return Memory
    if name == "AsyncMemory":
        from quaid.resident.async_memory import AsyncMemory

        return AsyncMemory
    if name == "__version__":
        from quaid.place import VERSION

        return VERSION
    raise AttributeError(name)
