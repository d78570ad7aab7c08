"""What a conversation knows that is an attempt at a sample of a batch, and what it tells of it."""

from typing import Literal, TypeAlias

from pydantic import Field

from events.base import Frozen
from events.usage import Usage

TrialStatus: TypeAlias = Literal["scored", "limited", "failed"]


class Allowance(Frozen):
    """What may be spent in all before the batch has to be asked for more; None: anything."""

    cost: float | None = None
    tokens: int | None = None


class Trial(Frozen):
    """Which attempt at which sample. The sample itself, which may be large, is in the store.

    `samples` names the set of them, `chunk` and `line` say where in it the sample stands. With a
    `setup` its files and its command come before the first message; `turns` counts the messages
    that are said later, one a turn. `scoring` is how many seconds
    the scorers may take; `look` says that they look at the workspace. Epochs and attempts count
    from 0.
    """

    batch: str
    samples: str
    chunk: int
    line: int
    epoch: int = 0
    number: int = 0
    setup: bool = False
    turns: int = 0
    scoring: float = 60.0
    look: bool = False
    allowance: Allowance | None = None


class Scored(Frozen):
    """What came of a trial, as far as its batch counts it: the whole of it is in the store.

    `numbers` are by scorer, or by `scorer/metric` where there are several. `failure` is the kind,
    `code` that of the failure or of the limit. `usage` has the graders' in it.
    """

    status: TrialStatus
    numbers: dict[str, float] = Field(default_factory=dict)
    failure: str | None = None
    code: str | None = None
    detail: str = ""
    stuck: bool = False
    usage: Usage = Usage()
    seconds: float = 0.0
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0


class AllowanceAsked(Frozen):
    """A conversation, or a part of a batch, cannot go on within its allowance.

    `spent` is what it has spent so far, `wanted` what it must be allowed in all.
    """

    holder: str
    spent: Allowance
    wanted: Allowance
