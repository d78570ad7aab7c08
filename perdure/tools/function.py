"""Tools made of typed Python functions.

    async def weather(city: str, days: Annotated[int, Field(ge=1)] = 1) -> Forecast:
        "The forecast for a city."

is a complete tool: the model sees the name, the docstring and the type hints.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import BaseModel, Field, PydanticUserError, create_model
from pydantic_core import PydanticSerializationError, to_json

from perdure.errors import Invalid
from perdure.events.actions import MCPToolAction
from perdure.events.content import TextContent, ToolAnnotations, ToolDefinition
from perdure.events.custom import AnyObservation
from perdure.events.observations import MCPToolObservation, ObservationBase
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.output import Output
from perdure.tools.threads import run_in_thread
from perdure.tools.tool import Context, Tool, ToolFailed

Function: TypeAlias = Callable[..., Any]
Decorated = TypeVar("Decorated", bound=Function)

TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""The names that OpenAI, Anthropic and Gemini all accept."""

_OPTIONS_ATTRIBUTE = "__tool__"


@overload
def tool(function: Decorated, /) -> Decorated: ...


@overload
def tool(
    *,
    name: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    destructive: bool = True,
    open_world: bool = True,
    brief: bool = False,
) -> Callable[[Decorated], Decorated]: ...


def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    destructive: bool = True,
    open_world: bool = True,
    brief: bool = False,
) -> Any:
    """Declare a function's side effects, or the tool's name: `@tool` or `@tool(read_only=True)`.

    The function itself stays unchanged. A tool that is neither `read_only` nor `idempotent` is
    never retried automatically, and cannot be `brief`: a call that takes a few milliseconds, and
    costs less in an agent with `local_activities`. Raises Invalid for what is no function.
    """
    if brief and not (read_only or idempotent):
        raise Invalid(
            "A `brief` tool may be called twice: it must be `read_only` or `idempotent` as well.",
            "Declare which one, or leave `brief` out.",
        )
    annotations = ToolAnnotations(
        readOnlyHint=read_only,
        idempotentHint=idempotent,
        destructiveHint=destructive and not read_only,
        openWorldHint=open_world,
    )

    def attach(function: Any) -> Any:
        if not inspect.isroutine(function):
            raise Invalid(f"{function!r} is no function.", "Decorate a `def` with type hints.")
        setattr(function, _OPTIONS_ATTRIBUTE, (name, annotations, brief or None))
        return function

    return attach if function is None else attach(function)


def tool_from(function: Function) -> Tool:
    """Make a tool that calls `function`, sync (in a thread of its own) or async.

    * A parameter annotated `Context` receives the context, and the model does not see it. Its
      `progress` and `keep` belong to the event loop, so only async functions may use them.
    * The function may return text, an Observation, None, or any value that JSON can express.
    * The model sees the exceptions it raises; raise ToolFailed for texts written for the model.

    A cancelled sync function is abandoned, but its thread runs on: long functions should be async.
    Raises TypeError with a sentence where the signature lacks what a model needs.
    """
    options = getattr(function, _OPTIONS_ATTRIBUTE, (None, ToolAnnotations(), None))
    given_name, annotations, brief = options
    name = _check_name(function, given_name)
    signature, hints = _read_signature(function, name)
    model, parameters = _create_model(name, signature, hints)
    definition = ToolDefinition(
        name=name,
        description=inspect.getdoc(function) or "",
        parameters=parameters,
        annotations=annotations,
        brief=brief,
    )

    def parse(arguments: dict[str, Any]) -> MCPToolAction:
        take = validate_arguments(model, arguments)
        return MCPToolAction(data=take.model_dump(mode="json", by_alias=True, exclude_unset=True))

    async def run(action: MCPToolAction, context: Context) -> AnyObservation:
        take = validate_arguments(model, action.data)
        args, kwargs = _bind_arguments(signature, hints, take, context)
        result = await _call_function(name, function, args, kwargs)
        return await _to_observation(name, result, context)

    return Tool(definition, parse, run)


def _check_name(function: Function, given_name: str | None) -> str:
    if not inspect.isroutine(function):
        raise TypeError(f"{function!r} is not a function: wrap it in a `def` with type hints.")
    name = given_name or function.__name__
    if not TOOL_NAME.fullmatch(name):
        raise TypeError(
            f"{name!r} is no name for a tool: use `@tool(name=...)` with a letter or `_` and then "
            "up to 63 letters, digits, `_` or `-`."
        )
    return name


def _read_signature(function: Function, name: str) -> tuple[inspect.Signature, dict[str, Any]]:
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


def _create_model(
    name: str, signature: inspect.Signature, hints: Mapping[str, Any]
) -> tuple[type[BaseModel], dict[str, Any]]:
    """Create the model of the arguments, and its JSON schema."""
    fields: dict[str, Any] = {
        # Aliased, as a parameter may have a name that no field may: `_x`, `json`, `model_config`.
        f"of_{parameter.name}": (hints[parameter.name], _field(parameter))
        for parameter in signature.parameters.values()
        if not _is_context(hints[parameter.name])
    }
    try:
        model: type[BaseModel] = create_model(name, __base__=Arguments, **fields)
        return model, json_schema(model)
    except (PydanticUserError, TypeError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        message = f"A parameter of tool {name!r} has a type that no JSON can carry: {reason}."
        raise TypeError(message) from error


def _field(parameter: inspect.Parameter) -> Any:
    default = ... if parameter.default is parameter.empty else parameter.default
    return Field(default=default, alias=parameter.name)


def _bind_arguments(
    signature: inspect.Signature, hints: Mapping[str, Any], values: BaseModel, context: Context
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments, with defaults for what the model left out."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if _is_context(hints[name]):
            value = context
        elif f"of_{name}" in values.model_fields_set:
            value = getattr(values, f"of_{name}")
        else:
            value = parameter.default
        if parameter.kind is parameter.POSITIONAL_ONLY:
            args.append(value)
        else:
            kwargs[name] = value
    return args, kwargs


async def _call_function(
    name: str, function: Function, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        return await run_in_thread(lambda: function(*args, **kwargs))
    except SystemExit as error:  # it would take the worker along
        raise ToolFailed(f"{name} tried to exit the program ({error}).") from error


async def _to_observation(name: str, result: Any, context: Context) -> AnyObservation:
    if isinstance(result, ObservationBase):
        return cast(AnyObservation, result)
    with Output() as output:
        output.write(_to_text(name, result).encode(errors="replace"))
        text, _ = await output.render(context)
    return MCPToolObservation(tool_name=name, content=(TextContent(text=text),))


def _to_text(name: str, result: Any) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    try:
        return to_json(result).decode()
    except PydanticSerializationError as error:
        kind = type(result).__name__
        raise ToolFailed(f"{name} returned a {kind}, which no JSON can carry.") from error
