"""The agent in force of a start: the layers of all sources, merged.

The first that says something decides: the start, the user's settings, the named agent, the
installation, and perdure's defaults.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from perdure.agent.fields import (
    BadAgent,
    MissingModel,
    find_unknown_field,
    has_model,
    parse_agent,
)
from perdure.agent.layers import Fields, Layer, Merged, merge_layers
from perdure.agent.loop.state import DELEGATE_TOOL
from perdure.agent.named import DEFAULT_AGENT, EXTENDS, Definition, order_definitions
from perdure.agent.spec import Agent, NamedAgent
from perdure.errors import Invalid
from perdure.events.validation_errors import describe_errors

START_SOURCE = "start"

MODEL_HINT = (
    "Name one of litellm's names, such as anthropic/claude-sonnet-4-5: as `model` of the start, of "
    "a named agent or of the settings (PERDURE_MODEL)."
)


class NoModel(Invalid):
    """Nobody names the model of an agent."""


@dataclass(frozen=True)
class Offer:
    """The named agents beside a start, and the fields that are said of all agents.

    `definitions` has all named agents that the start may need; `names` are told where one is not
    there.
    """

    definitions: Mapping[str, Definition]
    installation: Sequence[Layer]
    user: Layer = field(default_factory=lambda: Layer("the user's settings", {}))
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Resolved:
    """The agent of a start, and those that it may delegate to.

    `trusted` is what the installation alone says of it; None if that has no model.
    """

    agent: Agent
    trusted: Agent | None
    is_trusted: bool
    """Whether nobody but the installation says anything of it."""
    delegates: tuple["Resolved", ...] = ()


@dataclass(frozen=True)
class _Stack:
    """The layers of an agent, the weakest first, and those of them that the installation has."""

    layers: Sequence[Layer]
    trusted: Sequence[Layer]
    definitions: Sequence[Definition]


def resolve_agent(name: str | None, arguments: Sequence[Layer], offer: Offer) -> Resolved:
    """Resolve the agent of a start; without a name it is that of the installation.

    `arguments` are of the start, the weakest first. Raises Invalid, which names the place of a
    field that is wrong.
    """
    stack = _collect_layers(name, arguments, offer)
    merged = merge_layers(stack.layers)
    names = merged.fields.get("delegates")
    delegates: list[tuple[Any, Resolved]] = []
    if isinstance(names, list | tuple):
        model = Layer("the agent that delegates", {"model": merged.fields.get("model")})
        delegates = [_resolve_delegate(item, model, stack, offer) for item in names]
        merged = _put_delegates(merged, [named for named, _ in delegates])
    return _to_resolved(merged, stack, tuple(resolved for _, resolved in delegates))


def start_layer(fields: Fields, source: str = START_SOURCE) -> Layer:
    """Return the arguments of a start as a layer. Raises Invalid for a key that no agent has."""
    if problem := find_unknown_field(fields):
        raise Invalid(problem.sentence)
    return Layer(source, fields)


def list_delegates(layer: Layer) -> Iterator[str]:
    """Yield the names of the agents that a layer delegates to."""
    names = layer.fields.get("delegates")
    if isinstance(names, list | tuple):
        yield from (name for name in names if isinstance(name, str))


def _collect_layers(
    name: str | None, arguments: Sequence[Layer], offer: Offer, weakest: Sequence[Layer] = ()
) -> _Stack:
    definitions = _order(name or DEFAULT_AGENT, offer)
    named = [definition.layer for definition in definitions]
    own = [definition.layer for definition in definitions if definition.is_own]
    others = [layer for layer in (offer.user, *arguments) if layer.fields]
    layers = [*weakest, *offer.installation, *named, *others]
    trusted = [layer for layer in layers if layer not in (*own, *others)]
    return _Stack(layers, trusted, definitions)


def _order(name: str, offer: Offer) -> list[Definition]:
    """Return an agent behind all that it extends. Raises Invalid for one that there is not."""
    definitions = offer.definitions
    extending, extended = None, name
    for _ in range(len(definitions) + 1):
        if extended == DEFAULT_AGENT:
            break
        if extended not in definitions:
            place = f"{extending.locate(EXTENDS)}: " if extending else ""
            names = ", ".join([DEFAULT_AGENT, *(offer.names or sorted(definitions))])
            raise Invalid(f"{place}There is no agent {extended!r}.", f"There are: {names}.")
        extending = definitions[extended]
        extended = extending.extends or DEFAULT_AGENT
    return order_definitions(name, definitions)


def _resolve_delegate(
    item: Any, model: Layer, stack: _Stack, offer: Offer
) -> tuple[NamedAgent, Resolved]:
    """Resolve an agent that another may delegate to, by its name or as a whole. Raises Invalid."""
    place = _locate("delegates", stack)
    prefix = f"{place}: " if place else ""
    if not isinstance(item, str):
        try:
            named = NamedAgent.model_validate(item)
        except ValidationError as error:
            raise Invalid(f"{prefix}delegates: {describe_errors(error)}.") from error
        return named, Resolved(named.agent, None, False)
    try:
        child = _collect_layers(item, (), offer, [model])
        merged = merge_layers(child.layers)
        resolved = _to_resolved(_put_delegates(merged, ()), child, ())
    except Invalid as error:
        raise type(error)(f"{prefix}{error}", error.hint) from error
    description = child.definitions[-1].description if child.definitions else ""
    return NamedAgent(name=item, description=description, agent=resolved.agent), resolved


def _put_delegates(merged: Merged, delegates: Sequence[NamedAgent]) -> Merged:
    """Put whole agents in place of names; only whoever has some needs the tool."""
    fields = {key: value for key, value in merged.fields.items() if key != "delegates"}
    if not delegates:
        return replace(merged, fields=fields)
    tools = fields.get("tools", Agent.model_fields["tools"].default)
    if isinstance(tools, list | tuple) and DELEGATE_TOOL not in tools:
        fields["tools"] = [*tools, DELEGATE_TOOL]
    return replace(merged, fields={**fields, "delegates": delegates})


def _to_resolved(merged: Merged, stack: _Stack, delegates: tuple[Resolved, ...]) -> Resolved:
    trusted = _put_delegates(merge_layers(stack.trusted), ())
    return Resolved(
        agent=_parse(merged, stack),
        trusted=_parse(trusted, stack) if has_model(trusted.fields) else None,
        is_trusted=len(stack.trusted) == len(stack.layers),
        delegates=delegates,
    )


def _parse(merged: Merged, stack: _Stack) -> Agent:
    """Parse a merged agent. Raises Invalid, which names the place of the field."""
    try:
        return parse_agent(merged)
    except MissingModel as error:
        raise NoModel(str(error), MODEL_HINT) from error
    except BadAgent as error:
        problem = error.problem
        place = _locate(problem.path, stack)
        raise Invalid(f"{place}: {problem.sentence}" if place else problem.sentence) from error


def _locate(path: str, stack: _Stack) -> str | None:
    """Tell the place of the strongest layer that has a field; None for the start's arguments."""
    name = path.partition(".")[0].partition("[")[0]
    layers = [layer for layer in stack.layers if name in layer.fields]
    locate = layers[-1].locate if layers else None
    return locate(path) if locate else None
