"""The walls that no secret's value passes: what is recorded, what Temporal is told, what is logged.

Every event, answer and blob is masked by the log that steps write to; every heartbeat and failure
by the worker's interceptor; every line of the worker's own log by its filter.
"""

import logging
import traceback
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_origin

from pydantic import BaseModel
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from agent.completion import Completion
from events.content import ImageContent
from events.control import ConversationStateUpdateEvent
from events.entry import Origin
from events.event import AnyEvent, UnknownEvent
from storage.cache import EntryCache
from storage.log import EventLog
from storage.store import Store
from tools.secrets.registry import Secrets

OUR_OWN = ("opened", "status", "confirmed", "workspace")
"""State that only we write, of ids and words of ours."""

PLACES = ("workspace", "tools", "analyzers", "skills")
"""What of a spec names things on the worker's machine: it finds nothing under another name."""

Thing = TypeVar("Thing")
Mask = Callable[[str], str]


def masked(thing: Thing, mask: Mask) -> Thing:
    """The thing with every text in it masked; the very same where that changes nothing.

    The bytes of an image are none of its texts.
    """
    found: Any = thing
    match thing:
        case str():
            found = mask(thing)
        case ImageContent():
            urls = [url if url.startswith("data:") else mask(url) for url in thing.image_urls]
            found = _with(thing, {"image_urls": tuple(urls)})
        case ConversationStateUpdateEvent(key=key) if key in OUR_OWN:
            pass
        case ConversationStateUpdateEvent(key="spec", value=dict() as value):
            kept = {name: value[name] for name in PLACES if name in value}
            found = _with(thing, {"value": _same(value, masked(value, mask) | kept)})
        case BaseModel():
            free = [name for name in type(thing).model_fields if not _is_fixed(thing, name)]
            parts = {name: masked(getattr(thing, name), mask) for name in free}
            found = _with(thing, parts | _signed(thing, parts))
        case dict():
            parts = {masked(key, mask): masked(value, mask) for key, value in thing.items()}
            found = _same(thing, parts)
        case list() | tuple():
            found = _same(thing, type(thing)(masked(part, mask) for part in thing))
    return found  # type: ignore[no-any-return]


def _with(thing: BaseModel, parts: dict[str, Any]) -> BaseModel:
    changes = {name: part for name, part in parts.items() if part is not getattr(thing, name)}
    return thing.model_copy(update=changes) if changes else thing


def _signed(thing: BaseModel, parts: dict[str, Any]) -> dict[str, Any]:
    """Of signed thoughts those that are as they were: others no provider takes back."""
    if "thinking_blocks" not in parts:
        return {}
    before = thing.thinking_blocks  # type: ignore[attr-defined]
    pairs = zip(parts["thinking_blocks"], before, strict=True)
    kept = tuple(now for now, then in pairs if now is then)
    return {"thinking_blocks": _same(before, kept)}


def _same(before: Any, after: Any) -> Any:
    return before if before == after else after


def _is_fixed(thing: BaseModel, name: str) -> bool:
    """Whether a field takes certain words only, which are ours."""
    return get_origin(type(thing).model_fields[name].annotation) is Literal


class MaskedLog(EventLog):
    """A log to which no value of a secret is written."""

    def __init__(
        self,
        store: Store,
        user_id: str,
        conversation_id: str,
        cache: EntryCache | None,
        secrets: Secrets,
    ) -> None:
        super().__init__(store, user_id, conversation_id, cache)
        self._secrets = secrets

    def _placed(self, event: AnyEvent, seq: int) -> AnyEvent:
        clean = event if isinstance(event, UnknownEvent) else masked(event, self._secrets.mask)
        return super()._placed(clean, seq)

    async def record(self, seq: int, completion: Completion, origin: Origin) -> Completion:
        return await super().record(seq, masked(completion, self._secrets.mask), origin)

    async def keep(self, body: bytes) -> str:
        return await super().keep(self._secrets.mask_bytes(body))


class MaskingInterceptor(Interceptor):
    """Masks what the steps of a worker tell Temporal; their results come from masked events."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next, self._secrets)


class _Inbound(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, secrets: Secrets) -> None:
        super().__init__(following)
        self._secrets = secrets

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_Outbound(outbound, self._secrets))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except Exception as error:
            if (told := masked_failure(error, self._secrets.mask)) is error:
                raise
            raise told from told.__cause__


class _Outbound(ActivityOutboundInterceptor):
    def __init__(self, following: ActivityOutboundInterceptor, secrets: Secrets) -> None:
        super().__init__(following)
        self._secrets = secrets

    def heartbeat(self, *details: Any) -> None:
        super().heartbeat(*masked(details, self._secrets.mask))


def masked_failure(error: BaseException, mask: Mask) -> BaseException:
    """The error, or one that says the same without the values it or what is behind it holds."""
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    because = masked_failure(behind, mask) if behind is not None else None
    words = error.message if isinstance(error, FailureError) else str(error)
    details = error.details if isinstance(error, ApplicationError) else ()
    said, kept = mask(words), masked(details, mask)
    if said == words and kept is details and because is behind:
        return error
    told = _failure(error, said, *kept).with_traceback(error.__traceback__)
    told.__cause__ = because
    return told


def _failure(error: BaseException, said: str, *details: Any) -> ApplicationError:
    if not isinstance(error, ApplicationError):
        return ApplicationError(said, *details, type=type(error).__name__)
    return ApplicationError(
        said,
        *details,
        type=error.type,
        non_retryable=error.non_retryable,
        next_retry_delay=error.next_retry_delay,
    )


class MaskingFilter(logging.Filter):
    """For a handler: what it writes holds no value, neither in words nor in a traceback."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        mask = self._secrets.mask
        record.msg, record.args = mask(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        record.exc_info = None
        record.exc_text = record.exc_text and mask(record.exc_text)
        record.stack_info = record.stack_info and mask(record.stack_info)
        return True
