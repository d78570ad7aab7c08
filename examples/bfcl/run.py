"""The samples as conversations: on Temporal and S3, with a scripted model over HTTP."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from examples.bfcl.audit import audit
from examples.bfcl.backends import SCENARIO
from examples.bfcl.crew import WorkerPool, count_running_steps
from examples.bfcl.dataset import Sample
from examples.bfcl.judge import judge
from examples.bfcl.objects import fetch_objects
from examples.bfcl.script import script
from examples.bfcl.stage import start_servers
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import ClientError
from perdure.storage.keys import conversation_prefix
from perdure.testing.server import serve_scripts

NAME = "bfcl"
"""Of the bucket, the user and the task queue."""

TURN_LIMIT = 300.0
"""Seconds after which a turn counts as hanging; undisturbed it takes less than one."""

SURVIVORS = 1
"""Workers left at work by a kill: a new one needs seconds to start, and work should go on."""

PROMPT = """\
You help a person with the tools you have: do what is asked for, then say what you did.
{scenario}{sample}
"""


@dataclass(frozen=True)
class Plan:
    """The samples to run, and the kills during the run.

    A worker is killed `kill_every` seconds after the last one was replaced, if that is not None;
    then there must be more than SURVIVORS `workers`.
    """

    samples: Sequence[Sample]
    concurrency: int
    workers: int
    kill_every: float | None


@dataclass(frozen=True)
class Verdict:
    """The result of a sample; it passed if there are no `failures`."""

    sample: Sample
    failures: Sequence[str]
    events: int
    seconds: float


@dataclass
class Report:
    """The results of a plan; `hits` are the kills of a worker that ran a step."""

    verdicts: list[Verdict] = field(default_factory=list)
    kills: int = 0
    hits: int = 0

    @property
    def failed(self) -> int:
        return sum(bool(verdict.failures) for verdict in self.verdicts)


class TurnError(Exception):
    """A turn did not end as it should; `str(error)` says how it did."""


async def run(plan: Plan, folder: Path, tell: Callable[[Verdict], None]) -> Report:
    """Carry out the plan with servers whose files are in `folder`; `tell` hears of each sample.

    Raises ProcessFailed (in a group) where a server or a worker ends by itself.
    """
    report = Report()
    scripts = {sample.id: script(sample) for sample in plan.samples}
    async with (
        start_servers(folder, NAME) as (client, env),
        serve_scripts(scripts) as model,
        asyncio.TaskGroup() as watch,
    ):
        crew = WorkerPool(client.temporal, NAME, env, folder, watch)
        talking: set[Conversation] = set()
        try:
            for _ in range(plan.workers):
                await crew.start()
            await crew.wait_until_polling(plan.workers)
            striking = asyncio.Lock()
            hunt = watch.create_task(_hunt(plan, crew, talking, report, striking))
            await _all(plan, client, model, talking, report, tell)
            async with striking:
                hunt.cancel()
        finally:
            await crew.stop()
    return report


async def _hunt(
    plan: Plan, crew: WorkerPool, talking: set[Conversation], report: Report, striking: asyncio.Lock
) -> None:
    """Kill a worker again and again, and count how often that took a step from it.

    Not to be cancelled while it is `striking`: the worker that is being started would outlive us.
    """
    while plan.kill_every is not None:
        await crew.wait_until_polling(SURVIVORS + 1)
        await asyncio.sleep(plan.kill_every)
        async with striking:
            pid = await crew.kill_oldest()
            # Temporal holds a step to be running for some seconds: until a heartbeat is overdue.
            held = await count_running_steps(pid, [conversation.handle for conversation in talking])
        report.kills += 1
        report.hits += bool(held)


async def _all(
    plan: Plan,
    client: Client,
    model: str,
    talking: set[Conversation],
    report: Report,
    tell: Callable[[Verdict], None],
) -> None:
    """Run the samples, as many at a time as planned."""

    async def some(left: Iterator[Sample]) -> None:
        for sample in left:
            verdict = await _verdict(client, model, sample, talking)
            report.verdicts.append(verdict)
            tell(verdict)

    left = iter(plan.samples)
    async with asyncio.TaskGroup() as group:
        for _ in range(plan.concurrency):
            group.create_task(some(left))


async def _verdict(
    client: Client, model: str, sample: Sample, talking: set[Conversation]
) -> Verdict:
    """Hold the conversation, and judge what lies in the store afterwards."""
    start = time.monotonic()
    conversation = await client.start(
        sample.turns[0], spec(sample, model), message_id=_message_id(sample, 0)
    )
    talking.add(conversation)
    try:
        await _converse(conversation, sample)
        stopped = []
    except (ClientError, TurnError) as error:
        stopped = [str(error)]
    finally:
        talking.remove(conversation)
    objects = await fetch_objects(client.store, conversation_prefix(NAME, conversation.id))
    wrong = [*stopped, *audit(conversation.id, objects), *judge(sample, objects)]
    events = sum("/events/" in key for key in objects)
    return Verdict(sample, wrong, events, time.monotonic() - start)


def spec(sample: Sample, model: str) -> Agent:
    """The agent of a sample; its scripted model is at the URL `model`."""
    return Agent(
        model=ModelSpec(name=f"openai/{sample.id}", api_base=model, timeout=60.0),
        system_prompt=PROMPT.format(scenario=SCENARIO, sample=sample.id),
        tools=tuple(f"examples.bfcl.backends:{name}" for name in sample.classes),
    )


async def _converse(conversation: Conversation, sample: Sample) -> None:
    """Say what the user says, each time after the agent's last word. The first was said."""
    for turn, text in enumerate(sample.turns):
        message_id = _message_id(sample, turn)
        if turn > 0:
            await conversation.send(text, message_id)
        try:
            async with asyncio.timeout(TURN_LIMIT):
                state = await conversation.wait_for_turn(message_id)
        except TimeoutError as error:
            raise TurnError(f"Turn {turn + 1} was not over after {TURN_LIMIT:g} s.") from error
        if state.status != "finished":
            raise TurnError(f"Turn {turn + 1} ended as {state.status}: {state.reason}")


def _message_id(sample: Sample, turn: int) -> str:
    return f"{sample.id}-{turn}"
