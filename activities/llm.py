"""The step that asks the model."""

from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.step import News, at_work, digests, is_retry, now, origin
from activities.world import World, spec_at, tools_of
from agent.answer import Parse, events_of
from agent.completion import Completion
from agent.spec import Spec
from agent.steps import Task, Think
from events.control import ConversationErrorEvent
from events.digest import Digest
from models.model import ContextOverflow, ModelRefused, ModelUnavailable, Request
from storage.log import EventLog
from tools.arguments import arguments_of
from tools.catalog import CatalogError
from tools.tool import Tool


class ModelActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="llm.chat")
    async def chat(self, task: Task[Think]) -> list[Digest]:
        """Show the model the conversation so far; record its answer, then what follows from it."""
        async with at_work() as news:
            log = self.world.log(task)
            try:
                spec = await spec_at(log, task.step.spec)
                tools = tools_of(spec.tools)
                completion = await self._answer(log, task.base, spec, news)
            except (ModelRefused, ContextOverflow, CatalogError) as error:
                failed = _failure(error)
                return digests(await log.append([failed], base=task.base, origin=origin()))
            events = events_of(completion, {name: _parse(tool) for name, tool in tools.items()})
            return digests(
                await log.append(events, base=task.base, origin=origin(), usage=completion.usage)
            )

    async def _answer(self, log: EventLog, base: int, spec: Spec, news: News) -> Completion:
        """The answer to the events before `base`: asked for once, however often this is tried."""
        recorded = await log.recorded(base) if is_retry() else None
        if recorded is not None:
            return recorded
        transcript = await self.world.transcripts.of(log, base)
        request = Request(spec.model, transcript.messages(), transcript.tools)
        try:
            answer = await self.world.model.complete(request, news.tell)
        except ModelUnavailable as error:
            raise _later(error) from error
        return await log.record(base, answer, origin())


def _parse(tool: Tool) -> Parse:
    return lambda raw: tool.parse(arguments_of(raw))


def _later(error: ModelUnavailable) -> ApplicationError:
    """A failure that Temporal retries, when the provider says so."""
    after = timedelta(seconds=error.retry_after) if error.retry_after is not None else None
    return ApplicationError(str(error), type="ModelUnavailable", next_retry_delay=after)


def _failure(error: ModelRefused | ContextOverflow | CatalogError) -> ConversationErrorEvent:
    code: str
    match error:
        case ModelRefused():
            code = error.code
        case ContextOverflow():
            code = "context_overflow"
        case CatalogError():
            code = "tool_not_found"
    return ConversationErrorEvent(timestamp=now(), code=code, detail=str(error))
