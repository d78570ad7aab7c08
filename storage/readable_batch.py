"""The interface of a batch that is read, whether the store itself or a gateway is asked."""

from collections.abc import AsyncIterator
from typing import Protocol

from perdure.evaluation.result import SampleResult
from perdure.evaluation.sample import Sample
from perdure.storage.log.readable import ReadableLog


class ReadableBatch(Protocol):
    """The samples of a batch and their results."""

    @property
    def user_id(self) -> str: ...
    @property
    def name(self) -> str: ...

    async def read_chunk(self, samples: str, number: int) -> list[Sample]:
        """Read a part of the samples of a set. Raises Altered."""

    def read_results(self) -> AsyncIterator[SampleResult]:
        """Yield every sample that has a result, once with all attempts. Raises Altered."""

    async def list_attempts(self, sample: str) -> list[tuple[int, int]]:
        """List epoch and number of every attempt at a sample that has a result, in order."""

    async def read_result(self, sample: str, epoch: int, number: int) -> SampleResult | None:
        """Read the sample with this one attempt; None if it has no result. Raises Altered."""

    def open_log(self, conversation_id: str) -> ReadableLog:
        """Open the log of the conversation of an attempt."""
