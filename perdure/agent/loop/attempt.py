"""An attempt at a sample of a batch, as its conversation knows and reports it."""

from typing import Literal, TypeAlias

from pydantic import Field

from perdure.events.base import Frozen
from perdure.events.usage import Usage

AttemptStatus: TypeAlias = Literal["scored", "limited", "failed"]


class Allowance(Frozen):
    """The total that may be spent before the batch must be asked for more; None: any amount."""

    cost: float | None = None
    tokens: int | None = None


class AttemptSummary(Frozen):
    """The result of an attempt as its batch counts it; the store has the whole result.

    `code` is the error code of a failure, or the code of a limit. `usage` includes the graders'.
    """

    status: AttemptStatus
    scores: dict[str, float] = Field(default_factory=dict)
    """Scores by scorer, or by `scorer/metric` where a scorer has several."""
    failure: str | None = None
    """The kind of the failure."""
    code: str | None = None
    detail: str = ""
    stuck: bool = False
    usage: Usage = Usage()
    seconds: float = 0.0
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0


class Attempt(Frozen):
    """An attempt at a sample. The sample itself, which may be large, is in the store.

    `sample` is the sample's id, `sample_set` names the stored set, `chunk` and `line` the sample's
    place in it. Epochs and attempts (`number`) count from 0.
    """

    batch: str
    sample: str
    sample_set: str
    chunk: int
    line: int
    epoch: int = 0
    number: int = 0
    needs_setup: bool = False
    """Whether files or a command of the sample come before its first message."""
    later_turns: int = 0
    """Number of messages that follow the first one, one a turn."""
    counted: AttemptSummary | None = None
    """The result that counts for the epoch until this attempt begins."""
    scoring_timeout: float = 60.0
    """Seconds that the scorers may take."""
    scores_workspace: bool = False
    """Whether the scorers read the workspace."""
    allowance: Allowance | None = None


class AllowanceRequest(Frozen):
    """A request for a larger allowance, by a conversation or by a shard of a batch."""

    holder: str
    spent: Allowance
    """The amount spent so far."""
    needed: Allowance
    """The total that the holder needs to go on."""
