"""The limits of samples and batches, and the retries of failed attempts."""

from pydantic import Field

from perdure.agent.policies import Dollars, Seconds
from perdure.evaluation.result import FailureKind
from perdure.events.base import Frozen


class SampleLimits(Frozen):
    """The limits at which a sample ends, and is scored as it is.

    `messages` counts the model's answers, `tokens` input and output; `cost` is in US dollars,
    `time` in seconds.
    """

    messages: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    cost: Dollars | None = None
    time: Seconds | None = None


class BatchLimits(Frozen):
    """The limits at which a batch pauses: US dollars, tokens in and out, seconds at work."""

    cost: Dollars | None = None
    tokens: int | None = Field(default=None, ge=1)
    time: Seconds | None = None


class Retries(Frozen):
    """The number of retries of a failed attempt, and the kinds of failure that are retried."""

    times: int = Field(default=2, ge=0, le=100)
    on: tuple[FailureKind, ...] = ("infrastructure",)
