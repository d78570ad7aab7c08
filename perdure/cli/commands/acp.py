"""`perdure acp`: conversations in an editor that talks the Agent Client Protocol."""

import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from perdure.acp.peer import Peer
from perdure.acp.server import serve
from perdure.acp.stdio import hold_stdout, read_lines, write_all
from perdure.agent.spec import Agent
from perdure.cli.declarations.gateway import Acp
from perdure.cli.environment import Environment, connect_client, find_environment
from perdure.cli.script_server import open_agent
from perdure.client.protocol import ConversationClient


class TerminalHost:
    """The conversations of the user of this machine; it connects when it is first asked to.

    So that an editor that starts before `perdure dev` need not be started again.
    """

    def __init__(self, options: Acp, stack: AsyncExitStack) -> None:
        self._options = options
        self._stack = stack
        self._environment: Environment | None = None
        self._client: ConversationClient | None = None

    async def connect(self) -> ConversationClient:
        if self._client is None:
            environment = await self._find_environment()
            self._client = await connect_client(environment.settings)
        return self._client

    async def build_agent(self, cwd: str) -> Agent:
        environment = await self._find_environment()
        options = self._options
        if self.is_local and options.workspace is None:
            options = replace(options, workspace=Path(cwd))
        return await self._stack.enter_async_context(open_agent(options, environment))

    @property
    def is_local(self) -> bool:
        return self._environment is not None and self._environment.stack_info is not None

    async def _find_environment(self) -> Environment:
        if self._environment is None:
            self._environment = await find_environment()
        return self._environment


async def acp(options: Acp) -> None:
    """Serve until the end of stdin; nothing but messages goes to stdout."""
    with hold_stdout() as out:
        async with AsyncExitStack() as stack:
            peer = Peer(partial(write_all, out))
            await serve(TerminalHost(options, stack), read_lines(sys.stdin.buffer), peer)
