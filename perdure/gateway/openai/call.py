"""A request, who has sent it, and the conversation that it addresses."""

import hashlib
import json
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from perdure.api.keys import Scope
from perdure.client.conversation import Conversation
from perdure.gateway.callers import Caller, address, admit, authenticate, find_gateway
from perdure.gateway.gateway import Gateway
from perdure.gateway.openai.errors import BadRequest
from perdure.gateway.turns.turns import TurnKey
from perdure.storage.foreign.openai_objects import OpenAiObjects

BodyT = TypeVar("BodyT", bound=BaseModel)

MAX_KEY_CHARS = 255


@dataclass(frozen=True)
class Call:
    """A request and its caller."""

    request: Request
    caller: Caller

    @property
    def gateway(self) -> Gateway:
        return self.caller.gateway

    @property
    def user_id(self) -> str:
        return self.caller.client.user_id

    @property
    def objects(self) -> OpenAiObjects:
        return OpenAiObjects(self.gateway.store, self.user_id)

    async def address(self, conversation_id: str) -> Conversation:
        """Return a conversation of the caller's, existing or not. Raises NotFound if hidden."""
        return (await address(self.caller, conversation_id, None)).conversation

    async def parse(self, model: type[BodyT]) -> BodyT:
        """Parse the body. Raises BadRequest, ValidationError."""
        try:
            fields = json.loads(await self.request.body() or b"{}")
            json.dumps(fields, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise BadRequest("The body cannot be read: send JSON in UTF-8.") from None
        return model.model_validate(fields)

    def turn_key(self, conversation_id: str, seq: int) -> TurnKey:
        return TurnKey(self.user_id, conversation_id, seq)


async def open_call(request: Request, scope: Scope) -> Call:
    """Find out who has sent a request, and count it. Raises Refused."""
    gateway = find_gateway(request)
    return Call(request, admit(gateway, await authenticate(request), scope))


@dataclass(frozen=True)
class RequestKey:
    """The key by which two requests are the same one.

    `is_named` says that the client has named it; `is_repeat` that it sends it again by itself.
    """

    text: str
    is_named: bool
    is_repeat: bool


async def identify_request(request: Request) -> RequestKey:
    """Identify a request by its `Idempotency-Key`, or by its address and its body."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MAX_KEY_CHARS:
        raise BadRequest(f"An Idempotency-Key has 1 to {MAX_KEY_CHARS} characters.")
    count = request.headers.get("x-stainless-retry-count", "0")
    is_repeat = count.isdecimal() and int(count) > 0
    if key is not None:
        return RequestKey(f"key\0{request.url.path}\0{key}", True, is_repeat)
    names = ("x-conversation-id", "x-perdure-task")
    headers = "\0".join(request.headers.get(name, "") for name in names)
    digest = hashlib.sha256(await request.body()).hexdigest()
    return RequestKey(f"body\0{request.url.path}\0{headers}\0{digest}", False, is_repeat)
