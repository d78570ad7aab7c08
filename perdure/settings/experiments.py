"""Experiments of an installation: variants of its agents, of which each conversation gets one."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

ExperimentName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,48}$")]


class Variant(BaseModel):
    """A variant: fields that stand over those of an agent, and how often it is drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """The share of the variant: its weight divided by the sum of all weights."""
    agent: dict[str, Any] = Field(default_factory=dict)
    """Fields of an agent, as in the table [agent]; none are changed by a control group."""


class Experiment(BaseModel):
    """An experiment: its variants, and what is assigned to one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: Literal["conversation", "user"] = "conversation"
    """Whether each conversation is drawn for, or each user for all of his conversations."""
    agents: tuple[str, ...] = ()
    """The names of the agents that take part; none means all."""
    variants: Annotated[dict[ExperimentName, Variant], Field(min_length=1)]
