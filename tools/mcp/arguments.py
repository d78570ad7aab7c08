"""The arguments of another server's tool, checked against the JSON schema that the log holds.

Nothing but the recorded definition is needed: an answer is read while the server is away.
"""

import copy
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from events.actions import MCPToolAction
from events.content import ToolDefinition

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

MANY = 20
"""Complaints that are looked at, of one call."""


def parser(definition: ToolDefinition) -> Callable[[dict[str, Any]], MCPToolAction]:
    """What reads a model's decoded arguments for the tool of `definition`.

    It raises ValueError with a sentence for the model where they do not fit.
    """
    return lambda arguments: MCPToolAction(data=fitted(definition.parameters, arguments))


def fitted(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as `schema` has them, with what was sent as text read as what was due.

    Where the schema cannot be understood, they are left to the server. Raises ValueError with a
    sentence for the model.
    """
    judge = _judge(json.dumps(schema))
    if judge is None:
        return arguments
    errors = _errors(judge, arguments)
    if not errors:
        return arguments
    mended = copy.deepcopy(arguments)
    for error in _leaves(errors):
        _mend(mended, error, judge)
    if errors := _errors(judge, mended):
        raise ValueError("; ".join(dict.fromkeys(map(_complaint, errors))) + ".")
    return mended


@functools.lru_cache(maxsize=256)
def _judge(schema: str) -> "Validator | None":
    # Imported late: it takes as long as half of a worker's own modules.
    from jsonschema import Draft202012Validator, SchemaError, validators
    from referencing import Registry

    document = json.loads(schema)
    kind = validators.validator_for(document, default=Draft202012Validator)
    try:
        kind.check_schema(document)
    except (SchemaError, RecursionError):
        return None
    # An empty registry, or a `$ref` would be fetched from wherever a server says.
    extended: type[Validator] = validators.extend(kind, _LEFT_TO_THE_SERVER)  # type: ignore[no-untyped-call]
    return extended(document, registry=Registry())


def _unjudged(*_: Any) -> Iterator["ValidationError"]:
    """A pattern is a program of the server's: one that never ends would hang the worker."""
    yield from ()


def _additional(
    judge: "Validator", allowed: Any, instance: Any, schema: Any
) -> Iterator["ValidationError"]:
    from jsonschema import Draft202012Validator

    if "patternProperties" not in schema:
        check = Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from check(judge, allowed, instance, schema) or ()


_LEFT_TO_THE_SERVER = {
    "pattern": _unjudged,
    "patternProperties": _unjudged,
    "unevaluatedProperties": _unjudged,
    "additionalProperties": _additional,
}


def _errors(judge: "Validator", arguments: dict[str, Any]) -> "list[ValidationError]":
    from jsonschema.exceptions import UnknownType
    from referencing.exceptions import Unresolvable

    try:
        return list(islice(judge.iter_errors(arguments), MANY))
    except (RecursionError, Unresolvable, UnknownType):
        return []


def _leaves(errors: "Iterable[ValidationError]") -> "Iterator[ValidationError]":
    """The complaints themselves, and those behind an `anyOf`."""
    for error in errors:
        if error.context:
            yield from _leaves(error.context)
        else:
            yield error


def _mend(arguments: dict[str, Any], error: "ValidationError", judge: "Validator") -> None:
    """Read a string as the JSON that was due; leave out a null that nobody takes."""
    if error.validator != "type" or not error.absolute_path:
        return
    *path, last = error.absolute_path
    place: Any = arguments
    for key in path:
        place = place[key]
    if error.instance is None and isinstance(place, dict):
        place.pop(last, None)
    elif isinstance(error.instance, str) and place[last] == error.instance:
        due: Any = error.validator_value
        kinds = [due] if isinstance(due, str) else due
        try:
            decoded = json.loads(error.instance, parse_constant=_refused)
        except (ValueError, RecursionError):
            return  # it is told of as it came
        if any(judge.is_type(decoded, kind) for kind in kinds):
            place[last] = decoded


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _complaint(error: "ValidationError") -> str:
    name = ".".join(map(str, error.absolute_path))
    message = error.message if len(error.message) <= 200 else _without_value(error)
    return f"`{name}`: {message}" if name else message


def _without_value(error: "ValidationError") -> str:
    return f"{error.message[:80]}... breaks `{error.validator}`: {str(error.validator_value)[:100]}"
