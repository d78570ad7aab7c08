"""What is wrong with arguments by another's JSON schema, which may be broken or hostile."""

import functools
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

MANY = 20
"""Complaints that are looked at, of one call."""


def complaints(schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    """Each as a clause for the model; none where the schema cannot be understood."""
    judge = _judge(json.dumps(schema))
    if judge is None:
        return []
    try:
        return [_complaint(error) for error in islice(judge.iter_errors(arguments), MANY)]
    except (RecursionError, Unresolvable, UnknownType):
        return []  # of what a `$ref` leads to, nobody knew before


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
    "additionalProperties": _additional,
}


def _complaint(error: ValidationError) -> str:
    name = ".".join(map(str, error.absolute_path))
    message = error.message if len(error.message) <= 200 else _without_value(error)
    return f"`{name}`: {message}" if name else message


def _without_value(error: ValidationError) -> str:
    return f"{error.message[:80]}... breaks `{error.validator}`: {str(error.validator_value)[:100]}"
