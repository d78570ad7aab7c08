"""The discussions of a user, for programs."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import ValidationError
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from perdure.agent.discussion.log_state import is_over
from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec, parse_discussion
from perdure.agent.discussion.state import DiscussionStart, DiscussionStatus
from perdure.client.client import Client
from perdure.client.discussion.handle import DiscussionHandle
from perdure.client.http.client import HttpClient
from perdure.errors import Conflict, Invalid, Unreachable
from perdure.models.budget import check_prices, list_models
from perdure.storage.discussions.folder import list_discussions, save_spec
from perdure.storage.discussions.shared_log import SharedLog
from perdure.storage.granted_store import open_granted
from perdure.storage.grants import Shareable
from perdure.storage.shared import Shared, list_shared
from perdure.temporal.fairness import user_priority
from perdure.temporal.names import discussion_workflow_id
from perdure.temporal.search_attributes import USER
from perdure.temporal.timeouts import TASK_TIMEOUT


@dataclass(frozen=True)
class Discussions:
    """The discussions of one user: several agents over one shared log."""

    client: Client

    @classmethod
    def from_client(cls, client: Client) -> "Discussions":
        """Return the discussions of a client; those of a gateway's are `HttpDiscussions`."""
        if isinstance(client, HttpClient):
            from perdure.client.discussion.http_discussions import HttpDiscussions

            return cast("Discussions", HttpDiscussions(client))
        return cls(client)

    async def start(
        self, spec: DiscussionSpec | Mapping[str, Any], session_id: str | None = None
    ) -> DiscussionHandle:
        """Start a discussion, or attach to it if it runs already.

        One whose workflow was lost goes on where its log ends. A spec may be a table, with the keys
        of a file for `perdure discuss`. Raises Invalid, also for a budget with a model whose price
        is unknown; Conflict if the session has another spec or is over; Unreachable.
        """
        if isinstance(spec, Mapping):
            spec = parse_discussion(spec)
        spec = _set_code(spec, lambda code: code or self.client.code_folder)
        _check_budget(spec)
        handle = self.get(session_id or f"discussion-{uuid.uuid4()}")
        stored = await save_spec(self.client.store, self.client.user_id, handle.id, spec)
        if _without_code(stored) != _without_code(spec):  # started from another folder
            raise Conflict(
                f"The discussion {handle.id} has another spec.", "Use another session id."
            )
        await _refuse_finished(handle)
        start = DiscussionStart(
            key=handle.key,
            searchable=await self.client.has_search_attributes(),
            model_queues=self.client.model_queues or None,
        )
        return replace(handle, attached=not await self._start_workflow(handle, start, spec))

    def get(self, session_id: str, owner: str | None = None) -> DiscussionHandle:
        """Return the handle of a discussion, existing or not. Raises Invalid for a bad id.

        `owner` is another user, who has granted access to the discussion; without a grant it is as
        if it did not exist.
        """
        client = self.client
        try:
            of = Shareable("discussion", client.user_id if owner is None else owner, session_id)
            store = open_granted(client.store, of, client.user_id)
            key = DiscussionKey(user_id=of.owner, session_id=session_id)
            log = SharedLog(store, of.owner, session_id)
        except (ValueError, ValidationError) as error:
            message = f"{session_id!r} is no id of a discussion."
            raise Invalid(message, "Use letters, digits and '.', '_', '-'.") from error
        return DiscussionHandle(client.temporal, store, key, log, client.user_id)

    async def list_ids(self) -> list[str]:
        """List the ids of all discussions."""
        return await list_discussions(self.client.store, self.client.user_id)

    async def list_shared(self, limit: int = 20) -> list[Shared]:
        """List discussions that others share with the user, by id."""
        return await list_shared(self.client.store, self.client.user_id, "discussion", limit)

    async def _start_workflow(
        self, handle: DiscussionHandle, start: DiscussionStart, spec: DiscussionSpec
    ) -> bool:
        """Start the workflow; return whether none was running. Raises Unreachable."""
        attributes = [SearchAttributePair(USER, start.key.user_id)] if start.searchable else []
        names = ", ".join(agent.id for agent in spec.agents)
        try:
            await self.client.temporal.start_workflow(
                "Discussion",
                start,
                id=discussion_workflow_id(start.key.user_id, handle.id),
                task_queue=self.client.task_queue,
                task_timeout=TASK_TIMEOUT,
                priority=user_priority(start.key.user_id),
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                search_attributes=TypedSearchAttributes(attributes) if attributes else None,
                static_summary=f"{names}: {' '.join(spec.topic.split())}"[:200],
                result_type=DiscussionStatus,
            )
        except WorkflowAlreadyStartedError:
            return False
        except RPCError as error:
            raise Unreachable(f"Temporal did not take the discussion: {error.message}") from error
        return True


def _set_code(spec: DiscussionSpec, choose: Callable[[str | None], str | None]) -> DiscussionSpec:
    """Return the spec whose agents have the folder of modules that `choose` makes of theirs."""
    agents = []
    for each in spec.agents:
        agent = each.agent.model_copy(update={"code": choose(each.agent.code)})
        agents.append(each.model_copy(update={"agent": agent}))
    return spec.model_copy(update={"agents": tuple(agents)})


def _without_code(spec: DiscussionSpec) -> DiscussionSpec:
    return _set_code(spec, lambda _: None)


def _check_budget(spec: DiscussionSpec) -> None:
    """Raise Invalid for a budget in dollars with a model whose price is unknown."""
    if spec.limits.budget is None:
        return
    for agent in spec.all_agents():
        check_prices(list_models(agent), agent.model)


async def _refuse_finished(handle: DiscussionHandle) -> None:
    """Raise Conflict if the log says that the discussion is over."""
    log = SharedLog(handle.store, handle.key.user_id, handle.id)
    end = (await log.refresh()).end
    if end and is_over((await log.read([end]))[0]):
        raise Conflict(f"The discussion {handle.id} is over.", "Use another session id.")
