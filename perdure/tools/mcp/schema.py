"""Validation against a foreign JSON schema, which may be broken or hostile."""

import functools
import json
from collections.abc import Iterator
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jsonschema import Draft201909Validator, Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, UnknownType, ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_ERRORS = 20
"""Errors of one call that the model sees."""
MAX_REFERENCES = 2_000
"""References resolved for one call; beyond it, the server has to validate."""

_references: ContextVar[Iterator[int]] = ContextVar("_followed")


def find_errors(schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    """Return each error as a clause for the model; none if the schema cannot be evaluated."""
    validator = _compile(json.dumps(schema))
    if validator is None:
        return []
    _references.set(iter(range(MAX_REFERENCES)))
    try:
        return [*map(_format_error, islice(validator.iter_errors(arguments), MAX_ERRORS))]
    except (RecursionError, Unresolvable, UnknownType):
        return []  # check_schema does not resolve `$ref`
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError):
        return []  # a `$ref` leads to something that is no schema


@functools.lru_cache(maxsize=256)
def _compile(schema: str) -> Validator | None:
    document = json.loads(schema)
    kind = validators.validator_for(document, default=Draft202012Validator)
    try:
        kind.check_schema(document)
    except (SchemaError, RecursionError):
        return None
    # An empty registry, so that no `$ref` is fetched over the network.
    extended: type[Validator] = validators.extend(kind, _CHECKS)  # type: ignore[no-untyped-call]
    return extended(document, registry=Registry())


def _skip_check(*_: Any) -> Iterator[ValidationError]:
    """Skip a check: a hostile regular expression could hang the worker."""
    yield from ()


def _limit_references(check: Any) -> Any:
    """Limit the references that `check` follows: nested ones can grow exponentially."""

    def follow(judge: Validator, to: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if next(_references.get(), None) is None:
            raise LookupError("The schema needs too many references.")
        yield from check(judge, to, instance, schema) or ()

    return follow


def _check_additional(
    judge: Validator, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if "patternProperties" not in schema:
        check = Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from check(judge, allowed, instance, schema) or ()


_CHECKS = {
    "pattern": _skip_check,
    "patternProperties": _skip_check,
    "unevaluatedProperties": _skip_check,
    "unevaluatedItems": _skip_check,
    "$ref": _limit_references(Draft202012Validator.VALIDATORS["$ref"]),
    "$dynamicRef": _limit_references(Draft202012Validator.VALIDATORS["$dynamicRef"]),
    "$recursiveRef": _limit_references(Draft201909Validator.VALIDATORS["$recursiveRef"]),
    "additionalProperties": _check_additional,
}


def _format_error(error: ValidationError) -> str:
    name = ".".join(map(str, error.absolute_path))
    message, rule = error.message, str(error.validator_value)[:100]
    if len(message) > 200:
        message = f"{message[:80]}... breaks `{error.validator}`: {rule}"
    return f"`{name}`: {message}" if name else message
