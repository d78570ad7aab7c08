"""`perdure chat`: talk to an agent at the terminal."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import TypeAlias

from perdure.agent.spec import ModelSpec
from perdure.cli.chat_session import Chat, preserve_terminal_modes
from perdure.cli.declarations.conversations import Chat as Options
from perdure.cli.environment import connect_client, open_environment
from perdure.cli.follow import note_return, status_lines
from perdure.cli.model_check import check_models
from perdure.cli.options import AgentOptions
from perdure.cli.output import note, show
from perdure.cli.script_server import open_agent_and_environment, resolve_script_path
from perdure.client.ids import new_conversation_id
from perdure.errors import Conflict, Invalid, NotFound
from perdure.operations.error_reports import EXIT_OK, EXPECTED_ERRORS, report_error

PROMPT = "> "

QUIT_COMMANDS = ("/quit", "/exit")

SlashCommand: TypeAlias = Callable[[Chat, str], Awaitable[None]]


async def chat(options: Options) -> int:
    resumed = options.last or bool(options.resume)
    _check_options(options, resumed)
    with preserve_terminal_modes():
        return await (_resume_chat(options.resume) if resumed else _begin_chat(options))


def _check_options(options: Options, resumed: bool) -> None:
    """Raises Invalid for options that contradict each other."""
    if resumed and any(getattr(options, field.name) is not None for field in fields(AgentOptions)):
        raise Invalid(
            "A conversation keeps its agent when it is resumed.",
            "Leave the other options out; /model and `perdure configure` change it.",
        )


async def _begin_chat(options: Options) -> int:
    async with open_agent_and_environment(options) as (agent, environment):
        client = await connect_client(environment.settings)
        conversation = client.conversation(new_conversation_id())
        chat_session = Chat(conversation, agent, environment)
        return await environment.run_with_stack(_run_chat(chat_session, options.script))


async def _resume_chat(conversation_id: str | None) -> int:
    """Resume the conversation, by default the newest."""
    async with open_environment() as environment:
        client = await connect_client(environment.settings)
        conversation_id = conversation_id or next(iter(await client.list_conversations(1)), None)
        if conversation_id is None:
            raise NotFound("There are no conversations yet.", "Begin one with `perdure chat`.")
        conversation = client.conversation(conversation_id)
        chat_session = Chat(conversation, None, environment)
        return await environment.run_with_stack(_run_chat(chat_session, None))


async def _run_chat(chat_session: Chat, script: Path | None) -> int:
    """Run the chat until ^C or the end of its input, and return the exit code."""
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(_process_lines(chat_session))
    loop.add_signal_handler(signal.SIGINT, lambda: chat_session.handle_interrupt(work, loop.time()))
    try:
        await asyncio.wait({work})
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        abandoned = work.cancel() or work.cancelled()
    if chat_session.spec is None and (abandoned or chat_session.keyboard.interactive):
        note_return(chat_session.conversation.id, chat_session.environment, script)
    return EXIT_OK if abandoned else work.result()


async def _process_lines(chat_session: Chat) -> int:
    """Process lines up to the last, or `/quit`; return the exit code of the last turn."""
    if chat_session.spec is None:
        await chat_session.catch_up()
    while (line := await chat_session.keyboard.read_line(PROMPT)) is not None:
        text = line.strip()
        if text in QUIT_COMMANDS:
            break
        try:
            if text.startswith("/"):
                await _run_slash_command(chat_session, text)
            elif text:
                await chat_session.send(text)
        except EXPECTED_ERRORS as error:
            failure = report_error(error)
            note(f"{failure.message} {failure.hint}".rstrip(), "red")
            chat_session.exit_code = failure.exit_code
        if chat_session.keyboard.interactive:
            show("")
    return chat_session.exit_code


async def _run_slash_command(chat: Chat, text: str) -> None:
    """Run a slash command. Raises Invalid for an unknown one, and what the command raises."""
    name, _, rest = text.partition(" ")
    if name not in COMMANDS:
        raise Invalid(f"There is no {name}: /help lists what there is.")
    await COMMANDS[name](chat, rest.strip())


async def _help(_: Chat, __: str) -> None:
    """List the commands."""
    for name, command in COMMANDS.items():
        show(f"  {name:<12} {command.__doc__}")
    show(f"  {QUIT_COMMANDS[0]:<12} Leave; the conversation stays, and can be resumed.")
    show("  ^C           Interrupt the turn; twice, or at the prompt, leave.")


async def _status(chat: Chat, _: str) -> None:
    """Print the status and the cost of the conversation."""
    for line in status_lines(await _require_begun(chat).conversation.status()):
        show(f"  {line}")


async def _model(chat: Chat, name: str) -> None:
    """Have another model answer: /model NAME."""
    if not name:
        raise Invalid("Name a model: /model NAME.")
    model = ModelSpec(name=resolve_script_path(name))
    await check_models([model], chat.environment.settings)
    if chat.spec is not None:
        chat.spec = chat.spec.model_copy(update={"model": model})
    else:
        await chat.conversation.configure({"model": model.name})
    note(f"{name} answers from now on.")


async def _pause(chat: Chat, _: str) -> None:
    """Pause; messages are kept until /resume."""
    await _require_begun(chat).conversation.pause()
    note("A pause is asked for.")


async def _resume(chat: Chat, _: str) -> None:
    """Go on after a pause, an interrupt, an error or a limit."""
    await _require_begun(chat).conversation.resume()
    await chat.follow_turn()


async def _condense(chat: Chat, _: str) -> None:
    """Make what the model is shown smaller."""
    await _require_begun(chat).conversation.condense()
    note("It is condensed before the model is asked again.")


COMMANDS: dict[str, SlashCommand] = {
    "/help": _help,
    "/status": _status,
    "/model": _model,
    "/pause": _pause,
    "/resume": _resume,
    "/condense": _condense,
}


def _require_begun(chat: Chat) -> Chat:
    """Return the chat. Raises Conflict before its first message."""
    if chat.spec is not None:
        raise Conflict("The conversation begins with your first message.")
    return chat
