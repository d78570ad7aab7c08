"""The activity that condenses the view."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from temporalio import activity

from perdure.activities.support.extensions import CONDENSER_GROUP
from perdure.activities.support.inbox_events import error_event, state_update
from perdure.activities.support.load import load_spec
from perdure.activities.support.resources import Activities, Resources
from perdure.activities.support.step import now, origin, summarize_all, was_cancel_requested
from perdure.activities.support.transcript_cache import read_unforgotten
from perdure.activities.support.writer import MAX_ADOPTED_ENTRIES, request_once
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.steps import Condense, Task
from perdure.agent.spec import Agent, CustomCondenser, ModelSpec, NoCondenser, SummaryCondenser
from perdure.agent.view.condense.condensation import CondensationInput
from perdure.agent.view.condense.plan import (
    BadPlan,
    CondensationPlan,
    Planner,
    TokensById,
    plan_condensation,
    plan_remainder,
)
from perdure.agent.view.condense.prompt import build_summary_prompt, plan_first_part, render_event
from perdure.agent.view.condense.thresholds import CondenseReason, custom_condensers
from perdure.agent.view.view import View
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.event import Event
from perdure.events.summary import EventSummary
from perdure.events.usage import Usage
from perdure.models.model import ContextOverflow, ModelRefused, Request
from perdure.references import BadReference, load_named
from perdure.storage.errors import Superseded
from perdure.storage.log.event_log import EventLog

MAX_OVERFLOW_RETRIES = 3
"""Overflows in a row that are condensed; after them the rest is too long by itself."""

MAX_SHORTENINGS = 5
"""Requests for a summary, each of half as much text, while the text is too long."""

DEFAULT_CONTEXT_TOKENS = 128_000
"""Tokens of a context window whose size is unknown."""

CHARS_PER_TOKEN = 3
"""Characters per token of the window: about four, less room for the answer."""


class CondenseActivities(Activities):
    @activity.defn(name="llm.condense")
    async def condense(self, task: Task[Condense]) -> list[EventSummary]:
        """Condense the view as the agent's condenser plans, and record the condensation.

        If nothing can be removed, an event says so, unless only the view's size asked for it.
        """
        async with self.begin(task) as (log, _):
            spec = await load_spec(log, task.step.spec_seq)
            self.resources.queues.admit(task.step, spec)
            work = _CondenseStep(self.resources, log, task, spec)
            try:
                await work.condense()
            except ContextOverflow:
                await work.give_up()
            except Superseded:  # by a late step of this run: the workflow decides again
                work.entries += await log.read(task.base + len(work.entries), MAX_ADOPTED_ENTRIES)
            except (BadPlan, BadReference) as error:
                detail = f"The condenser cannot be used: {error}. Configure another, and resume."
                await work.write(error_event(now(), "condenser_failed", detail))
            except ModelRefused as error:
                await work.write(error_event(now(), error.code, str(error)))
            except asyncio.CancelledError:
                if not (was_cancel_requested() and work.entries):
                    raise
            return summarize_all(work.entries)


@dataclass
class _CondenseStep:
    """A running condensation, with the entries that it has written so far."""

    resources: Resources
    log: EventLog
    task: Task[Condense]
    spec: Agent
    entries: list[Entry] = field(default_factory=list)

    async def condense(self) -> None:
        step = self.task.step
        material = CondensationInput(
            await read_unforgotten(self.log, 0, self.task.base, step.forgotten_seqs)
        )
        plan = None
        if step.reason != "overflow" or step.overflows <= MAX_OVERFLOW_RETRIES:
            # A custom condenser may take its time: heartbeats go on.
            plan = await asyncio.to_thread(self._plan, material)
        if plan is None:
            await self.give_up()
        elif isinstance(plan.condenser, SummaryCondenser):
            await self.summarise(material, plan, plan.condenser)
        else:
            await self.write(material.make_condensation(plan, now()))

    def _plan(self, material: CondensationInput) -> CondensationPlan | None:
        condenser, step = self.spec.condenser, self.task.step
        planners = {it.function: _load_planner(it) for it in custom_condensers(condenser)}
        return plan_condensation(
            material.view, condenser, material.tokens, step.reason, step.overflows, planners
        )

    async def summarise(
        self, material: CondensationInput, plan: CondensationPlan, condenser: SummaryCondenser
    ) -> None:
        """Have a model summarise the plan's events, in parts if one prompt cannot hold them.

        The summary of a part is recorded before the next is requested, and goes into the next.
        Parts depend only on log and spec, so that a retry reuses summaries that are paid for.
        """
        model = condenser.model or self.spec.model
        room = CHARS_PER_TOKEN * (model.max_input_tokens or DEFAULT_CONTEXT_TOKENS)
        behind = len(material.view.events) - plan.end
        rest: CondensationPlan | None = plan
        while rest is not None:
            part = plan_first_part(material.view, rest, room)
            texts = [render_event(event) for event in material.select_forgotten(part)]
            fallbacks = self.spec.fallbacks if condenser.model is None else ()
            request = partial(self.request_summary, texts, room, model, fallbacks)
            seq = self.task.base + len(self.entries)
            answer = await request_once(self.log, seq, request, self.part_name)
            text = join_text(answer.message.content)
            condensation = material.make_condensation(part, answer.received, text, answer.id)
            entry = await self.write(condensation, answer.usage)
            material = CondensationInput((*material.entries, entry))
            rest = plan_remainder(material.view, plan, behind)

    async def request_summary(
        self, texts: Sequence[str], room: int, model: ModelSpec, fallbacks: tuple[ModelSpec, ...]
    ) -> Completion:
        """Request a summary, of less and less text. Raises ModelRefused for an empty one."""
        room = min(room, sum(map(len, texts)))
        for _ in range(MAX_SHORTENINGS):
            messages = [{"role": "user", "content": build_summary_prompt(texts, room)}]
            request = Request(
                model,
                messages,
                fallbacks=fallbacks,
                purpose="condense",
                metadata=self.spec.metadata,
            )
            try:
                answer = await self.resources.model.complete(request, _ignore_text)
            except ContextOverflow:
                room //= 2
                continue
            if not join_text(answer.message.content).strip():
                reason = f"{answer.model} gave an empty summary: have another model make it."
                raise ModelRefused("content", reason)
            return answer
        raise ContextOverflow(f"{model.name} has no room for what is to be summarised.")

    async def give_up(self) -> None:
        """Record that nothing can be condensed, unless the step has written something."""
        reason = None if self.entries else self.task.step.reason
        if reason == "user":
            value = _not_condensed_reason(self.spec)
            await self.write(state_update(now(), "not_condensed", value))
        if reason == "overflow":
            detail = _overflow_detail(self.spec)
            await self.write(error_event(now(), "context_overflow", detail))

    async def write(self, event: Event, usage: Usage | None = None) -> Entry:
        base, name = self.task.base + len(self.entries), origin(self.part_name)
        [entry] = await self.log.append([event], base=base, origin=name, usage=usage)
        self.entries.append(entry)
        return entry

    @property
    def part_name(self) -> str:
        """The name of the part that is written next."""
        return f"part {len(self.entries)}" if self.entries else ""


def _load_planner(condenser: CustomCondenser) -> Planner:
    """Load the function of a custom condenser. Raises BadReference."""
    function = load_named(CONDENSER_GROUP, condenser.function)

    def plan(view: View, tokens: TokensById, reason: CondenseReason) -> CondensationPlan | None:
        try:
            plan: CondensationPlan | None = function(view, tokens, reason, **condenser.options)
        except Exception as error:
            # Another's code may raise anything; the person gets one sentence.
            sentence = f"{condenser.function!r} raised {type(error).__name__}: {error}"
            raise BadPlan(sentence) from error
        if not isinstance(plan, CondensationPlan | None):
            raise BadPlan(f"{condenser.function!r} returned a {type(plan).__name__}")
        return plan

    return plan


def _ignore_text(text: str) -> None:
    """Ignore the text of a summary, as watchers wait for the agent's own text."""


def _not_condensed_reason(spec: Agent) -> str:
    if isinstance(spec.condenser, NoCondenser):
        return "This conversation has no condenser: configure one, and ask again."
    return "There is nothing to condense yet: the agent still sees little more than its task."


def _overflow_detail(spec: Agent) -> str:
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
