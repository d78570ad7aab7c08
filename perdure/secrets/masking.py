"""Masking of secrets in every value that leaves a worker.

Events, answers and blobs are masked by the conversation's log; heartbeats and failures by the
worker's interceptor; lines of the worker's own log by its filter.
"""

import logging
import traceback
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_origin

from pydantic import BaseModel
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)
from typing_extensions import override

from perdure.agent.calls.completion import Completion
from perdure.events.content import ImageContent
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.secrets.registry import Secrets
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store

UNMASKED_KEYS = ("opened", "status", "confirmed", "workspace")
"""Keys of state updates that hold only our own ids and words."""

UNMASKED_SPEC_FIELDS = ("workspace", "tools", "analyzers", "skills")
"""Fields of a spec that name values on the worker's machine, and must not be altered."""

OWN_IMAGES = ("data:", "blobs/")
"""The beginnings of addresses that hold an image, or the hash of one."""

MAX_TYPES = 256
"""Types of values whose fields are remembered; users' types are made anew with their modules."""

FAILURE_OPTIONS = ("type", "non_retryable", "next_retry_delay")

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
Mask = Callable[[str], str]


def mask_model(value: Model, secrets: Secrets) -> Model:
    """Mask all text in a model as `mask_value` does, if one search finds any secret in it."""
    texts: list[str] = []
    _collect_texts(value, texts)
    joined = "\0".join(texts)  # no secret has a NUL, so none spans two texts
    if not secrets.names_in(joined.encode(errors="surrogatepass")):
        return value
    return mask_value(value, secrets.mask)


def _collect_texts(value: Any, texts: list[str]) -> None:
    """Collect every text that `mask_value` may mask, and some that it does not."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, ImageContent):
        texts += [url for url in value.image_urls if not url.startswith(OWN_IMAGES)]
    elif isinstance(value, BaseModel):
        for field in vars(value).values():
            _collect_texts(field, texts)
    elif isinstance(value, dict):
        for name, field in value.items():
            _collect_texts(name, texts)
            _collect_texts(field, texts)
    elif isinstance(value, list | tuple):
        for part in value:
            _collect_texts(part, texts)


def mask_value(value: T, mask: Mask) -> T:
    """Mask all text in a value, not images' bytes; return the same object if nothing changes."""
    masked: Any = value
    match value:
        case str():
            masked = mask(value)
        case ImageContent():
            urls = [url if url.startswith(OWN_IMAGES) else mask(url) for url in value.image_urls]
            masked = _copy_changed(value, {"image_urls": tuple(urls)})
        case ConversationStateUpdateEvent(key=key) if key in UNMASKED_KEYS:
            pass
        case ConversationStateUpdateEvent(key="spec", value=dict() as spec):
            unmasked = {name: spec[name] for name in UNMASKED_SPEC_FIELDS if name in spec}
            after = _reuse_if_equal(spec, mask_value(spec, mask) | unmasked)
            masked = _copy_changed(value, {"value": after})
        case BaseModel():
            names = _list_open_fields(type(value))
            parts = {name: mask_value(getattr(value, name), mask) for name in names}
            masked = _copy_changed(value, parts | _unchanged_thoughts(value, parts))
        case dict():
            parts = {mask_value(key, mask): mask_value(item, mask) for key, item in value.items()}
            masked = _reuse_if_equal(value, parts)
        case list() | tuple():
            masked = _reuse_if_equal(value, type(value)(mask_value(part, mask) for part in value))
    return masked  # type: ignore[no-any-return]


@lru_cache(MAX_TYPES)
def _list_open_fields(model: type[BaseModel]) -> list[str]:
    """List the fields of a model that may hold any text: a Literal holds certain words of ours."""
    fields = model.model_fields.items()
    return [name for name, field in fields if get_origin(field.annotation) is not Literal]


def _copy_changed(value: BaseModel, parts: dict[str, Any]) -> BaseModel:
    changes = {name: part for name, part in parts.items() if part is not getattr(value, name)}
    return value.model_copy(update=changes) if changes else value


def _unchanged_thoughts(value: BaseModel, parts: dict[str, Any]) -> dict[str, Any]:
    """Keep only the signed thoughts without a secret, as providers refuse altered ones."""
    if "thinking_blocks" not in parts:
        return {}
    before = value.thinking_blocks  # type: ignore[attr-defined]
    pairs = zip(parts["thinking_blocks"], before, strict=True)
    unchanged = tuple(now for now, then in pairs if now is then)
    return {"thinking_blocks": _reuse_if_equal(before, unchanged)}


def _reuse_if_equal(before: Any, after: Any) -> Any:
    return before if before == after else after


class MaskedLog(EventLog):
    """A log that masks what is written to it."""

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

    @override
    def _with_id(self, event: AnyEvent, seq: int) -> AnyEvent:
        if self._secrets.has_values() and not isinstance(event, UnknownEvent):
            event = mask_model(event, self._secrets)
        return super()._with_id(event, seq)

    @override
    async def record_response(self, seq: int, completion: Completion, origin: Origin) -> Completion:
        if self._secrets.has_values():
            completion = mask_model(completion, self._secrets)
        return await super().record_response(seq, completion, origin)

    @override
    async def store_blob(self, body: bytes) -> str:
        return await super().store_blob(self._secrets.mask_bytes(body))


class MaskingInterceptor(Interceptor):
    """Masks heartbeats and failures of activities; results come from masked events.

    `find_secrets` returns those of the user whose activity runs.
    """

    def __init__(self, find_secrets: Callable[[], Secrets]) -> None:
        self._find_secrets = find_secrets

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next, self._find_secrets)


class _Inbound(ActivityInboundInterceptor):
    def __init__(
        self, following: ActivityInboundInterceptor, find_secrets: Callable[[], Secrets]
    ) -> None:
        super().__init__(following)
        self._find_secrets = find_secrets

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_Outbound(outbound, self._find_secrets))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except Exception as error:
            if (masked := mask_failure(error, self._find_secrets().mask)) is error:
                raise
            raise masked from masked.__cause__


class _Outbound(ActivityOutboundInterceptor):
    def __init__(
        self, following: ActivityOutboundInterceptor, find_secrets: Callable[[], Secrets]
    ) -> None:
        super().__init__(following)
        self._find_secrets = find_secrets

    def heartbeat(self, *details: Any) -> None:
        super().heartbeat(*mask_value(details, self._find_secrets().mask))


def mask_failure(error: BaseException, mask: Mask) -> BaseException:
    """Mask the secrets in an error and its causes; return the same error if there are none."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    masked_cause = mask_failure(cause, mask) if cause is not None else None
    text = error.message if isinstance(error, FailureError) else str(error)
    details = error.details if isinstance(error, ApplicationError) else ()
    masked_text, masked_details = mask(text), mask_value(details, mask)
    if masked_text == text and masked_details is details and masked_cause is cause:
        return error
    options: dict[str, Any] = {"type": type(error).__name__}
    if isinstance(error, ApplicationError):
        options = {name: getattr(error, name) for name in FAILURE_OPTIONS}
    masked = ApplicationError(masked_text, *masked_details, **options)
    masked.__cause__ = masked_cause
    return masked.with_traceback(error.__traceback__)


class MaskingFilter(logging.Filter):
    """Masks the message and the traceback of a log record."""

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
