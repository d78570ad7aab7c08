"""What the workflow of a batch is started with, told and given."""

from typing import Literal, TypeAlias

from pydantic import Field

from agent.trial import Scored, Trial
from evaluation.ledger import Amount, Ledger
from evaluation.progress import Progress
from evaluation.spec import Retries
from events.base import Frozen

MOST_RUNNING = 250
"""Samples that one workflow has at work: what it hands over to its next run is bounded."""

MOST_EXPECTED = 20_000
"""Epochs of samples of one workflow; a larger batch is run in parts, side by side."""

Mode: TypeAlias = Literal["missing", "failed", "rescore"]
"""Run what has no result yet; also what has failed; or score again what has one."""


class Job(Frozen):
    """One attempt that is to be made. `sample` is the sample's id; `counted` is what its epoch
    counts as until then, where it does already."""

    sample: str
    chunk: int
    line: int
    setup: bool = False
    turns: int = 0
    epoch: int = 0
    number: int = 0
    counted: Scored | None = None


class Place(Frozen):
    """Where in a set of samples the jobs go on."""

    chunk: int
    line: int = 0
    epoch: int = 0


class BatchStart(Frozen):
    """`samples` names the set of samples, of which this workflow runs the chunks from `first` on
    and before `end`, `expected` epochs of them in all; None: nobody has counted them yet.

    `fresh` says that nothing has a result yet. `ledger` is the limit of what is spent, `time` how
    many seconds it may be at work. `scoring`, `look` and `most` (the limits of a sample) are for
    each trial, `lanes` the queues of limited models; after `long` history events a run hands over
    to the next. With several `parts` it has as many workflows run a part each, of which this is
    `part`.

    All else is handed on from one run of the workflow to the next: `again` are attempts that are
    made once more, `running` are by conversation id, `asking` want that much in all, `in_a_row`
    counts failures that are no sample's fault.
    """

    name: str
    user_id: str
    samples: str
    first: int = 0
    end: int
    expected: int | None = None
    mode: Mode = "missing"
    fresh: bool = False
    concurrency: int = 10
    epochs: int = 1
    retries: Retries = Retries()
    priority: int = 4
    time: float | None = None
    scoring: float = 60.0
    look: bool = False
    most: Amount | None = None
    searchable: bool = False
    model: str = ""
    lanes: dict[str, str] | None = None
    long: int = 2_000
    parts: int = 1
    part: int | None = None
    place: Place | None = None
    again: tuple[Job, ...] = ()
    running: dict[str, Job] = Field(default_factory=dict)
    ledger: Ledger = Ledger()
    progress: Progress | None = None
    asking: dict[str, Amount] = Field(default_factory=dict)
    pause: str | None = None
    held: bool = False
    in_a_row: int = 0


class Page(Frozen):
    """Some jobs, and where those behind them begin."""

    jobs: tuple[Job, ...] = ()
    then: Place


class SampleSet(Frozen):
    """The samples of a batch, of which nothing has a result yet where it is `fresh`."""

    name: str
    user_id: str
    samples: str
    epochs: int
    fresh: bool = False


class PageAsked(Frozen):
    """Which jobs there are from this place on, in its chunk."""

    of: SampleSet
    place: Place
    mode: Mode = "missing"


class Surveyed(Frozen):
    """Count these chunks, and what of them has a result already."""

    of: SampleSet
    first: int
    end: int


class Followed(Frozen):
    """A conversation that this run of the workflow has not started itself, and what became of it.

    Neither `scored` nor `failure`: Temporal does not know it any more.
    """

    conversation_id: str
    scored: Scored | None = None
    failure: str | None = None


class Lost(Frozen):
    """An attempt whose conversation's workflow failed: there is nobody else to record it."""

    user_id: str
    trial: Trial
    detail: str
    code: str = "workflow_failed"


class Rescoring(Frozen):
    """An attempt that is to be scored again, from its log."""

    user_id: str
    trial: Trial
    sample: str


class Retune(Frozen):
    """What can be changed while a batch runs: None stays as it is.

    `cost` is in US dollars, `tokens` both ways, `time` in seconds; of the whole batch.
    """

    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, gt=0)
    time: float | None = Field(default=None, gt=0, allow_inf_nan=False)
