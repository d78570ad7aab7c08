"""`perdure chat`: a conversation at the terminal."""

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.agents import (
    Condenser,
    Confirm,
    Deadline,
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
from cli.chatting import Chat
from cli.failures import FORESEEN, OK, failure_of
from cli.keyboard import Keyboard, terminal_as_it_was
from cli.leaving import leave
from cli.output import Format, note, show
from cli.performing import command_app, perform
from cli.script import model_and_place
from cli.slash import QUIT, obey
from cli.stack import Place, place_to_run
from client.client import Client
from client.errors import Invalid, NotFound
from client.ids import new_conversation_id

PROMPT = "> "

app = command_app()


@dataclass(frozen=True)
class Asked:
    """What the command line says; `resume` is an id, or empty for the newest conversation."""

    model: str | None
    script: Path | None
    wanted: Wanted
    resume: str | None

    def check(self) -> None:
        """Raises Invalid."""
        self.wanted.check()
        if self.resume is not None and (self.model or self.script or self.wanted != Wanted()):
            raise Invalid(
                "A conversation keeps its agent when it is resumed.",
                "Leave the other options out; /model and `perdure configure` change it.",
            )


@app.command()
def chat(
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this conversation.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Go on with the newest one.")] = False,
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
) -> None:
    """Talk to an agent at the terminal.

    Each line is a message, and /help lists what else can be asked for. ^C interrupts the turn;
    twice, or at the prompt, it leaves the conversation, which goes on. Where stdin is no terminal,
    its lines are the messages, and the exit code is that of the last turn.
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
    asked = Asked(model, script, wanted, resume or ("" if last else None))
    with terminal_as_it_was():
        perform(_chat(asked), Format.text)


async def _chat(asked: Asked) -> int:
    asked.check()
    if asked.resume is not None:
        async with place_to_run() as place:
            return await place.keep_up(_resumed(asked, place))
    async with model_and_place(asked.script, asked.model) as (model, place):
        client = await Client.connect(place.settings)
        conversation = client.conversation(new_conversation_id())
        talk = Chat(conversation, asked.wanted.spec(model), place, Keyboard())
        return await place.keep_up(_talk(talk, asked.script))


async def _resumed(asked: Asked, place: Place) -> int:
    client = await Client.connect(place.settings)
    name = asked.resume or next(iter(await client.conversations(1)), None)
    if name is None:
        raise NotFound("There are no conversations yet.", "Begin one with `perdure chat`.")
    return await _talk(Chat(client.conversation(name), None, place, Keyboard()), None)


async def _talk(talk: Chat, script: Path | None) -> int:
    """Until it is left by ^C, or has no more to say."""
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(_converse(talk))
    loop.add_signal_handler(signal.SIGINT, lambda: talk.pressed(work, loop.time()))
    try:
        await asyncio.wait({work})
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        left = work.cancel() or work.cancelled()
    if talk.spec is None and (left or talk.keyboard.person):
        leave(talk.conversation.id, talk.place, script)
    return OK if left else work.result()


async def _converse(talk: Chat) -> int:
    """Until the last line, or `/quit`; the exit code of the last turn."""
    if talk.spec is None:
        await talk.catch_up()
    while (line := await talk.keyboard.line(PROMPT)) is not None:
        text = line.strip()
        if text in QUIT:
            break
        try:
            if text.startswith("/"):
                await obey(talk, text)
            elif text:
                await talk.say(text)
        except FORESEEN as error:
            failure = failure_of(error)
            note(f"{failure.message} {failure.hint}".rstrip(), "red")
            talk.code = failure.exit_code
        if talk.keyboard.person:
            show("")
    return talk.code
