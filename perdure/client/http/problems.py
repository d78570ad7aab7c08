"""The errors of a gateway, raised as those that the library raises for the same reason."""

from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from perdure.api.problem import Problem
from perdure.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PerdureError,
    TimedOut,
    Unreachable,
)
from perdure.events.validation_errors import describe_errors
from perdure.storage.errors import BadSlot, Damaged, StoreError, StoreUnavailable

M = TypeVar("M", bound=BaseModel)

KIND_OF_CODE: dict[str, type[PerdureError]] = {
    "invalid": Invalid,
    "unauthorized": Forbidden,
    "scope": Forbidden,
    "forbidden": Forbidden,
    "not_found": NotFound,
    "conflict": Conflict,
    "damaged": StoreError,
    "timed_out": TimedOut,
    "unreachable": Unreachable,
    "store_unavailable": StoreUnavailable,
}

KIND_OF_STATUS: dict[int, type[PerdureError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    422: Invalid,
    431: Invalid,
}

KEY_HINT = "Set PERDURE_GATEWAY_KEY to a key of this gateway: `perdure key create` makes one."


def build_body(kind: type[M], **fields: Any) -> M:
    """Build the body of a request. Raises Invalid for what no gateway would take."""
    try:
        return kind(**fields)
    except ValidationError as error:
        raise Invalid(f"The request is not right: {describe_errors(error)}.") from error


def parse_problem(body: bytes) -> Problem | None:
    """Parse the body of an error; None where it is none of a gateway's."""
    try:
        return Problem.model_validate_json(body)
    except ValidationError:
        return None


def to_error(problem: Problem) -> PerdureError:
    """Build the error that the library raises for the same reason."""
    fallback = KIND_OF_STATUS.get(problem.status, Unreachable)
    kind = KIND_OF_CODE.get(problem.code, fallback)
    lines = [line for line in problem.errors if line not in problem.detail]
    detail = " ".join([problem.detail, *lines])
    hint = problem.hint or (KEY_HINT if problem.status == HTTPStatus.UNAUTHORIZED else "")
    arguments: tuple[Any, ...] = (detail,) if issubclass(kind, StoreError) else (detail, hint)
    return kind(*arguments)


def bad_slot(seq: int, detail: str) -> BadSlot:
    """Build the error of a slot from the sentence that the gateway says of it."""
    error = Damaged(seq, "")
    error.args = (detail,)
    return error
