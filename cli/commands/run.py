"""`perdure run`: a conversation from its first message to the end of its first turn."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agent.spec import Limits, ModelSpec, Spec
from cli.failures import OK
from cli.following import conclude, follow
from cli.message import message_of
from cli.output import Format, Output, note, show, show_json
from cli.performing import command_app, perform
from cli.script import model_of
from cli.stack import Place, place, place_to_run
from client.client import Client
from client.conversation import Conversation
from client.errors import Conflict, Invalid
from client.ids import new_conversation_id, new_message_id
from settings.settings import load
from storage.keys import conversation_prefix, is_conversation_id
from tools.catalog import BUILT_IN

app = command_app()


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    text: str
    model: str | None
    workspace: Path | None
    tools: str | None
    script: Path | None
    limits: Limits
    id: str | None
    timeout: float | None
    output: Format

    def spec(self, model: ModelSpec) -> Spec:
        given = {
            "workspace": str(self.workspace.absolute()) if self.workspace else None,
            "tools": tuple(self.tools.split(",")) if self.tools is not None else None,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return Spec.model_validate({"model": model, "limits": self.limits, **chosen})


@app.command()
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do; - reads it from stdin.")],
    model: Annotated[
        str | None, typer.Option(help="One of litellm's names, scripted:FILE, or a script's name.")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="Where the agent works; else a folder of its own.")
    ] = None,
    tools: Annotated[
        str | None, typer.Option(help="Names or module:attribute, with commas between them.")
    ] = None,
    script: Annotated[Path | None, typer.Option(help="Play this script as the model.")] = None,
    max_iterations: Annotated[
        int | None, typer.Option(help="Answers of the model in a turn.", min=1)
    ] = None,
    max_budget: Annotated[
        float | None, typer.Option(help="US dollars for the conversation.", min=0)
    ] = None,
    id: Annotated[str | None, typer.Option(help="A UUID for the new conversation.")] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait; the work goes on after that.", min=0)
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")] = False,
    output: Output = Format.text,
) -> None:
    """Run one conversation to the end of its first turn, and show it as it happens.

    It runs where PERDURE_STORE and TEMPORAL_ADDRESS say, else on the stack of `perdure dev`, else
    on one that this command starts for itself. ^C leaves the conversation, which goes on.
    """
    limits = Limits(max_budget=max_budget)
    if max_iterations is not None:
        limits = Limits(max_budget=max_budget, max_iterations=max_iterations)
    asked = Asked(task, model, workspace, tools, script, limits, id, timeout, output)
    perform(_detached(asked) if detach else _run(asked), output)


async def _run(asked: Asked) -> int:
    text = checked(asked)
    flags = {"model": asked.model} if asked.script is None else {}
    named = asked.model if asked.script else load(**flags).model
    async with model_of(asked.script, named) as model, place_to_run(**flags) as place:
        return await place.keep_up(_converse(asked, text, asked.spec(model), place))


def checked(asked: Asked) -> str:
    """The task, once all is known to be right that can be told before anything is started."""
    if asked.id is not None and not is_conversation_id(asked.id):
        raise Invalid(f"{asked.id!r} is not a UUID.", "Give one in lower case, or leave --id out.")
    for name in (asked.tools or "terminal").split(","):
        if ":" not in name and name not in BUILT_IN:
            raise Invalid(
                f"There is no tool {name!r}: there are {', '.join(BUILT_IN)}.",
                "Name one of your own as module:attribute.",
            )
    return message_of(asked.text)


async def _converse(asked: Asked, text: str, spec: Spec, place: Place) -> int:
    message_id = new_message_id()
    conversation = await _started(asked, text, spec, place, message_id)
    if asked.output is Format.jsonl:
        show_json({"conversation_id": conversation.id}, asked.output)
    _introduce(conversation, place)
    try:
        state = await follow(conversation, message_id, -1, asked.output, asked.timeout)
    except asyncio.CancelledError:
        _leave(conversation.id, place, asked)
        raise
    return conclude(conversation.id, state, asked.output)


async def _detached(asked: Asked) -> int:
    if asked.script is not None:
        raise Invalid(
            "A script is served by this command, which would be gone.",
            f"Have the worker play it: --model scripted:{asked.script.absolute()}",
        )
    text = checked(asked)
    where = await place(model=asked.model)
    async with model_of(None, where.settings.model) as model:
        conversation = await _started(asked, text, asked.spec(model), where, new_message_id())
    if asked.output is Format.text:
        show(conversation.id)
    else:
        show_json({"conversation_id": conversation.id}, asked.output)
    return OK


async def _started(
    asked: Asked, text: str, spec: Spec, place: Place, message_id: str
) -> Conversation:
    client = await Client.connect(place.settings)
    conversation = client.conversation(asked.id or new_conversation_id())
    # Asked for a new id too: a store that cannot be used is better known before than after.
    if await conversation.exists():
        raise Conflict(
            f"There is a conversation {conversation.id} already.",
            f"Send it a message with `perdure send {conversation.id} TEXT`.",
        )
    await conversation.start(text, spec, message_id)
    return conversation


def _introduce(conversation: Conversation, place: Place) -> None:
    prefix = conversation_prefix(place.settings.user, conversation.id)
    note(f"conversation  {conversation.id}", "bold")
    note(f"  its events  {place.settings.store}/{prefix}events/")
    if place.info is not None:
        page = f"{place.info.ui}/namespaces/default/workflows/{conversation.workflow_id}"
        note(f"  Temporal    {page}")
        note(f"  its worker  kill -9 {place.info.pids['worker']}   and see it go on")
    note("")


def _leave(conversation_id: str, place: Place, asked: Asked) -> None:
    if place.own is None:
        note(f"\nThe conversation goes on: `perdure watch {conversation_id}` shows it.")
    else:
        note(
            "\nThis command's stack ends with it, and the conversation waits. To go on: "
            f"`perdure dev`, and `perdure watch {conversation_id}` in another terminal."
        )
    if asked.script is not None:
        note("The scripted model ends with this command too: the conversation will ask in vain.")
