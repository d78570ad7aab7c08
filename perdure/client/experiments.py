"""The variants of experiments: which one an agent gets, and the agent with it.

The draw is a hash of the experiment's name and of the conversation or the user: it is the same on
every machine and at every attempt, and independent of other experiments.
"""

import hashlib
from collections.abc import Mapping

from perdure.agent.fields import BadAgent, parse_agent
from perdure.agent.layers import Layer, Merged, merge_layers
from perdure.agent.spec import Agent
from perdure.errors import Invalid
from perdure.settings.experiments import Experiment

TAG_PREFIX = "experiment:"
"""The beginning of the tag by which the conversations of a variant are found."""


def apply_experiments(
    agent: Agent, experiments: Mapping[str, Experiment], user_id: str, conversation_id: str
) -> Agent:
    """Return the agent with the variants that are drawn for it, and a tag for each.

    Raises Invalid where a variant does not fit the agent.
    """
    for name, experiment in experiments.items():
        if experiment.agents and agent.agent not in experiment.agents:
            continue
        unit = user_id if experiment.unit == "user" else conversation_id
        agent = apply_variant(agent, name, draw_variant(name, experiment, unit), experiment)
    return agent


def draw_variant(name: str, experiment: Experiment, unit: str) -> str:
    """Return the name of the variant that is drawn for a conversation or a user."""
    digest = hashlib.sha256(f"{name}\0{unit}".encode()).digest()
    variants = experiment.variants
    point = int.from_bytes(digest[:8]) / 2**64 * sum(each.weight for each in variants.values())
    for variant, each in variants.items():
        point -= each.weight
        if point < 0:
            return variant
    return variant  # of a sum that was rounded


def apply_variant(agent: Agent, name: str, variant: str, experiment: Experiment) -> Agent:
    """Return the agent with the fields and the tag of a variant. Raises Invalid."""
    fields = experiment.variants[variant].agent
    dumped = agent.model_dump(mode="json", exclude_none=True)
    own = Layer("start", dumped, agent.sources)
    source = f"the experiment {name}"
    merged = merge_layers([own, Layer(source, fields)])
    tags = [*merged.fields.get("tags", ()), f"{TAG_PREFIX}{name}={variant}"]
    try:
        return parse_agent(merge_layers([_layer_of(merged), Layer(source, {"tags": tags})]))
    except BadAgent as error:
        raise Invalid(
            f"The variant {variant!r} of the experiment {name!r} cannot be used: {error}",
            f"Correct experiments.{name}.variants.{variant}.agent in perdure.toml.",
        ) from error


def _layer_of(merged: Merged) -> Layer:
    return Layer("start", merged.fields, merged.sources)
