"""`perdure run`: a conversation from its first message to the end of its first turn."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agent.inbox import Said
from agent.spec import Spec
from cli.agents import (
    Condenser,
    Confirm,
    Deadline,
    Images,
    MaxBudget,
    MaxIterations,
    Mcp,
    Model,
    ScriptFile,
    Secrets,
    SkillFolders,
    Tags,
    Tools,
    Wanted,
    Workspace,
)
from cli.failures import OK
from cli.following import Timeout, conclude, follow
from cli.images import images_of
from cli.leaving import introduce, leave
from cli.message import message_of
from cli.output import Format, Output, show, show_json
from cli.performing import command_app, perform
from cli.script import model_and_place, model_of
from cli.stack import Place, place
from client.client import Client
from client.conversation import Conversation
from client.errors import Conflict, Invalid
from client.ids import new_conversation_id, new_message_id
from storage.keys import is_conversation_id

app = command_app()


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    text: str
    model: str | None
    script: Path | None
    wanted: Wanted
    images: list[str]
    id: str | None
    timeout: float | None
    output: Format


@app.command()
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do; - reads it from stdin.")],
    model: Model = None,
    workspace: Workspace = None,
    tools: Tools = None,
    script: ScriptFile = None,
    confirm: Confirm = None,
    max_iterations: MaxIterations = None,
    max_budget: MaxBudget = None,
    deadline: Deadline = None,
    condenser: Condenser = None,
    mcp: Mcp = None,
    skills: SkillFolders = None,
    tags: Tags = None,
    secrets: Secrets = None,
    images: Images = None,
    id: Annotated[str | None, typer.Option(help="A UUID for the new conversation.")] = None,
    timeout: Timeout = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")] = False,
    output: Output = Format.text,
) -> None:
    """Run one conversation to the end of its first turn, and show it as it happens.

    It runs where PERDURE_STORE and TEMPORAL_ADDRESS say, else on the stack of `perdure dev`, else
    on one that this command starts for itself. ^C leaves the conversation, which goes on. Where
    the turn waits for you (to approve an action, or to resume) the exit code is 4.
    """
    wanted = Wanted(
        workspace=workspace,
        tools=tools,
        confirm=confirm,
        max_iterations=max_iterations,
        max_budget=max_budget,
        deadline=deadline,
        condenser=condenser,
        mcp=mcp,
        skills=skills,
        tags=tags,
        secrets=secrets,
    )
    asked = Asked(task, model, script, wanted, images or [], id, timeout, output)
    perform(_detached(asked) if detach else _run(asked), output)


async def _run(asked: Asked) -> int:
    message = _checked(asked)
    async with model_and_place(asked.script, asked.model) as (model, place):
        return await place.keep_up(_converse(asked, message, asked.wanted.spec(model), place))


def _checked(asked: Asked) -> Said:
    """The task, once all is known to be right that can be told before anything is started."""
    if asked.id is not None and not is_conversation_id(asked.id):
        raise Invalid(f"{asked.id!r} is not a UUID.", "Give one in lower case, or leave --id out.")
    asked.wanted.check()
    return message_of(asked.text, images_of(asked.images))


async def _converse(asked: Asked, message: Said, spec: Spec, place: Place) -> int:
    message_id = new_message_id()
    conversation = await _started(asked, message, spec, place, message_id)
    if asked.output is Format.jsonl:
        show_json({"conversation_id": conversation.id}, asked.output)
    introduce(conversation, place)
    try:
        state = await follow(conversation, message_id, -1, asked.output, asked.timeout)
    except asyncio.CancelledError:
        leave(conversation.id, place, asked.script)
        raise
    return conclude(conversation.id, state, asked.output)


async def _detached(asked: Asked) -> int:
    if asked.script is not None:
        raise Invalid(
            "A script is served by this command, which would be gone.",
            f"Have the worker play it: --model scripted:{asked.script.absolute()}",
        )
    message = _checked(asked)
    where = await place(model=asked.model)
    async with model_of(None, where.settings.model) as model:
        conversation = await _started(
            asked, message, asked.wanted.spec(model), where, new_message_id()
        )
    if asked.output is Format.text:
        show(conversation.id)
    else:
        show_json({"conversation_id": conversation.id}, asked.output)
    return OK


async def _started(
    asked: Asked, message: Said, spec: Spec, place: Place, message_id: str
) -> Conversation:
    client = await Client.connect(place.settings)
    conversation = client.conversation(asked.id or new_conversation_id())
    # Asked for a new id too: a store that cannot be used is better known before than after.
    if await conversation.exists():
        raise Conflict(
            f"There is a conversation {conversation.id} already.",
            f"Send it a message with `perdure send {conversation.id} TEXT`.",
        )
    await conversation.start(message.text, spec, message_id, message.images)
    return conversation
