"""The step that has a model give a conversation its title."""

from temporalio import activity

from activities.step import at_work, digests, is_retry, now, origin
from activities.world import World, spec_at
from activities.writer import write_alone
from agent.completion import Completion
from agent.spec import ModelSpec
from agent.steps import Entitle, Task
from agent.title import ASKED, shortened
from events.content import text_of
from events.control import ConversationStateUpdateEvent
from events.digest import Digest
from events.messages import MessageEvent
from models.model import ModelError, Request
from storage.log import EventLog

PATIENCE = 60.0
"""Seconds for a title at most."""


class TitleActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="llm.title")
    async def title(self, task: Task[Entitle]) -> list[Digest]:
        """Ask for a title once; where there is none, the first words of the message are it."""
        async with at_work():
            log = self.world.log(task)
            spec = await spec_at(log, task.step.spec)
            self.world.lanes.admit(task.step, spec)
            assert spec.title_model is not None, "somebody gives titles"
            message = (await log.at(task.step.message)).event
            assert isinstance(message, MessageEvent), "a title comes from a message"
            said = text_of(message.llm_message.content)
            try:
                answer = await self._answer(log, task.base, spec.title_model, said)
                words, bill = text_of(answer.message.content), answer.usage
            except ModelError:
                words, bill = "", None
            title = ConversationStateUpdateEvent(
                timestamp=now(), key="title", value=shortened(words) or shortened(said)
            )
            return digests(await write_alone(log, [title], task.base, usage=bill))

    async def _answer(self, log: EventLog, base: int, model: ModelSpec, said: str) -> Completion:
        recorded = await log.recorded(base) if is_retry() else None
        if recorded is not None:
            return recorded
        patient = model.model_copy(update={"timeout": min(model.timeout, PATIENCE)})
        messages = [{"role": "user", "content": ASKED.format(message=said[:4000])}]
        request = Request(patient, messages, purpose="title")
        answer = await self.world.model.complete(request, lambda _: None)
        return await log.record(base, answer, origin())
