"""`perdure chat`: talk to an agent at the terminal."""

import os
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from perdure.agent.spec import Agent
from perdure.cli.chat.attachments import Draft, draft_images
from perdure.cli.chat.chat import Chat
from perdure.cli.declarations.agent_fields import AgentOptions
from perdure.cli.declarations.conversations import Chat as Options
from perdure.cli.environment import Environment, connect_client, open_conversation, open_environment
from perdure.cli.script_server import open_agent_and_environment
from perdure.client.ids import new_conversation_id
from perdure.client.protocol import ConversationClient
from perdure.errors import Invalid, NotFound
from perdure.testing.replay import read_recorded_events


async def chat(options: Options) -> int:
    resumed = options.last or bool(options.resume)
    _check_options(options, resumed)
    attached = draft_images(options.images or [])
    with _hold_typeahead():
        if resumed:
            return await _resume_chat(options.resume, attached)
        return await _begin_chat(options, attached)


@contextmanager
def _hold_typeahead() -> Iterator[None]:
    """Keep what is typed while the chat starts for its input line, unchanged and not echoed.

    The terminal's modes are restored at the end, whatever happened in between.
    """
    if not _is_full_terminal():
        yield
        return
    modes = termios.tcgetattr(sys.stdin)
    quiet = [*modes]
    quiet[0] &= ~termios.ICRNL  # Enter stays distinct from Ctrl-J
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def _check_options(options: Options, resumed: bool) -> None:
    """Raises Invalid for options that contradict each other."""
    if resumed and options.replay is not None:
        raise Invalid("A recording is replayed from the beginning.", "Leave --replay out.")
    if resumed and any(getattr(options, field.name) is not None for field in fields(AgentOptions)):
        raise Invalid(
            "A conversation keeps its agent when it is resumed.",
            "Leave the other options out; /model and `perdure configure` change it.",
        )


async def _begin_chat(options: Options, attached: Draft) -> int:
    replay = None if options.replay is None else read_recorded_events(options.replay)
    async with open_agent_and_environment(options) as (agent, environment):
        client, name = await connect_client(environment.settings), new_conversation_id()
        return await _run_chat(client, name, environment, attached, agent, options.script, replay)


async def _resume_chat(conversation_id: str | None, attached: Draft) -> int:
    """Resume the conversation, by default the newest."""
    async with open_environment() as environment:
        client = await connect_client(environment.settings)
        name = conversation_id or next(iter(await client.list_conversations(1)), None)
        if name is None:
            raise NotFound("There are no conversations yet.", "Begin one with `perdure chat`.")
        return await _run_chat(client, name, environment, attached)


async def _run_chat(
    client: ConversationClient,
    name: str,
    environment: Environment,
    attached: Draft,
    agent: Agent | None = None,
    script: Path | None = None,
    replay: Sequence[Mapping[str, Any]] | None = None,
) -> int:
    conversation = open_conversation(client, name)
    front_end = _select_front_end()
    session = front_end(client, conversation, environment, agent, script, attached, replay)
    return await environment.run_with_stack(session.run())


def _select_front_end() -> type[Chat]:
    """Select the chat for a terminal that can move its cursor, or the one for lines."""
    if _is_full_terminal():
        from perdure.cli.chat.terminal import TerminalChat  # imports prompt_toolkit

        return TerminalChat
    from perdure.cli.chat.lines import LineChat

    return LineChat


def _is_full_terminal() -> bool:
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") != "dumb"
