"""What a batch is: a dataset, an agent, its limits, and how what comes of it is scored."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from agent.spec import Dollars, ModelSpec, Moment, Seconds, Spec
from evaluation.faults import faults
from evaluation.reduce import epochs_of
from evaluation.result import FailureKind
from evaluation.sample import SampleId
from evaluation.scorers.scorers import AnyScorer
from events.base import Frozen

Format: TypeAlias = Literal["jsonl", "csv", "parquet"]

FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""By the ending of a file's name."""

LONGEST = 200
"""Characters of a batch's name."""

REFERENCE = re.compile(r"[\w.]+:[\w.]+")
"""`module:attribute`."""


class BadBatch(ValueError):
    """A batch that cannot be run; the text is a sentence with the key that has to be mended."""


class FieldMap(Frozen):
    """Which column holds what. A column that is named here has to be in every row.

    `metadata` is a column that holds an object, or a list of columns.
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
    format: Format | None = None
    """None: as the file's name ends."""
    function: str | None = None
    fields: FieldMap = FieldMap()

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if (self.path is None) == (self.function is None):
            raise ValueError("name a file in `path` or a `function` as module:attribute, not both")
        if self.function is not None and not REFERENCE.fullmatch(self.function):
            raise ValueError(f"{self.function!r} is no function: write it as module:attribute")
        if self.path is not None:
            _ = self.kind
        return self

    @property
    def kind(self) -> Format | None:
        """The format of the file; a function has none. Raises ValueError."""
        if self.path is None or self.format is not None:
            return self.format
        ending = self.path[self.path.rfind(".") :].lower()
        if ending not in FORMATS:
            raise ValueError(
                f"{self.path!r} does not end in {', '.join(FORMATS)}: say its `format`, one of "
                f"{', '.join(get_args(Format))}"
            )
        return FORMATS[ending]


class SampleLimits(Frozen):
    """Where a sample ends, and is scored as it stands.

    `messages` counts the model's answers; `tokens` both ways; `cost` is in US dollars, `time` in
    seconds.
    """

    messages: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    cost: Dollars | None = None
    time: Seconds | None = None


class BatchLimits(Frozen):
    """Where a batch pauses and asks: US dollars, tokens both ways, and seconds at work."""

    cost: Dollars | None = None
    tokens: int | None = Field(default=None, ge=1)
    time: Seconds | None = None


class Retries(Frozen):
    """How often an attempt that failed is made again, and after which kinds of failure."""

    times: int = Field(default=2, ge=0, le=100)
    on: tuple[FailureKind, ...] = ("infrastructure",)


def _dataset(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    return {"function" if REFERENCE.fullmatch(given) else "path": given}


def _model(given: Any) -> Any:
    return {"name": given} if isinstance(given, str) else given


def _id(given: Any) -> Any:
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


BatchName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=LONGEST)
]
AnyDataset: TypeAlias = Annotated[DatasetSpec, BeforeValidator(_dataset)]
AnyModel: TypeAlias = Annotated[ModelSpec, BeforeValidator(_model)]
AnyId: TypeAlias = Annotated[SampleId, BeforeValidator(_id)]


