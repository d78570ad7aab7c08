"""The slash commands of `perdure chat`: `/help` and so on."""

from collections.abc import Awaitable, Callable

from perdure.agent.spec import ModelSpec
from perdure.cli.chat_session import Chat
from perdure.cli.output import note, show
from perdure.cli.rendering.status_view import status_lines
from perdure.cli.script_server import resolve_script_path
from perdure.errors import Conflict, Invalid

SlashCommand = Callable[[Chat, str], Awaitable[None]]

QUIT_COMMANDS = ("/quit", "/exit")


async def run_slash_command(chat: Chat, text: str) -> None:
    """Run a slash command. Raises Invalid for an unknown one, and what the command raises."""
    name, _, rest = text.partition(" ")
    if name not in COMMANDS:
        raise Invalid(f"There is no {name}: /help lists what there is.")
    await COMMANDS[name](chat, rest.strip())


async def _help(_: Chat, __: str) -> None:
    """This list."""
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
    if chat.spec is not None:
        model = ModelSpec(name=resolve_script_path(name))
        chat.spec = chat.spec.model_copy(update={"model": model})
    else:
        await chat.conversation.configure({"model": resolve_script_path(name)})
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
