"""JSON objects in requests."""

import json
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, JsonValue


def check_text(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an object that can be kept as text. Raises ValueError for half a surrogate pair."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError as error:
        raise ValueError("it has half a surrogate pair, which is no character") from error
    return value


JsonObject: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(check_text)]
"""An object with any fields. JSON can hold half a surrogate pair, and UTF-8 cannot."""
