"""Checks whether a changed batch may run after an earlier version of it."""

from pydantic import BaseModel

from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.errors import Conflict, Invalid
from perdure.evaluation.messages import BatchMode
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.spec import BatchSpec
from perdure.references import BadReference, import_reference
from perdure.storage.batches import BatchRecord

MODE_OPTION = "mode"
"""The option that records the mode of a batch's last run."""

COVERED_MODES: dict[BatchMode, tuple[BatchMode, ...]] = {
    "missing": ("missing", "failed"),
    "failed": ("failed",),
    "rescore": ("rescore",),
}
"""For each requested mode, the modes of a running batch that include it."""

MODE_DESCRIPTIONS: dict[BatchMode, str] = {
    "missing": "running what is missing",
    "failed": "running again what failed",
    "rescore": "scoring again",
}

SAMPLE_KEYS = ("dataset", "seed", "shuffle", "limit", "ids")
"""Keys that only select and order the samples."""


def check_scorers(batch: BatchSpec) -> None:
    """Check that the scorers' functions can be imported, before the batch runs. Raises Invalid."""
    for at, scorer in enumerate(batch.scorers):
        if isinstance(scorer, CustomScorer):
            try:
                import_reference(scorer.function)
            except BadReference as error:
                raise Invalid(f"scorers.{at}: {scorer.function!r}: {error}.") from error


def refuse_other_mode(name: str, record: BatchRecord, mode: BatchMode) -> None:
    """Raise Conflict if a running batch does not do what `mode` asks for."""
    running = record.options.get(MODE_OPTION, "missing")
    if running not in COVERED_MODES[mode]:
        raise Conflict(
            f"The batch {name} is running, and {MODE_DESCRIPTIONS[mode]} is not what it does.",
            f"Wait until it has finished: `perdure batch status {name}` says how far it is.",
        )


def refuse_other_agent(before: BatchSpec, batch: BatchSpec) -> None:
    """Raise Conflict if the agent has changed, other than in its limits and model addresses."""
    changed = _changed_fields(_agent_identity(before.agent), _agent_identity(batch.agent))
    if changed:
        raise Conflict(
            f"An earlier run of {batch.name} had an agent with another {', '.join(changed)}: "
            "give the batch another name."
        )


def _agent_identity(agent: Agent) -> Agent:
    fallbacks = tuple(map(_without_address, agent.fallbacks))
    changes = {"limits": Limits(), "model": _without_address(agent.model), "fallbacks": fallbacks}
    return agent.model_copy(update=changes)


def _without_address(model: ModelSpec) -> ModelSpec:
    return model.model_copy(update={"api_base": None})


def find_differences(before: BatchSpec, batch: BatchSpec) -> list[str]:
    """List the keys that differ, except those that only select the samples."""
    return [name for name in _changed_fields(before, batch) if name not in SAMPLE_KEYS]


def _changed_fields(before: BaseModel, after: BaseModel) -> list[str]:
    fields = type(before).model_fields
    return [name for name in fields if getattr(before, name) != getattr(after, name)]
