"""The requests and responses about batches."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from perdure.api.json_object import JsonObject, check_text
from perdure.evaluation.comparison import Comparison
from perdure.evaluation.messages import BatchMode
from perdure.evaluation.progress import Progress
from perdure.evaluation.result import SampleResult
from perdure.evaluation.sample import Sample
from perdure.events.base import Frozen, Tolerant

MAX_SAMPLES = 100_000


class StartBatch(Frozen):
    """`POST /v1/batches`: run a batch of one model, or attach to it if it runs already.

    `batch` has the keys that the file of a batch has, but for its `dataset`, in whose place the
    `samples` are; its `agent` may be the name of one that the installation offers.
    """

    batch: JsonObject
    samples: Annotated[
        tuple[dict[str, JsonValue], ...], Field(min_length=1, max_length=MAX_SAMPLES)
    ]
    """Rows, each with an `input` and what else a row of a dataset may have."""
    mode: BatchMode = "missing"
    options: Annotated[
        dict[str, JsonValue], Field(max_length=20, default_factory=dict), AfterValidator(check_text)
    ]
    """Recorded with the batch for people."""


class RetryBatch(Frozen):
    """`POST …/retry`: run the rest of a batch again, or score it again."""

    mode: BatchMode = "failed"


class Batch(Tolerant):
    """A batch with its progress; `model` and the numbers are those of its last run."""

    name: str
    progress: Progress
    model: str
    samples: int
    sample_set: str = ""
    """The name of its present set of samples, which are in `chunks` parts."""
    chunks: int = 0
    epochs: int
    owner: str = ""
    access: Literal["owner", "read", "write"] = "owner"
    attached: bool = False
    """The batch was running already when it was to be started."""
    trouble: str | None = None
    """The reason why it does not go on."""


class Batches(Tolerant):
    """The batches of a user by name; `next_cursor` asks for the following ones."""

    items: tuple[Batch, ...]
    next_cursor: str | None = None


class BatchResults(Tolerant):
    """A page of results in the order of the samples; those without any have no attempts."""

    items: tuple[SampleResult, ...]
    next_cursor: str | None = None


class BatchComparison(Tolerant):
    """`GET …/comparison`: the scores of a batch, against those of the `other`, sample by sample.

    `comparison` has the other batch as `before`, and this one as `after`.
    """

    other: str
    scorer: str
    metric: str
    """The metric of the scorer; a plain value has the metric ""."""
    reducer: str
    comparison: Comparison


class Samples(Tolerant):
    """A part of the samples of a batch, in order."""

    items: tuple[Sample, ...]
