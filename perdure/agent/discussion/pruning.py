"""Policies by which events are taken out of what the readers of a shared log see."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from perdure.errors import Invalid
from perdure.events.base import Frozen
from perdure.events.discussion import DiscussionEventType
from perdure.events.validation_errors import describe_errors

MAX_VISIBLE_EVENTS = 500
"""Visible events beyond which a session prunes itself."""

KEPT_EVENTS = 400
"""Visible events that are left then, all of SUMMARY among them."""

MIN_KEPT_OTHERS = 100
"""Events of other types that are left however many are of SUMMARY."""


class ByCount(Frozen):
    """Keep the newest `keep` events."""

    type: Literal["byCount"] = "byCount"
    keep: int = Field(ge=0)


class ByType(Frozen):
    """Keep the events of these types."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    type: Literal["byType"] = "byType"
    keep_types: tuple[DiscussionEventType, ...]


class BeforeSequence(Frozen):
    """Keep the events from this sequence on."""

    type: Literal["beforeSequence"] = "beforeSequence"
    sequence: int = Field(ge=1)


class Automatic(Frozen):
    """Keep every SUMMARY, and of all others the newest: see `plan_automatic`."""

    type: Literal["automatic"] = "automatic"


def _spell_type(value: Any) -> Any:
    """Let the type of a policy be written `by_count` as well."""
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return {**value, "type": to_camel(value["type"])}
    return value


AskedPolicy: TypeAlias = Annotated[
    Annotated[ByCount | ByType | BeforeSequence, Field(discriminator="type")],
    BeforeValidator(_spell_type),
]
PrunePolicy: TypeAlias = Annotated[
    ByCount | ByType | BeforeSequence | Automatic, Field(discriminator="type")
]

_POLICIES: TypeAdapter[ByCount | ByType | BeforeSequence] = TypeAdapter(AskedPolicy)


def parse_policy(
    policy: ByCount | ByType | BeforeSequence | Mapping[str, Any],
) -> ByCount | ByType | BeforeSequence:
    """Parse a policy, as `{"type": "byCount", "keep": 50}`. Raises Invalid."""
    try:
        return _POLICIES.validate_python(policy)
    except ValidationError as error:
        raise Invalid(
            f"This is no policy of pruning: {describe_errors(error)}.",
            "Write {type: byCount, keep}, {type: byType, keepTypes} or "
            "{type: beforeSequence, sequence}.",
        ) from error


VisibleEvents: TypeAlias = Sequence[tuple[int, DiscussionEventType]]
"""Sequence and type of each visible event, in order."""


def plan_pruning(visible: VisibleEvents, policy: PrunePolicy) -> list[int]:
    """Return the sequences that the policy takes out of the visible events."""
    match policy:
        case ByCount(keep=keep):
            return [sequence for sequence, _ in visible[: max(0, len(visible) - keep)]]
        case ByType(keep_types=types):
            return [sequence for sequence, type_ in visible if type_ not in types]
        case BeforeSequence(sequence=first):
            return [sequence for sequence, _ in visible if sequence < first]
        case Automatic():
            return plan_automatic(visible)


def plan_automatic(visible: VisibleEvents) -> list[int]:
    """Return the sequences that a session takes out by itself: none up to MAX_VISIBLE_EVENTS.

    A SUMMARY is never among them. Of other events, so many are left that all are KEPT_EVENTS, and
    at least MIN_KEPT_OTHERS.
    """
    if len(visible) <= MAX_VISIBLE_EVENTS:
        return []
    others = [sequence for sequence, type_ in visible if type_ != "SUMMARY"]
    keep = max(MIN_KEPT_OTHERS, KEPT_EVENTS - (len(visible) - len(others)))
    # Not one by one, where there are very many summaries: each pruning is an object of the store.
    surplus = len(others) - keep
    return others[:surplus] if surplus > MAX_VISIBLE_EVENTS - KEPT_EVENTS else []
