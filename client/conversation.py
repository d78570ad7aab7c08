"""One conversation, as a program outside the workflow sees it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError

from agent.evolve import fold
from agent.inbox import Said, fault
from agent.spec import Spec
from agent.start import Recorded, Snapshot, snapshot
from agent.state import State
from client.diagnosis import QUIET, Care, trouble_of
from client.errors import Conflict, Invalid, NotFound, Unreachable
from client.live import Growing, live
from client.remote import Remote
from client.steering import WAIT, Steered
from client.trouble import ENDED, Trouble, unreachable
from events.entry import Entry
from events.projection import digest
from storage.errors import read_only
from storage.log import EventLog
from storage.scopes import session_state
from storage.state import legible_state, state_of


class Conversation(Steered):
    """Sends through Temporal, and reads the log: reading works with no worker and no server."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.log = remote.log
        self.id = remote.log.conversation_id

    @property
    def workflow_id(self) -> str:
        return self.remote.workflow_id

    @property
    def handle(self) -> WorkflowHandle[object, Snapshot]:
        return self.remote.handle

    async def start(
        self,
        text: str,
        spec: Spec,
        message_id: str | None = None,
        images: Sequence[str] = (),
    ) -> None:
        """Begin the conversation with a message; it is Temporal's when this returns.

        Raises Invalid, Unreachable.
        """
        message = _checked(text, message_id, images)
        await self.remote.signal_or_begin("send_message", [message], spec, text)

    async def send(
        self, text: str, message_id: str | None = None, images: Sequence[str] = ()
    ) -> None:
        """Send a message; the conversation is opened again if its workflow has ended.

        `images` are http addresses, or `data:image/…` with the image itself. Raises Invalid,
        NotFound, Conflict where the conversation is closed, Unreachable.
        """
        message = _checked(text, message_id, images)
        state = await self.must_be_open()
        await self.remote.signal_or_begin("send_message", [message], title=state.title)

    async def submit(
        self,
        text: str,
        message_id: str | None = None,
        wait: float = WAIT,
        images: Sequence[str] = (),
    ) -> Recorded:
        """Send a message, and wait until it is in the log.

        Raises what `send` raises, and TimedOut after `wait` seconds: then it may still arrive.
        """
        message = _checked(text, message_id, images)
        state = await self.must_be_open()
        return await self.remote.update_or_begin(
            "submit_message", message, Recorded, wait, state.title
        )

    async def state(self) -> State:
        """What the log tells. Raises NotFound."""
        state = await state_of(self.log)
        if state.next_seq == 0:
            raise NotFound.of(self.id)
        return state

    async def status(self) -> Snapshot:
        """Where it stands: asked of the workflow while it runs, else told by the log.

        Raises NotFound, StoreError, and Unreachable where neither Temporal nor the log knows of it.
        """
        found, trouble = await asyncio.gather(self.remote.asked(), self._trouble())
        found = found or await self._logged()
        if trouble is None or (trouble.cause == ENDED and found.status != "running"):
            return found
        return found.model_copy(update={"trouble": trouble.sentence})

    async def trouble(self, quiet: float = QUIET) -> Trouble | None:
        """Why what is to be done is not; also that a step has been silent for `quiet` seconds."""
        trouble = await self._trouble(quiet)
        return None if trouble and trouble.is_over else trouble

    async def _trouble(self, quiet: float = QUIET) -> Trouble | None:
        try:
            told = await self.remote.described()
            return await trouble_of(self.remote, told, Care(quiet)) if told else None
        except Unreachable as error:
            return unreachable(error)

    async def _logged(self) -> Snapshot:
        found = await logged(self.log)
        if found is None and not await self.remote.is_alive():
            raise NotFound.of(self.id)
        return found or snapshot(self.id, State())

    async def exists(self) -> bool:
        """Whether it has been started, be it that no worker has taken it up yet."""
        return await self.log.end() > 0 or await self.remote.is_alive()

    async def events(self, after: int = -1) -> AsyncIterator[Entry]:
        """Every entry after slot `after`, and each new one as it is written; without end."""
        async for entry in self.log.tail(after):
            yield entry

    async def values(self) -> dict[str, Any]:
        """What has been noted as its state; keys of `user:` and `app:` are shared with others."""
        return await session_state(self.log)

    def live(self) -> AsyncIterator[tuple[Growing, ...]]:
        """All steps at work and their words so far, whenever there is news; without end."""
        return live(self.remote)

    async def finished(self, message_id: str | None = None, after: int = -1) -> State:
        """Wait until the agent's turn is over, or waits for a person to confirm its actions.

        That is the turn which the message began, if one is named, and in any case one that
        something after slot `after` belongs to. Raises Conflict where the workflow ends in a
        failure.
        """
        rest = asyncio.ensure_future(self._at_rest(message_id, after))
        ended = asyncio.ensure_future(self.handle.result())
        try:
            await asyncio.wait({rest, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done() and (failure := ended.exception()) is not None and not rest.done():
                raise _ended(failure) from failure
            return await rest
        finally:
            rest.cancel()
            ended.cancel()

    async def _at_rest(self, message_id: str | None, after: int) -> State:
        def is_over(state: State) -> bool:
            heard = message_id is None or message_id in state.seen
            return heard and state.next_seq > after + 1 and turn_is_over(state)

        state = await state_of(self.log)
        if is_over(state):
            return state
        async for entry in self.log.tail(state.next_seq - 1):
            state = fold(state, [digest(entry)])
            if is_over(state):
                return state
        raise AssertionError("a tail has no end")


async def logged(log: EventLog) -> Snapshot | None:
    """Where a conversation stands as its log tells it, damaged or not; None where it is empty."""
    state, damage = await legible_state(log)
    found = snapshot(log.conversation_id, state)
    if damage is not None:
        reason = read_only(log.conversation_id, damage)
        return found.model_copy(update={"status": "error", "reason": reason})
    return found if state.next_seq else None


def turn_is_over(state: State) -> bool:
    """Whether nothing comes any more until somebody asks for it; a turn must have begun."""
    asks = state.status == "waiting_for_confirmation"
    return state.turn > 0 and state.at_rest and (asks or not state.pending)


def _checked(text: str, message_id: str | None, images: Sequence[str]) -> Said:
    message = Said(text=text, message_id=message_id, images=tuple(images))
    if wrong := fault(message):
        raise Invalid(wrong)
    return message


def _ended(failure: BaseException) -> Conflict | Unreachable:
    if isinstance(failure, RPCError):
        return Unreachable(f"Temporal does not answer any more: {failure.message}")
    cause = failure.cause if isinstance(failure, WorkflowFailureError) else failure
    return Conflict(f"The conversation's workflow failed: {cause}")
