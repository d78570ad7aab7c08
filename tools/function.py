"""Any typed Python function as a tool.

    async def weather(city: str, days: Annotated[int, Field(ge=1)] = 1) -> Forecast:
        "The forecast for a city."

is all there is to it: the name, the docstring and the type hints are what the model is told.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, create_model
from pydantic_core import PydanticSerializationError, to_json

from events.actions import MCPToolAction
from events.content import TextContent, ToolAnnotations, ToolDefinition
from events.observations import MCPToolObservation, Observation
from tools.arguments import schema_of, validated
from tools.output import Output
from tools.threads import in_thread
from tools.tool import Context, Tool, ToolFailed

Function: TypeAlias = Callable[..., Any]
Decorated = TypeVar("Decorated", bound=Function)

# What OpenAI, Anthropic and Gemini all take.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SAID = "__tool__"


@dataclass(frozen=True)
class _Said:
    name: str | None
    annotations: ToolAnnotations


def tool(
    *,
    name: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    destructive: bool = True,
    open_world: bool = True,
) -> Callable[[Decorated], Decorated]:
    """Say what a function does to the world, or what the model shall call it.

    The function itself stays as it is. A tool that is neither `read_only` nor `idempotent` is
    never run twice by itself, so saying so truthfully is what earns a tool its retries.
    """
    annotations = ToolAnnotations(
        readOnlyHint=read_only,
        idempotentHint=idempotent,
        destructiveHint=destructive and not read_only,
        openWorldHint=open_world,
    )

    def attach(function: Decorated) -> Decorated:
        setattr(function, _SAID, _Said(name, annotations))
        return function

    return attach


def tool_from(function: Function) -> Tool:
    """The tool that calls `function`, sync (in a thread of its own) or async.

    * A parameter annotated `Context` is given the context, and the model does not see it. Its
      `progress` and `keep` belong to the event loop, so they are for async functions.
    * It may return text, an Observation, nothing, or whatever JSON can carry.
    * What it raises is told to the model; ToolFailed is for what is meant for the model.

    A sync function that is cancelled is no longer waited for, but a thread cannot be stopped: one
    that takes long had better be async. Raises TypeError with a sentence where a model could not
    know how to call it.
    """
    said: _Said = getattr(function, _SAID, _Said(None, ToolAnnotations()))
    name = _name(function, said)
    signature, hints = _signature(function, name)
    model = _model(name, signature, hints)
    definition = ToolDefinition(
        name=name,
        description=inspect.getdoc(function) or "",
        parameters=_parameters(name, model),
        annotations=said.annotations,
    )

    def parse(arguments: dict[str, Any]) -> MCPToolAction:
        take = validated(model, arguments)
        return MCPToolAction(data=take.model_dump(mode="json", by_alias=True, exclude_unset=True))

    async def run(action: MCPToolAction, context: Context) -> Observation:
        take = validated(model, action.data)
        args, kwargs = _call(signature, hints, take, context)
        return await _observed(name, await _result(name, function, args, kwargs), context)

    return Tool(definition, parse, run)


def _name(function: Function, said: _Said) -> str:
    if not inspect.isroutine(function):
        raise TypeError(f"{function!r} is not a function: wrap it in a `def` with type hints.")
    name = said.name or function.__name__
    if not _NAME.fullmatch(name):
        raise TypeError(
            f"{name!r} is no name for a tool: use `@tool(name=...)` with a letter or `_` and then "
            "up to 63 letters, digits, `_` or `-`."
        )
    return name


def _signature(function: Function, name: str) -> tuple[inspect.Signature, dict[str, Any]]:
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(function, include_extras=True)
    except (ValueError, TypeError, NameError) as error:
        raise TypeError(f"The signature of tool {name!r} cannot be read: {error}.") from error
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"Tool {name!r} takes `{parameter}`: name every parameter instead.")
        if parameter.name not in hints:
            raise TypeError(f"Parameter `{parameter.name}` of tool {name!r} needs a type hint.")
    return signature, hints


def _is_context(hint: Any) -> bool:
    return (get_args(hint)[0] if get_origin(hint) is Annotated else hint) is Context


def _model(name: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        # Aliased, as a parameter may be called what no field may: `_x`, `json`, `model_config`.
        f"of_{parameter.name}": (hints[parameter.name], _field(parameter))
        for parameter in signature.parameters.values()
        if not _is_context(hints[parameter.name])
    }
    try:
        return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise TypeError(_unfit(name, error)) from error


def _field(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return Field(alias=parameter.name)
    return Field(default=parameter.default, alias=parameter.name)


def _parameters(name: str, model: type[BaseModel]) -> dict[str, Any]:
    try:
        return schema_of(model)
    except PydanticUserError as error:
        raise TypeError(_unfit(name, error)) from error


def _unfit(name: str, error: Exception) -> str:
    reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
    return f"A parameter of tool {name!r} has a type that no JSON can carry: {reason}."


def _call(
    signature: inspect.Signature, hints: Mapping[str, Any], take: BaseModel, context: Context
) -> tuple[list[Any], dict[str, Any]]:
    """What to call the function with; what the model left out is left to the function."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if _is_context(hints[name]):
            value = context
        elif f"of_{name}" in take.model_fields_set:
            value = getattr(take, f"of_{name}")
        else:
            value = parameter.default
        if parameter.kind is parameter.POSITIONAL_ONLY:
            args.append(value)
        else:
            kwargs[name] = value
    return args, kwargs


async def _result(name: str, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        return await in_thread(lambda: function(*args, **kwargs))
    except SystemExit as error:  # it would take the worker along
        raise ToolFailed(f"{name} tried to exit the program ({error}).") from error


async def _observed(name: str, result: Any, context: Context) -> Observation:
    if isinstance(result, get_args(get_args(Observation)[0])):
        return result  # type: ignore[no-any-return] # mypy does not see the union through get_args
    with Output() as output:
        output.take(_text(name, result).encode(errors="replace"))
        text, _ = await output.shown(context)
    return MCPToolObservation(tool_name=name, content=(TextContent(text=text),))


def _text(name: str, result: Any) -> str:
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    try:
        return to_json(result).decode()
    except PydanticSerializationError as error:
        raise ToolFailed(
            f"{name} returned a {type(result).__name__}, which no JSON can carry."
        ) from error
