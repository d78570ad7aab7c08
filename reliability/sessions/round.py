"""A round: clients start conversations at once at three gateways, one of which may be killed."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

import httpx

from perdure.agent.spec import Agent, ModelSpec
from perdure.api.frames import NoticeFrame
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Entry
from reliability.following.http_clients import stream_frames
from reliability.following.watcher import Watcher
from reliability.sessions.audit import count_suspensions, most_at_once, work_spans
from reliability.sessions.open_calls import MODEL
from reliability.sessions.stage import LIMIT, Stage

MAX_SURPLUS = 4
"""The most conversations beyond the limit that a round starts."""

SETTLE_TIMEOUT = 120.0
"""Seconds after which a round that has not come to what it must come to is a finding."""

QUIET = 0.5
"""Seconds for which nothing may change before a round counts as settled."""

MAX_LAG = 1.0
"""Seconds after which the model has seen that its caller has gone, however busy the machine is."""

LONGEST_EXCESS = "milliseconds in which the model wrote too many answers, at most"

TOO_MANY = "AGENT_ERROR$TOO_MANY_CONVERSATIONS"


@dataclass
class AttachedClient:
    """A conversation of a round, and a client that is attached to it."""

    conversation: Conversation
    watcher: Watcher = field(default_factory=Watcher)

    @property
    def notices(self) -> int:
        frames = self.watcher.frames
        return sum(isinstance(frame, NoticeFrame) and frame.id == TOO_MANY for frame in frames)

    async def read(self) -> list[Entry]:
        log = self.conversation.log
        return await log.read(0, await log.end())


class Round:
    """A user of a round, whose conversations begin at once."""

    def __init__(self, stage: Stage, number: int, seed: int, counts: Counter[str]) -> None:
        self.stage, self.counts = stage, counts
        self.chance = random.Random(f"{seed} {number}")
        self.user_id = f"user-{number}"
        self.surplus = self.chance.randint(1, MAX_SURPLUS)
        client = stage.client.as_user(self.user_id)
        self.attached = [
            AttachedClient(client.conversation(new_conversation_id()))
            for _ in range(LIMIT + self.surplus)
        ]
        self.key = ""

    async def run(self, strike: Callable[[], Awaitable[None]] | None) -> list[str]:
        """Run the round; return what was wrong. `strike` is called while conversations start."""
        self.key = await self.stage.create_key(self.user_id)
        try:
            async with asyncio.timeout(SETTLE_TIMEOUT), asyncio.TaskGroup() as tasks:
                watching = [tasks.create_task(self._watch(it)) for it in self.attached]
                starting = [tasks.create_task(self._start(it)) for it in self.attached]
                if strike is not None:
                    await asyncio.sleep(self.chance.uniform(0.0, 0.8))
                    await strike()
                await asyncio.gather(*starting)
                findings = await self._settle(self.surplus, "after the starts")
                if not findings:
                    findings = await self._reopen()
                for task in watching:
                    task.cancel()
        except TimeoutError:
            findings = [f"did not settle: {await self._describe()}"]
        finally:
            await asyncio.gather(*(it.conversation.close() for it in self.attached))
        return [f"{self.user_id}: {finding}" for finding in findings]

    async def _start(self, it: AttachedClient) -> None:
        agent = Agent(
            model=ModelSpec(name=f"openai/{MODEL}", api_base=f"{self.stage.model}/v1"),
            system_prompt=f"You count for <{self.user_id}>.",
            tools=(),
        )
        body = {
            "text": "Count.",
            "agent": agent.model_dump(mode="json", exclude_unset=True),
            "conversation_id": it.conversation.id,
            "message_id": "first",
        }
        await self._post("/v1/conversations", body)
        self.counts["conversations"] += 1

    async def _reopen(self) -> list[str]:
        """Send a message to a conversation that was suspended, which must go on by it."""
        suspended = [it for it in self.attached if (await it.conversation.state()).at_rest]
        chosen = self.chance.choice(suspended)
        path = f"/v1/conversations/{chosen.conversation.id}/messages"
        await self._post(path, {"text": "Go on.", "message_id": "second"})
        findings = await self._settle(self.surplus + 1, "after a message")
        if not findings and (await chosen.conversation.state()).at_rest:
            findings = ["a message did not make a suspended conversation go on"]
        self.counts["reopened"] += not findings
        return findings

    async def _post(self, path: str, body: Mapping[str, object]) -> None:
        """Send a request to any gateway, again to any while there is no answer."""
        while True:
            try:
                async with self.stage.http_client(self.key, self.chance) as client:
                    response = await client.post(path, json=body)
                if response.status_code < 500:
                    response.raise_for_status()
                    return
            except httpx.TransportError:
                pass
            self.counts["requests sent again"] += 1
            await asyncio.sleep(self.chance.uniform(0.02, 0.2))

    async def _watch(self, it: AttachedClient) -> None:
        """Follow a conversation at one gateway after the other."""
        while True:
            try:
                async with self.stage.http_client(self.key, self.chance) as client:
                    after = it.watcher.next_seq - 1
                    async for frame in stream_frames(client, it.conversation.id, after):
                        it.watcher.take(frame)
            except httpx.HTTPStatusError as error:
                status = error.response.status_code
                assert status == 404 or status >= 500, f"a stream answered {status}"
            except httpx.TransportError:
                self.counts["streams lost"] += 1
            await asyncio.sleep(self.chance.uniform(0.02, 0.2))

    async def _settle(self, suspensions: int, when: str) -> list[str]:
        """Wait until as many are suspended as must be and all clients know; return what is wrong.

        Nothing more may happen then for a while.
        """
        while (wrong := await self._find_faults(suspensions)) and not wrong.is_final:
            await asyncio.sleep(0.1)
        if not wrong:
            await asyncio.sleep(QUIET)
            wrong = await self._find_faults(suspensions)
        return [f"{when}, {wrong.sentence}"] if wrong else []

    async def _find_faults(self, suspensions: int) -> "Fault | None":
        logs = await asyncio.gather(*(it.read() for it in self.attached))
        spans = [span for log in logs for span in work_spans(log)]
        most, suspended = most_at_once(spans), list(map(count_suspensions, logs))
        self.counts["most at once"] = max(self.counts["most at once"], most)
        async with httpx.AsyncClient() as client:
            asked = await client.get(f"{self.stage.model}/excess/{self.user_id}/{LIMIT}")
        excess = float(asked.json())
        longest = max(self.counts[LONGEST_EXCESS], round(1000 * excess))
        self.counts[LONGEST_EXCESS] = longest
        if most > LIMIT:
            return Fault(f"{most} were at work at once", is_final=True)
        if excess > MAX_LAG:
            return Fault(f"the model wrote too many answers for {excess:.2f} s", is_final=True)
        if sum(suspended) > suspensions:
            return Fault(f"{sum(suspended)} were suspended, not {suspensions}", is_final=True)
        running = sum(span.end is None for span in spans)
        if (sum(suspended), running) != (suspensions, LIMIT):
            return Fault(f"{running} are at work, {sum(suspended)} were suspended")
        for it, count in zip(self.attached, suspended, strict=True):
            if bool(it.notices) != bool(count):
                return Fault(f"a client got {it.notices} notices of {count} suspensions")
        return None

    async def _describe(self) -> str:
        fault = await self._find_faults(self.surplus)
        states = [await it.conversation.status() for it in self.attached]
        told = [f"{it.status} {it.reason or ''} {it.trouble or ''}".strip() for it in states]
        return f"{fault.sentence if fault else 'late'}; {told}"


@dataclass(frozen=True)
class Fault:
    """A fault of a round; `is_final` says that it will not pass with time."""

    sentence: str
    is_final: bool = False


async def run_round(
    stage: Stage,
    number: int,
    seed: int,
    counts: Counter[str],
    strike: Callable[[], Awaitable[None]] | None,
) -> list[str]:
    began = monotonic()
    findings = await Round(stage, number, seed, counts).run(strike)
    counts["milliseconds"] += round(1000 * (monotonic() - began))
    counts["rounds"] += 1
    return findings
