"""`perdure run`: run a conversation to the end of its first turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.agent.spec import Agent
from perdure.cli.arguments import load_images, read_text
from perdure.cli.commands.files import print_result_and_changes
from perdure.cli.declarations.conversations import Run
from perdure.cli.environment import Environment, connect_client, find_environment
from perdure.cli.follow import TurnView, announce_conversation, follow
from perdure.cli.output import show_result
from perdure.cli.script_server import open_agent, open_agent_and_environment
from perdure.client.ids import new_conversation_id, new_message_id
from perdure.client.images import Image
from perdure.client.protocol import ConversationHandle
from perdure.client.saved import wait_until_saved
from perdure.errors import Conflict, Invalid
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.keys import is_conversation_id
from perdure.testing.replay import read_recorded_events


async def run(options: Run) -> int:
    if options.detach:
        return await _run_detached(options)
    message = _read_message(options)
    async with open_agent_and_environment(options) as (agent, environment):
        work = _start_and_follow(options, message, agent, environment)
        return await environment.run_with_stack(work)


@dataclass(frozen=True)
class FirstMessage:
    """The message that begins a conversation."""

    text: str
    images: tuple[Image, ...]
    replay: Sequence[Mapping[str, Any]] | None
    """Recorded events whose answers come before those of the model."""
    id: str = field(default_factory=new_message_id)


def _read_message(options: Run) -> FirstMessage:
    """Read stdin and files, before anything is started. Raises Invalid, ScriptError."""
    if options.id is not None and not is_conversation_id(options.id):
        raise Invalid(
            f"{options.id!r} is not a UUID.", "Give one in lower case, or leave --id out."
        )
    replay = None if options.replay is None else read_recorded_events(options.replay)
    return FirstMessage(read_text(options.task), load_images(options.images or []), replay)


async def _start_and_follow(
    options: Run, message: FirstMessage, agent: Agent, environment: Environment
) -> int:
    conversation = await _start_conversation(options, message, agent, environment)
    view = TurnView(options.output, options.full, options.answer_only)
    place = (options.script, agent.workspace)
    with announce_conversation(conversation, environment, view, *place):
        state = await follow(conversation, message.id, -1, view, options.timeout)
    code = await print_result_and_changes(conversation, state, view)
    await wait_until_saved(conversation.log, state.next_seq)
    return code


async def _run_detached(options: Run) -> int:
    if options.answer_only:
        raise Invalid(
            "--detach does not wait for the answer that --print prints.", "Leave one out."
        )
    if options.script is not None:
        raise Invalid(
            "A script is served by this command, which would be gone.",
            f"Have the worker play it: --model scripted:{options.script.absolute()}",
        )
    message = _read_message(options)
    environment = await find_environment()
    async with open_agent(options, environment) as agent:
        conversation = await _start_conversation(options, message, agent, environment)
    show_result({"conversation_id": conversation.id}, options.output, conversation.id)
    return EXIT_OK


async def _start_conversation(
    options: Run, message: FirstMessage, agent: Agent, environment: Environment
) -> ConversationHandle:
    client = await connect_client(environment.settings)
    conversation = client.conversation(options.id or new_conversation_id())
    # Checked for a new id too: an unusable store is reported before anything is started.
    if await conversation.exists():
        raise Conflict(
            f"There is a conversation {conversation.id} already.",
            f"Send it a message with `perdure send {conversation.id} TEXT`.",
        )
    return await client.start(
        message.text, agent, conversation.id, message.id, message.images, replay=message.replay
    )
