"""What can be asked of a chat besides talking to the agent: `/help` and so on."""

from collections.abc import Awaitable, Callable

from agent.spec import ModelSpec
from cli.chatting import Chat
from cli.output import note, show
from cli.script import findable
from cli.standing import lines_of
from client.errors import Conflict, Invalid

Command = Callable[[Chat, str], Awaitable[None]]

QUIT = ("/quit", "/exit")


async def obey(chat: Chat, text: str) -> None:
    """Raises Invalid where there is no such command, and what the command raises."""
    name, _, rest = text.partition(" ")
    if name not in COMMANDS:
        raise Invalid(f"There is no {name}: /help lists what there is.")
    await COMMANDS[name](chat, rest.strip())


async def _help(_: Chat, __: str) -> None:
    """This list."""
    for name, command in COMMANDS.items():
        show(f"  {name:<12} {command.__doc__}")
    show(f"  {QUIT[0]:<12} Leave; the conversation stays, and can be resumed.")
    show("  ^C           Interrupt the turn; twice, or at the prompt, leave.")


async def _status(chat: Chat, _: str) -> None:
    """Where the conversation stands, and what it has cost."""
    for line in lines_of(await _begun(chat).conversation.status()):
        show(f"  {line}")


async def _model(chat: Chat, name: str) -> None:
    """Have another model answer: /model NAME."""
    if not name:
        raise Invalid("Name a model: /model NAME.")
    if chat.spec is not None:
        model = ModelSpec(name=findable(name))
        chat.spec = chat.spec.model_copy(update={"model": model})
    else:
        await chat.conversation.configure({"model": findable(name)})
    note(f"{name} answers from now on.")


async def _pause(chat: Chat, _: str) -> None:
    """Pause; messages are kept until /resume."""
    await _begun(chat).conversation.pause()
    note("A pause is asked for.")


async def _resume(chat: Chat, _: str) -> None:
    """Go on after a pause, an interrupt, an error or a limit."""
    await _begun(chat).conversation.resume()
    await chat.turn()


async def _condense(chat: Chat, _: str) -> None:
    """Make what the model is shown smaller."""
    await _begun(chat).conversation.condense()
    note("It is condensed before the model is asked again.")


COMMANDS: dict[str, Command] = {
    "/help": _help,
    "/status": _status,
    "/model": _model,
    "/pause": _pause,
    "/resume": _resume,
    "/condense": _condense,
}


def _begun(chat: Chat) -> Chat:
    """Raises Conflict where nothing has been said yet."""
    if chat.spec is not None:
        raise Conflict("The conversation begins with your first message.")
    return chat
