"""The thresholds of condensers; the sandbox of every conversation's workflow loads this module."""

from perdure.agent.spec import (
    AmortizedCondenser,
    CondenserSpec,
    CustomCondenser,
    PipelineCondenser,
    SummaryCondenser,
)


def exceeds_threshold(condenser: CondenserSpec, events: int, tokens: int) -> bool:
    """Check whether a view of so many events and estimated tokens is to be condensed."""
    match condenser:
        case AmortizedCondenser():
            return events > condenser.max_size
        case SummaryCondenser() | CustomCondenser():
            too_long = condenser.max_tokens is not None and tokens > condenser.max_tokens
            return events > condenser.max_size or too_long
        case PipelineCondenser():
            return any(exceeds_threshold(inner, events, tokens) for inner in condenser.condensers)
        case _:
            return False
