"""The steps by which one conversation has another do something."""

from typing import Any
from uuid import UUID, uuid5

from temporalio import activity

from activities.outcomes import last_words
from activities.step import at_work, digests, now, origin
from activities.workspace import keeps, recorded
from activities.world import World, action_at, spec_at
from agent.inbox import Said
from agent.spec import Spec
from agent.start import Errand, Start
from agent.state import DELEGATE, State
from agent.steps import Delegate, Parent, Report, Task
from events.actions import MCPToolAction
from events.content import TextContent
from events.digest import Digest
from events.entry import Entry
from events.files import Files
from events.observations import MCPToolObservation
from events.tools import ActionEvent, ObservationEvent
from storage.log import EventLog
from storage.state import state_of


class DelegateActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="agent.delegate")
    async def delegate(self, task: Task[Delegate]) -> Errand:
        """The start of the other conversation: told by the action, so that a repeat is the same.

        One that was begun before, for a workflow that was lost, goes on from its log; it begins
        with the `state` in which its turn is over, where it is.
        """
        async with at_work():
            log = self.world.log(task)
            action = await action_at(log, task.step.action)
            if (settled := await log.settled(action.id, task.base)) is not None:
                return Errand(answered=tuple(digests(settled)))
            child = child_id(task.conversation_id, task.step.action)
            return Errand(start=await self._start(task, action, child))

    @activity.defn(name="agent.report")
    async def report(self, task: Task[Report]) -> list[Digest]:
        """Answer the action with what the other conversation came to, and its bill."""
        async with at_work():
            log = self.world.log(task)
            action = await action_at(log, task.step.action)
            other = self._log_of(task, task.step.child)
            state = await state_of(other)
            told = await _report(other, state, task.step)
            bill = state.spent.model_copy(update={"purpose": DELEGATE})
            answer = _observed(action, told, failed=state.status != "finished")

            async def append(files: Files | None) -> list[Entry]:
                return await log.append(
                    [answer], base=task.base, origin=origin(), shared=True, usage=bill, files=files
                )

            spec = await spec_at(log, task.step.spec)
            entries = await recorded(self.world, log, spec, task.step.files, append, changed=True)
            return digests(entries)

    async def _start(self, task: Task[Delegate], action: ActionEvent, child: str) -> Start:
        state = await state_of(self._log_of(task, child))
        spec = await spec_at(self.world.log(task), task.step.spec)
        workspace = self.world.workspace(spec, task.conversation_id)
        assert isinstance(action.action, MCPToolAction), "delegate takes plain arguments"
        arguments = action.action.data
        asked = Said(text=arguments["task"], sender=DELEGATE, message_id=f"{DELEGATE} {child}")
        return Start(
            conversation_id=child,
            user_id=task.user_id,
            spec=_for_child(spec, arguments, task.step.budget, str(workspace)),
            parent=Parent(
                conversation_id=task.conversation_id,
                action=task.step.action,
                home=self.world.home if keeps(self.world, spec) else None,
            ),
            state=state if _is_over(state) else None,
            inbox=() if state.turn else (asked,),
        )

    def _log_of(self, task: Task[Any], conversation_id: str) -> EventLog:
        return EventLog(self.world.store, task.user_id, conversation_id, self.world.entries)


def child_id(conversation_id: str, action: int) -> str:
    """The id of the conversation that does what the action in a slot asks for."""
    return str(uuid5(UUID(conversation_id), f"{DELEGATE} {action}"))


def _is_over(state: State) -> bool:
    """Whether the one turn of a conversation on behalf of another is over."""
    if state.turn == 0:
        return state.status == "closed"
    return state.status not in ("running", "paused", "waiting_for_confirmation")


def _for_child(spec: Spec, arguments: dict[str, Any], budget: float | None, workspace: str) -> Spec:
    """The same agent in the same place, with no more to spend than its parent has left."""
    budgets = [one for one in (budget, arguments.get("max_budget")) if one is not None]
    limits = {
        "max_budget": min(budgets, default=None),
        "max_iterations": arguments.get("max_iterations", spec.limits.max_iterations),
    }
    return spec.model_copy(
        update={
            "tools": tuple(name for name in spec.tools if name != DELEGATE),
            "limits": spec.limits.model_copy(update=limits),
            "workspace": workspace,
            "title_model": None,
        }
    )


async def _report(log: EventLog, state: State, step: Report) -> str:
    ended = f"{state.status}{f' ({state.reason})' if state.reason else ''}"
    head = f"Conversation {step.child}: {step.failure or ended}, ${state.spent.cost:.4f}."
    return f"{head}\n{await last_words(log, state.next_seq)}".rstrip()


def _observed(action: ActionEvent, text: str, *, failed: bool) -> ObservationEvent:
    return ObservationEvent(
        timestamp=now(),
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        observation=MCPToolObservation(
            tool_name=DELEGATE, content=(TextContent(text=text),), is_error=failed
        ),
    )
