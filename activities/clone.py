"""The activity that clones the repository of a conversation into its workspace."""

from datetime import timedelta
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.activities.support.inbox_events import error_event, state_update
from perdure.activities.support.load import load_spec
from perdure.activities.support.resources import Activities
from perdure.activities.support.step import (
    ignore_cancellation,
    is_retry,
    now,
    origin,
    summarize_all,
)
from perdure.activities.support.writer import MAX_ADOPTED_ENTRIES, append_exclusive
from perdure.activities.workspace.recall import recall_for_repository
from perdure.activities.workspace.repository.clone import Place, Repository, clone_repository
from perdure.activities.workspace.repository.errors import CloneFailed, CloneUnavailable
from perdure.activities.workspace.snapshots import record_with_files, restore_files
from perdure.agent.knowledge.recall import RepositoryFacts
from perdure.agent.loop.steps import CloneRepository, Task
from perdure.agent.spec import Agent
from perdure.agent.surroundings import name_directory
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.status import Loading
from perdure.events.summary import EventSummary
from perdure.models.model import OnText
from perdure.sandbox.sandbox import SandboxUnusable
from perdure.secrets.registry import SecretUnavailable
from perdure.storage.errors import Altered, StoreRefused, Unrestorable
from perdure.storage.log.event_log import EventLog
from perdure.temporal.worker_load import waiting

MAX_TRIES = 5
"""Tries at a server that does not answer, before the person is told."""


class CloneActivities(Activities):
    @activity.defn(name="workspace.clone")
    async def clone(self, task: Task[CloneRepository]) -> list[EventSummary]:
        """Clone the repository, and record it; what prevents that ends the turn with a sentence.

        An attempt after one that was lost begins half a clone anew, and adopts a whole one.
        """
        async with self.begin(task) as (log, progress):
            self.resources.queues.admit_tool()
            spec = await load_spec(log, task.step.spec_seq)
            entries = await _find_own_entries(log, task.base) if is_retry() else []
            try:
                if not entries:
                    progress.load(Loading(what="clone", name=name_directory(spec.repository or "")))
                    entries = await self._clone(log, task, spec, progress.report)
            except CloneFailed as error:
                if isinstance(error, CloneUnavailable) and activity.info().attempt < MAX_TRIES:
                    raise _retry_later(error) from error
                failure = error_event(now(), error.code, str(error))
                return await append_exclusive(log, [failure], task.base, "failure")
            if entries[-1].origin == origin():
                entries += await self._recall(log, entries[-1], task.step, spec)
            return summarize_all(entries)

    async def _clone(
        self, log: EventLog, task: Task[CloneRepository], spec: Agent, report: OnText
    ) -> list[Entry]:
        """Clone the repository, and append what was cloned, with a snapshot of the workspace.

        Raises CloneFailed.
        """
        slot, workspace = task.step.files_seq, self.resources.workspace(spec, log)
        repository = await self._describe(log, spec)
        place = Place(workspace, self.resources.sandbox, log.conversation_id)
        try:
            await restore_files(self.resources, log, spec, slot)
            limits = self.resources.clone_limits
            with waiting():
                commit = await clone_repository(repository, place, limits, report)
        except (Altered, StoreRefused, Unrestorable, SandboxUnusable, OSError) as error:
            sentence = f"{repository.url} was not cloned, as the workspace is unusable: {error}"
            raise CloneFailed("workspace_unusable", sentence) from error
        value = {"url": repository.url, "directory": repository.directory, "commit": commit}
        branch = {} if repository.branch is None else {"branch": repository.branch}
        event = state_update(now(), "repository", value | branch)
        append = partial(log.append, [event], base=task.base, origin=origin(), shared=True)
        return await ignore_cancellation(
            record_with_files(self.resources, log, spec, slot, append, changed=True)
        )

    async def _describe(self, log: EventLog, spec: Agent) -> Repository:
        """Return the repository with its token, as it is now. Raises CloneFailed."""
        assert spec.repository is not None, "the step is for a repository"
        name, token = spec.repository_token, None
        if name is not None:
            secrets = await self.resources.load_secrets(log.user_id, max_age=0.0)
            try:
                token = secrets.value(name)
            except SecretUnavailable as error:
                sentence = f"{spec.repository} was not cloned. {error}"
                raise CloneFailed("token_unavailable", sentence) from error
        return Repository(spec.repository, spec.branch, token, name)

    async def _recall(
        self, log: EventLog, cloned: Entry, step: CloneRepository, spec: Agent
    ) -> list[Entry]:
        """Append what the agent learns of its repository, unless an earlier attempt has."""
        event = cloned.event
        assert isinstance(event, ConversationStateUpdateEvent), "the clone is recorded so"
        await restore_files(self.resources, log, spec, cloned.seq)
        fields = {name: event.value.get(name) for name in ("url", "directory", "branch", "commit")}
        author = " ".join(filter(None, (spec.git_user_name, spec.git_user_email)))
        facts = RepositoryFacts(**fields, author=author or None)
        workspace = self.resources.workspace(spec, log)
        recalled = await recall_for_repository(facts, spec, workspace, step.shown_skills)
        if recalled is None:
            return []
        part = origin("recall")
        return await log.append([recalled], base=cloned.seq + 1, origin=part, shared=True)


async def _find_own_entries(log: EventLog, base: int) -> list[Entry]:
    """Return the entries from `base` to the one that an earlier attempt wrote; none without one."""
    entries, mine = await log.read(base, MAX_ADOPTED_ENTRIES), origin()
    for count, entry in enumerate(entries, 1):
        name = entry.origin.activity.partition(" ")[0]
        if (entry.origin.run, name) == (mine.run, mine.activity):
            return entries[:count]
    return []


def _retry_later(error: CloneUnavailable) -> ApplicationError:
    delay = timedelta(seconds=2 ** (activity.info().attempt - 1))
    return ApplicationError(str(error), type="RepositoryUnreachable", next_retry_delay=delay)
