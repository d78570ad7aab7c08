"""What travels through Temporal: pydantic JSON, and never more than 128 KiB at a time."""

from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
)
from temporalio.exceptions import ApplicationError

LIMIT = 128 * 1024
"""Bytes. Temporal's own limit is 2 MiB, and beyond it a workflow hangs instead of failing."""


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


class PayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(
            *(
                CappedJSON() if isinstance(one, JSONPlainPayloadConverter) else one
                for one in DefaultPayloadConverter.default_encoding_payload_converters
            )
        )


CONVERTER = DataConverter(payload_converter_class=PayloadConverter)
