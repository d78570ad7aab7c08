"""Checks whether a changed batch may run after an earlier version of it."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import BaseModel

from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.errors import Conflict, Invalid
from perdure.evaluation.messages import BatchMode
from perdure.evaluation.sample import Sample
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.spec import BatchSpec
from perdure.references import BadReference, import_reference
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.keys import batch_prefix
from perdure.storage.store import list_folders, list_keys

MODE_OPTION = "mode"
"""The option that records the mode of a batch's last run."""

MODE_DESCRIPTIONS: dict[BatchMode, str] = {
    "missing": "running what is missing",
    "failed": "running again what failed",
    "rescore": "scoring again",
}

SAMPLE_KEYS = ("dataset", "seed", "shuffle", "limit", "ids")
"""Keys that only select and order the samples."""

SCORING_FIELDS = {"target", "metadata"}
"""The fields that the agent does not see: they may change if samples are scored again."""

RESCORED_OPTION = "rescored"
"""The option of a batch that names the sample sets whose targets have been replaced."""


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
    # A batch that runs again what failed may also be asked for what is missing.
    if running != mode and (running, mode) != ("failed", "missing"):
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
    return agent.model_copy(update={**changes, "code": None})


def _without_address(model: ModelSpec) -> ModelSpec:
    return model.model_copy(update={"api_base": None})


def find_differences(before: BatchSpec, batch: BatchSpec) -> list[str]:
    """List the keys that differ, except those that only select the samples.

    The folder of the agent's modules may be another one.
    """
    changed = _changed_fields(*map(_without_code, (before, batch)))
    return [name for name in changed if name not in SAMPLE_KEYS]


def _without_code(batch: BatchSpec) -> BatchSpec:
    return batch.model_copy(update={"agent": batch.agent.model_copy(update={"code": None})})


def _changed_fields(before: BaseModel, after: BaseModel) -> list[str]:
    fields = type(before).model_fields
    return [name for name in fields if getattr(before, name) != getattr(after, name)]


@dataclass
class SampleHashes:
    """Hashes of all samples of a batch's earlier runs: about 200 bytes a sample."""

    batch: str
    inputs: dict[int, int] = field(default_factory=dict)
    scorings: dict[int, int] = field(default_factory=dict)
    """Hashes of the targets and metadata that may not change."""

    def refuse_changed(self, sample: Sample) -> None:
        """Raise Conflict if the sample was in an earlier run, and has changed since."""
        name, hint = hash_text(sample.id), "Give the batch another name."
        if self.inputs.get(name) not in (None, _hash_input(sample)):
            part = "it asks for something else, or has other files"
        elif self.scorings.get(name) not in (None, _hash_scoring(sample)):
            part = "its target or its metadata are others"
            hint = (
                f"`perdure batch rescore {self.batch} FILE` scores what there is by the new ones; "
                "or give the batch another name."
            )
        else:
            return
        raise Conflict(
            f"The sample {sample.id!r} is not what it was in an earlier run of {self.batch}: "
            f"{part}.",
            hint,
        )


async def load_sample_hashes(
    folder: BatchFolder, record: BatchRecord, *, rescore: bool
) -> SampleHashes:
    """Load the hashes of every sample that the batch has ever had. Raises Altered.

    With `rescore`, targets and metadata may change.
    """
    hashes = SampleHashes(folder.name)
    replaced = record.options.get(RESCORED_OPTION)
    for name in await list_sample_sets(folder):
        with_scoring = not (rescore or (isinstance(replaced, list) and name in replaced))
        chunks = record.chunks if name == record.samples else await _count_chunks(folder, name)
        for chunk in range(chunks):
            for sample in await folder.read_chunk(name, chunk):
                hashes.inputs[hash_text(sample.id)] = _hash_input(sample)
                if with_scoring:
                    hashes.scorings[hash_text(sample.id)] = _hash_scoring(sample)
    return hashes


def hash_text(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


async def samples_match(folder: BatchFolder, record: BatchRecord, others: Iterable[Sample]) -> bool:
    """Tell whether the samples are the batch's present ones, in order. Raises Altered."""
    rest = iter(others)
    for chunk in range(record.chunks):
        for sample in await folder.read_chunk(record.samples, chunk):
            if next(rest, None) != sample:
                return False
    return next(rest, None) is None


async def list_sample_sets(folder: BatchFolder) -> list[str]:
    """List the names of a batch's sample sets in the store."""
    return await list_folders(folder.store, _prefix(folder))


async def _count_chunks(folder: BatchFolder, name: str) -> int:
    """Count the chunks of a set without a gap, as the last ones may not be written yet."""
    prefix, count = f"{_prefix(folder)}{name}/", 0
    async for key in list_keys(folder.store, prefix):
        if int(key[len(prefix) :].removesuffix(".jsonl")) != count:
            break
        count += 1
    return count


def _prefix(folder: BatchFolder) -> str:
    return f"{batch_prefix(folder.user_id, folder.name)}samples/"


def _hash_input(sample: Sample) -> int:
    return hash_text(sample.model_dump_json(exclude=SCORING_FIELDS))


def _hash_scoring(sample: Sample) -> int:
    return hash_text(sample.model_dump_json(include=SCORING_FIELDS))
