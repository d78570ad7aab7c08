"""The activities by which one conversation delegates a task to another."""

from functools import partial
from typing import Any
from uuid import UUID, uuid5

from temporalio import activity

from perdure.activities.support.inbox_events import answer_fields
from perdure.activities.support.resources import Activities, load_event, load_spec
from perdure.activities.support.step import now, origin, summarize_all
from perdure.activities.workspace.file_changes import begin_changes
from perdure.activities.workspace.snapshots import keeps_files, record_with_files
from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import MAX_RUN_EVENTS, Delegation, Start
from perdure.agent.loop.state import DELEGATE_TOOL, State
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


class DelegateActivities(Activities):
    @activity.defn(name="agent.delegate")
    async def delegate(self, task: Task[Delegate]) -> Delegation:
        """Build the start of the child conversation; it depends on the action only.

        A child that a lost workflow had started goes on from its log. If its turn is over, the
        start has its `state`.
        """
        async with self.begin(task) as (log, _):
            action = await load_event(log, task.step.action_seq, ActionEvent)
            if (answered := await log.find_answer(action.id, task.base, origin().run)) is not None:
                return Delegation(results=tuple(summarize_all(answered)))
            child = child_id(task.conversation_id, task.step.action_seq)
            return Delegation(start=await self._start(log, task, action, child))

    @activity.defn(name="agent.report")
    async def report(self, task: Task[Report]) -> list[EventSummary]:
        """Answer the action with the outcome of the child conversation and its cost."""
        async with self.begin(task) as (log, _):
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
    return state.status not in ("running", "paused", "waiting_for_confirmation")


def _child_spec(
    spec: Agent, arguments: dict[str, Any], budget: float | None, workspace: str
) -> Agent:
    """Return the parent's spec and workspace, limited to what its budget has left."""
    budgets = [limit for limit in (budget, arguments.get("max_budget")) if limit is not None]
    limits = {
        "max_budget": min(budgets, default=None),
        "max_iterations": arguments.get("max_iterations", spec.limits.max_iterations),
    }
    return spec.model_copy(
        update={
            "tools": tuple(name for name in spec.tools if name != DELEGATE_TOOL),
            "limits": spec.limits.model_copy(update=limits),
            "workspace": workspace,
            "title_model": None,
        }
    )


async def _report_text(log: EventLog, state: State, step: Report) -> str:
    status = f"{state.status}{f' ({state.reason})' if state.reason else ''}"
    head = f"Conversation {step.child}: {step.failure or status}, {describe_cost(state.usage)}."
    return f"{head}\n{await last_agent_text(log, state.next_seq)}".rstrip()
