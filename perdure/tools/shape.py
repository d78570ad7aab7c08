"""Coercion of arguments to a JSON schema, where only one meaning is possible."""

import re
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, TypeAlias

from perdure.agent.calls.arguments import parse_value

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
_SEVERAL = re.compile(r"^\s*[\[{]|[,;\n]")
"""A text that may stand for several items: it is not wrapped as a single one."""


def coerce(arguments: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Coerce the values that fit no type of `schema`, at any depth.

    Text that spells a number, a boolean, null, a list or an object becomes that value; a single
    item becomes a list of one where a list is required; null is dropped for an optional property
    that takes no null. Values that still do not fit stay unchanged, for the validator's message.
    """
    options = _alternatives(schema, schema)
    try:
        return _coerce_object(arguments, options[0], schema) if len(options) == 1 else arguments
    except RecursionError:
        return arguments


def _coerce(value: Any, schema: Any, root: Schema) -> Any:
    options = _alternatives(schema, root)
    if not any(_fits(value, option) for option in options):
        value = _reinterpret(value, options, root)
    matching = [option for option in options if _fits(value, option)]
    if len(matching) != 1:
        return value
    if isinstance(value, dict):
        return _coerce_object(value, matching[0], root)
    if isinstance(value, list):
        pairs = _pair_with_schemas(value, matching[0])
        return [_coerce(item, item_schema, root) for item, item_schema in pairs]
    return value


def _coerce_object(value: dict[str, Any], schema: Schema, root: Schema) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    required = schema.get("required") or ()
    return {
        name: _coerce(item, properties.get(name, others), root)
        for name, item in value.items()
        if item is not None or name in required or _takes_null(properties.get(name), root)
    }


def _takes_null(schema: Any, root: Schema) -> bool:
    return any(_fits(None, option) for option in _alternatives(schema, root))


def _pair_with_schemas(items: list[Any], schema: Schema) -> list[tuple[Any, Any]]:
    prefix = schema.get("prefixItems") or ()
    schemas = [*prefix, *repeat(schema.get("items"), len(items))]
    return list(zip(items, schemas, strict=False))


def _reinterpret(value: Any, options: Sequence[Schema], root: Schema) -> Any:
    """Return the only value of a fitting type that `value` may stand for, or else `value`."""
    if isinstance(value, str):
        decoded = _decode(value)
        if any(_fits(decoded, option) for option in options):
            return decoded
    lists = [option for option in options if _fits([], option)]
    if value is None or len(lists) != 1:
        return value
    [(_, item_schema)] = _pair_with_schemas([value], lists[0])
    item = _coerce(value, item_schema, root)
    fits = any(_fits(item, option) for option in _alternatives(item_schema, root))
    return [item] if fits and not _may_be_several(item) else value


def _decode(text: str) -> Any:
    try:
        return parse_value(text)
    except ValueError:
        return text


def _may_be_several(item: Any) -> bool:
    return isinstance(item, str) and bool(_SEVERAL.search(item))


def _alternatives(schema: Any, root: Schema) -> list[Schema]:
    """List a schema's alternatives with references resolved; `{}` stands for any value."""
    queue, alternatives_found = [schema], list[Schema]()
    followed = set[str]()
    while queue:
        candidate = queue.pop(0)
        if not isinstance(candidate, Mapping):
            alternatives_found.append({})
        elif isinstance(reference := candidate.get("$ref"), str):
            if reference not in followed:
                followed.add(reference)
                queue.append(_resolve_reference(reference, root))
        elif alternatives := candidate.get("anyOf") or candidate.get("oneOf"):
            queue += alternatives
        elif len(whole := candidate.get("allOf") or ()) == 1:
            queue += whole
        else:
            alternatives_found.append(candidate)
    return alternatives_found


def _resolve_reference(reference: str, root: Schema) -> Any:
    target: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if isinstance(target, Mapping) else None
    return target


def _fits(value: Any, schema: Schema) -> bool:
    """Return whether the value's type matches the schema, ignoring its items."""
    declared = schema.get("type")
    kinds = [declared] if isinstance(declared, str) else declared or ()
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else ()
    if values and not kinds:
        return any(type(value) is type(allowed) for allowed in values)
    return not kinds or any(_has_type(value, kind) for kind in kinds)


def _has_type(value: Any, kind: str) -> bool:
    if kind in ("number", "integer") and isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        return not isinstance(value, bool) and (whole or kind == "number")
    return isinstance(value, _TYPES.get(kind, object))
