"""What the logs and the effects say of turns, messages and calls over an upgrade."""

from collections import Counter
from collections.abc import Sequence

from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import verify
from reliability.chaos.tools import UNREPEATABLE_TOOLS
from reliability.upgrade.scripts import CALLS, TURNS


async def audit_log(
    log: EventLog, messages: Sequence[str], runs: Counter[str], counts: Counter[str]
) -> list[str]:
    """Return what is wrong with a conversation; `runs` counts the effects of its actions."""
    findings = [f"{it.key}: {it.detail}" async for it in verify(log) if it.kind != "note"]
    state, events = await read_state(log), [entry.event for entry in await log.read(0, 10_000)]
    counts["conversations"] += 1
    counts["events"] += len(events)
    if (state.status, state.turn) != ("finished", TURNS):
        findings.append(f"{state.status} in turn {state.turn}: {state.reason}")
    users = [it for it in events if isinstance(it, MessageEvent) and it.source == "user"]
    texts = [getattr(part, "text", "") for it in users for part in it.llm_message.content]
    if texts != list(messages):
        findings.append(f"its messages are {texts}, not {list(messages)}")
    actions = [event for event in events if isinstance(event, ActionEvent)]
    if len(actions) != CALLS:
        findings.append(f"{len(actions)} actions, not {CALLS}")
    answers = [it for it in events if isinstance(it, ObservationEvent | AgentErrorEvent)]
    for action in actions:
        own = [answer for answer in answers if answer.action_id == action.id]
        findings += _audit_call(action, own, runs[action.id], counts)
    return findings


def _audit_call(
    action: ActionEvent,
    answers: Sequence[ObservationEvent | AgentErrorEvent],
    runs: int,
    counts: Counter[str],
) -> list[str]:
    """Return what is wrong with a call: one of a worker that ends may be cut off, and told."""
    counts["calls"] += 1
    if len(answers) != 1:
        return [f"{action.tool_name} has {len(answers)} answers"]
    is_told = isinstance(answers[0], AgentErrorEvent)
    counts["of them cut off and told"] += is_told
    counts["of them run again, as they may be"] += runs > 1
    if runs > 1 and action.tool_name in UNREPEATABLE_TOOLS:
        return [f"{action.tool_name} took effect {runs} times"]
    return [f"{action.tool_name} took no effect"] if runs == 0 and not is_told else []
