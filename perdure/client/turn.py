"""A turn of a conversation: its entries, its text while it grows, and its result."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.phase import find_phase
from perdure.agent.loop.state import ASKING_STATUSES, State
from perdure.agent.loop.status import TRUNCATED_REASON, Status
from perdure.client.running_step import STEP_POLL_INTERVAL, RunningStep
from perdure.errors import ClientError
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.event import agent_text
from perdure.events.projection import summarize
from perdure.events.status import Phase
from perdure.events.tools import ActionEvent
from perdure.events.usage import Usage
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_answer, read_outputs, read_state

CHECK_INTERVAL = 2.0
"""Seconds between two looks at whether the workflow still runs."""


NEWS_POLL_INTERVAL = 0.1
"""Seconds between two looks at whether a message that somebody sent is in the log."""

MAX_NEWS_TIMEOUT = 30.0
"""Seconds to wait for a worker to tell whether there is such a message."""

HasNews: TypeAlias = Callable[[int], Awaitable[bool | None]]


class TurnFailed(ClientError):
    """The turn of an agent ended with an error; the message is its reason."""


@dataclass(frozen=True)
class TurnResult:
    """The end of a turn.

    `text` is the agent's last message of the turn, or its report by `finish`; "" without any.
    `usage` sums tokens and US dollars of the whole conversation. `reason` says why a turn ended
    without a whole answer. `phase` says whether the agent `finished`, refused the task
    (`rejected`) or has only spoken (`awaiting_user`); `outputs` are what it finished with, where it
    has a `response_schema`.
    """

    conversation_id: str
    status: Status
    reason: str | None
    text: str
    usage: Usage
    phase: Phase | None = None
    outputs: dict[str, Any] | None = None

    @property
    def truncated(self) -> bool:
        """Tell whether the model's length limit cut the text off."""
        return self.reason == TRUNCATED_REASON


@dataclass(frozen=True)
class Turn:
    """The turn that a message began: that of `message_id`, with the events after slot `after`.

    `check` raises where the workflow has ended before the turn has; it is called now and then.
    `has_news` tells whether more comes than the log's slots before a number: a turn goes on with
    the messages that Temporal has taken and the log does not have yet.
    """

    log: ReadableLog
    message_id: str | None
    after: int
    check: Callable[[], Awaitable[None]]
    has_news: HasNews | None = None

    async def entries(self) -> AsyncGenerator[Entry, None]:
        """Yield each entry of the turn, and end with the turn."""
        state = await read_state(self.log)
        if (count := state.next_seq - self.after - 1) > 0:
            for entry in await self.log.read(self.after + 1, count):
                yield entry
        async with aclosing(self._follow(state)) as following:
            async for entry, _ in following:
                yield entry

    async def end(self) -> State:
        """Wait until the turn is over; return the state at its end."""
        state = await read_state(self.log)
        async for _, newest in self._follow(state):
            state = newest
        return state

    async def result(self) -> TurnResult:
        """Wait until the turn is over. Raises TurnFailed if it ended with an error."""
        state, name = await self.end(), self.log.conversation_id
        if state.status == "error":
            raise TurnFailed(state.reason or "The turn failed.", f"`perdure show {name}`")
        text = await read_answer(self.log, state)
        outputs = await read_outputs(self.log, state)
        phase = find_phase(state)
        return TurnResult(name, state.status, state.reason, text, state.usage, phase, outputs)

    async def _follow(self, state: State) -> AsyncGenerator[tuple[Entry, State], None]:
        """Yield each entry after `state`, with the state after it, until the turn is over."""
        if await self.has_ended(state):
            return
        check = self._check_now_and_then()

        async def is_idle() -> bool:
            await check()
            return self.is_over(state) and await self.has_ended(state)

        async with aclosing(self.log.tail(state.next_seq - 1, is_idle=is_idle)) as entries:
            async for entry in entries:
                state = fold(state, [summarize(entry)])
                yield entry, state
                if await self.has_ended(state):
                    return

    async def has_ended(self, state: State) -> bool:
        """Tell whether this turn is over, and no other message waits."""
        if self.has_news is None or not self.is_over(state):
            return self.is_over(state)
        return not await ask_for_news(self.has_news, state.next_seq)

    async def text(
        self, live: Callable[[], Awaitable[tuple[RunningStep, ...]]]
    ) -> AsyncGenerator[str, None]:
        """Yield the model's text piece by piece as it grows; `live` gives the steps at work.

        The pieces together are what the log holds. Where a model was asked again after a failure
        and answers in other words, its whole answer follows in a line of its own.
        """
        state, seq, sent = await read_state(self.log), self.after + 1, ""
        check = self._check_now_and_then()
        while True:
            if (entry := await self.log.find(seq)) is not None:
                if text := spoken_text(entry):
                    yield text.removeprefix(sent) if text.startswith(sent) else f"\n{text}"
                    yield "\n"
                    sent = ""
                seq += 1
                if seq > state.next_seq:
                    state = fold(state, [summarize(entry)])
            elif await self.has_ended(state):
                return
            else:
                await check()
                for step in await live():
                    if step.kind == "llm.chat" and (piece := find_growth(sent, step.text)):
                        yield piece
                        sent += piece
                await asyncio.sleep(STEP_POLL_INTERVAL)

    def is_over(self, state: State) -> bool:
        """Tell whether this turn has ended."""
        begun = self.message_id is None or self.message_id in state.message_seqs
        return begun and state.next_seq > self.after + 1 and is_turn_over(state)

    def _check_now_and_then(self) -> Callable[[], Awaitable[bool]]:
        checked = monotonic()

        async def check() -> bool:
            nonlocal checked
            if monotonic() - checked >= CHECK_INTERVAL:
                checked = monotonic()
                await self.check()
            return False

        return check


async def read_newest_state(log: ReadableLog, has_news: HasNews) -> State:
    """Read the state of the log, once it has the messages that Temporal has taken."""
    state = await read_state(log)
    while is_turn_over(state) and await ask_for_news(has_news, state.next_seq):
        await asyncio.sleep(NEWS_POLL_INTERVAL)
        state = await read_state(log)
    return state


async def ask_for_news(has_news: HasNews, next_seq: int) -> bool:
    """Ask whether more is to be recorded, until somebody can tell or the time-out has passed."""
    began = monotonic()
    while (news := await has_news(next_seq)) is None:
        if monotonic() - began > MAX_NEWS_TIMEOUT:
            return False
        await asyncio.sleep(NEWS_POLL_INTERVAL)
    return news


def find_growth(sent: str, newest: str) -> str:
    """Return the characters after `sent` in a text of which `newest` is the end."""
    for start in range(max(0, len(sent) - len(newest)), len(sent) + 1):
        if newest.startswith(sent[start:]):
            return newest[len(sent) - start :]
    return ""


def is_turn_over(state: State) -> bool:
    """Tell whether the agent's turn has ended or waits for a person; a turn must have begun."""
    asks = state.status in ASKING_STATUSES
    return state.turn > 0 and state.at_rest and (asks or not state.pending)


def spoken_text(entry: Entry) -> str:
    """Return what the agent says in an entry: its message, its report, or its thought; else ""."""
    event = entry.event
    thought = join_text(event.thought) if isinstance(event, ActionEvent) else ""
    return thought or agent_text(event)
