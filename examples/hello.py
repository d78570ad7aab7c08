"""Ask an agent a question: `python -m examples.hello "What is 2 + 3?" openai/gpt-5`.

Start `perdure dev` first, in another terminal, with the key of the model's provider.
"""

import asyncio
import sys

from perdure import Agent, Client


async def main(question: str, model: str) -> None:
    """Print what the agent does, then its answer."""
    client = await Client.connect()
    conversation = await client.start(question, Agent(model=model))
    async for event in conversation.turn():
        print(event.source, event.kind)
    print((await conversation.result()).text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
