"""The activity that has a model title a conversation."""

from temporalio import activity

from perdure.activities.support.resources import Resources, load_spec
from perdure.activities.support.step import heartbeating, is_retry, now, origin, summarize_all
from perdure.activities.support.writer import append_exclusive
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.steps import GenerateTitle, Task
from perdure.agent.loop.title import TITLE_PROMPT, derive_title
from perdure.agent.spec import ModelSpec
from perdure.events.content import join_text
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.messages import MessageEvent
from perdure.events.summary import EventSummary
from perdure.models.model import ModelError, Request
from perdure.storage.log.event_log import EventLog

TITLE_TIMEOUT = 60.0
"""Timeout of a title request, in seconds."""


class TitleActivities:
    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    @activity.defn(name="llm.title")
    async def title(self, task: Task[GenerateTitle]) -> list[EventSummary]:
        """Request a title; if that fails, use the first words of the message."""
        async with heartbeating():
            log = self.resources.log(task)
            spec = await load_spec(log, task.step.spec_seq)
            self.resources.model_queues.admit(task.step, spec)
            assert spec.title_model is not None, "the spec has a title model"
            message = (await log.get(task.step.message_seq)).event
            assert isinstance(message, MessageEvent), "a title comes from a message"
            text = join_text(message.llm_message.content)
            try:
                answer = await self._complete(log, task.base, spec.title_model, text)
                answer_text, usage = join_text(answer.message.content), answer.usage
            except ModelError:
                answer_text, usage = "", None
            title = ConversationStateUpdateEvent(
                timestamp=now(), key="title", value=derive_title(answer_text) or derive_title(text)
            )
            return summarize_all(await append_exclusive(log, [title], task.base, usage=usage))

    async def _complete(self, log: EventLog, base: int, model: ModelSpec, text: str) -> Completion:
        recorded = await log.read_response(base) if is_retry() else None
        if recorded is not None:
            return recorded
        limited = model.model_copy(update={"timeout": min(model.timeout, TITLE_TIMEOUT)})
        messages = [{"role": "user", "content": TITLE_PROMPT.format(message=text[:4000])}]
        request = Request(limited, messages, purpose="title")
        answer = await self.resources.model.complete(request, lambda _: None)
        return await log.record_response(base, answer, origin())
