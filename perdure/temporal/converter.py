"""Payloads of Temporal: pydantic JSON of at most 128 KiB.

With keys, payloads and the texts of failures are encrypted.
"""

from dataclasses import replace
from typing import Any, NoReturn, Self

from pydantic import BaseModel
from pydantic_core import to_json
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
    SerializationContext,
)
from temporalio.converter import PayloadConverter as AnyPayloadConverter
from temporalio.exceptions import ApplicationError

from perdure.temporal.codec import ENCODING, KEY_ID, SETTING, Encryption, Unreadable

MAX_PAYLOAD_BYTES = 128 * 1024
"""Size limit of a payload. Beyond Temporal's own 2 MiB, a workflow hangs instead of failing."""

HIDDEN_MESSAGE = "Encoded failure"
"""The message that every SDK of Temporal shows in place of an encrypted one."""

MAX_HIDDEN_CHARS, MAX_TRACE_CHARS = 4_000, 1_000
"""Length limits of an encrypted message (its start) and trace (its end).

Temporal keeps 4 KiB of the last failure of an activity, and cannot shorten encrypted text.
"""


class CappedJSON(PydanticJSONPlainPayloadConverter):
    """JSON without None fields; raises ApplicationError if it is too large."""

    def to_payload(self, value: Any) -> Payload | None:
        data = to_json(value, exclude_none=True)
        if len(data) > MAX_PAYLOAD_BYTES:
            raise ApplicationError(
                f"{_largest_field(value)} is too large: "
                f"{len(data):,} bytes of {MAX_PAYLOAD_BYTES:,}.",
                type="PayloadTooLarge",
                non_retryable=True,
            )
        return Payload(metadata={"encoding": self.encoding.encode()}, data=data)


def _largest_field(value: Any) -> str:
    """Return the name of the largest field."""
    name = type(value).__name__
    if not isinstance(value, BaseModel):
        return name
    fields = type(value).model_fields
    return f"{name}.{max(fields, key=lambda field: len(to_json(getattr(value, field))))}"


class MissingKeyConverter(EncodingPayloadConverter):
    """A converter that names the missing key of an encrypted payload."""

    @property
    def encoding(self) -> str:
        return ENCODING.decode()

    def to_payload(self, value: Any) -> None:  # noqa: ARG002 - a codec encrypts
        return None

    def from_payload(self, payload: Payload, type_hint: Any = None) -> NoReturn:  # noqa: ARG002
        key_id = payload.metadata.get(KEY_ID, b"").decode(errors="replace")
        raise Unreadable(
            f"A payload in Temporal is encrypted with the key {key_id!r}, and no key is set here: "
            f"set {SETTING}."
        )


MAX_TYPE_ADAPTERS = 64
"""Types of payloads whose adapters are kept; a type that a sandbox loaded holds its modules."""

_CONVERTERS = {
    converter.encoding.encode(): converter
    for converter in (
        *(
            CappedJSON(max_cached_type_adapters=MAX_TYPE_ADAPTERS)
            if isinstance(default, JSONPlainPayloadConverter)
            else default
            for default in DefaultPayloadConverter.default_encoding_payload_converters
        ),
        MissingKeyConverter(),
    )
}
"""The converters by encoding, which the SDK would make anew several times a step."""


class PayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        self.converters = _CONVERTERS


class HidingFailureConverter(DefaultFailureConverter):
    """A converter that moves the texts of a failure and its causes to where they are encrypted.

    The SDK's own converter leaves causes in clear that came in clear. `Unreadable` stays in clear:
    whoever has no key must see why nothing goes on.
    """

    def to_failure(
        self, exception: BaseException, payload_converter: AnyPayloadConverter, failure: Failure
    ) -> None:
        super().to_failure(exception, payload_converter, failure)
        _hide(failure, payload_converter)


def _hide(failure: Failure, converter: AnyPayloadConverter) -> None:
    is_public = failure.application_failure_info.type == Unreadable.__name__
    if not is_public and (failure.message != HIDDEN_MESSAGE or failure.stack_trace):
        texts = {
            "message": failure.message[:MAX_HIDDEN_CHARS],
            "stack_trace": failure.stack_trace[-MAX_TRACE_CHARS:],
        }
        failure.encoded_attributes.CopyFrom(converter.to_payload(texts))
        failure.message, failure.stack_trace = HIDDEN_MESSAGE, ""
    if failure.HasField("cause"):
        _hide(failure.cause, converter)


class ContextFreeConverter(DataConverter):
    """A data converter whose payloads are the same wherever they belong.

    The SDK would look for parts that differ, and make them anew, several times a step.
    """

    def with_context(self, context: SerializationContext) -> Self:  # noqa: ARG002
        return self


CONVERTER = ContextFreeConverter(payload_converter_class=PayloadConverter)
"""The data converter without encryption."""


def build_converter(encryption: Encryption | None) -> DataConverter:
    """Build the data converter, with encryption if keys are given."""
    if encryption is None:
        return CONVERTER
    hiding = HidingFailureConverter
    return replace(CONVERTER, payload_codec=encryption, failure_converter_class=hiding)
