"""A server of the Model Context Protocol whose tools are conversations.

A call lasts 50 seconds at most, as its callers give up at 60: a turn is waited for by several.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from importlib.metadata import version
from time import monotonic
from typing import Annotated, Any, Literal, ParamSpec, Protocol, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from perdure.api.keys import Scope
from perdure.client.ids import derive_conversation_id, new_conversation_id, new_message_id
from perdure.client.protocol import ConversationClient, ConversationHandle
from perdure.errors import ClientError, NotFound, Unreachable
from perdure.events.event import dump_event
from perdure.gateway.mcp.caller_span import link_to_caller
from perdure.gateway.mcp.make_tool import make_tool
from perdure.gateway.mcp.standing import Standing, read_standing
from perdure.storage.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

INSTRUCTIONS = """\
Conversations with agents that cannot be lost: they go on when nobody is connected. Start one \
with `start_conversation`, then call `wait` until its status is not `running`; `hint` says what to \
do next. The same `request_id` again starts or sends nothing a second time."""

MAX_WAIT = 50.0
PROGRESS_SECONDS = 5.0
BEGIN_INTERVAL = 0.2
"""Seconds between two looks whether a conversation has begun."""

READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
CHANGING = ToolAnnotations(destructive_hint=False, open_world_hint=True)

Seconds = Annotated[float, Field(ge=0, le=MAX_WAIT, description="Seconds to wait, 50 at most.")]
RequestId = Annotated[
    str | None,
    Field(pattern=r"^[ !#-\[\]-~]{1,128}$", description="A name of the request: it is done once."),
]
ConversationId = Annotated[str, Field(description="The id of the conversation, a UUID.")]


class Host(Protocol):
    """The place of the conversations, which knows who asks for them."""

    def client(self, context: Context[Any], scope: Scope) -> ConversationClient:
        """Return the client of who asks. Raises an error if it may not."""
        ...

    async def start(
        self,
        context: Context[Any],
        task: str,
        agent: str | None,
        conversation_id: str,
        message_id: str,
    ) -> ConversationHandle:
        """Start a conversation with an agent by its name, or with the default one."""
        ...


class Events(BaseModel):
    """Events of a conversation; there is more if `has_more` says so."""

    events: list[dict[str, Any]]
    last_seq: int
    has_more: bool


class ListedConversation(BaseModel):
    """A conversation in a list."""

    conversation_id: str
    status: str
    title: str | None
    agent: str | None


class Conversations(BaseModel):
    """A page of the list; `next_cursor` asks for the following one."""

    conversations: list[ListedConversation]
    next_cursor: str | None


def explain_errors(work: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Have the expected errors of a tool told as a result with a sentence."""

    @wraps(work)
    async def explained(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(*args, **kwargs)
        except ClientError as error:
            again = "Call it again." if isinstance(error, Unreachable) else ""
            hint = getattr(error, "hint", "") or again
            raise ToolError(f"{error} {hint}".strip()) from error
        except StoreError as error:
            raise ToolError("The store does not answer as it should: ask again.") from error

    return explained


class ConversationTools:
    """The tools, for a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @explain_errors
    async def start_conversation(
        self,
        context: Context[Any],
        task: str,
        agent: str | None = None,
        request_id: RequestId = None,
        wait_seconds: Seconds = 0.0,
    ) -> Standing:
        """Start a conversation with an agent, by its name if there are several."""
        user_id = self._host.client(context, "write").user_id
        name, message_id = new_conversation_id(), request_id or new_message_id()
        if request_id is not None:
            name = derive_conversation_id(user_id, request_id)
        conversation = await self._host.start(context, task, agent, name, message_id)
        return await self._wait(context, conversation, wait_seconds, message_id)

    @explain_errors
    async def send_message(
        self,
        context: Context[Any],
        conversation_id: ConversationId,
        text: str,
        request_id: RequestId = None,
        wait_seconds: Seconds = 0.0,
    ) -> Standing:
        """Send a message to a conversation, which goes on with it; a closed one is opened again."""
        conversation = self._host.client(context, "write").conversation(conversation_id)
        message_id = request_id or new_message_id()
        await conversation.submit(text, message_id, reopen=True)
        return await self._wait(context, conversation, wait_seconds, message_id)

    @explain_errors
    async def wait(
        self, context: Context[Any], conversation_id: ConversationId, seconds: Seconds = 30.0
    ) -> Standing:
        """Wait for the end of the agent's turn, or for calls that wait for a person."""
        conversation = self._host.client(context, "read").conversation(conversation_id)
        return await self._wait(context, conversation, seconds)

    @explain_errors
    async def respond(
        self,
        context: Context[Any],
        conversation_id: ConversationId,
        accept: bool,
        call_ids: list[str] | None = None,
        reason: str = "",
    ) -> Standing:
        """Accept or reject calls that wait for a person: those of `call_ids`, or all of them."""
        conversation = self._host.client(context, "write").conversation(conversation_id)
        if not call_ids:
            call_ids = [call.call_id for call in (await read_standing(conversation)).pending]
        await conversation.respond(accept, call_ids, reason=reason)
        return await read_standing(conversation)

    @explain_errors
    async def control(
        self,
        context: Context[Any],
        conversation_id: ConversationId,
        action: Literal["pause", "resume", "interrupt"],
    ) -> Standing:
        """Pause between two steps, go on, or stop what is at work."""
        conversation = self._host.client(context, "write").conversation(conversation_id)
        acts = {
            "pause": conversation.pause,
            "resume": conversation.resume,
            "interrupt": conversation.interrupt,
        }
        await acts[action]()
        return await read_standing(conversation)

    @explain_errors
    async def get_events(
        self,
        context: Context[Any],
        conversation_id: ConversationId,
        after_seq: Annotated[int, Field(ge=-1)] = -1,
        limit: Annotated[int, Field(ge=1, le=100)] = 50,
    ) -> Events:
        """Read the events of a conversation after a slot, each with its `seq`."""
        conversation = self._host.client(context, "read").conversation(conversation_id)
        await conversation.status()  # raises NotFound
        entries = await conversation.log.read(after_seq + 1, limit)
        last = entries[-1].seq if entries else after_seq
        shown = [{"seq": entry.seq, **dump_event(entry.event)} for entry in entries]
        return Events(events=shown, last_seq=last, has_more=last + 1 < await conversation.log.end())

    @explain_errors
    async def list_conversations(
        self,
        context: Context[Any],
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        cursor: str | None = None,
    ) -> Conversations:
        """List conversations, the last at work first."""
        page = await self._host.client(context, "read").find_conversations(limit, cursor)
        items = [
            ListedConversation(
                conversation_id=item.id,
                status=item.status.status,
                title=item.status.title,
                agent=item.status.agent,
            )
            for item in page.items
        ]
        return Conversations(conversations=items, next_cursor=page.next_cursor)

    async def _wait(
        self,
        context: Context[Any],
        conversation: ConversationHandle,
        seconds: float,
        message_id: str | None = None,
    ) -> Standing:
        """Wait for the end of the turn, that of a message, but not longer than so many seconds."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with _telling_progress(context, seconds), asyncio.timeout(seconds):
                    await _wait_until_begun(conversation)
                    await conversation.wait_for_turn(message_id)
        return await read_standing(conversation)


async def _wait_until_begun(conversation: ConversationHandle) -> None:
    """Wait until a worker has taken a conversation up. Raises NotFound if there is none."""
    while await conversation.log.end() == 0:
        if not await conversation.exists():
            raise NotFound.for_conversation(conversation.id)
        await asyncio.sleep(BEGIN_INTERVAL)


@asynccontextmanager
async def _telling_progress(context: Context[Any], seconds: float) -> AsyncIterator[None]:
    """Tell the caller every few seconds that it is waited for, while inside."""
    began = monotonic()

    async def tell() -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            await context.report_progress(monotonic() - began, seconds, "The agent is at work.")

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()


def build_server(host: Host) -> MCPServer[Any]:
    """Build the server, with the tools and a resource for each conversation."""
    tools = ConversationTools(host)
    annotations: dict[Callable[..., Any], ToolAnnotations] = {
        tools.start_conversation: CHANGING,
        tools.send_message: CHANGING,
        tools.wait: READ_ONLY,
        tools.respond: CHANGING,
        tools.control: CHANGING,
        tools.get_events: READ_ONLY,
        tools.list_conversations: READ_ONLY,
    }
    server: MCPServer[Any] = MCPServer(
        "perdure",
        tools=[make_tool(tool, hints) for tool, hints in annotations.items()],
        instructions=INSTRUCTIONS,
        version=version("perdure"),
        middleware=[link_to_caller],
        log_level="WARNING",
    )

    @server.resource(
        "perdure://conversations/{conversation_id}",
        name="conversation",
        description="Where a conversation stands, as JSON.",
        mime_type="application/json",
    )
    async def conversation(conversation_id: str, context: Context[Any]) -> str:
        handle = host.client(context, "read").conversation(conversation_id)
        return (await read_standing(handle)).model_dump_json()

    return server
