"""The arguments of a tool call: checked, and described to the model."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ErrorDetails

from tools.shape import shaped

Arguments = TypeVar("Arguments", bound=BaseModel)


def validated(model: type[Arguments], arguments: dict[str, Any]) -> Arguments:
    """The arguments as `model` has them, in the shape it asks for where only that can be meant.

    Raises ValueError with a sentence for the model.
    """
    try:
        return model.model_validate(arguments)
    except ValidationError:
        mended = shaped(arguments, schema_of(model))
    try:
        return model.model_validate(mended)
    except ValidationError as error:
        raise ValueError(_sentence(model, error)) from error


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
