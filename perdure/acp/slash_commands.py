"""What a person types after a slash, and is no message to the agent."""

from typing import Any

from perdure.acp.projection import make_chunk
from perdure.acp.session import Session
from perdure.errors import Invalid

COMMANDS: dict[str, tuple[str, str | None]] = {
    "condense": ("Condense what the model sees, before its next answer", None),
    "model": ("Go on with another model", "its name, such as openai/gpt-5"),
}
"""What a command does, and the hint on what to write behind it."""


def list_commands() -> dict[str, Any]:
    """Return the update that tells of the commands."""
    commands = []
    for name, (description, hint) in COMMANDS.items():
        command: dict[str, Any] = {"name": name, "description": description}
        commands.append({**command, "input": {"hint": hint}} if hint else command)
    return {"sessionUpdate": "available_commands_update", "availableCommands": commands}


def parse_command(text: str) -> tuple[str, str] | None:
    """Return a command and what follows it; None for a message to the agent."""
    name, _, rest = text.strip().partition(" ")
    known = name.startswith("/") and name[1:] in COMMANDS
    return (name[1:], rest.strip()) if known else None


async def run_command(session: Session, name: str, rest: str) -> None:
    """Do what a command says, and tell so. Raises ClientError."""
    if session.agent is not None:
        raise Invalid(f"/{name} is for a conversation that has begun.", "Send a message first.")
    if name == "condense":
        await session.conversation.condense()
        said = "The conversation is condensed before the next answer."
    else:
        if not rest:
            raise Invalid("/model needs a name.", "Write /model openai/gpt-5, for example.")
        await session.conversation.configure({"model": {"name": rest}})
        said = f"The next answers are those of {rest}."
    await session.update(make_chunk("agent_message_chunk", said))
