"""A conversation of OpenAI's Agents SDK in a Quaid vault: OPENAI_API_KEY=… python examples/openai_session.py VAULT"""

import asyncio
import sys
from typing import Any

from agents import Agent, RunConfig, Runner

from quaid.integrations.openai_session import QuaidSession


async def main(vault: str, model: Any = "gpt-5.5") -> None:
    session = QuaidSession("lisbon", vault)
    agent = Agent(name="Assistant", instructions="Answer in one sentence.", model=model)
    quiet = RunConfig(tracing_disabled=True)  # without it the SDK sends what it does to OpenAI
    for question in ("My name is Maya and I move to Lisbon in May.", "Where do I move to?"):
        done = await Runner.run(agent, question, session=session, run_config=quiet)
        print(done.final_output)
    session.memory.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
