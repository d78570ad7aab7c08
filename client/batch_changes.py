"""Whether a batch may be run as it is now, after what it was before."""

from pydantic import BaseModel

from agent.spec import Limits, ModelSpec, Spec
from client.errors import Conflict, Invalid
from evaluation.running import Mode
from evaluation.scorers.custom import Custom
from evaluation.spec import BatchSpec
from storage.batches import Kept
from storage.datasets.references import found
from storage.datasets.rows import BadDataset

MODE = "mode"
"""The option that says in which mode a batch was run last."""

COVERED: dict[Mode, tuple[Mode, ...]] = {
    "missing": ("missing", "failed"),
    "failed": ("failed",),
    "rescore": ("rescore",),
}
"""The modes of a running batch in which what is asked for is done already."""

DOES: dict[Mode, str] = {
    "missing": "running what is missing",
    "failed": "running again what failed",
    "rescore": "scoring again",
}

CHOOSING = ("dataset", "seed", "shuffle", "limit", "ids")
"""Keys that only say which samples there are, and in which order."""


def check(batch: BatchSpec) -> None:
    """Raises Invalid where a scorer's function cannot be had: better before than after."""
    for at, scorer in enumerate(batch.scorers):
        if isinstance(scorer, Custom):
            try:
                found(scorer.function)
            except BadDataset as error:
                raise Invalid(f"scorers.{at}: {error}") from error


def refuse_other_mode(name: str, kept: Kept, mode: Mode) -> None:
    """Raises Conflict where what runs does something else."""
    running = kept.options.get(MODE, "missing")
    if running not in COVERED[mode]:
        raise Conflict(
            f"The batch {name} is running, and {DOES[mode]} is not what it does.",
            f"Wait until it has finished: `perdure batch status {name}` says how far it is.",
        )


def refuse_other_agent(before: BatchSpec, batch: BatchSpec) -> None:
    """Raises Conflict. Its limits, and where its models are, are no part of what an agent is."""
    changed = _changed(_itself(before.agent), _itself(batch.agent))
    if changed:
        raise Conflict(
            f"An earlier run of {batch.name} had an agent with another {', '.join(changed)}: "
            "give the batch another name."
        )


def _itself(agent: Spec) -> Spec:
    fallbacks = tuple(map(_nowhere, agent.fallbacks))
    changes = {"limits": Limits(), "model": _nowhere(agent.model), "fallbacks": fallbacks}
    return agent.model_copy(update=changes)


def _nowhere(model: ModelSpec) -> ModelSpec:
    return model.model_copy(update={"api_base": None})


def differences(before: BatchSpec, batch: BatchSpec) -> list[str]:
    """The keys that differ, but for those which only say what the samples are."""
    return [one for one in _changed(before, batch) if one not in CHOOSING]


def _changed(one: BaseModel, other: BaseModel) -> list[str]:
    fields = type(one).model_fields
    return [name for name in fields if getattr(one, name) != getattr(other, name)]
