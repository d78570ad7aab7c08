"""One answer to one question, for scripts and notebooks."""

import atexit
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Unpack

from anyio.from_thread import start_blocking_portal

from perdure.agent.spec import Agent, AgentFields, ModelSpec
from perdure.client.discovery import NoServers
from perdure.client.saved import wait_until_saved
from perdure.client.sync import SyncClient, SyncConversation, wait_for
from perdure.client.turn import TurnFailed, TurnResult
from perdure.embedded.discovery import find_stack
from perdure.embedded.stack import Stack
from perdure.settings.settings import Settings, load_settings

logger = logging.getLogger("perdure.run")

_STARTING = Lock()


def run(
    text: str,
    agent: Agent | Mapping[str, Any] | str | None = None,
    /,
    *,
    model: ModelSpec | str | None = None,
    settings: Settings | None = None,
    **fields: Unpack[AgentFields],
) -> TurnResult:
    """Start a conversation with a message, and wait for the end of its first turn.

    The agent is given as such, by its name as in `Client.start`, or by its fields: `run("What is
    2 + 3?", model="openai/gpt-5")`. It works within a running event loop as well. Where no server
    is set and none runs on this machine, a stack of its own is started, which ends with the
    process. Raises what `Client.connect`, `Client.start` and `Conversation.result` raise, and
    MissingExtra.
    """
    if agent is None:
        model = model or (settings or load_settings()).model
        agent = Agent(model=model, **fields) if model else Agent(**fields)
    with _connect(settings) as client:
        conversation = client.start(text, agent)
        try:
            result = conversation.result()
        except TurnFailed:
            _wait_until_saved(conversation)
            raise
        _wait_until_saved(conversation)
        return result


def _wait_until_saved(conversation: SyncConversation) -> None:
    """Wait for what a worker saves at the end of a turn: a stack of our own ends with us."""
    length, log = len(conversation.event_log), conversation.wrapped.log
    wait_for(conversation.portal, lambda: wait_until_saved(log, length))


def _connect(settings: Settings | None) -> SyncClient:
    try:
        return SyncClient(settings)
    except NoServers:
        _start_stack(load_settings().data)
        return SyncClient(settings)


def _start_stack(folder: Path) -> None:
    """Start a stack that ends with this process, unless another thread has started one."""
    with _STARTING, ExitStack() as exit_stack:
        portal = exit_stack.enter_context(start_blocking_portal(name="perdure stack"))
        if wait_for(portal, partial(find_stack, folder)) is not None:
            return
        logger.info("No stack is set or running: starting one for this process ...")
        stack = wait_for(portal, partial(Stack.start, folder))
        exit_stack.callback(wait_for, portal, stack.stop)
        atexit.register(exit_stack.pop_all().close)
