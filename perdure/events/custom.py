"""Kinds of events, actions and observations of other packages, found by their entry points."""

from functools import partial
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import Field, PlainValidator, SerializeAsAny

from perdure.events.actions import Action
from perdure.events.base import EventBase, Frozen, Source
from perdure.events.observations import Observation, ObservationBase
from perdure.references import BadReference, load_entry_point

EVENT_GROUP = "perdure.events"
"""The entry points of the classes, each under its kind."""


class CustomEvent(EventBase):
    """The base class of an event of another package; `kind` is a Literal there."""

    source: Source
    kind: str


class CustomAction(Frozen):
    """The base class of an action of another package; `kind` is a Literal there."""

    kind: str

    def describe(self, tool_name: str) -> str:
        """Describe the call for a person."""
        arguments = self.model_dump_json(exclude={"kind"}, exclude_defaults=True)
        return f"{tool_name} {arguments}"


class CustomObservation(ObservationBase):
    """The base class of an observation of another package; `kind` is a Literal there."""

    kind: str


Custom = TypeVar("Custom", CustomEvent, CustomAction, CustomObservation)


def parse_custom(base: type[Custom], value: Any) -> Custom:
    """Parse a value by the class that a package registers for its kind. Raises ValueError."""
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    if not isinstance(kind, str):
        raise BadReference("it has no kind")
    registered: type[Custom] = load_entry_point(EVENT_GROUP, kind)
    if not (isinstance(registered, type) and issubclass(registered, base)):
        raise BadReference(f"{kind!r} is not registered as a {base.__name__}")
    return registered.model_validate(value)


AnyAction: TypeAlias = Annotated[
    Action
    | Annotated[
        CustomAction, PlainValidator(partial(parse_custom, CustomAction)), SerializeAsAny()
    ],
    Field(union_mode="left_to_right"),
]
AnyObservation: TypeAlias = Annotated[
    Observation
    | Annotated[
        CustomObservation,
        PlainValidator(partial(parse_custom, CustomObservation)),
        SerializeAsAny(),
    ],
    Field(union_mode="left_to_right"),
]
