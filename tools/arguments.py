"""The arguments of a tool call: read from the model's text, checked, described to the model."""

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ErrorDetails

Arguments = TypeVar("Arguments", bound=BaseModel)

# Strings are matched whole (to the end, where they have none), so that no comma in them counts.
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)


def arguments_of(raw: str) -> dict[str, Any]:
    """The model's text as a JSON object; no text at all means no arguments.

    Mends what can be meant in one way only: a code fence around it, a comma after the last item,
    raw control characters in strings. Raises ValueError with a sentence for the model.
    """
    if not raw.strip():
        return {}
    try:
        decoded = _decoded(raw)
    except json.JSONDecodeError:
        decoded = _mended(raw)
    if decoded is None:
        return {}
    if not isinstance(decoded, dict):
        raise ValueError(f"The arguments must be one JSON object, not {_named(decoded)}.")
    return decoded


def _mended(raw: str) -> Any:
    text = _TRAILING_COMMA.sub(r"\1", _unfenced(raw.strip()))
    try:
        return _decoded(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        raise ValueError(
            f"The arguments are not valid JSON: {error.msg} at line {error.lineno}, column "
            f"{error.colno}, near {near!r}. Send one JSON object."
        ) from error


def _unfenced(text: str) -> str:
    if len(text) < 6 or not (text.startswith("```") and text.endswith("```")):
        return text
    body = text[3:-3]
    language, _, rest = body.partition("\n")
    return rest if language.strip().lower() in ("", "json") else body


def _decoded(text: str) -> Any:
    try:
        decoded = json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise ValueError("The arguments are nested too deeply: send a flatter object.") from error
    except ValueError as error:  # Python reads no more than 4,300
        raise ValueError(
            "The arguments hold a number of too many digits: send it as a string."
        ) from error
    _check_storable(decoded)
    return decoded


def _check_storable(decoded: Any) -> None:
    try:
        json.dumps(decoded, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as error:
        raise ValueError("The arguments are nested too deeply: send a flatter object.") from error
    except UnicodeEncodeError as error:
        raise ValueError(
            "The arguments hold half a surrogate pair: write the character itself, or both halves."
        ) from error
    except ValueError as error:
        raise ValueError(
            "The arguments hold NaN or a number without bounds: send a plain number or null."
        ) from error


def _named(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")


def validated(model: type[Arguments], arguments: dict[str, Any]) -> Arguments:
    """The arguments as `model` has them, with what was sent as text read as what was due.

    Raises ValueError with a sentence for the model.
    """
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        decoded = _with_containers(arguments, error)
    try:
        return model.model_validate(decoded)
    except ValidationError as error:
        raise ValueError(_sentence(model, error)) from error


def _with_containers(arguments: dict[str, Any], error: ValidationError) -> dict[str, Any]:
    """A list or an object that came as a string of JSON, as itself."""
    mended = dict(arguments)
    for detail in error.errors(include_url=False, include_context=False):
        name, sent = detail["loc"][0] if detail["loc"] else "", detail["input"]
        if (
            isinstance(sent, str)
            and sent.lstrip()[:1] in ("[", "{")
            and mended.get(str(name)) == sent
        ):
            try:
                mended[str(name)] = json.loads(sent)
            except (ValueError, RecursionError):
                continue  # it is told of as it came
    return mended


def _sentence(model: type[BaseModel], error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False)
    return "; ".join(_complaint(model, detail) for detail in details) + "."


def _complaint(model: type[BaseModel], detail: ErrorDetails) -> str:
    name = _shortened(".".join(map(str, detail["loc"])) or "arguments")[1:-1]
    if detail["type"] == "missing":
        return f"`{name}` is missing"
    if detail["type"] == "extra_forbidden":
        return f"`{name}` is unknown here, use only {_names(model)}"
    message = detail["msg"].removeprefix("Value error, ").rstrip(".")
    return f"`{name}`: {message[:1].lower()}{message[1:]}, got {_shortened(detail['input'])}"


def _names(model: type[BaseModel]) -> str:
    fields = model.model_fields.items()
    return ", ".join(f"`{field.alias or name}`" for name, field in fields) or "no arguments at all"


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


class _Schema(GenerateJsonSchema):
    """Without what says nothing to a model: titles, and defaults that no JSON can carry."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - declared so by pydantic
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model`, as `ToolDefinition.parameters` has it."""
    schema = model.model_json_schema(schema_generator=_Schema)
    for titled in (schema, *schema.get("$defs", {}).values()):
        titled.pop("title", None)
    schema.pop("description", None)
    return schema
