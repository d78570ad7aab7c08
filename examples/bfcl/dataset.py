"""The samples: what the user says turn by turn, and the tools there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from examples.bfcl import upstream
from perdure.events.content import ToolAnnotations, ToolDefinition

# A call is applied once for each action in the log, however often it is run: see backends.py.
ANNOTATIONS = ToolAnnotations(idempotentHint=True, destructiveHint=False, openWorldHint=False)


@dataclass(frozen=True)
class Sample:
    """A conversation of the benchmark; `truth` has the calls of each turn, as Python text.

    `entry` is the sample as published, for upstream's machinery.
    """

    id: str
    turns: tuple[str, ...]
    truth: tuple[tuple[str, ...], ...]
    entry: Mapping[str, Any]

    @property
    def classes(self) -> tuple[str, ...]:
        """The back-ends whose methods are its tools.

        All methods: upstream's runner does not look at `excluded_function` either.
        """
        return tuple(self.entry["involved_classes"])

    @property
    def number(self) -> int:
        return int(self.id.rpartition("_")[2])


@cache
def samples() -> dict[str, Sample]:
    """Every sample by its id, in the order of publication."""
    truths = upstream.ground_truths()
    return {entry["id"]: _sample(entry, truths[entry["id"]]) for entry in upstream.entries()}


def _sample(entry: dict[str, Any], truth: list[list[str]]) -> Sample:
    turns = tuple("\n".join(message["content"] for message in turn) for turn in entry["question"])
    return Sample(entry["id"], turns, tuple(map(tuple, truth)), entry)


@cache
def definitions(class_name: str) -> tuple[ToolDefinition, ...]:
    """The tools of a back-end, one a method."""
    return tuple(map(_definition, upstream.documents(class_name)))


@cache
def class_of(tool: str) -> str | None:
    """The back-end that has this tool; no two of the category's share a name."""
    classes = {name for sample in samples().values() for name in sample.classes}
    owners = (name for name in classes if any(tool == has.name for has in definitions(name)))
    return next(owners, None)


def _definition(document: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=document["name"],
        description=document["description"],
        parameters=_schema(document["parameters"]),
        annotations=ANNOTATIONS,
    )


def _schema(published: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a published type, which has Python's names in place of JSON's."""
    schema = {**published, "type": upstream.JSON_TYPES[published["type"]]}
    if "items" in schema:
        schema["items"] = _schema(schema["items"])
    if "properties" in schema:
        fields = schema["properties"].items()
        schema["properties"] = {name: _schema(field) for name, field in fields}
    return schema
