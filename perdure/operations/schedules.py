"""The activities of schedules: a worker begins turns as any other program does, by the client."""

import contextlib
from collections.abc import AsyncIterator

from temporalio import activity

from perdure.activities.registry import Activity
from perdure.activities.support.step import check_owner, final_failure, heartbeating
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.ids import derive_message_id
from perdure.client.schedules.ids import firing_conversation_id
from perdure.errors import ClientError, Conflict, NotFound, TimedOut, Unreachable
from perdure.secrets.registry import Secrets
from perdure.temporal.schedules import FIRE, INTERRUPT, SURVEY, FiringKey, FiringOrder


class ScheduleActivities:
    """The activities of firings, by a client of the worker's own servers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def all(self) -> list[Activity]:
        return [self.fire, self.survey, self.interrupt]

    @activity.defn(name=FIRE)
    async def fire(self, order: FiringOrder) -> str:
        """Begin a turn; return its conversation. Whoever repeats it begins none twice."""
        check_owner(order.user_id)
        client = self._client.as_user(order.user_id)
        firing = activity.info().workflow_id or ""
        message_id = derive_message_id(order.user_id, firing)
        async with attempt():
            if order.conversation_id is not None:
                conversation = client.conversation(order.conversation_id)
                await conversation.send(order.text, message_id, reopen=True)
                return conversation.id
            assert order.agent is not None, "a new conversation has an agent"
            conversation_id = firing_conversation_id(order.user_id, firing)
            await client.start(order.text, order.agent, conversation_id, message_id)
            return conversation_id

    @activity.defn(name=SURVEY)
    async def survey(self, key: FiringKey) -> bool:
        """Tell whether the conversation is at work, or waits for what is no person's."""
        async with attempt():
            try:
                status = await self._conversation(key).status()
            except NotFound:  # it was purged meanwhile
                return False
        return status.status in ("running", "waiting") or status.waiting > 0

    @activity.defn(name=INTERRUPT)
    async def interrupt(self, key: FiringKey) -> None:
        """End the turn of the conversation; its user may go on with it."""
        async with attempt():
            with contextlib.suppress(Conflict, NotFound):
                await self._conversation(key).interrupt()

    def _conversation(self, key: FiringKey) -> Conversation:
        check_owner(key.user_id)
        return self._client.as_user(key.user_id).conversation(key.conversation_id)


@contextlib.asynccontextmanager
async def attempt() -> AsyncIterator[None]:
    """Heartbeat while inside. Raises ApplicationError for errors which no other attempt mends."""
    async with heartbeating(Secrets()):
        try:
            yield
        except (Unreachable, TimedOut):
            raise
        except ClientError as error:
            raise final_failure(type(error).__name__, f"{error} {error.hint}".strip()) from error
