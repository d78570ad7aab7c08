"""The policies of an agent, and the types of its bounded values."""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, NaiveDatetime, TypeAdapter

from perdure.events.base import Timestamp, Tolerant
from perdure.events.risk import Risk

TEN_YEARS_SECONDS = 10 * 365 * 24 * 3600.0

MAX_TAG_BYTES = 1500
"""Bytes of all tags of a conversation: Temporal's search attributes take 2 KB."""

_MOMENT: TypeAdapter[NaiveDatetime] = TypeAdapter(NaiveDatetime)


def _check_moment(text: str) -> str:
    _MOMENT.validate_python(text)
    return text


def _check_tag_bytes(tags: tuple[str, ...]) -> tuple[str, ...]:
    if (size := sum(len(tag.encode()) for tag in tags)) > MAX_TAG_BYTES:
        raise ValueError(
            f"all tags together have {size:,} bytes, and {MAX_TAG_BYTES:,} is the most"
        )
    return tags


Seconds: TypeAlias = Annotated[float, Field(gt=0, le=TEN_YEARS_SECONDS, allow_inf_nan=False)]
Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Moment: TypeAlias = Annotated[Timestamp, AfterValidator(_check_moment)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
"""The length that Temporal's search attributes take."""
Variable: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Tags: TypeAlias = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], AfterValidator(_check_tag_bytes)
]


class Limits(Tolerant):
    """Limits that end a turn or a conversation, with a status and a reason.

    `max_iterations` counts the model's responses in one turn; all other limits hold for the whole
    conversation.
    """

    max_iterations: Count = 500
    """Responses of the model in one turn."""
    max_budget: Dollars | None = None
    """US dollars, where the price of the model is known."""
    max_tokens: Count | None = None
    """Tokens of prompts and responses together."""
    max_events: Count | None = None
    """Events of the log."""
    deadline: Moment | None = None
    """An ISO date and time in UTC, at which the turn ends."""


class Confirmation(Tolerant):
    """The policy that makes actions wait for a person: none, all, or those of `threshold` risk."""

    policy: Literal["never", "always", "risky"] = "never"
    """The actions that wait: none, all, or those whose risk is `threshold` or higher."""
    threshold: Literal["LOW", "MEDIUM", "HIGH"] = "HIGH"
    """The lowest risk that waits under the policy `risky`."""
    confirm_unknown: bool = True
    """Whether an action of unknown risk waits under the policy `risky`."""

    def required_for(self, risk: Risk) -> bool:
        """Check whether an action of this risk waits for a person."""
        if self.policy != "risky":
            return self.policy == "always"
        if risk == "UNKNOWN":
            return self.confirm_unknown
        return RISK_LEVELS.index(risk) >= RISK_LEVELS.index(self.threshold)

    def is_stricter_than(self, other: "Confirmation") -> bool:
        """Check whether more actions wait than under another policy."""
        return self._strictness() > other._strictness()

    def _strictness(self) -> tuple[int, int, bool]:
        rank = ("never", "risky", "always").index(self.policy)
        return rank, -RISK_LEVELS.index(self.threshold), self.confirm_unknown


RISK_LEVELS: tuple[Risk, ...] = ("UNKNOWN", "LOW", "MEDIUM", "HIGH")
"""Risks from the lowest to the highest; an unknown risk ranks below all known ones."""


class StuckThresholds(Tolerant):
    """The number of repetitions that count as stuck, by pattern; 0 switches a pattern off."""

    action_observation: Count = 4
    """Repetitions of one action with the same result."""
    action_error: Count = 3
    """Failures of the same action before a warning; one more is stuck."""
    monologue: Count = 3
    """Messages of the agent in a row, without an action."""
    alternating: Count = 6
    """Actions in a row of which two alternate, with the same results."""
    window: int = Field(default=20, ge=0, le=50)
    """The number of newest events that are compared."""