class BatchSpec(Frozen):
    """`limits` are of each sample, `batch_limits` of all together.

    With several `models` it is a batch of its own for each: see `runs`. The first of `reducers` is
    the one that is shown where there is room for one. A lower `priority` goes first.
    """

    name: BatchName
    dataset: AnyDataset
    agent: Spec
    models: tuple[AnyModel, ...] = ()
    limits: SampleLimits = SampleLimits()
    batch_limits: BatchLimits = BatchLimits()
    concurrency: int = Field(default=10, ge=1, le=10_000)
    epochs: int = Field(default=1, ge=1, le=1000)
    scorers: tuple[AnyScorer, ...] = ()
    reducers: tuple[str, ...] = Field(default=("mean",), min_length=1)
    retries: Retries = Retries()
    seed: int = 0
    shuffle: bool = False
    limit: Annotated[int, Field(ge=1)] | None = None
    ids: tuple[AnyId, ...] = ()
    priority: int = Field(default=4, ge=1, le=5)

    @model_validator(mode="before")
    @classmethod
    def _agent_of_the_first_model(cls, given: Any) -> Any:
        """One model may be named beside the agent: `model = "…"`, or the first of `models`."""
        if not isinstance(given, Mapping):
            return given
        found = dict(given)
        if "model" in found:
            if "models" in found:
                raise ValueError("name `model` or `models`, not both")
            found["models"] = [found.pop("model")]
        agent, named = found.get("agent", {}), found.get("models")
        first = named[0] if isinstance(named, list | tuple) and named else None
        if isinstance(agent, Mapping):
            model = agent.get("model") or first
            found["agent"] = {**agent, **({"model": _model(model)} if model else {})}
        return found

    @field_validator("agent")
    @classmethod
    def _works_alone(cls, agent: Spec) -> Spec:
        if agent.confirmation.policy != "never":
            raise ValueError('nobody is there to allow an action: use confirmation.policy "never"')
        if agent.workspace is not None:
            raise ValueError("each sample works in a folder of its own: leave out `workspace`")
        return agent

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        for name in self.reducers:
            if (needed := epochs_of(name)) > self.epochs:
                raise ValueError(f"{name!r} needs {needed} epochs, and there are {self.epochs}")
        _unique("scorers", [one.called for one in self.scorers], "give one of them a `name`")
        _unique("models", [_slug(one.name) for one in self.models], "leave one out")
        _unique("reducers", self.reducers, "leave one out")
        if longest := [one.name for one in runs(self) if len(one.name) > LONGEST]:
            raise ValueError(f"{longest[0]!r} is over {LONGEST} characters: shorten `name`")
        return self


def batch_of(table: Mapping[str, Any]) -> BatchSpec:
    """Raises BadBatch."""
    try:
        batch = BatchSpec.model_validate(table)
    except ValidationError as error:
        raise BadBatch(f"The batch cannot be run: {faults(error)}.") from error
    if stray := next(_strays(table, batch), None):
        raise BadBatch(f"The batch cannot be run: there is no key {stray!r}.")
    return checked(batch)


def checked(batch: BatchSpec) -> BatchSpec:
    """The batch itself, if its scorers can score. Raises BadBatch."""
    for at, scorer in enumerate(batch.scorers):
        try:
            scorer.check()
        except ValueError as error:
            raise BadBatch(f"The batch cannot be run: scorers.{at}: {error}.") from error
    return batch


def runs(batch: BatchSpec) -> tuple[BatchSpec, ...]:
    """One batch for each model, named after it where there are several."""
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


def agent_of(batch: BatchSpec, deadline: Moment | None = None) -> Spec:
    """The agent with the limits of a sample, where they are narrower than its own.

    `deadline` is the moment at which the time of the sample is over, in UTC.
    """
    own, limits = batch.agent.limits, batch.limits
    narrower = {
        "max_iterations": _least(own.max_iterations, limits.messages),
        "max_tokens": _least(own.max_tokens, limits.tokens),
        "max_budget": _least(own.max_budget, limits.cost),
        "deadline": _least(own.deadline, deadline),
    }
    return batch.agent.model_copy(update={"limits": own.model_copy(update=narrower)})


def _least(*limits: Any) -> Any:
    return min((one for one in limits if one is not None), default=None)


def _unique(key: str, names: Any, hint: str) -> None:
    if twice := sorted({name for name in names if list(names).count(name) > 1}):
        raise ValueError(f"{key} has {twice[0]!r} twice: {hint}")


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")


def _strays(given: Any, known: Any) -> Iterator[str]:
    """Keys that a tolerant value has let pass: here they are somebody's typing mistakes."""
    match known, given:
        case BaseModel(), Mapping():
            fields = {name: getattr(known, name) for name in type(known).model_fields}
            if isinstance(known, BatchSpec):
                fields["model"] = next(iter(known.models), None)
            for key, value in given.items():
                if key not in fields:
                    yield str(key)
                else:
                    yield from (f"{key}.{one}" for one in _strays(value, fields[key]))
        case tuple(), list() | tuple():
            for at, (value, one) in enumerate(zip(given, known, strict=False)):
                yield from (f"{at}.{stray}" for stray in _strays(value, one))
