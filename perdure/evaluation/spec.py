"""The spec of a batch: dataset, agent, limits and scorers."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from perdure.agent.policies import Moment
from perdure.agent.spec import Agent, ModelSpec
from perdure.errors import PerdureError
from perdure.evaluation.limits import BatchLimits, Retries, SampleLimits
from perdure.evaluation.reducers import required_epochs
from perdure.evaluation.sample import SampleId
from perdure.evaluation.scorers.scorers import AnyScorer
from perdure.events.base import Frozen
from perdure.events.validation_errors import describe_errors

Format: TypeAlias = Literal["jsonl", "csv", "parquet"]

FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""Formats by file extension."""

MAX_NAME_CHARS = 200
"""The most characters of a batch's name."""

STORING_TIMEOUT = 60.0
"""Seconds for reading the log of an attempt and storing its result."""

REFERENCE_PATTERN = re.compile(r"[\w.]+:[\w.]+")
"""The pattern of a `module:attribute`."""


class InvalidBatch(PerdureError, ValueError):
    """An invalid batch; the message is a sentence with the key to correct."""


class FieldMap(Frozen):
    """The names of a dataset's columns. A column that is set here has to be in every row.

    `metadata` is a column of objects, or a list of columns.
    """

    id: str = "id"
    input: str = "input"
    turns: str = "turns"
    target: str = "target"
    files: str = "files"
    setup: str = "setup"
    metadata: str | tuple[str, ...] = "metadata"


class DatasetSpec(Frozen):
    """A file, or a Python function, list or iterator as `module:attribute`."""

    path: str | None = None
    """The file, relative to the batch's own."""
    format: Format | None = None
    """The format of the file, by default that of its extension."""
    function: str | None = None
    """A function that yields the samples, or a list of them, as `module:attribute`."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """The keyword arguments of the function."""
    fields: FieldMap = FieldMap()
    """The names of the columns, where they differ."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.path is None) == (self.function is None):
            raise ValueError("name a file in `path` or a `function` as module:attribute, not both")
        if self.arguments and self.function is None:
            raise ValueError("only a `function` takes arguments, and the dataset is a file")
        if self.function is not None and not REFERENCE_PATTERN.fullmatch(self.function):
            raise ValueError(f"{self.function!r} is no function: write it as module:attribute")
        if self.path is not None:
            _ = self.file_format
        return self

    @property
    def file_format(self) -> Format | None:
        """The format of the file; None for a function. Raises ValueError if it is unknown."""
        if self.path is None or self.format is not None:
            return self.format
        ending = self.path[self.path.rfind(".") :].lower()
        if ending not in FORMATS:
            raise ValueError(
                f"{self.path!r} does not end in {', '.join(FORMATS)}: say its `format`, one of "
                f"{', '.join(get_args(Format))}"
            )
        return FORMATS[ending]


def _parse_dataset(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {"function" if REFERENCE_PATTERN.fullmatch(value) else "path": value}


def _parse_model(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


BatchName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=MAX_NAME_CHARS)
]
AnyDataset: TypeAlias = Annotated[DatasetSpec, BeforeValidator(_parse_dataset)]
AnyModel: TypeAlias = Annotated[ModelSpec, BeforeValidator(_parse_model)]


