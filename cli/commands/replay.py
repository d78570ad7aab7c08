"""`perdure replay`: what was recorded is done again, then the conversation goes on live."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.spec import ModelSpec, Spec
from agent.state import State
from cli.agents import Workspace
from cli.following import Timeout, conclude, exit_code, follow, result_of
from cli.leaving import introduce, leave
from cli.output import Format, Output, note, show_json
from cli.performing import command_app, perform
from cli.reading import written
from cli.script import findable
from cli.stack import Place, place_to_run
from client.client import Client
from client.conversation import Conversation
from client.errors import Invalid
from client.ids import new_conversation_id, new_message_id
from events.content import text_of
from events.entry import Entry
from events.tools import ObservationEvent
from models.recording import Recording, read_recording
from models.replay import PREFIX
from settings.settings import load

app = command_app()


@app.command()
def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A log, a trajectory, or a folder of events.")
    ],
    model: Annotated[
        str | None, typer.Option(help="Who goes on live; else the recorded model.")
    ] = None,
    workspace: Workspace = None,
    timeout: Timeout = None,
    output: Output = Format.text,
) -> None:
    """Do again what was recorded in a conversation, then go on live.

    FILE is what `perdure show ID -o jsonl` printed, a trajectory of OpenHands, or a folder of
    events. The recorded messages are sent and the recorded actions are done, for real: their
    results are new, and those that differ are named. The conversation stays open.
    """
    perform(_replay(file, model, workspace, timeout, output), output)


async def _replay(
    file: Path,
    model: str | None,
    workspace: Path | None,
    limit: float | None,
    output: Format,
) -> int:
    recording = read_recording(file)
    if not recording.said:
        raise Invalid(f"{file} holds no message of a user, so there is nothing to begin with.")
    flags = {"model": model}
    spec = spec_of(recording, file, load(**flags).model, workspace)
    async with place_to_run(**flags) as place:
        return await place.keep_up(_performed(recording, spec, place, limit, output))


def spec_of(recording: Recording, file: Path, live: str | None, workspace: Path | None) -> Spec:
    """The recorded agent, as far as it is known, with the recording in place of its model."""
    known = recording.spec or Spec(model=ModelSpec(name="none"))
    others = () if known.model.name.startswith(PREFIX) or recording.spec is None else (known.model,)
    changes = {
        "model": known.model.model_copy(
            update={"name": f"{PREFIX}{file.absolute()}", "api_base": None}
        ),
        "fallbacks": (ModelSpec(name=findable(live)),) if live else others,
        "limits": known.limits.model_copy(update={"deadline": None}),
        "workspace": str(workspace.absolute()) if workspace else None,
    }
    return known.model_copy(update=changes)


async def _performed(
    recording: Recording, spec: Spec, place: Place, limit: float | None, output: Format
) -> int:
    client = await Client.connect(place.settings)
    conversation = client.conversation(new_conversation_id())
    if output is Format.jsonl:
        show_json({"conversation_id": conversation.id}, output)
    introduce(conversation, place)
    state = State()
    try:
        async for state in _turns(conversation, recording, spec, limit, output):
            if state.status not in ("finished", "error", "stuck"):
                break  # it waits for a person, and so do the other messages
    except asyncio.CancelledError:
        leave(conversation.id, place, None)
        raise
    return await _concluded(conversation, recording, state, output)


async def _turns(
    conversation: Conversation,
    recording: Recording,
    spec: Spec,
    limit: float | None,
    output: Format,
) -> AsyncIterator[State]:
    """Send each message when the turn before it is over; where the conversation stands then."""
    after = -1
    for nth, said in enumerate(recording.said):
        name = new_message_id()
        if nth == 0:
            await conversation.start(said.text, spec, name, said.images)
        else:
            await conversation.send(said.text, name, said.images)
        state = await follow(conversation, name, after, output, limit)
        after = state.next_seq - 1
        yield state


async def _concluded(
    conversation: Conversation, recording: Recording, state: State, output: Format
) -> int:
    differing = [entry async for entry in _differing(conversation, recording)]
    if output is not Format.text:
        seqs = [entry.seq for entry in differing]
        show_json({"result": result_of(conversation.id, state), "differing": seqs}, output)
        return exit_code(state)
    code = conclude(conversation.id, state, output)
    for entry in differing:
        event: Any = entry.event
        note(f"The result of {event.tool_name} at seq {entry.seq} is not the recorded one.")
    note(f"It stays open: `perdure send {conversation.id} TEXT --wait`.")
    return code


async def _differing(conversation: Conversation, recording: Recording) -> AsyncIterator[Entry]:
    """The results that are not what they were when the conversation was recorded."""
    async for slot in written(conversation.log, -1):
        if isinstance(slot, Entry) and isinstance(slot.event, ObservationEvent):
            recorded = recording.results.get(slot.event.tool_call_id)
            if recorded not in (None, text_of(slot.event.observation.content)):
                yield slot
