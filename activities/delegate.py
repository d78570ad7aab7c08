"""The activities by which one conversation delegates a task to another."""

from functools import partial
from typing import Any
from uuid import UUID, uuid5

from temporalio import activity

from perdure.activities.support.inbox_events import answer_fields
from perdure.activities.support.load import load_event, load_spec
from perdure.activities.support.resources import Activities
from perdure.activities.support.step import final_failure, now, origin, summarize_all
from perdure.activities.workspace.file_changes import begin_changes
from perdure.activities.workspace.snapshots import keeps_files, record_with_files
from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import MAX_RUN_EVENTS, Delegation, Start
from perdure.agent.loop.state import DELEGATE_TOOL, UNFINISHED_STATUSES, State
from perdure.agent.loop.steps import Delegate, Parent, Report, Task
from perdure.agent.spec import Agent
from perdure.events.actions import MCPToolAction
from perdure.events.content import TextContent
from perdure.events.observations import MCPToolObservation
from perdure.events.summary import EventSummary
from perdure.events.tools import ActionEvent, ObservationEvent
from perdure.events.usage import describe_cost
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import last_agent_text, read_state

NOT_HANDED_DOWN = ("repository", "branch", "repository_token", "replay", "parent")
"""Fields of an agent that are the delegating conversation's: its clone is there already, and its
recording is none of the delegate's answers."""


class DelegateActivities(Activities):
    @activity.defn(name="agent.delegate")
    async def delegate(self, task: Task[Delegate]) -> Delegation:
        """Build the start of the child conversation; it depends on the action only.

        A child that a lost workflow had started goes on from its log. If its turn is over, the
        start has its `state`.
        """
        async with self.begin(task) as (log, _):
            self.resources.queues.admit_tool()
            action = await load_event(log, task.step.action_seq, ActionEvent)
            if (answered := await log.find_answer(action.id, task.base, origin().run)) is not None:
                return Delegation(results=tuple(summarize_all(answered)))
            child = child_id(task.conversation_id, task.step.action_seq)
            return Delegation(start=await self._start(log, task, action, child))

    @activity.defn(name="agent.report")
    async def report(self, task: Task[Report]) -> list[EventSummary]:
        """Answer the action with the outcome of the child conversation and its cost."""
        async with self.begin(task) as (log, _):
            self.resources.queues.admit_tool()
            action = await load_event(log, task.step.action_seq, ActionEvent)
            child = self.resources.log(task.user_id, task.step.child)
            state = await read_state(child)
            text = await _report_text(child, state, task.step)
            usage = state.usage.model_copy(update={"purpose": DELEGATE_TOOL})
            failed = state.status != "finished"
            observation = MCPToolObservation(
                tool_name=DELEGATE_TOOL, content=(TextContent(text=text),), is_error=failed
            )
            answer = ObservationEvent(**answer_fields(action, now()), observation=observation)
            append = partial(
                log.append, [answer], base=task.base, origin=origin(), shared=True, usage=usage
            )
            spec = await load_spec(log, task.step.spec_seq)
            entries = await record_with_files(
                self.resources, log, spec, task.step.files_seq, append, changed=True
            )
            return summarize_all(entries)

    async def _start(
        self, log: EventLog, task: Task[Delegate], action: ActionEvent, child: str
    ) -> Start:
        state = await read_state(self.resources.log(task.user_id, child))
        spec = await load_spec(log, task.step.spec_seq)
        workspace = self.resources.workspace(spec, log)
        await begin_changes(self.resources, spec, log, task.step.action_seq)
        assert isinstance(action.action, MCPToolAction), "delegate takes plain arguments"
        arguments = action.action.data
        message = UserMessage(
            text=arguments["task"], sender=DELEGATE_TOOL, message_id=f"{DELEGATE_TOOL} {child}"
        )
        return Start(
            conversation_id=child,
            user_id=task.user_id,
            spec=_child_spec(spec, arguments, task.step.budget, str(workspace)),
            parent=Parent(
                conversation_id=task.conversation_id,
                action_seq=task.step.action_seq,
                home=self.resources.home if keeps_files(self.resources, spec) else None,
            ),
            state=state if _is_turn_over(state) else None,
            inbox=() if state.turn else (message,),
            max_run_events=MAX_RUN_EVENTS,
        )


def child_id(conversation_id: str, action: int) -> str:
    """Return the id of the conversation that runs the task of the action in a slot."""
    return str(uuid5(UUID(conversation_id), f"{DELEGATE_TOOL} {action}"))


def _is_turn_over(state: State) -> bool:
    """Tell whether the only turn of a delegated conversation is over."""
    if state.turn == 0:
        return state.status == "closed"
    return state.status not in UNFINISHED_STATUSES


def _child_spec(
    spec: Agent, arguments: dict[str, Any], budget: float | None, workspace: str
) -> Agent:
    """Return the named agent, or the parent's, limited to what the parent's budget has left.

    It works in the parent's workspace, by its deadline, and asks for confirmation where the parent
    does.
    """
    agent = _find_agent(spec, arguments.get("agent"))
    budgets = (budget, arguments.get("max_budget"), agent.limits.max_budget)
    limits = {
        "max_budget": _minimum(*(budgets if agent is not spec else budgets[:2])),
        "max_iterations": arguments.get("max_iterations", agent.limits.max_iterations),
        "deadline": _minimum(spec.limits.deadline, agent.limits.deadline),
    }
    is_stricter = spec.confirmation.is_stricter_than(agent.confirmation)
    return agent.model_copy(
        update={
            "tools": tuple(name for name in agent.tools if name != DELEGATE_TOOL),
            "delegates": (),
            "limits": agent.limits.model_copy(update=limits),
            "confirmation": spec.confirmation if is_stricter else agent.confirmation,
            "workspace": workspace,
            "snapshots": spec.snapshots,
            "code": agent.code or spec.code,
            "title_model": None,
            "app_name": agent.app_name or spec.app_name,
            "metadata": agent.metadata or spec.metadata,
            "response_schema": agent.response_schema if agent is not spec else None,
            **dict.fromkeys(NOT_HANDED_DOWN),
        }
    )


def _find_agent(spec: Agent, name: str | None) -> Agent:
    """Find the agent that another delegates to. Raises ApplicationError for one that is not its."""
    if name is None:
        return spec
    agents = {it.name: it.agent for it in spec.delegates}
    if name not in agents:
        raise final_failure("AgentNotFound", f"There is no agent {name!r} to delegate to.")
    return agents[name]


def _minimum(*limits: Any) -> Any:
    return min((limit for limit in limits if limit is not None), default=None)


async def _report_text(log: EventLog, state: State, step: Report) -> str:
    status = f"{state.status}{f' ({state.reason})' if state.reason else ''}"
    head = f"Conversation {step.child}: {step.failure or status}, {describe_cost(state.usage)}."
    return f"{head}\n{await last_agent_text(log, state.next_seq)}".rstrip()
