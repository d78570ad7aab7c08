"""The step that asks the agent something beside its task."""

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.step import at_work, final, later
from activities.transcripts import Transcripts
from activities.world import World, spec_at
from agent.ask import ASIDE, Aside, Ask
from agent.steps import Task
from events.content import text_of
from models.model import ContextOverflow, ModelRefused, ModelUnavailable, Request
from storage.log import EventLog
from storage.state import state_at

NO_WORDS = "The model answered with tool calls and no words: put the question another way."


class AskActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="llm.ask")
    async def ask(self, task: Task[Ask]) -> Aside:
        """Show the model the conversation as it would see it next, and the question behind it.

        Nothing is written. The tools are named, as some providers want those that were called,
        and what the model calls is not done.
        """
        async with at_work(self.world.secrets) as news:
            request = await self._request(self.world.log(task), task)
            try:
                answer = await self.world.model.complete(request, news.tell)
            except ModelUnavailable as error:
                raise later(error) from error
            except (ModelRefused, ContextOverflow) as error:
                raise final(error) from error
            text = text_of(answer.message.content)
            if not text.strip():
                raise ApplicationError(NO_WORDS, type="NoWords", non_retryable=True)
            return Aside(text=self.world.secrets.mask(text), usage=answer.usage)

    async def _request(self, log: EventLog, task: Task[Ask]) -> Request:
        state = await state_at(log, task.base)
        if state.spec is None:
            what = f"The conversation {log.conversation_id} has no agent yet: ask again later."
            raise ApplicationError(what, type="NoAgent", non_retryable=True)
        spec = await spec_at(log, state.spec_seq)
        # Not the worker's: the conversation's own step may be reading on there at this moment.
        transcript = await Transcripts(0).of(log, task.base, state.forgotten, spec.condenser)
        asked = self.world.secrets.mask(task.step.question)
        question = {"role": "user", "content": ASIDE.format(question=asked)}
        return Request(
            spec.model,
            [*transcript.messages(), question],
            transcript.tools,
            fallbacks=spec.fallbacks,
            purpose="ask",
        )
