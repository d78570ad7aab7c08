"""Actions that wait for a person: what is shown of them, and what is answered."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from agent.start import PendingCall, Snapshot
from cli.events_shown import called, shortened
from cli.output import Format, note, show_json
from cli.stack import place
from client.client import Client
from client.conversation import Conversation
from client.errors import Conflict, Invalid
from events.tools import ActionEvent

Calls = Annotated[
    list[str] | None,
    typer.Option("--call", metavar="ID", help="A call's id; may be repeated."),
]
Through = Annotated[
    int | None, typer.Option(metavar="SEQ", help="All that wait, up to this seq.", min=0)
]


async def answer(
    conversation_id: str,
    accept: bool,
    calls: Sequence[str],
    through: int | None,
    reason: str,
    output: Format,
) -> None:
    """Accept or reject the calls that are named; where none is, say which there are."""
    client = await Client.connect((await place()).settings)
    conversation = client.conversation(conversation_id)
    if not calls and through is None:
        await _refuse_unseen(conversation, output)
    meant = await conversation.respond(accept, calls, through, reason)
    verb = "approved" if accept else "rejected"
    if output is Format.text:
        note(f"{verb}: {', '.join(meant)}")
    else:
        show_json({"conversation_id": conversation_id, verb: meant}, output)


async def _refuse_unseen(conversation: Conversation, output: Format) -> None:
    """Raises Invalid with the calls that could be named, and Conflict where none waits."""
    found = await conversation.status()
    waiting = asked(found)
    if not waiting:
        raise Conflict(f"No action of {conversation.id} waits for an answer: it is {found.status}.")
    if output is Format.text:
        for one in waiting:
            note(f"{one.seq:>6}  {one.tool_call_id}  {one.risk}  {await told(conversation, one)}")
    ids = ", ".join(one.tool_call_id for one in waiting)
    raise Invalid(
        f"Name the calls that are meant, for nothing is answered unseen: {ids}.",
        f"Give --call ID for each, or --through {waiting[-1].seq} for all up to that seq.",
    )


def asked(found: Snapshot) -> list[PendingCall]:
    """The calls that wait for a person."""
    return [one for one in found.pending if one.asks]


async def told(conversation: Conversation, call: PendingCall) -> str:
    """The call with its arguments, as far as a person takes them in."""
    event: Any = (await conversation.log.at(call.seq)).event
    if not isinstance(event, ActionEvent) or event.action is None:
        return call.tool_name
    return shortened(called(event.tool_name, event.action))
