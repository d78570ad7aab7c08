"""The thresholds of condensers; the sandbox of every conversation's workflow loads this module."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from perdure.agent.spec import (
    AmortizedCondenser,
    CondenserSpec,
    CustomCondenser,
    PipelineCondenser,
    SummaryCondenser,
)

CondenseReason: TypeAlias = Literal["size", "overflow", "user"]
"""The reason to condense: the condenser's thresholds, the model's context window, or a user."""


def flatten_condenser(condenser: CondenserSpec) -> tuple[CondenserSpec, ...]:
    return condenser.condensers if isinstance(condenser, PipelineCondenser) else (condenser,)


def custom_condensers(condenser: CondenserSpec) -> Iterator[CustomCondenser]:
    return (it for it in flatten_condenser(condenser) if isinstance(it, CustomCondenser))


def exceeds_threshold(condenser: CondenserSpec, events: int, tokens: int) -> bool:
    """Check whether a view of so many events and estimated tokens is to be condensed."""
    # `match`, as the sandbox makes each `isinstance` of a workflow six calls.
    for it in flatten_condenser(condenser):
        match it:
            case AmortizedCondenser():
                max_tokens = None
            case SummaryCondenser() | CustomCondenser():
                max_tokens = it.max_tokens
            case _:
                continue
        if events > it.max_size or (max_tokens is not None and tokens > max_tokens):
            return True
    return False
