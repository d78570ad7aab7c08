"""The activities of a worker, by the task queues that have them."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import temporalio.client

from perdure.activities.ask import AskActivities
from perdure.activities.batch.paging import BatchActivities
from perdure.activities.batch.samples import SampleActivities
from perdure.activities.clone import CloneActivities
from perdure.activities.condense import CondenseActivities
from perdure.activities.delegate import DelegateActivities
from perdure.activities.discussion.steps import DiscussionActivities
from perdure.activities.llm import ModelActivities
from perdure.activities.log import LogActivities
from perdure.activities.memory import MemoryActivities
from perdure.activities.sessions import SessionsActivities
from perdure.activities.support.resources import Resources
from perdure.activities.title import TitleActivities
from perdure.activities.tool import ToolActivities

Activity: TypeAlias = Callable[..., Awaitable[Any]]


def model_activities(resources: Resources) -> list[Activity]:
    """List the steps that the queue of a rate-limited model has."""
    sample = SampleActivities(resources)
    return [
        ModelActivities(resources).chat,
        CondenseActivities(resources).condense,
        TitleActivities(resources).title,
        *(sample.finish, sample.rescore),
    ]


def workspace_activities(resources: Resources) -> list[Activity]:
    """List the steps that need workspaces on this machine."""
    return [*_tool_activities(resources), SampleActivities(resources).finish]


def llm_activities(resources: Resources) -> list[Activity]:
    """List the steps of workers that ask models."""
    return [*model_activities(resources), AskActivities(resources).ask]


def tool_activities(resources: Resources) -> list[Activity]:
    """List the steps of workers that run tools."""
    sample = SampleActivities(resources)
    return [
        *workspace_activities(resources),
        LogActivities(resources).prepare,
        *(sample.set_up, sample.rescore),
    ]


def _tool_activities(resources: Resources) -> list[Activity]:
    tool, delegate = ToolActivities(resources), DelegateActivities(resources)
    clone = CloneActivities(resources)
    return [tool.call, delegate.delegate, delegate.report, clone.clone]


def all_activities(resources: Resources, temporal: temporalio.client.Client) -> list[Activity]:
    """List the activities of every kind, those of the lists above among them."""
    log, sample = LogActivities(resources, temporal), SampleActivities(resources)
    batch, sessions = BatchActivities(resources, temporal), SessionsActivities(resources, temporal)
    discussion = DiscussionActivities(resources)
    return [
        *model_activities(resources),
        *_tool_activities(resources),
        *(log.open, log.append, log.prepare, log.save, log.close),
        MemoryActivities(resources).ingest,
        AskActivities(resources).ask,
        ToolActivities(resources).resolve_lost_call,
        *(sample.set_up, sample.say),
        *(batch.check_code, batch.load_page, batch.count_results),
        *(batch.await_conversations, batch.record_lost_attempt),
        *(sessions.ask, sessions.survey),
        *(discussion.open, discussion.prepare, discussion.prune),
        *(discussion.record_answers, discussion.record_events),
    ]
