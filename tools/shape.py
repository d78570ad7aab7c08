"""Arguments in the shape that a JSON schema asks for, where they can be meant in one way only."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from agent.arguments import value_of

Schema: TypeAlias = Mapping[str, Any]

_TYPES: dict[str, type] = {
    "string": str,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
    "number": float,
    "integer": int,
}
_SEVERAL = (",", ";", "\n")
"""What a text may have between several items: then one item is not what was meant."""


def shaped(arguments: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The arguments with what fits no type of `schema` put right, at any depth.

    Text that spells a number, a boolean, null, a list or an object becomes that; a single item
    becomes the list that was due; null for what may be left out and takes no null is left out.
    What does not fit then either stays as it came, for the schema's own message.
    """
    options = _options(schema, schema)
    try:
        return _object(arguments, options[0], schema) if len(options) == 1 else arguments
    except RecursionError:
        return arguments


def _shaped(value: Any, schema: Any, root: Schema) -> Any:
    options = _options(schema, root)
    if not any(_fits(value, option) for option in options):
        value = _meant(value, options, root)
    fitting = [option for option in options if _fits(value, option)]
    if len(fitting) != 1:
        return value
    if isinstance(value, dict):
        return _object(value, fitting[0], root)
    if isinstance(value, list):
        return [_shaped(item, its, root) for item, its in _with_schemas(value, fitting[0])]
    return value


def _object(value: dict[str, Any], schema: Schema, root: Schema) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    required = schema.get("required") or ()
    return {
        name: _shaped(item, properties.get(name, others), root)
        for name, item in value.items()
        if item is not None or name in required or _takes_null(properties.get(name), root)
    }


def _takes_null(schema: Any, root: Schema) -> bool:
    return any(_fits(None, option) for option in _options(schema, root))


def _with_schemas(items: list[Any], schema: Schema) -> list[tuple[Any, Any]]:
    """The items of a list, each with its own schema."""
    first = schema.get("prefixItems") or ()
    rest = schema.get("items")
    return [(item, first[nth] if nth < len(first) else rest) for nth, item in enumerate(items)]


def _meant(value: Any, options: Sequence[Schema], root: Schema) -> Any:
    """What fits one of the options and can be meant by a value that fits none; else the value."""
    if isinstance(value, str):
        spelled = _spelled(value)
        if any(_fits(spelled, option) for option in options):
            return spelled
    lists = [option for option in options if _fits([], option)]
    if value is None or len(lists) != 1:
        return value
    [(_, its)] = _with_schemas([value], lists[0])
    item = _shaped(value, its, root)
    if not any(_fits(item, option) for option in _options(its, root)) or _may_be_several(item):
        return value
    return [item]


def _spelled(text: str) -> Any:
    try:
        return value_of(text)
    except ValueError:
        return text


def _may_be_several(item: Any) -> bool:
    return isinstance(item, str) and (
        item.lstrip().startswith(("[", "{")) or any(mark in item for mark in _SEVERAL)
    )


def _options(schema: Any, root: Schema) -> list[Schema]:
    """The alternatives of a schema, references followed; anything goes where it does not say."""
    todo, found = [schema], list[Schema]()
    followed = set[str]()
    while todo:
        one = todo.pop(0)
        if not isinstance(one, Mapping):
            found.append({})
        elif isinstance(reference := one.get("$ref"), str):
            if reference not in followed:
                followed.add(reference)
                todo.append(_followed(reference, root))
        elif alternatives := one.get("anyOf") or one.get("oneOf"):
            todo += alternatives
        elif len(whole := one.get("allOf") or ()) == 1:
            todo += whole
        else:
            found.append(one)
    return found


def _followed(reference: str, root: Schema) -> Any:
    """What a reference into the same document leads to."""
    place: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        place = place.get(name) if isinstance(place, Mapping) else None
    return place


def _fits(value: Any, schema: Schema) -> bool:
    """Whether the value is of a type that the schema takes; what is inside does not count."""
    said = schema.get("type")
    kinds = [said] if isinstance(said, str) else said or ()
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else ()
    if values and not kinds:
        return any(type(value) is type(one) for one in values)
    return not kinds or any(_is(value, kind) for kind in kinds)


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer") and isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        return not isinstance(value, bool) and (whole or kind == "number")
    return isinstance(value, _TYPES.get(kind, object))
