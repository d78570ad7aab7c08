"""`perdure send`: send a message to a conversation."""

from perdure.cli.environment import connect_client
from perdure.cli.follow import follow, print_result
from perdure.cli.message import read_text
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.client.ids import new_message_id
from perdure.operations.error_reports import EXIT_OK


async def execute(
    conversation_id: str,
    text: str,
    message_id: str | None,
    wait: bool,
    timeout: float | None,  # noqa: ASYNC109 - an option, with its own exit code
    output: Format,
) -> int:
    text = read_text(text)
    message_id = message_id if message_id is not None else new_message_id()
    client = await connect_client()
    conversation = client.conversation(conversation_id)
    printed = wait or output is Format.text
    end = await conversation.log.end() if printed else 0
    await conversation.send(text, message_id)
    if wait:
        state = await follow(conversation, message_id, end - 1, output, timeout)
        return print_result(conversation_id, state, output)
    if output is Format.text:
        show(message_id)
        note(f"Sent. `perdure watch {conversation_id} --after {end - 1}` shows what comes of it.")
    else:
        show_json({"conversation_id": conversation_id, "message_id": message_id}, output)
    return EXIT_OK
