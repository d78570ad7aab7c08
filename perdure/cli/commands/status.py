"""`perdure status`: print the status of a conversation."""

import contextlib

from perdure.agent.loop.start import ConversationStatus
from perdure.cli.environment import connect_client, open_log
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.cli.rendering.log_pages import title_from_first_message
from perdure.cli.rendering.status_view import status_lines
from perdure.client.conversation import read_logged_status
from perdure.client.diagnosis.trouble import temporal_unreachable
from perdure.errors import NotFound, Unreachable
from perdure.storage.errors import StoreUnavailable


async def execute(conversation_id: str, output: Format) -> None:
    snapshot = await _query_status(conversation_id)
    if not snapshot.title:
        # The status is worth printing without a title too.
        with contextlib.suppress(StoreUnavailable):
            title = await title_from_first_message(await open_log(conversation_id))
            snapshot = snapshot.model_copy(update={"title": title})
    if output is not Format.text:
        show_json(snapshot.model_dump(mode="json"), output)
        return
    for line in status_lines(snapshot):
        show(line)


async def _query_status(conversation_id: str) -> ConversationStatus:
    try:
        client = await connect_client()
        return await client.conversation(conversation_id).status()
    except Unreachable as error:
        snapshot = await read_logged_status(await open_log(conversation_id))
        if snapshot is None:
            raise NotFound(f"The store has no conversation {conversation_id}.") from error
        note(f"{error} This is what the log says:")
        is_running = snapshot.status == "running"
        return snapshot.model_copy(
            update={"trouble": temporal_unreachable(error).sentence} if is_running else {}
        )
