"""`perdure status`: where a conversation stands."""

import contextlib

from agent.start import Snapshot
from cli.output import Format, Output, note, show, show_json
from cli.performing import ConversationId, command_app, perform
from cli.reading import first_words
from cli.stack import log_of, place
from cli.standing import lines_of
from client.client import Client
from client.conversation import logged
from client.errors import NotFound, Unreachable
from client.trouble import unreachable
from storage.errors import StoreUnavailable

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
        # Where it stands is worth telling without its first words too.
        with contextlib.suppress(StoreUnavailable):
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
        return await client.conversation(conversation_id).status()
    except Unreachable as error:
        found = await logged(await log_of(conversation_id))
        if found is None:
            raise NotFound(f"The store has no conversation {conversation_id}.") from error
        note(f"{error} This is what the log says:")
        stands = found.status == "running"
        return found.model_copy(update={"trouble": unreachable(error).sentence} if stands else {})
