"""`perdure replay`: repeat a recorded conversation, then go on live."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from perdure.agent.loop.state import State
from perdure.agent.spec import Agent, ModelSpec
from perdure.cli.declarations.conversations import Replay
from perdure.cli.environment import Environment, connect_client, open_environment
from perdure.cli.follow import TurnView, announce_conversation, follow, print_result
from perdure.cli.model_check import check_models
from perdure.cli.options import Format
from perdure.cli.output import note
from perdure.cli.rendering.log_pages import read_slots
from perdure.cli.script_server import resolve_script_path
from perdure.cli.workspaces import absolute_path
from perdure.client.ids import new_conversation_id, new_message_id
from perdure.client.protocol import ConversationHandle
from perdure.errors import Invalid
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.images import is_stored_image
from perdure.events.tools import ObservationEvent
from perdure.models.budget import check_budget
from perdure.settings.settings import load_settings
from perdure.testing.replay import REPLAY_PREFIX, Recording, read_recording


async def replay(options: Replay) -> int:
    file, flags = options.file, {"model": options.model}
    recording = read_recording(file)
    if not recording.user_messages:
        raise Invalid(f"{file} holds no message of a user, so there is nothing to begin with.")
    _refuse_stored_images(recording, file)
    settings = load_settings(**flags)
    spec = _replay_spec(recording, options, settings.model)
    await check_models(spec.fallbacks, settings)
    check_budget(spec, "Name a model to go on with whose price is known: --model NAME.")
    async with open_environment(**flags) as environment:
        work = _replay_recording(recording, spec, environment, options)
        return await environment.run_with_stack(work)


def _refuse_stored_images(recording: Recording, file: Path) -> None:
    """Raises Invalid for references to images, which are beside the recorded log and not in it."""
    urls = [url for message in recording.user_messages for url in message.images]
    if count := sum(map(is_stored_image, urls)):
        raise Invalid(
            f"{file} refers to {count} image{'' if count == 1 else 's'} that it does not hold.",
            "Export the conversation with its images, and replay the folder: "
            "`perdure export ID --format openhands --output FOLDER`.",
        )


def _replay_spec(recording: Recording, options: Replay, live_model: str | None) -> Agent:
    """Build the spec of the recorded agent, with the recording in place of its model."""
    spec = recording.spec or Agent(model=ModelSpec(name="none"))
    fallbacks: tuple[ModelSpec, ...] = ()
    if live_model:
        fallbacks = (ModelSpec(name=resolve_script_path(live_model)),)
    elif recording.spec and not spec.model.name.startswith(REPLAY_PREFIX):
        fallbacks = (spec.model,)
    model = {"name": f"{REPLAY_PREFIX}{options.file.absolute()}", "api_base": None}
    changes = {
        "model": spec.model.model_copy(update=model),
        "fallbacks": fallbacks,
        "limits": spec.limits.model_copy(update={"deadline": None}),
        "workspace": str(options.workspace.absolute()) if options.workspace else None,
    }
    return spec.model_copy(update=changes)


async def _replay_recording(
    recording: Recording, spec: Agent, environment: Environment, options: Replay
) -> int:
    client = await connect_client(environment.settings)
    conversation = client.conversation(new_conversation_id())
    state = State()
    view = TurnView(options.output, options.full)
    workspace = absolute_path(options.workspace)
    with announce_conversation(conversation, environment, view, None, workspace):
        turns = _replay_turns(conversation, recording, spec, view, options.timeout)
        async for state in turns:
            if state.status not in ("finished", "error", "stuck"):
                break  # it waits for a person, and so do the other messages
    return await _print_conclusion(conversation, recording, state, view)


async def _replay_turns(
    conversation: ConversationHandle,
    recording: Recording,
    spec: Agent,
    view: TurnView,
    limit: float | None,
) -> AsyncIterator[State]:
    """Send each message when the turn before it is over; yield the state after each turn."""
    after = -1
    for index, message in enumerate(recording.user_messages):
        message_id = new_message_id()
        if index == 0:
            await conversation.start(message.text, spec, message_id, message.images)
        else:
            await conversation.send(message.text, message_id, message.images)
        state = await follow(conversation, message_id, after, view, limit)
        after = state.next_seq - 1
        yield state


async def _print_conclusion(
    conversation: ConversationHandle, recording: Recording, state: State, view: TurnView
) -> int:
    differing = [entry async for entry in _differing_results(conversation, recording)]
    seqs = [entry.seq for entry in differing]
    code = await print_result(conversation, state, view, differing=seqs)
    if view.output is not Format.text:
        return code
    for entry in differing:
        event: Any = entry.event
        note(f"The result of {event.tool_name} at seq {entry.seq} is not the recorded one.")
    note(f"It stays open: `perdure send {conversation.id} TEXT --wait`.")
    return code


async def _differing_results(
    conversation: ConversationHandle, recording: Recording
) -> AsyncIterator[Entry]:
    """Yield the results that differ from the recorded ones."""
    async for slot in read_slots(conversation.log, -1):
        if isinstance(slot, Entry) and isinstance(slot.event, ObservationEvent):
            recorded_result = recording.results.get(slot.event.tool_call_id)
            if recorded_result not in (None, join_text(slot.event.observation.content)):
                yield slot
