"""Whether a view has grown too large; the sandbox of every conversation loads this."""

from agent.spec import AmortizedCondenser, CondenserSpec, PipelineCondenser, SummaryCondenser


def wants_condensing(condenser: CondenserSpec, shown: int, tokens: int) -> bool:
    """Whether a view of `shown` events and about `tokens` tokens is to be condensed."""
    match condenser:
        case AmortizedCondenser():
            return shown > condenser.max_size
        case SummaryCondenser():
            too_long = condenser.max_tokens is not None and tokens > condenser.max_tokens
            return shown > condenser.max_size or too_long
        case PipelineCondenser():
            return any(wants_condensing(one, shown, tokens) for one in condenser.condensers)
        case _:
            return False
