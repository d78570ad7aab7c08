"""Layers of an agent: what each source says of it, and the agent that they make together.

A layer is a part of `Agent.model_dump()`, in which a model may be a name alone.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perdure.agent.condensers import PRESET, with_sizes
from perdure.agent.surroundings import OF_REPOSITORY, split_described_secrets

Fields: TypeAlias = Mapping[str, Any]
NO_FIELDS: Fields = {}

MODEL_FIELDS = ("model", "title_model")

SETTINGS_OF_ANY_MODEL = ("temperature", "reasoning_effort", "max_output_tokens", "timeout")
"""Fields of a model that stay when another one is named: its address, its size and what it can do
are its own."""

JOINED_LISTS = ("mcp", "secrets", "skills.folders")
"""Lists that layers add to; an item replaces the one of its name."""


@dataclass(frozen=True)
class Layer:
    """The fields of an agent that one source has."""

    source: str
    """The source's name, for people."""
    fields: Fields
    sources: Mapping[str, str] = field(default_factory=dict)
    """The sources of fields that it has from others."""
    locate: Callable[[str], str] | None = None
    """Tells where one of its fields stands; None for what was just given."""


@dataclass(frozen=True)
class Merged:
    """The fields of an agent, and the source of each: `limits.max_budget` within a table."""

    fields: dict[str, Any]
    sources: dict[str, str]


def merge_layers(layers: Iterable[Layer]) -> Merged:
    """Merge the layers, each over those before it: tables by their keys, all else as a whole.

    The lists of JOINED_LISTS are joined. None is a value like any other; as a list it is empty.
    """
    merged = Merged({}, {})
    for layer in layers:
        said = split_described_secrets(layer.fields)
        _forget_other_repository(merged, said)
        for name, value in said.items():
            if name != "sources":
                _add_field(merged, layer, name, value)
    return merged


def _forget_other_repository(merged: Merged, said: Fields) -> None:
    """Forget the branch and the token of the repository that a layer replaces by another."""
    if said.get("repository", before := merged.fields.get("repository")) != before:
        for name in OF_REPOSITORY:
            merged.fields.pop(name, None)
            merged.sources.pop(name, None)


def _add_field(merged: Merged, layer: Layer, name: str, said: Any) -> None:
    said, before = expand_name(name, said), merged.fields.get(name)
    after = merged.fields[name] = _merge_field(name, before, said)
    said_leaves, before_leaves = _leaves(name, said), _leaves(name, before)
    earlier = _pop_sources(merged.sources, name)
    for path, leaf in _leaves(name, after).items():
        if path not in said_leaves and leaf == before_leaves.get(path):
            merged.sources[path] = earlier[path]
            continue
        source = merged.sources[path] = layer.sources.get(path, layer.source)
        if path in JOINED_LISTS and said_leaves.get(path) and before_leaves.get(path):
            merged.sources[path] = ", ".join(dict.fromkeys((earlier[path], source)))


def expand_name(name: str, value: Any) -> Any:
    """Return a model or a condenser that is a name alone as a table."""
    keys = {**dict.fromkeys(MODEL_FIELDS, "name"), "condenser": "kind"}
    return {keys[name]: value} if name in keys and isinstance(value, str) else value


def _leaves(name: str, value: Any) -> dict[str, Any]:
    """Return the values of a field by their paths: one, or that of each key of a table."""
    if isinstance(value, Mapping) and value:
        return {f"{name}.{key}": inner for key, inner in value.items()}
    return {name: value}


def _merge_field(name: str, before: Any, value: Any) -> Any:
    if name in JOINED_LISTS:
        return _join(before, value)
    if not isinstance(value, Mapping):
        return value
    before = before if isinstance(before, Mapping) else NO_FIELDS
    if name == "condenser":
        return _merge_condenser(before, value)
    if name in MODEL_FIELDS and _names_another(before, value):
        before = {key: before[key] for key in SETTINGS_OF_ANY_MODEL if key in before}
    joined = [key for key in value if f"{name}.{key}" in JOINED_LISTS]
    return {**before, **value, **{key: _join(before.get(key), value[key]) for key in joined}}


def _join(before: Any, value: Any) -> Any:
    """Join two lists by the names of their items; None makes it empty."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        return value
    first = before if isinstance(before, list | tuple) else ()
    return list({_name_of(item): item for item in (*first, *value)}.values())


def _name_of(item: Any) -> str:
    named = item.get("name") if isinstance(item, Mapping) else item
    return named if isinstance(named, str) else json.dumps(item, default=str, sort_keys=True)


def _merge_condenser(before: Fields, value: Fields) -> Fields:
    """Merge the fields of one kind; sizes alone are those of a pipeline's summary."""
    if "kind" not in value and isinstance(before.get("condensers"), list | tuple):
        return with_sizes(before, value)
    kind = before.get("kind", PRESET)
    return {**before, **value} if value.get("kind", kind) == kind else value


def _names_another(before: Fields, value: Fields) -> bool:
    return None not in (before.get("name"), value.get("name")) and before["name"] != value["name"]


def _pop_sources(sources: dict[str, str], name: str) -> dict[str, str]:
    """Take the sources of a field, and of the keys within it, out of all sources."""
    paths = [path for path in sources if path.partition(".")[0] == name]
    return {path: sources.pop(path) for path in paths}


def change_sources(
    sources: Mapping[str, str], before: Fields, changes: Fields, source: str
) -> dict[str, str]:
    """Return the sources of an agent whose fields were changed from `before`."""
    kept = dict(sources)
    for name, value in changes.items():
        earlier, former = _pop_sources(kept, name), _leaves(name, before.get(name))
        for path, leaf in _leaves(name, value).items():
            if path not in former or leaf != former[path]:
                kept[path] = source
            elif path in earlier:
                kept[path] = earlier[path]
    return kept
