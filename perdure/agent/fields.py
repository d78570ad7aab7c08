"""The fields of an agent as files and options state them: layers merged, and their names checked.

A layer is a part of `Agent.model_dump()`, in which a model may be a name alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel

from perdure.agent.spec import Agent, SummaryCondenser
from perdure.events.validation_errors import quote

Fields: TypeAlias = Mapping[str, Any]

MODEL_FIELDS = ("model", "title_model")

SETTINGS_OF_ANY_MODEL = ("temperature", "reasoning_effort", "max_output_tokens", "timeout")
"""Fields of a model that stay when another one is named: its address, its size and what it can do
are its own."""


def merge_fields(layers: Iterable[Fields]) -> dict[str, Any]:
    """Merge the layers, each over those before it: tables by their keys, all else as a whole."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name] = _merge_field(name, merged.get(name), value)
    return merged


def complete_condenser(fields: Fields) -> dict[str, Any]:
    """Return the fields of an agent, in which a condenser without a kind is the usual one."""
    condenser = fields.get("condenser")
    if not isinstance(condenser, Mapping):
        return dict(fields)
    return {**fields, "condenser": {"kind": SummaryCondenser().kind, **condenser}}


def _merge_field(name: str, before: Any, value: Any) -> Any:
    if name in MODEL_FIELDS:
        before, value = _as_model(before), _as_model(value)
    if not isinstance(before, Mapping) or not isinstance(value, Mapping):
        return value
    if name in MODEL_FIELDS and _names_another(before, value):
        before = {key: before[key] for key in SETTINGS_OF_ANY_MODEL if key in before}
    if name == "condenser" and value.get("kind", before.get("kind")) != before.get("kind"):
        return value
    return {**before, **value}


def _names_another(before: Fields, value: Fields) -> bool:
    return None not in (before.get("name"), value.get("name")) and before["name"] != value["name"]


def _as_model(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def find_unknown_field(fields: Fields) -> str | None:
    """Return a sentence on the first key that no agent has, with the one that was meant, or None.

    Events of other versions may have keys that are not known here; what a person writes may not.
    """
    return next(_find_unknown("", fields, Agent), None)


def _find_unknown(path: str, fields: Fields, kind: type[BaseModel]) -> Iterator[str]:
    for key, value in fields.items():
        if key not in kind.model_fields:
            yield _explain(f"{path}{key}", key, list(kind.model_fields))
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
    """Select the model of a field by its `kind`; without one it is a summary condenser."""
    if len(kinds) <= 1 or not isinstance(fields, Mapping):
        return next(iter(kinds), None)
    name = fields.get("kind", SummaryCondenser().kind)
    return next((kind for kind in kinds if kind.model_fields["kind"].default == name), None)


def _explain(path: str, key: str, names: list[str]) -> str:
    meant = get_close_matches(key, names, 1)
    advice = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(names)}."
    return f"An agent has no {quote(path)}: {advice}"
