"""`perdure status`: where a conversation stands."""

from agent.start import Snapshot, snapshot
from cli.output import Format, Output, note, show, show_json
from cli.performing import ConversationId, command_app, perform
from cli.stack import log_of, place
from client.client import Client
from client.errors import NotFound, Unreachable
from storage.state import state_of

app = command_app()


@app.command()
def status(conversation_id: ConversationId, output: Output = Format.text) -> None:
    """Say where a conversation stands.

    Its workflow is asked where it runs; else the log tells.
    """
    perform(_status(conversation_id, output), output)


async def _status(conversation_id: str, output: Format) -> None:
    found = await _asked(conversation_id)
    if output is not Format.text:
        show_json(found.model_dump(mode="json"), output)
        return
    for name, value in _told(found).items():
        show(f"{name:<12} {value}")


async def _asked(conversation_id: str) -> Snapshot:
    try:
        client = await Client.connect((await place()).settings)
        return await client.conversation(conversation_id).status()
    except Unreachable as error:
        log = await log_of(conversation_id)
        state = await state_of(log)
        if state.next_seq == 0:
            raise NotFound(f"The store has no conversation {conversation_id}.") from error
        note(f"{error} This is what the log says:")
        return snapshot(conversation_id, state)


def _told(found: Snapshot) -> dict[str, str]:
    spent = found.spent
    tokens = f"{spent.prompt_tokens:,} in, {spent.completion_tokens:,} out"
    told = {
        "status": found.status,
        "reason": found.reason,
        "turn": f"{found.turn}, {found.iterations} answers of the model",
        "events": f"{found.next_seq}",
        "pending": ", ".join(found.pending),
        "waiting": f"{found.waiting} not in the log yet" if found.waiting else None,
        "model": found.model,
        "tokens": tokens,
        "cost": f"${spent.cost:.4f}",
    }
    return {name: value for name, value in told.items() if value}
