"""What a person is told of a conversation at its start, and when they leave it."""

from pathlib import Path

from cli.output import note
from cli.stack import Place
from client.conversation import Conversation
from storage.keys import conversation_prefix


def introduce(conversation: Conversation, place: Place) -> None:
    """Where to look at a conversation that begins."""
    prefix = conversation_prefix(place.settings.user, conversation.id)
    note(f"conversation  {conversation.id}", "bold")
    note(f"  its events  {place.settings.store}/{prefix}events/")
    if place.info is not None:
        page = f"{place.info.ui}/namespaces/default/workflows/{conversation.workflow_id}"
        note(f"  Temporal    {page}")
        note(f"  its worker  kill -9 {place.info.pids['worker']}   and see it go on")
    note("")


def leave(conversation_id: str, place: Place, script: Path | None) -> None:
    """How to come back to a conversation that goes on."""
    if place.own is None:
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
