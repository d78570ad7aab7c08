"""The interface of a catalog, as the commands need it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from perdure.storage.summary import Summary


WalkOrder: TypeAlias = Literal["newest", "oldest", "activity"]


class Catalog(Protocol):
    """The conversations and batches of one user."""

    async def newest(self) -> str | None:
        """Return the id of the newest conversation; None where there is none."""

    async def list_by_prefix(self, start: str, limit: int) -> list[str]:
        """List the ids that begin with `start`, at most `limit`."""

    async def list_batches(self) -> list[str]:
        """List the names of all batches."""

    async def summarize(self, ids: list[str]) -> list[Summary | None]:
        """Summarize conversations; None stands for one of which nothing is recorded."""

    def walk(
        self,
        may_match: Callable[[str], bool],
        limit: int,
        *,
        order: WalkOrder = "newest",
        with_message: bool = False,
    ) -> AsyncIterator[Summary]:
        """Yield the summaries of the conversations in order, of which some `limit` are wanted.

        `may_match` tells by the id alone whether a conversation can be wanted. `with_message` asks
        for the first message, too.
        """

    @property
    def ids(self) -> list[str]:
        """The ids that the last walk has seen, of which those in a list are distinct."""
