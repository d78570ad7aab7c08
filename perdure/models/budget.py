"""The check that a budget in dollars can be kept, before a conversation is begun."""

from collections.abc import Iterable

from perdure.agent.spec import Agent, ModelSpec
from perdure.agent.view.condense.thresholds import flatten_condenser
from perdure.errors import Invalid
from perdure.models.check import has_price

PROGRAM_HINT = (
    "Say what a million tokens cost in US dollars, 0 if nothing: ModelSpec(name=…, input_price=…, "
    "output_price=…). Or limit tokens in place of dollars: Limits(max_tokens=N)."
)
"""The hint for a program; commands have options in its place."""


def list_models(agent: Agent) -> list[ModelSpec]:
    """List the models that an agent may ask."""
    condensers = (getattr(it, "model", None) for it in flatten_condenser(agent.condenser))
    others = (*agent.fallbacks, agent.title_model, *condensers)
    own = [agent.model, *(model for model in others if model is not None)]
    return [*own, *(model for each in agent.delegates for model in list_models(each.agent))]


def check_budget(agent: Agent, hint: str | None = None) -> None:
    """Raises Invalid for a budget in dollars that a model without a known price cannot keep.

    The prices are those that litellm lists where this runs, not on the worker.
    """
    if agent.limits.max_budget is not None:
        check_prices(list_models(agent), agent.model, hint)
    for delegate in agent.delegates:
        check_budget(delegate.agent, hint)


def check_prices(
    models: Iterable[ModelSpec], main: ModelSpec | None = None, hint: str | None = None
) -> None:
    """Check that all costs will be known. Raises Invalid.

    The prices of the `main` model are options, and those of others stand where they are named.
    """
    for model in models:
        if not has_price(model):
            raise Invalid(
                f"A budget in dollars cannot be kept: the price of {model.name} is not known.",
                hint or _price_hint(model, model == main),
            )


def _price_hint(model: ModelSpec, is_main: bool) -> str:
    table = f'{{name = "{model.name}", input_price = …, output_price = …}}'
    main = "model.input_price=… and model.output_price=…, with -c or `perdure configure`"
    place = main if is_main else f"where it is named, such as {table} in an agent file"
    instead = "Or limit tokens in place of dollars: limits.max_tokens=N."
    return f"Say what a million tokens cost in US dollars, 0 if nothing: {place}. {instead}"