class BatchSpec(Frozen):
    """The spec of a batch. `limits` are of each sample, `batch_limits` of all samples together.

    With several `models` each has a batch of its own, of `split_by_model`. The first of `reducers`
    is shown where there is room for only one. A lower `priority` runs first.
    """

    name: BatchName
    """The name by which results are stored: the same name is the same batch."""
    dataset: AnyDataset
    """The samples: a file, `module:attribute`, or a table."""
    agent: Agent
    """The agent; `model` beside it sets its model."""
    models: tuple[AnyModel, ...] = ()
    """Several models, each with a batch of its own."""
    limits: SampleLimits = SampleLimits()
    """The limits of each sample."""
    batch_limits: BatchLimits = BatchLimits()
    """The limits of all samples together, at which the batch pauses."""
    concurrency: int = Field(default=10, ge=1, le=10_000)
    """The number of samples that run at the same time."""
    epochs: int = Field(default=1, ge=1, le=1000)
    """How often each sample is run."""
    scorers: tuple[AnyScorer, ...] = ()
    """Scorers by kind, by `module:attribute`, or as tables with options."""
    reducers: tuple[str, ...] = Field(default=("mean",), min_length=1)
    """Ways to make one score of a sample's epochs."""
    retries: Retries = Retries()
    """The failures that are retried."""
    pause_after: Annotated[int, Field(ge=1)] | None = None
    """Failures in a row at which the batch pauses; None means ten, or `concurrency` if larger."""
    seed: int = 0
    """The seed of `shuffle`."""
    shuffle: bool = False
    """Whether the samples run in a random order."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Run only so many samples, the first ones of the order."""
    ids: tuple[SampleId, ...] = ()
    """Run only the samples with these ids."""
    priority: int = Field(default=4, ge=1, le=5)
    """Temporal's priority: a lower number goes first, and a person's conversation has 3."""

    @model_validator(mode="before")
    @classmethod
    def _fill_agent_model(cls, value: Any) -> Any:
        """Set the agent's model from `model = "…"` or the first of `models` beside the agent."""
        if not isinstance(value, Mapping):
            return value
        table = dict(value)
        if "model" in table:
            if "models" in table:
                raise ValueError("name `model` or `models`, not both")
            table["models"] = [table.pop("model")]
        agent, models = table.get("agent", {}), table.get("models")
        first = models[0] if isinstance(models, list | tuple) and models else None
        if isinstance(agent, Mapping):
            model = agent.get("model") or first
            table["agent"] = {**agent, "model": model} if model else agent
        return table

    @field_validator("agent")
    @classmethod
    def _check_unattended(cls, agent: Agent) -> Agent:
        if agent.confirmation.policy != "never":
            raise ValueError('nobody is there to allow an action: use confirmation.policy "never"')
        if agent.workspace is not None:
            raise ValueError("each sample works in a folder of its own: leave out `workspace`")
        return agent

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        for name in self.reducers:
            if (needed := required_epochs(name)) > self.epochs:
                raise ValueError(f"{name!r} needs {needed} epochs, and there are {self.epochs}")
        names = [scorer.score_name for scorer in self.scorers]
        _check_unique("scorers", names, "give one of them a `name`")
        _check_unique("models", [_slug(model.name) for model in self.models], "leave one out")
        _check_unique("reducers", self.reducers, "leave one out")
        for name in (run.name for run in split_by_model(self)):
            if len(name) > MAX_NAME_CHARS:
                raise ValueError(f"{name!r} is over {MAX_NAME_CHARS} characters: shorten `name`")
        return self

    @property
    def scoring_timeout(self) -> float:
        """The timeout of all scorers of an attempt together, in seconds."""
        limits = (scorer.time_limit(self.agent.model) for scorer in self.scorers)
        return sum(limits) + STORING_TIMEOUT

    @property
    def needs_workspace(self) -> bool:
        """A scorer needs the workspace."""
        return any(scorer.needs_workspace for scorer in self.scorers)


def parse_batch(table: Mapping[str, Any]) -> BatchSpec:
    """Parse a batch spec. Raises InvalidBatch if it is invalid."""
    try:
        batch = BatchSpec.model_validate(table)
    except ValidationError as error:
        raise InvalidBatch(f"The batch cannot be run: {describe_errors(error)}.") from error
    if key := next(_unknown_keys(table, batch), None):
        raise InvalidBatch(f"The batch cannot be run: there is no key {key!r}.")
    return check_scorers(batch)


def check_scorers(batch: BatchSpec) -> BatchSpec:
    """Check the scorers, and return the batch. Raises InvalidBatch if one is invalid."""
    for index, scorer in enumerate(batch.scorers):
        try:
            scorer.check()
        except ValueError as error:
            raise InvalidBatch(f"The batch cannot be run: scorers.{index}: {error}.") from error
    return batch


def split_by_model(batch: BatchSpec) -> tuple[BatchSpec, ...]:
    """Split a batch into one for each model, named after it if there are several."""
    several = len(batch.models) > 1
    return tuple(
        batch.model_copy(
            update={
                "name": f"{batch.name}-{_slug(model.name)}" if several else batch.name,
                "agent": batch.agent.model_copy(update={"model": model}),
                "models": (),
            }
        )
        for model in batch.models or (batch.agent.model,)
    )


def agent_with_limits(batch: BatchSpec, deadline: Moment | None = None) -> Agent:
    """Return the agent with the narrower of its own limits and the sample's.

    `deadline` is the end of the sample's time, in UTC.
    """
    own, limits = batch.agent.limits, batch.limits
    narrower = {
        "max_iterations": _minimum(own.max_iterations, limits.messages),
        "max_tokens": _minimum(own.max_tokens, limits.tokens),
        "max_budget": _minimum(own.max_budget, limits.cost),
        "deadline": _minimum(own.deadline, deadline),
    }
    return batch.agent.model_copy(update={"limits": own.model_copy(update=narrower)})


def _minimum(*limits: Any) -> Any:
    return min((limit for limit in limits if limit is not None), default=None)


def _check_unique(key: str, names: Any, hint: str) -> None:
    if duplicates := sorted({name for name in names if list(names).count(name) > 1}):
        raise ValueError(f"{key} has {duplicates[0]!r} twice: {hint}")


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")


def _unknown_keys(raw: Any, parsed: Any) -> Iterator[str]:
    """Yield the keys that tolerant models ignore; in a batch spec they are typing mistakes."""
    match parsed, raw:
        case BaseModel(), Mapping():
            fields = {name: getattr(parsed, name) for name in type(parsed).model_fields}
            if isinstance(parsed, BatchSpec):
                fields["model"] = next(iter(parsed.models), None)
            for key, value in raw.items():
                if key not in fields:
                    yield str(key)
                else:
                    yield from (f"{key}.{inner}" for inner in _unknown_keys(value, fields[key]))
        case tuple(), list() | tuple():
            for index, (value, item) in enumerate(zip(raw, parsed, strict=False)):
                yield from (f"{index}.{inner}" for inner in _unknown_keys(value, item))
