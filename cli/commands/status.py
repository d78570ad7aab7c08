"""`perdure status`: where a conversation stands."""

from agent.start import Snapshot, snapshot
from cli.output import Format, Output, note, show, show_json
from cli.performing import ConversationId, command_app, perform
from cli.reading import first_words
from cli.stack import log_of, place
from cli.standing import lines_of
from client.client import Client
from client.conversation import Conversation
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
    if not found.title:
        title = await first_words(await log_of(conversation_id))
        found = found.model_copy(update={"title": title})
    if output is not Format.text:
        show_json(found.model_dump(mode="json"), output)
        return
    for line in lines_of(found):
        show(line)


async def _asked(conversation_id: str) -> Snapshot:
    try:
        client = await Client.connect((await place()).settings)
        return await _running(client.conversation(conversation_id))
    except Unreachable as error:
        log = await log_of(conversation_id)
        state = await state_of(log)
        if state.next_seq == 0:
            raise NotFound(f"The store has no conversation {conversation_id}.") from error
        note(f"{error} This is what the log says:")
        return snapshot(conversation_id, state)


async def _running(conversation: Conversation) -> Snapshot:
    """Where it stands, with a note where nobody goes on with what the log calls running."""
    found = await conversation.status()
    if found.status == "running" and not await conversation.remote.is_alive():
        note(
            "Its workflow has ended in the middle of a turn: a message or `perdure resume` goes on."
        )
    return found
