"""Named agents, as somebody wrote them, and the order in which one takes from others."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perdure.agent.fields import FieldProblem, find_unknown_field
from perdure.agent.layers import Fields, Layer, expand_name
from perdure.errors import Invalid
from perdure.events.validation_errors import quote

DEFAULT_AGENT = "default"
"""The name of the agent without a name: that of the installation's settings."""

EXTENDS, DESCRIPTION, NULL = "extends", "description", "null"
OWN_KEYS = ("name", EXTENDS, DESCRIPTION, NULL)
"""Keys of a named agent beside an agent's fields. `null` lists fields that are null: TOML has no
such value."""

MAX_EXTENDED = 32
"""Agents of which one takes from the next."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Definition:
    """A named agent as somebody wrote it; `locate` tells where one of its keys stands."""

    name: str
    place: str
    """The file or the table, for people."""
    table: Fields
    locate: Callable[[str], str]
    is_own: bool = False
    """Whether it is a user's own in the store, and not the installation's."""

    @property
    def extends(self) -> str | None:
        return self.table.get(EXTENDS)

    @property
    def description(self) -> str:
        return str(self.table.get(DESCRIPTION, ""))

    @property
    def layer(self) -> Layer:
        """The fields, with the agent's name as its label."""
        fields = {key: value for key, value in self.table.items() if key not in OWN_KEYS}
        fields = {"agent": self.name, **_set_nulls(fields, self.table.get(NULL))}
        return Layer(self.place, fields, locate=self.locate)


def require_extended(fields: Fields) -> str:
    """Return the name of the agent that the fields of a start extend. Raises Invalid."""
    name = fields.get(EXTENDS)
    if not isinstance(name, str):
        raise Invalid(
            "An agent as fields says which one it extends.",
            'Write {"extends": "NAME", ...}, or Agent(...) for a whole one.',
        )
    return name


def is_name(text: str) -> bool:
    return text != DEFAULT_AGENT and _NAME.fullmatch(text) is not None


def check_name(name: str) -> str:
    """Return the name of an agent. Raises Invalid."""
    if name == DEFAULT_AGENT:
        raise Invalid(
            f"{name!r} is the agent without a name: no other can have it.",
            "Its fields stand in the table [agent] of the settings.",
        )
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"{quote(name)} is not the name of an agent: use up to 64 letters, digits and '.', "
            "'_', '-', and begin with a letter or a digit."
        )
    return name


def check_definition(definition: Definition) -> Definition:
    """Return a definition whose keys are known. Raises Invalid, which names the place."""
    check_name(definition.name)
    if problem := next(_find_problems(definition), None):
        raise Invalid(f"{definition.locate(problem.path)}: {problem.sentence}")
    return definition


def _find_problems(definition: Definition) -> Iterator[FieldProblem]:
    table = definition.table
    if (name := table.get("name", definition.name)) != definition.name:
        yield FieldProblem("name", f"It is called {definition.name!r} here, and not {name!r}.")
    for key in (EXTENDS, DESCRIPTION):
        if not isinstance(table.get(key, ""), str):
            yield FieldProblem(key, f"`{key}` is a text.")
    nulls = table.get(NULL, [])
    if not isinstance(nulls, list) or not all(isinstance(path, str) for path in nulls):
        yield FieldProblem(NULL, "`null` is a list of fields, such as limits.max_budget.")
    elif problem := find_unknown_field(definition.layer.fields):
        said_null = problem.path in nulls
        yield FieldProblem(NULL if said_null else problem.path, problem.sentence)


def _set_nulls(fields: Fields, paths: Any) -> dict[str, Any]:
    changed = dict(fields)
    for path in paths if isinstance(paths, list) else ():
        name, _, key = path.partition(".")
        if not key:
            changed[name] = None
            continue
        table = expand_name(name, changed.get(name))
        changed[name] = {**(table if isinstance(table, Mapping) else {}), key: None}
    return changed


def order_definitions(name: str, definitions: Mapping[str, Definition]) -> list[Definition]:
    """Return the agent of a name behind all that it extends, those first. Raises Invalid."""
    order: list[Definition] = []
    extended: str | None = name
    while extended is not None and extended != DEFAULT_AGENT:
        definition = definitions[extended]
        if definition.name in {each.name for each in order} or len(order) == MAX_EXTENDED:
            last = order[-1]
            names = " -> ".join([*(each.name for each in order), extended])
            raise Invalid(
                f"{last.locate(EXTENDS)}: Agents extend one another in a circle: {names}."
            )
        order.append(definition)
        extended = definition.extends
    return order[::-1]
