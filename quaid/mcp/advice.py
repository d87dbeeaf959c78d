"""Next steps in messages for a reader that has tools and no shell."""

import re
from collections.abc import Collection

_TOOLS = {
    "recall": "memory_recall",
    "search": "memory_recall",
    "get": "memory_get",
    "remember": "memory_store",
    "note": "memory_note",
    "forget": "memory_forget",
    "extract": "memory_extract",
    "restore": "memory_restore",
    "link": "memory_create_edge",
    "stats": "memory_stats",
    "docs search": "docs_search",
    "docs list": "docs_list",
    "docs register": "docs_register",
    "project list": "docs_list",
    "project create": "project_create",
}
"""Commands, each with the equivalent tool."""
_COMMAND = re.compile(r"\bquaid ((?:docs |project )?[a-z]+)\b(?! (?:is|was|has|does)\b)")
_SHELL_COMMAND = re.compile(
    r"\b(?:quaid [a-z]+|git (?:-C|add|commit|init|checkout|merge|rebase|restore|switch|stash)|chown)\b"
)
_ASIDE = "; see what there is with: quaid log"
FOR_OWNER = "That is for the owner to do: tell them, and do not do it yourself."


ALWAYS = frozenset({"memory_recall", "memory_get", "memory_store", "memory_note", "memory_forget", "memory_extract"})
"""The tools that every server offers."""


def as_tools(text: str, offered: Collection[str] = ALWAYS) -> str:
    """Return `text` with an offered tool in place of each command that has one. Other commands are for the owner to
    run, and the text says so.
    """

    def tool(command: re.Match[str]) -> str:
        name = _TOOLS.get(command[1], "")
        return name if name in offered else command[0]

    advice = _COMMAND.sub(tool, text.replace(_ASIDE, ""))
    return f"{advice.rstrip().removesuffix('.')}. {FOR_OWNER}" if _SHELL_COMMAND.search(advice) else advice
