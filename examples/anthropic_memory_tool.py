"""Claude's memory tool over a Quaid vault. Run: ANTHROPIC_API_KEY=… python examples/anthropic_memory_tool.py VAULT"""

import sys

from anthropic import Anthropic

from quaid.integrations.anthropic_memory import QuaidMemoryTool


def main(
    vault: str, question: str = "Remember that I like my coffee with oat milk.", client: Anthropic | None = None
) -> None:
    tool = QuaidMemoryTool(vault)
    runner = (client or Anthropic()).beta.messages.tool_runner(
        model="claude-sonnet-5-5",
        max_tokens=1_000,
        betas=["context-management-2025-06-27"],
        tools=[tool],
        messages=[{"role": "user", "content": question}],
    )
    for message in runner:
        for block in message.content:
            print(block.text if block.type == "text" else f"({block.type})")
    tool.memory.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
