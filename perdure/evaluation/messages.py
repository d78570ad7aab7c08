"""Inputs, updates and activity messages of the workflow of a batch."""

from typing import Literal, TypeAlias

from pydantic import Field

from perdure.agent.loop.attempt import Attempt, AttemptSummary
from perdure.evaluation.ledger import Amount, Ledger
from perdure.evaluation.limits import Retries
from perdure.evaluation.progress import Progress
from perdure.events.base import Frozen

MAX_RUNNING_ATTEMPTS = 250
"""The most samples one workflow runs at once; it bounds the input of its next run."""

MAX_WORKFLOW_EPOCHS = 20_000
"""The most epochs of samples in one workflow; a larger batch is sharded."""

BatchMode: TypeAlias = Literal["missing", "failed", "rescore"]
"""Run samples without a result, also failed ones, or score existing attempts again."""


class SamplePosition(Frozen):
    """A position in a set of samples."""

    chunk: int
    line: int = 0
    epoch: int = 0


class BatchStart(Frozen):
    """The input of a batch's workflow, or of one shard of it.

    From `place` on the fields are the state that a run of the workflow hands to the next.
    """

    name: str
    user_id: str
    samples: str
    """The name of the set of samples."""
    first: int = 0
    """The first chunk of samples to run; `end` is the one after the last."""
    end: int
    expected: int | None = None
    """The epochs of samples in all; None until they are counted."""
    mode: BatchMode = "missing"
    fresh: bool = False
    """The batch has no results yet."""
    concurrency: int = 10
    epochs: int = 1
    retries: Retries = Retries()
    priority: int = 4
    time: float | None = None
    """The most seconds at work."""
    scoring: float = 60.0
    """The timeout of all scorers of an attempt, in seconds."""
    look: bool = False
    """A scorer needs the workspace."""
    most: Amount | None = None
    """The limits of one sample."""
    searchable: bool = False
    model: str = ""
    lanes: dict[str, str] | None = None
    """The task queues of rate-limited models."""
    long: int = 2_000
    """The number of history events after which the workflow continues as new."""
    parts: int = 1
    """The number of shards; with several, the parent starts a workflow for each."""
    part: int | None = None
    """The index of this shard."""
    pause_after: int | None = None
    """The failures in a row after which it pauses; None for ten, or as many as run at a time."""
    place: SamplePosition | None = None
    again: tuple[Attempt, ...] = ()
    """Attempts to be made again."""
    running: dict[str, Attempt] = Field(default_factory=dict)
    """Running attempts by conversation id."""
    ledger: Ledger = Ledger()
    progress: Progress | None = None
    asking: dict[str, Amount] = Field(default_factory=dict)
    """The amounts needed in all by attempts that wait for budget, by holder."""
    pause: str | None = None
    held: bool = False
    in_a_row: int = 0
    """The number of consecutive failures that somebody can mend."""
    judged: int = 0
    """The attempts since the start or the last resumption; `judged_failures` of them failed."""
    judged_failures: int = 0
    blocked: bool = False
    """It has paused for failures or for code that cannot be loaded."""


class CodeCheckRequest(Frozen):
    """A request to load the code that a batch names, without calling any."""

    user_id: str
    name: str


class CodeCheck(Frozen):
    """The result of loading a batch's code: a sentence for whoever has to act, or None."""

    problem: str | None = None


class AttemptPage(Frozen):
    """A page of planned attempts, and the position of the next page."""

    jobs: tuple[Attempt, ...] = ()
    then: SamplePosition


class SampleSet(Frozen):
    """The samples of a batch; if it is `fresh`, none has a result yet."""

    name: str
    user_id: str
    samples: str
    epochs: int
    fresh: bool = False


class AttemptPageRequest(Frozen):
    """A request for the planned attempts from a position to the end of its chunk."""

    of: SampleSet
    place: SamplePosition
    mode: BatchMode = "missing"


class CountRequest(Frozen):
    """A request to count the samples of some chunks, and their results."""

    of: SampleSet
    first: int
    end: int


class AwaitedConversation(Frozen):
    """A conversation that an earlier run of the workflow started, and its outcome.

    With neither `scored` nor `failure`, Temporal no longer knows the conversation.
    """

    conversation_id: str
    scored: AttemptSummary | None = None
    failure: str | None = None


class LostAttempt(Frozen):
    """An attempt whose conversation's workflow failed, so that its batch has to record it."""

    user_id: str
    attempt: Attempt
    detail: str


class RescoreRequest(Frozen):
    """A request to score an attempt again, from its log."""

    user_id: str
    attempt: Attempt


class LimitsUpdate(Frozen):
    """A change of the limits of a running batch; None leaves a limit unchanged.

    `cost` is in US dollars, `tokens` input and output, `time` in seconds; all of the whole batch.
    """

    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, gt=0)
    time: float | None = Field(default=None, gt=0, allow_inf_nan=False)
