"""Hints for a person at the start of a conversation, and when they leave it."""

from pathlib import Path

from perdure.cli.environment import Environment
from perdure.cli.output import note
from perdure.client.conversation import Conversation
from perdure.storage.keys import conversation_prefix


def note_start(conversation: Conversation, environment: Environment) -> None:
    """Print where to look at a conversation that begins."""
    prefix = conversation_prefix(environment.settings.user, conversation.id)
    note(f"conversation  {conversation.id}", "bold")
    note(f"  its events  {environment.settings.store}/{prefix}events/")
    if environment.stack_info is not None:
        page = (
            f"{environment.stack_info.ui}/namespaces/default/workflows/{conversation.workflow_id}"
        )
        note(f"  Temporal    {page}")
        note(f"  its worker  kill -9 {environment.stack_info.pids['worker']}   and see it go on")
    note("")


def note_return(conversation_id: str, environment: Environment, script: Path | None) -> None:
    """Print how to return to a conversation that goes on."""
    if environment.own_stack is None:
        note(
            f"\nThe conversation goes on: `perdure watch {conversation_id}` shows it, and "
            f"`perdure chat --resume {conversation_id}` comes back to it."
        )
    else:
        note(
            "\nThis command's stack ends with it, and the conversation waits. To go on: "
            f"`perdure dev`, and `perdure chat --resume {conversation_id}` in another terminal."
        )
    if script is not None:
        note("The scripted model ends with this command too: the conversation will ask in vain.")
