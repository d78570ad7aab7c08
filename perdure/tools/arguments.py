"""Validation of a tool call's arguments, and the JSON schema that the model sees."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ErrorDetails

from perdure.tools.shape import coerce

ModelT = TypeVar("ModelT", bound=BaseModel)


class Arguments(BaseModel):
    """The arguments of a tool, none of which may be unknown."""

    model_config = ConfigDict(extra="forbid")


def validate_arguments(model: type[ModelT], arguments: dict[str, Any]) -> ModelT:
    """Validate `arguments` against `model`, coercing them where only one meaning is possible.

    Raises ValueError with a sentence for the model.
    """
    try:
        return model.model_validate(arguments)
    except ValidationError:
        coerced = coerce(arguments, json_schema(model))
    try:
        return model.model_validate(coerced)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        sentence = "; ".join(_format_error(model, detail) for detail in details)
        raise ValueError(f"{sentence}.") from error


def _format_error(model: type[BaseModel], detail: ErrorDetails) -> str:
    name = _shorten(".".join(map(str, detail["loc"])) or "arguments")[1:-1]
    if detail["type"] == "missing":
        return f"`{name}` is missing"
    if detail["type"] == "extra_forbidden":
        fields = [f"`{field.alias or name}`" for name, field in model.model_fields.items()]
        known = ", ".join(fields) or "no arguments at all"
        return f"`{name}` is unknown here, use only {known}"
    message = detail["msg"].removeprefix("Value error, ").rstrip(".")
    return f"`{name}`: {message[:1].lower()}{message[1:]}, got {_shorten(detail['input'])}"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


class _SchemaGenerator(GenerateJsonSchema):
    """A generator that omits titles, and defaults that JSON cannot express."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - declared so by pydantic
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of `model` for `ToolDefinition.parameters`."""
    schema = model.model_json_schema(schema_generator=_SchemaGenerator)
    for titled in (schema, *schema.get("$defs", {}).values()):
        titled.pop("title", None)
    schema.pop("description", None)
    return schema
