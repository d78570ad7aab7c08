"""A session: a conversation that an editor has open, and the turn that it is told of."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from perdure.acp import permissions
from perdure.acp.content import Prompt
from perdure.acp.listen import listen
from perdure.acp.modes import find_mode
from perdure.acp.peer import Peer
from perdure.acp.permissions import ALLOWED_TOOLS, Answers
from perdure.acp.projection import Projection, Update, make_chunk, make_usage_update
from perdure.acp.replay import Replay
from perdure.acp.trouble import telling_trouble
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.client.ids import new_message_id
from perdure.client.protocol import ConversationClient, ConversationHandle
from perdure.errors import ClientError
from perdure.events.usage import Usage
from perdure.gateway.turns.parts import Asked, Ended, Failed
from perdure.gateway.turns.reader import TurnReader
from perdure.gateway.turns.turn import make_reader
from perdure.models.price_table import find_window
from perdure.storage.errors import StoreError
from perdure.storage.log.state import read_state, read_state_at

logger = logging.getLogger("perdure.acp")

CANCEL_SECONDS = 10.0
"""Seconds for an interrupted turn to end; what is interrupted later is not waited for."""


@dataclass(frozen=True)
class Outcome:
    """The end of a turn, with the usage of all that it went on after.

    Without an end it was not waited for any more.
    """

    ended: Ended | None = None
    failed: Failed | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(eq=False)
class Session:
    """A conversation that is open. With an `agent` it has not begun: the first prompt begins it."""

    client: ConversationClient
    conversation: ConversationHandle
    peer: Peer
    projection: Projection
    agent: Agent | None = None
    mode: str = "auto"
    state: State = field(default_factory=State)
    """The state at the end of the newest turn that was told of."""
    cancelled: asyncio.Event | None = None
    """Is set when the prompt at work is cancelled; None where there is none."""
    telling: "asyncio.Task[Outcome] | None" = None
    """The turn that was under way when the session was loaded."""
    allowed_tools: set[str] = field(default_factory=set)

    @property
    def id(self) -> str:
        return self.conversation.id

    async def update(self, update: Update) -> None:
        """Tell the editor something of the session."""
        await self.peer.notify("session/update", {"sessionId": self.id, "update": update})

    async def replay(self, tell: Callable[[Update], Awaitable[None]] | None) -> Replay:
        """Read the log from its beginning, and tell of it. Raises the errors of the store."""
        self.projection = Projection(self.projection.cwd)
        replay = Replay(self.conversation.log, self.projection)
        async for update in replay.updates():
            if tell is not None:
                await tell(update)
        self.state, self.mode = replay.state, find_mode_of(replay.state)
        if ALLOWED_TOOLS in self.state.value_seqs or self.state.has_unnamed_values:
            named = (await self.conversation.values()).get(ALLOWED_TOOLS)
            self.allowed_tools = set(map(str, named)) if isinstance(named, list) else set()
        return replay

    async def take_state(self, state: State) -> None:
        """Take the state at the end of a turn; tell of its mode, and of what it has used."""
        self.state, mode = state, find_mode_of(state)
        if mode != self.mode:
            self.mode = mode
            await self.update({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        window = find_window(state.spec.model) if state.spec is not None else None
        used = max(state.view_tokens, state.last_usage.prompt_tokens)
        if (update := make_usage_update(used, window, state.usage)) is not None:
            await self.update(update)

    def go_on_telling(self, replay: Replay) -> None:
        """Tell of the turn that is under way, and ask for what waits, beside other requests."""
        if replay.reader is not None or replay.question is not None:
            reader = replay.reader or TurnReader(replay.state)
            self.telling = asyncio.create_task(self.tell(reader, replay.question))
            self.telling.add_done_callback(_log_failure)

    def stop_telling(self) -> None:
        if self.telling is not None:
            self.telling.cancel()
            self.telling = None

    async def begin(self, prompt: Prompt) -> TurnReader:
        """Send a message, and return a reader of the turn that it begins, or goes on with.

        Raises ClientError and the errors of the store.
        """
        name, images, log = new_message_id(), prompt.images, self.conversation.log
        if self.agent is not None:
            await self.client.start(prompt.text, self.agent, self.id, name, images)
            self.agent = None
            return TurnReader(State())
        sent = await self.conversation.submit(prompt.text, name, images=images, reopen=True)
        return await make_reader(log, await read_state_at(log, sent.seq))

    async def run(self, reader: TurnReader, cancelled: asyncio.Event) -> Outcome:
        """Tell of a turn until its end; of one that was under way, if the message belongs to it."""
        telling = asyncio.ensure_future(self._run(reader))
        cancelling = asyncio.create_task(self._wait_until_cancelled(cancelled))
        try:
            await asyncio.wait({telling, cancelling}, return_when=asyncio.FIRST_COMPLETED)
            return telling.result() if telling.done() else Outcome()
        finally:
            for task in (telling, cancelling):
                task.cancel()
            await asyncio.wait({telling, cancelling})

    async def tell(self, reader: TurnReader, asked: Asked | None = None) -> Outcome:
        """Tell of a turn, and ask a person for what waits, until it is over.

        Raises ClientError and the errors of the store.
        """
        usage = Usage()
        while True:
            outcome = Outcome()
            if asked is None:
                outcome, asked = await self._tell_part(reader)
            await self.take_state(reader.state)
            usage += outcome.ended.usage if outcome.ended is not None else Usage()
            if asked is None or reader.state.status != "waiting_for_confirmation":
                return Outcome(outcome.ended, outcome.failed, usage)
            await self._ask(asked, reader.state)
            reader, asked = await make_reader(self.conversation.log, reader.state), None

    async def interrupt(self) -> None:
        """Stop what is at work, once a worker has taken the conversation up."""
        with suppress(ClientError):  # closed meanwhile, or never begun
            with suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS / 2):
                    await self._wait_until_taken_up()
            await self.conversation.interrupt()

    async def _run(self, reader: TurnReader) -> Outcome:
        first = reader.state.next_seq
        telling, self.telling = self.telling, None
        if telling is not None:
            with suppress(ClientError, StoreError):  # it was logged
                outcome = await telling
                if outcome.ended is not None and outcome.ended.seq >= first:
                    return outcome
        return await self.tell(reader)

    async def _tell_part(self, reader: TurnReader) -> tuple[Outcome, Asked | None]:
        """Tell of a turn until it ends or waits for a person."""
        outcome, asked = Outcome(), None
        async with (
            telling_trouble(self.conversation, self._tell_trouble),
            aclosing(listen(self.conversation, reader)) as parts,
        ):
            async for part in parts:
                for update in self.projection.take(part):
                    await self.update(update)
                match part:
                    case Asked():
                        asked = part
                    case Failed():
                        outcome = Outcome(failed=part)
                    case Ended():
                        outcome = Outcome(part, outcome.failed)
        return outcome, asked

    async def _tell_trouble(self, sentence: str) -> None:
        """Tell what is in the way as a thought: the protocol has no notices, and no log has it."""
        await self.update(make_chunk("agent_thought_chunk", f"({sentence})\n"))

    async def _ask(self, asked: Asked, state: State) -> None:
        """Have a person answer what waits, and record it; one who cancels rejects all of it."""
        last, conversation = state.next_seq - 1, self.conversation
        others: list[Callable[[], Awaitable[object]]] = [
            lambda: permissions.wait_until_answered(conversation, last)
        ]
        if self.cancelled is not None:
            others.append(self.cancelled.wait)
        asking = permissions.ask_for(
            self.peer, self.id, self.projection, asked.calls, self.allowed_tools
        )
        answers = await permissions.first_of(asking, *others)
        try:
            await self._answer(answers, asked)
        except ClientError:  # unless somebody else has answered
            if (await read_state(conversation.log)).status == "waiting_for_confirmation":
                raise

    async def _answer(self, answers: Answers, asked: Asked) -> None:
        if answers.is_cancelled:
            if (await read_state(self.conversation.log)).status != "waiting_for_confirmation":
                return
            every = [call.tool_call_id for call in asked.calls]
            await self.conversation.respond(False, every, reason=permissions.REASON, run=False)
            return
        if not answers.allowed_tools <= self.allowed_tools:
            self.allowed_tools = answers.allowed_tools
            await self.conversation.note(state={ALLOWED_TOOLS: sorted(self.allowed_tools)})
        if answers.rejected:
            await self.conversation.respond(False, answers.rejected, reason=permissions.REASON)
        if answers.accepted:
            await self.conversation.respond(True, answers.accepted)

    async def _wait_until_taken_up(self) -> None:
        async with aclosing(self.conversation.log.tail()) as entries:
            async for _ in entries:
                return

    async def _wait_until_cancelled(self, cancelled: asyncio.Event) -> None:
        """Wait until a cancelled turn has had its time to end."""
        await cancelled.wait()
        await asyncio.gather(self.interrupt(), asyncio.sleep(CANCEL_SECONDS))


def find_mode_of(state: State) -> str:
    return find_mode(state.spec.confirmation if state.spec is not None else None)


def _log_failure(telling: "asyncio.Task[Outcome]") -> None:
    """Log that a turn is told of no more; it goes on."""
    if not telling.cancelled() and (error := telling.exception()) is not None:
        logger.warning("a turn is told of no more: %s", error)
