"""The step that makes the view smaller."""

import asyncio
from collections.abc import Sequence

from temporalio import activity

from activities.step import at_work, digests, is_retry, later, now, origin, was_stopped
from activities.transcripts import live
from activities.world import World, spec_at
from activities.writer import MOST
from agent.completion import Completion
from agent.condense.material import Material
from agent.condense.plan import Plan, plan_of, rest_of
from agent.condense.prompt import first_part, prompt, told
from agent.spec import ModelSpec, NoCondenser, Spec, SummaryCondenser
from agent.steps import Condense, Task
from events.content import text_of
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from events.digest import Digest
from events.entry import Entry
from events.event import Event
from events.usage import Usage
from models.model import ContextOverflow, ModelRefused, ModelUnavailable, Request
from storage.errors import Superseded
from storage.log import EventLog

MOST_TRIES = 3
"""Overflows in a row that are met: then what is left is too long by itself."""

SHRINKINGS = 5
"""How often a summary is asked for again, of half as much text, when the text is too long."""

WINDOW = 128_000
"""Tokens of a context window that nobody has told of."""

FILLED = 3
"""Characters for each token of the window: a token has four, about, and the answer takes room."""


class CondenseActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="llm.condense")
    async def condense(self, task: Task[Condense]) -> list[Digest]:
        """Forget what the condenser of the agent would, and record what took its place.

        Nothing, where only the size asked for it and nothing can go; whoever else asked is told
        so by an event.
        """
        async with at_work():
            log = self.world.log(task)
            spec = await spec_at(log, task.step.spec)
            self.world.lanes.admit(task.step, spec)
            work = _Work(self.world, log, task, spec)
            try:
                await work.condense()
            except ContextOverflow:
                await work.give_up()
            except Superseded:  # by a late step of this run: the workflow decides again
                work.written += await log.read(task.base + len(work.written), MOST)
            except ModelRefused as error:
                await work.write(
                    ConversationErrorEvent(timestamp=now(), code=error.code, detail=str(error))
                )
            except asyncio.CancelledError:
                if not (was_stopped() and work.written):
                    raise
            return digests(work.written)


class _Work:
    """One step, and what it has written so far."""

    def __init__(self, world: World, log: EventLog, task: Task[Condense], spec: Spec) -> None:
        self.world = world
        self.log = log
        self.task = task
        self.spec = spec
        self.written: list[Entry] = []

    async def condense(self) -> None:
        step = self.task.step
        material = Material(await live(self.log, 0, self.task.base, step.forgotten))
        plan = None
        if step.asked != "overflow" or step.tries <= MOST_TRIES:
            plan = plan_of(
                material.view, self.spec.condenser, material.sizes, step.asked, step.tries
            )
        if plan is None:
            await self.give_up()
        elif isinstance(plan.condenser, SummaryCondenser):
            await self.summarise(material, plan, plan.condenser)
        else:
            await self.write(material.condensation(plan, now()))

    async def summarise(self, material: Material, plan: Plan, condenser: SummaryCondenser) -> None:
        """Have a model summarise what is planned, in parts where it is too much for one prompt.

        The summary of a part is on record before the next is asked for, and goes into the next.
        Which events make a part depends on nothing but log and spec, so that a retry goes on with
        the summaries that are paid for.
        """
        model = condenser.model or self.spec.model
        room = FILLED * (model.max_input_tokens or WINDOW)
        behind = len(material.view.events) - plan.end
        rest: Plan | None = plan
        while rest is not None:
            part = first_part(material.view, rest, room)
            texts = [told(event) for event in material.forgotten(part)]
            answer = await self.answer(texts, room, model, alone=condenser.model is not None)
            made = material.condensation(part, answer.received, summary_in(answer), answer.id)
            entry = await self.write(made, answer.usage)
            material = Material((*material.entries, entry))
            rest = rest_of(material.view, plan, behind)

    async def answer(
        self, texts: Sequence[str], room: int, model: ModelSpec, *, alone: bool
    ) -> Completion:
        """The summary of these texts: asked for once, however often this is tried."""
        seq = self.task.base + len(self.written)
        recorded = await self.log.recorded(seq) if is_retry() else None
        if recorded is not None:
            return recorded
        try:
            answer = await self.ask(texts, room, model, alone=alone)
        except ModelUnavailable as error:
            raise later(error) from error
        if not summary_in(answer).strip():
            what = f"{answer.model} gave an empty summary: have another model make it."
            raise ModelRefused("content", what)
        return await self.log.record(seq, answer, origin(self.part))

    async def ask(
        self, texts: Sequence[str], room: int, model: ModelSpec, *, alone: bool
    ) -> Completion:
        room = min(room, sum(map(len, texts)))
        for _ in range(SHRINKINGS):
            request = Request(
                model,
                [{"role": "user", "content": prompt(texts, room)}],
                fallbacks=() if alone else self.spec.fallbacks,
                purpose="condense",
            )
            try:
                return await self.world.model.complete(request, _unheard)
            except ContextOverflow:
                room //= 2
        raise ContextOverflow(f"{model.name} has no room for what is to be summarised.")

    async def give_up(self) -> None:
        """Tell whoever asked that there is nothing to be done; what was done says enough."""
        if self.written:
            return
        match self.task.step.asked:
            case "user":
                await self.write(
                    ConversationStateUpdateEvent(
                        timestamp=now(), key="not_condensed", value=_refusal(self.spec)
                    )
                )
            case "overflow":
                await self.write(
                    ConversationErrorEvent(
                        timestamp=now(), code="context_overflow", detail=_overflow(self.spec)
                    )
                )
            case "size":
                pass

    async def write(self, event: Event, usage: Usage | None = None) -> Entry:
        at = self.task.base + len(self.written)
        [entry] = await self.log.append([event], base=at, origin=origin(self.part), usage=usage)
        self.written.append(entry)
        return entry

    @property
    def part(self) -> str:
        """The name of what is written next."""
        return f"part {len(self.written)}" if self.written else ""


def summary_in(answer: Completion) -> str:
    return text_of(answer.message.content)


def _unheard(text: str) -> None:
    """Whoever watches the conversation waits for the agent's words: a summary is not one."""


def _refusal(spec: Spec) -> str:
    if isinstance(spec.condenser, NoCondenser):
        return "This conversation has no condenser: configure one, and ask again."
    return "There is nothing to condense yet: the agent still sees little more than its task."


def _overflow(spec: Spec) -> str:
    name = spec.model.name
    if isinstance(spec.condenser, NoCondenser):
        return (
            f"The conversation no longer fits the context window of {name}, and it has no "
            "condenser: configure one, or a model with a larger window, and resume."
        )
    return (
        f"The prompt does not fit the context window of {name}, and condensing did not help: "
        "configure a model with a larger window, or fewer tools, and resume."
    )
