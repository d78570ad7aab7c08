"""The slash commands of a chat: each has a name, what follows it, and a function."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from perdure.cli.chat import slash_control as control
from perdure.cli.chat import slash_views as views
from perdure.cli.chat.chat import Chat
from perdure.cli.output import show
from perdure.errors import Invalid

SlashCommand: TypeAlias = Callable[[Chat, str], Awaitable[None]]

KEYS = {
    "Enter": "Send; the agent sees it at its next step.",
    "Alt-Enter, Ctrl-J": "A new line; so does Enter after a backslash.",
    "^C": "Interrupt the turn, or clear the line; twice, leave.",
    "^D": "Leave; a running turn continues.",
    "Ctrl-O": "Show the last folded result in full.",
    "Ctrl-R, Up": "Find earlier input, also that of other sessions.",
    "Ctrl-X Ctrl-E": "Write in $EDITOR.",
    "@path": "A file of the workspace; any other is sent in full.",
}


async def show_help(_: Chat, __: str) -> None:
    """List the commands and keys."""
    for name, (argument, command) in COMMANDS.items():
        show(f"  {f'{name} {argument}'.rstrip():<22} {command.__doc__}")
    show("")
    for key, use in KEYS.items():
        show(f"  {key:<22} {use}")


COMMANDS: dict[str, tuple[str, SlashCommand]] = {
    "/help": ("", show_help),
    "/status": ("", views.status),
    "/cost": ("", views.cost),
    "/tools": ("", views.tools),
    "/show": ("[SEQ]", views.show_event),
    "/diff": ("[last]", views.diff),
    "/copy": ("", views.copy),
    "/export": ("[FORMAT] [PATH]", views.export),
    "/model": ("[NAME]", control.model),
    "/confirm": ("[POLICY]", control.confirm),
    "/edit": ("", control.edit),
    "/undo": ("", control.undo),
    "/fork": ("[SEQ]", control.fork),
    "/pause": ("", control.pause),
    "/resume": ("[ID|NUMBER]", control.resume),
    "/compact": ("", control.compact),
    "/detach": ("", control.leave),
    "/quit": ("", control.leave),
    "/exit": ("", control.exit_chat),
}

ALIASES = {"/condense": "/compact"}


async def run_slash_command(chat: Chat, text: str) -> None:
    """Run a slash command. Raises Invalid for an unknown one, and what the command raises."""
    name, _, rest = text.partition(" ")
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        raise Invalid(f"There is no {name}: /help lists what there is.")
    await COMMANDS[name][1](chat, rest.strip())
