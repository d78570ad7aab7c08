"""Finding who asks, and the conversation of a path."""

from typing import cast
from uuid import UUID

from starlette.requests import HTTPConnection, Request

from perdure.api.keys import Scope
from perdure.gateway.callers import Caller, address, admit, authenticate, find_gateway
from perdure.gateway.openhands.answers import BadRequest
from perdure.gateway.openhands.conversation import Call, OpenHandsDoor
from perdure.storage.log.event_log import EventLog


def find_door(connection: HTTPConnection) -> OpenHandsDoor:
    return cast(OpenHandsDoor, connection.app.state.door)


async def find_caller(connection: HTTPConnection, scope: Scope) -> Caller:
    """Return who asks. Raises Refused."""
    return admit(find_gateway(connection), await authenticate(connection), scope)


def parse_id(connection: HTTPConnection) -> str:
    """Return the id of the conversation in the path. Raises BadRequest if it is no UUID."""
    text = connection.path_params["conversation_id"]
    try:
        return str(UUID(text))
    except ValueError:
        problem = {"type": "uuid_parsing", "loc": ["path", "conversation_id"]}
        raise BadRequest([{**problem, "msg": "Input should be a valid UUID"}]) from None


async def find_call(connection: HTTPConnection, scope: Scope) -> Call:
    """Return the conversation of the path. Raises BadRequest, Refused, and NotFound."""
    caller = await find_caller(connection, scope)
    return await make_call(connection, caller, parse_id(connection))


async def make_call(connection: HTTPConnection, caller: Caller, conversation_id: str) -> Call:
    """Return a conversation by its id. Raises NotFound if there is none."""
    door, to = find_door(connection), await address(caller, conversation_id, None)
    log = to.conversation.log
    assert isinstance(log, EventLog), "it is the user's own"
    if not await log.exists():
        await to.conversation.status()  # raises NotFound where there is no workflow either
    return Call(door, to, await door.record(log))


def hint(request: Request, call: Call) -> None:
    """Say that the conversation has just been asked for something."""
    find_gateway(request).followers.hint(*call.key)
