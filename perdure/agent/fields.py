"""The fields of an agent: names checked where a person wrote them, and the agent of layers."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError

from perdure.agent.condensers import PRESET, SummaryCondenser, expand_condenser
from perdure.agent.layers import Fields, Merged
from perdure.agent.spec import Agent
from perdure.agent.tool_reference import tool_reference
from perdure.events.validation_errors import describe_errors, quote


class FieldProblem(NamedTuple):
    """A fault of a field; the path is `limits.max_budget` within a table."""

    path: str
    sentence: str


class BadAgent(ValueError):
    """Fields make no agent; `problem` says which of them, and why."""

    def __init__(self, problem: FieldProblem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


class MissingModel(BadAgent):
    """Nobody names the model."""


def parse_agent(merged: Merged) -> Agent:
    """Parse the agent of merged layers. Raises BadAgent."""
    fields = merged.fields
    if problem := find_unknown_field(fields):
        raise BadAgent(problem)
    if not has_model(fields):
        raise MissingModel(FieldProblem("model", "No model is set."))
    try:
        return Agent.model_validate({**fields, "sources": _name_sources(merged)})
    except ValidationError as error:
        path = ".".join(map(str, error.errors()[0]["loc"]))
        problem = FieldProblem(path, f"The agent is invalid: {describe_errors(error)}.")
        raise BadAgent(problem) from error


def _name_sources(merged: Merged) -> dict[str, str]:
    """Return the sources of fields; those of the default condenser's sizes are of all of it."""
    said = merged.fields.get("condenser")
    if said is None or expand_condenser(said) is said:
        return merged.sources
    within = [path for path in merged.sources if path.partition(".")[0] == "condenser"]
    named = ", ".join(dict.fromkeys(merged.sources[path] for path in within))
    others = {path: merged.sources[path] for path in merged.sources if path not in within}
    return {**others, "condenser": named}


def plain_fields(fields: Fields) -> dict[str, Any]:
    """Return the fields that a program gives, as a file has them: models as tables, tools by name.

    Raises Invalid for a tool that no worker can import.
    """
    plain = {name: _to_plain(value) for name, value in fields.items()}
    if isinstance(tools := fields.get("tools"), list | tuple):
        plain["tools"] = [tool_reference(tool) for tool in tools]
    return plain


def _to_plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    return value


def has_model(fields: Fields) -> bool:
    model = fields.get("model")
    return bool(model.get("name") if isinstance(model, Mapping) else model)


def find_unknown_field(fields: Fields) -> FieldProblem | None:
    """Return the first key that no agent has, with the one that was meant, or None.

    Events of other versions may have keys that are not known here; what a person writes may not.
    """
    return next(_find_unknown("", fields, Agent), None)


def _find_unknown(path: str, fields: Fields, kind: type[BaseModel]) -> Iterator[FieldProblem]:
    for key, value in fields.items():
        if key not in kind.model_fields:
            yield FieldProblem(f"{path}{key}", _explain(f"{path}{key}", key, kind))
            continue
        kinds = list(_models_of(kind.model_fields[key].annotation))
        for nth, item in enumerate(value) if isinstance(value, list | tuple) else ((None, value),):
            inner = _select_kind(kinds, item)
            if inner is not None and isinstance(item, Mapping):
                position = "" if nth is None else f"[{nth}]"
                yield from _find_unknown(f"{path}{key}{position}.", item, inner)


def _models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models within a type, such as those of a union or of the items of a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _models_of(part)


def _select_kind(kinds: list[type[BaseModel]], fields: Any) -> type[BaseModel] | None:
    """Select the model of a field by its `kind`; the default condenser has a summary's sizes."""
    if len(kinds) <= 1 or not isinstance(fields, Mapping):
        return next(iter(kinds), None)
    name = fields.get("kind", PRESET)
    name = SummaryCondenser().kind if name == PRESET else name
    return next((kind for kind in kinds if kind.model_fields["kind"].default == name), None)


def _explain(path: str, key: str, kind: type[BaseModel]) -> str:
    meant = get_close_matches(key, kind.model_fields, 1)
    names = ", ".join(kind.model_fields)
    advice = f"did you mean {meant[0]}?" if meant else f"there are {names}."
    return f"An agent has no {quote(path)}: {advice}"
