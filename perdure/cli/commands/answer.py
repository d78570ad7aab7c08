"""`perdure approve` and `perdure reject`: answer the actions that wait for a person."""

from collections.abc import Sequence

from perdure.cli.environment import connect_client
from perdure.cli.follow import calls_awaiting_approval, describe_pending_call
from perdure.cli.options import Format
from perdure.cli.output import confirm, note
from perdure.client.conversation import Conversation
from perdure.errors import Conflict, Invalid


async def execute(
    conversation_id: str,
    accept: bool,
    calls: Sequence[str],
    through: int | None,
    reason: str,
    output: Format,
) -> None:
    """Accept or reject the named calls. Raises Invalid, which lists them, where none is named."""
    client = await connect_client()
    conversation = client.conversation(conversation_id)
    if not calls and through is None:
        await _refuse_without_choice(conversation, output)
    answered = await conversation.respond(accept, calls, through, reason)
    verb = "approved" if accept else "rejected"
    confirm(
        f"{verb}: {', '.join(answered)}",
        {"conversation_id": conversation_id, verb: answered},
        output,
    )


async def _refuse_without_choice(conversation: Conversation, output: Format) -> None:
    """Print the calls that wait. Always raises Invalid, or Conflict where none waits."""
    status = await conversation.status()
    waiting = calls_awaiting_approval(status)
    if not waiting:
        raise Conflict(
            f"No action of {conversation.id} waits for an answer: it is {status.status}."
        )
    if output is Format.text:
        for call in waiting:
            text = await describe_pending_call(conversation, call)
            note(f"{call.seq:>6}  {call.tool_call_id}  {call.risk}  {text}")
    ids = ", ".join(call.tool_call_id for call in waiting)
    raise Invalid(
        f"Name the calls that are meant, for nothing is answered unseen: {ids}.",
        f"Give --call ID for each, or --through {waiting[-1].seq} for all up to that seq.",
    )
