"""The activity that has a model title a conversation."""

from functools import partial

from temporalio import activity

from perdure.activities.support.inbox_events import state_update
from perdure.activities.support.load import load_event, load_spec
from perdure.activities.support.resources import Activities
from perdure.activities.support.step import now
from perdure.activities.support.writer import append_exclusive, request_once
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.steps import GenerateTitle, Task
from perdure.agent.loop.title import TITLE_PROMPT, derive_title
from perdure.agent.spec import Agent
from perdure.events.content import join_text
from perdure.events.messages import MessageEvent
from perdure.events.summary import EventSummary
from perdure.models.model import ModelError, Request
from perdure.storage.log.event_log import EventLog

TITLE_TIMEOUT = 60.0
"""Timeout of a title request, in seconds."""


class TitleActivities(Activities):
    @activity.defn(name="llm.title")
    async def title(self, task: Task[GenerateTitle]) -> list[EventSummary]:
        """Request a title; if that fails, use the first words of the message."""
        async with self.begin(task) as (log, _):
            spec = await load_spec(log, task.step.spec_seq)
            self.resources.queues.admit(task.step, spec)
            message = await load_event(log, task.step.message_seq, MessageEvent)
            text = join_text(message.llm_message.content)
            try:
                answer = await self._complete(log, task.base, spec, text)
                answer_text, usage = join_text(answer.message.content), answer.usage
            except ModelError:
                answer_text, usage = "", None
            title = derive_title(answer_text) or derive_title(text)
            event = state_update(now(), "title", title)
            return await append_exclusive(log, [event], task.base, usage=usage)

    async def _complete(self, log: EventLog, base: int, spec: Agent, text: str) -> Completion:
        model = spec.title_model
        assert model is not None, "the spec has a title model"
        limited = model.model_copy(update={"timeout": min(model.timeout, TITLE_TIMEOUT)})
        messages = [{"role": "user", "content": TITLE_PROMPT.format(message=text[:4000])}]
        request = Request(limited, messages, purpose="title", metadata=spec.metadata)
        complete = partial(self.resources.model.complete, request, lambda _: None)
        return await request_once(log, base, complete)
