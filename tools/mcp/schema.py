"""What is wrong with arguments by another's JSON schema, which may be broken or hostile."""

import functools
import json
from collections.abc import Iterator
from contextvars import ContextVar
from itertools import count, islice
from typing import Any

from jsonschema import (
    Draft201909Validator,
    Draft202012Validator,
    SchemaError,
    ValidationError,
    validators,
)
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

MANY = 20
"""Complaints that are looked at, of one call."""

MOST_FOLLOWED = 2_000
"""References that are followed for one call: whose schema has more is left to the server."""

_followed: ContextVar[Iterator[int]] = ContextVar("_followed")


class TooInvolved(Exception):
    """A schema leads from one place to others again and again."""


def complaints(schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    """Each as a clause for the model; none where the schema cannot be understood."""
    judge = _judge(json.dumps(schema))
    if judge is None:
        return []
    _followed.set(count())
    try:
        return [_complaint(error) for error in islice(judge.iter_errors(arguments), MANY)]
    except (RecursionError, Unresolvable, UnknownType, TooInvolved):
        return []  # of what a `$ref` leads to, nobody knew before
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError):
        return []  # nor whether that is a schema at all


@functools.lru_cache(maxsize=256)
def _judge(schema: str) -> Validator | None:
    document = json.loads(schema)
    kind = validators.validator_for(document, default=Draft202012Validator)
    try:
        kind.check_schema(document)
    except (SchemaError, RecursionError):
        return None
    # An empty registry, or a `$ref` would be fetched from wherever a server says.
    extended: type[Validator] = validators.extend(kind, _LEFT_TO_THE_SERVER)  # type: ignore[no-untyped-call]
    return extended(document, registry=Registry())


def _unjudged(*_: Any) -> Iterator[ValidationError]:
    """A pattern is a program of the server's: one that never ends would hang the worker."""
    yield from ()


def _counted(check: Any) -> Any:
    """A reference may lead to two more, and that as often as there are definitions."""

    def follow(judge: Validator, to: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if next(_followed.get()) >= MOST_FOLLOWED:
            raise TooInvolved
        yield from check(judge, to, instance, schema) or ()

    return follow


def _additional(
    judge: Validator, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if "patternProperties" not in schema:
        check = Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from check(judge, allowed, instance, schema) or ()


_LEFT_TO_THE_SERVER = {
    "pattern": _unjudged,
    "patternProperties": _unjudged,
    "unevaluatedProperties": _unjudged,
    "unevaluatedItems": _unjudged,
    "$ref": _counted(Draft202012Validator.VALIDATORS["$ref"]),
    "$dynamicRef": _counted(Draft202012Validator.VALIDATORS["$dynamicRef"]),
    "$recursiveRef": _counted(Draft201909Validator.VALIDATORS["$recursiveRef"]),
    "additionalProperties": _additional,
}


def _complaint(error: ValidationError) -> str:
    name = ".".join(map(str, error.absolute_path))
    message = error.message if len(error.message) <= 200 else _without_value(error)
    return f"`{name}`: {message}" if name else message


def _without_value(error: ValidationError) -> str:
    return f"{error.message[:80]}... breaks `{error.validator}`: {str(error.validator_value)[:100]}"
