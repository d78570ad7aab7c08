"""The replacement of a workflow whose history its code cannot replay.

Temporal tries such a workflow again for ever. The log has all that the conversation has done, so a
new workflow can go on from it; what the old one was sent and has not recorded is handed on.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import NAMESPACE_OID, uuid5

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client as TemporalClient
from temporalio.client import WorkflowHandle

from perdure.agent.loop.inbox import (
    ActorItem,
    CloseRequest,
    CondenseRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    ResumeRequest,
    Signal,
    UserMessage,
)
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.client.description import Description, is_running
from perdure.client.diagnosis.failures import TaskFailureKind, load_task_failure
from perdure.client.workflow import ConversationWorkflow
from perdure.events.messages import MessageEvent
from perdure.storage.log.state import read_state
from perdure.temporal.actor import act_as
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.names import ACTOR_HEADER
from perdure.workflows.messages import parse_start, parse_webhook_failure, to_inbox_item
from perdure.workflows.wait_requests import to_signal

ControlItem: TypeAlias = (
    PauseRequest | ResumeRequest | InterruptRequest | CondenseRequest | CloseRequest
)

CONTROLS: Mapping[str, type[ControlItem]] = {
    "pause": PauseRequest,
    "resume": ResumeRequest,
    "interrupt": InterruptRequest,
    "condense": CondenseRequest,
    "close": CloseRequest,
}
"""The signals that have no id: they are handed on if no workflow task has handled them."""


@dataclass(frozen=True)
class SentItem:
    """An item that a workflow was sent, by the history event of its signal."""

    event_id: int
    item: InboxItem
    has_id: bool = False
    """Whether its sender gave it an id, by which the log has it once."""
    signal: str = ""
    values: Sequence[Any] = ()
    actor: str | None = None


@dataclass
class SentItems:
    """The items that a run was sent, in order; `handled` ended its last whole workflow task."""

    items: list[SentItem]
    handled: int = 0
    last: int = 0
    spec: Agent | None = None
    """The agent of a conversation that was to begin."""


async def replace_workflow(client: Client, user_id: str, conversation_id: str) -> bool:
    """Start a workflow from a conversation's log in place of one that cannot be replayed.

    Returns False where the workflow is in no such trouble, or was started by another one, which
    waits for it. Raises Unreachable and StoreError.
    """
    workflow = client.as_user(user_id).conversation(conversation_id).workflow
    description = await workflow.describe()
    if description is None or not await _cannot_be_replayed(workflow.temporal, description):
        return False
    run_id = description.workflow_execution_info.execution.run_id
    run = workflow.temporal.get_workflow_handle(workflow.workflow_id, run_id=run_id)
    sent = await _read_sent_items(workflow.temporal, run)
    items, state = await _select_unrecorded(workflow, sent), await read_state(workflow.log)
    spec = sent.spec if state.next_seq == 0 else None
    await workflow.replace(items, state.title or None, spec)
    await _hand_on_late_items(workflow, run, sent.last)
    return True


async def _cannot_be_replayed(temporal: TemporalClient, description: Description) -> bool:
    if not is_running(description) or description.workflow_execution_info.HasField(
        "parent_execution"
    ):
        return False
    task = description.pending_workflow_task
    if not description.HasField("pending_workflow_task") or task.attempt < 2:
        return False
    failed = await load_task_failure(temporal, description)
    return (
        failed is not None
        and failed != "completed"
        and failed.kind is TaskFailureKind.NONDETERMINISTIC
    )


async def _read_sent_items(
    temporal: TemporalClient, run: WorkflowHandle[Any, Any], after: int = 0
) -> SentItems:
    """Read what the run was sent after an event. Raises Unreachable."""
    sent = SentItems([])
    with translate_rpc_errors("does not show the history"):
        async for event in run.fetch_history_events():
            sent.last = event.event_id
            if event.HasField("workflow_task_completed_event_attributes"):
                sent.handled = event.event_id
            elif event.event_id == 1:
                payloads = event.workflow_execution_started_event_attributes.input.payloads
                values = await temporal.data_converter.decode(payloads)
                start = parse_start(values)
                sent.spec = start.spec
                sent.items += [SentItem(1, item, _has_id(item)) for item in start.inbox]
            elif event.event_id > after and (item := await _parse_signal(temporal, run, event)):
                sent.items.append(item)
    return sent


async def _parse_signal(
    temporal: TemporalClient, run: WorkflowHandle[Any, Any], event: HistoryEvent
) -> SentItem | None:
    """Parse a signal; None for another event, or a signal that a new workflow gets anew."""
    if not event.HasField("workflow_execution_signaled_event_attributes"):
        return None
    signal = event.workflow_execution_signaled_event_attributes
    values = await temporal.data_converter.decode(signal.input.payloads)
    new_id = str(uuid5(NAMESPACE_OID, f"{run.run_id}:{event.event_id}"))
    item = _to_item(signal.signal_name, values, new_id)
    if item is None:
        return None
    actor = await _read_actor(temporal, signal.header.fields)
    if isinstance(item, ActorItem):
        item = item.model_copy(update={"actor": actor})
    has_id = _has_id(item, new_id)
    if isinstance(item, UserMessage) and not has_id:
        item = item.model_copy(update={"message_id": new_id})
    return SentItem(event.event_id, item, has_id, signal.signal_name, values, actor)


def _has_id(item: InboxItem, new_id: str = "") -> bool:
    """Tell whether the sender gave the item an id; `new_id` is one that it was given here."""
    if isinstance(item, Signal):
        return item.signal_id != new_id
    return isinstance(item, UserMessage) and bool(item.message_id)


def _to_item(name: str, values: Sequence[Any], new_id: str) -> InboxItem | None:
    value = values[0] if len(values) == 1 else tuple(values)
    match name:
        case "send_message":
            return to_inbox_item(value)
        case "send_signal":
            return to_signal(value, new_id)
        case "record_webhook_failure":
            return parse_webhook_failure(value)
    kind = CONTROLS.get(name)
    return kind() if kind is not None else None


async def _read_actor(temporal: TemporalClient, fields: Mapping[str, Payload]) -> str | None:
    if ACTOR_HEADER not in fields:
        return None
    [actor] = await temporal.data_converter.decode([fields[ACTOR_HEADER]])
    return actor if isinstance(actor, str) else None


async def _select_unrecorded(workflow: ConversationWorkflow, sent: SentItems) -> list[InboxItem]:
    """Return the items that the log may lack: it has one with an id once, however often it comes.

    Of those without one, the ones that no workflow task has handled were not recorded; of the
    handled messages, those whose texts the log has too seldom.
    """
    selected = [it for it in sent.items if it.has_id or it.event_id > sent.handled]
    handled = [it for it in sent.items if it not in selected and isinstance(it.item, UserMessage)]
    if handled:
        recorded = await _count_texts(workflow)
        for each in handled:
            assert isinstance(each.item, UserMessage), "the others are left out"
            if recorded[each.item.text] > 0:
                recorded[each.item.text] -= 1
            else:
                selected.append(each)
    return _without_repeats([it.item for it in sorted(selected, key=lambda it: it.event_id)])


def _without_repeats(items: Sequence[InboxItem]) -> list[InboxItem]:
    """Return the items, of those with the same id the first: a workflow takes them as they are."""
    ids, kept = set[tuple[str, str]](), list[InboxItem]()
    for item in items:
        name = getattr(item, "message_id", None) or getattr(item, "signal_id", None)
        if name is None or (item.kind, name) not in ids:
            kept.append(item)
            ids.add((item.kind, name or ""))
    return kept


async def _count_texts(workflow: ConversationWorkflow) -> Counter[str]:
    events = [entry.event for entry in await workflow.log.read(0, await workflow.log.end())]
    said = (it for it in events if isinstance(it, MessageEvent) and it.source == "user")
    return Counter(getattr(part, "text", "") for it in said for part in it.llm_message.content)


async def _hand_on_late_items(
    workflow: ConversationWorkflow, run: WorkflowHandle[Any, Any], last: int
) -> None:
    """Send the new workflow what came while the old one was being replaced."""
    late = await _read_sent_items(workflow.temporal, run, after=last)
    for each in late.items:
        if each.event_id > last:
            acting = act_as(workflow.temporal, each.actor) if each.actor else workflow.temporal
            handle = acting.get_workflow_handle(workflow.workflow_id)
            with translate_rpc_errors(f"did not take the {each.signal}"):
                await handle.signal(each.signal, args=each.values)
