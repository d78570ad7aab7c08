"""What conversations, effects and the model say of steps that were lost or run twice."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from perdure.client.conversation import Conversation
from perdure.events.event import AnyEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from reliability.chaos.tools import UNREPEATABLE_TOOLS, read_effects
from reliability.drain.load import ANSWERS, CALLS, LONG_SECONDS


async def audit(
    conversations: Sequence[Conversation], effects: Path, requests: int, counts: Counter[str]
) -> list[str]:
    """Return what is wrong, and count what there was; `requests` is those to the model."""
    findings, runs = [], Counter(effect.action_id for effect in read_effects(effects))
    for conversation in conversations:
        events = await conversation.event_log.read()
        found = audit_conversation(events, runs, counts)
        findings += [f"{conversation.id}: {sentence}" for sentence in found]
    counts["requests to the model"] = requests
    expected = ANSWERS * len(conversations)
    if requests != expected:
        findings.append(f"{requests} requests to the model for {expected} answers")
    return findings


def audit_conversation(
    events: Sequence[AnyEvent], runs: Counter[str], counts: Counter[str]
) -> list[str]:
    """Return what is wrong with a conversation; `runs` counts the effects of its actions."""
    actions = [event for event in events if isinstance(event, ActionEvent)]
    answers = [it for it in events if isinstance(it, ObservationEvent | AgentErrorEvent)]
    findings = [] if len(actions) == CALLS else [f"{len(actions)} actions, not {CALLS}"]
    for action in actions:
        own = [answer for answer in answers if answer.action_id == action.id]
        counts["calls"] += 1
        if len(own) != 1:
            findings.append(f"{action.tool_name} has {len(own)} answers")
        else:
            findings += audit_call(action, own[0], runs[action.id], counts)
    return findings


def audit_call(
    action: ActionEvent, answer: ObservationEvent | AgentErrorEvent, runs: int, counts: Counter[str]
) -> list[str]:
    """Return what is wrong with a call that took effect `runs` times.

    One that outlasts the grace may be cut off. It is then made again where it may be, and its agent
    is told where it may not.
    """
    name, is_long = action.tool_name, f'"seconds": {LONG_SECONDS}' in action.tool_call.arguments
    is_interrupted = isinstance(answer, AgentErrorEvent) and answer.classification == "interrupted"
    if is_long:
        counts["calls that outlast the grace"] += 1
        counts["of them cut off and told"] += is_interrupted
        counts["of them run again, as they may be"] += runs > 1
    if is_interrupted and is_long and name in UNREPEATABLE_TOOLS:
        return [] if runs <= 1 else [f"{name} was cut off, and took effect {runs} times"]
    if not isinstance(answer, ObservationEvent) or answer.observation.is_error:
        return [f"{name} was lost: {answer.kind}"]
    may_repeat = is_long and name not in UNREPEATABLE_TOOLS
    if runs == 1 or (may_repeat and runs > 1):
        return []
    return [f"{name} took effect {runs} times"]
