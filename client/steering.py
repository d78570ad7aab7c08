"""What people tell a conversation besides talking to it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from agent.start import Recorded
from agent.state import State
from client.errors import Conflict, NotFound
from client.remote import Remote
from storage.errors import Damaged, Missing, read_only
from storage.log import EventLog
from storage.state import state_of
from storage.verify import must_be_whole

T = TypeVar("T")

WAIT = 60.0
"""Seconds for a worker to take up what is to be answered."""


class Steered:
    """Each call but `pause` opens a conversation again whose workflow has ended.

    Each raises NotFound, Conflict where the conversation is closed, and Unreachable; those that
    are answered raise Invalid where they make no sense, and TimedOut where no worker took them.
    """

    log: EventLog
    remote: Remote

    async def pause(self) -> None:
        """Pause between two steps. Raises Conflict too where no workflow is running."""
        await self.must_be_open()
        await self.remote.signal("pause")

    async def resume(self) -> None:
        """Go on after a pause, an interrupt, an error or a limit."""
        await self._tell("resume")

    async def interrupt(self) -> None:
        """Stop the model or the tool that is at work; the conversation waits for its user."""
        await self._tell("interrupt")

    async def condense(self) -> None:
        """Make the view smaller before the model is asked again."""
        await self._tell("condense")

    async def close(self) -> None:
        """End the conversation for good; its log stays."""
        await self._tell("close")

    async def respond(
        self,
        accept: bool,
        calls: Sequence[str] = (),
        through: int | None = None,
        reason: str = "",
    ) -> list[str]:
        """Accept or reject waiting actions; the ids of the calls that were meant.

        They are named by their call ids, or are all up to slot `through`: nothing is accepted
        unseen. The model is told the `reason` of a rejection.
        """
        sent = {"accept": accept, "calls": list(calls), "through": through, "reason": reason}
        return await self._ask("respond", sent, list[str])

    async def configure(self, changes: Mapping[str, Any]) -> Recorded:
        """Change fields of the spec: model, limits, confirmation, tags …; where it is recorded."""
        return await self._ask("configure", dict(changes), Recorded)

    async def note(
        self,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Note what steers nothing; `tags` replace those before, `state` is merged by key."""
        given = {"title": title, "tags": tags, "state": state}
        sent = {name: value for name, value in given.items() if value is not None}
        await self._ask("note", sent, type(None))

    async def must_be_open(self) -> State:
        """What the log tells.

        Raises NotFound, and Conflict where the conversation is closed or its log is damaged. While
        its workflow runs, that one meets what is damaged.
        """
        alive = await self.remote.is_alive()
        try:
            state = await state_of(self.log)
            if not alive:
                await must_be_whole(self.log)
        except (Missing, Damaged) as error:
            raise Conflict(read_only(self.log.conversation_id, error)) from error
        if state.next_seq == 0 and not alive:
            raise NotFound.of(self.log.conversation_id)
        if state.status == "closed":
            raise Conflict(
                f"The conversation {self.log.conversation_id} is closed.",
                "Start another one with `perdure run`.",
            )
        return state

    async def _tell(self, signal: str) -> None:
        state = await self.must_be_open()
        await self.remote.signal_or_begin(signal, [], title=state.title)

    async def _ask(self, update: str, sent: Any, result: type[T]) -> T:
        state = await self.must_be_open()
        return await self.remote.update_or_begin(update, sent, result, WAIT, state.title)
