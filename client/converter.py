"""What travels through Temporal: pydantic JSON, and never more than 128 KiB at a time.

Where there are keys, it is encrypted, and so is what failures say.
"""

from typing import Any, NoReturn

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
)
from temporalio.converter import PayloadConverter as AnyPayloadConverter
from temporalio.exceptions import ApplicationError

from client.codec import ENCODING, KEY_ID, SETTING, Encryption, Unreadable

LIMIT = 128 * 1024
"""Bytes. Temporal's own limit is 2 MiB, and beyond it a workflow hangs instead of failing."""

HIDDEN = "Encoded failure"
"""What every SDK of Temporal says in place of a message that is encrypted."""

MESSAGE, TRACE = 4_000, 1_000
"""Characters of a failure that are kept when it is encrypted, of a trace the last ones.

Temporal keeps 4 KiB of why a step is tried again, and cannot shorten what it cannot read.
"""


class CappedJSON(PydanticJSONPlainPayloadConverter):
    """JSON without absent fields; what is too large is refused, and the largest field is named."""

    def to_payload(self, value: Any) -> Payload | None:
        data = to_json(value, exclude_none=True)
        if len(data) > LIMIT:
            raise ApplicationError(
                f"{_largest(value)} is too large: {len(data):,} bytes of {LIMIT:,}.",
                type="PayloadTooLarge",
                non_retryable=True,
            )
        return Payload(metadata={"encoding": self.encoding.encode()}, data=data)


def _largest(value: Any) -> str:
    """The name of the field that takes the most room."""
    name = type(value).__name__
    if not isinstance(value, BaseModel):
        return name
    fields = type(value).model_fields
    return f"{name}.{max(fields, key=lambda field: len(to_json(getattr(value, field))))}"


class Undecrypted(EncodingPayloadConverter):
    """Says what is missing, where an encrypted payload comes to a program that has no keys."""

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


class PayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(
            *(
                CappedJSON() if isinstance(one, JSONPlainPayloadConverter) else one
                for one in DefaultPayloadConverter.default_encoding_payload_converters
            ),
            Undecrypted(),
        )


class HiddenFailures(DefaultFailureConverter):
    """Puts what a failure and its causes say where the codec encrypts it.

    The SDK's own leaves causes as they are that came in clear. That a payload is `Unreadable` is
    said in clear: whoever has no key must see why nothing goes on.
    """

    def to_failure(
        self, exception: BaseException, payload_converter: AnyPayloadConverter, failure: Failure
    ) -> None:
        super().to_failure(exception, payload_converter, failure)
        _hide(failure, payload_converter)


def _hide(failure: Failure, converter: AnyPayloadConverter) -> None:
    shown = failure.application_failure_info.type == Unreadable.__name__
    if not shown and (failure.message != HIDDEN or failure.stack_trace):
        said = {"message": failure.message[:MESSAGE], "stack_trace": failure.stack_trace[-TRACE:]}
        failure.encoded_attributes.CopyFrom(converter.to_payload(said))
        failure.message, failure.stack_trace = HIDDEN, ""
    if failure.HasField("cause"):
        _hide(failure.cause, converter)


def converter_of(encryption: Encryption | None) -> DataConverter:
    """A converter that encrypts, or one that has nothing to do with it."""
    if encryption is None:
        return DataConverter(payload_converter_class=PayloadConverter)
    return DataConverter(
        payload_converter_class=PayloadConverter,
        payload_codec=encryption,
        failure_converter_class=HiddenFailures,
    )


CONVERTER = converter_of(None)
"""In clear."""
