"""`perdure run`: run a conversation to the end of its first turn."""

from dataclasses import replace

from perdure.agent.spec import ModelSpec
from perdure.cli.agent_options import build_agent, check_agent_options
from perdure.cli.arguments import load_images, read_text
from perdure.cli.commands.files import print_result_and_changes
from perdure.cli.declarations.conversations import Run
from perdure.cli.environment import Environment, connect_client, find_environment
from perdure.cli.follow import TurnView, announce_conversation, follow
from perdure.cli.output import show_result
from perdure.cli.script_server import open_model_and_environment, serve_model
from perdure.cli.workspaces import absolute_path
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id, new_message_id
from perdure.errors import Conflict, Invalid
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.keys import is_conversation_id


async def run(options: Run) -> int:
    if options.detach:
        return await _run_detached(options)
    options = _resolve_options(options)
    async with open_model_and_environment(options.script, options.model) as (model, environment):
        return await environment.run_with_stack(_start_and_follow(options, model, environment))


def _resolve_options(options: Run) -> Run:
    """Check the options and read stdin and images, before anything is started. Raises Invalid."""
    if options.id is not None and not is_conversation_id(options.id):
        raise Invalid(
            f"{options.id!r} is not a UUID.", "Give one in lower case, or leave --id out."
        )
    check_agent_options(options)
    images = load_images(options.images or [])
    return replace(options, task=read_text(options.task), images=list(images))


async def _start_and_follow(options: Run, model: ModelSpec, environment: Environment) -> int:
    message_id = new_message_id()
    conversation = await _start_conversation(options, model, environment, message_id)
    view = TurnView(options.output, options.full, options.answer_only)
    place = (options.script, absolute_path(options.workspace))
    with announce_conversation(conversation, environment, view, *place):
        state = await follow(conversation, message_id, -1, view, options.timeout)
    return await print_result_and_changes(conversation, state, view)


async def _run_detached(options: Run) -> int:
    if options.script is not None:
        raise Invalid(
            "A script is served by this command, which would be gone.",
            f"Have the worker play it: --model scripted:{options.script.absolute()}",
        )
    options = _resolve_options(options)
    environment = await find_environment(model=options.model)
    async with serve_model(None, environment.settings.model) as model:
        conversation = await _start_conversation(options, model, environment, new_message_id())
    show_result({"conversation_id": conversation.id}, options.output, conversation.id)
    return EXIT_OK


async def _start_conversation(
    options: Run, model: ModelSpec, environment: Environment, message_id: str
) -> Conversation:
    client = await connect_client(environment.settings)
    conversation = client.conversation(options.id or new_conversation_id())
    # Checked for a new id too: an unusable store is reported before anything is started.
    if await conversation.exists():
        raise Conflict(
            f"There is a conversation {conversation.id} already.",
            f"Send it a message with `perdure send {conversation.id} TEXT`.",
        )
    spec = build_agent(options, model)
    await conversation.start(options.task, spec, message_id, options.images or ())
    return conversation
