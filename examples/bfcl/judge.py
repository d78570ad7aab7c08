"""The verdict on a conversation by upstream's checker.

The calls are read from the log or from its messages, made by upstream's own machinery on back-ends
of its own, and held against the ground truth turn by turn: the state of every back-end and the
results. The results on record must be those that upstream gets. Every failure is a sentence.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from examples.bfcl import upstream
from examples.bfcl.dataset import Sample, class_of
from examples.bfcl.objects import Objects, StoredEvent, parse_objects
from examples.bfcl.script import python


@dataclass(frozen=True)
class ToolCall:
    """A tool call, and what it returned; None where no result is on record."""

    id: str
    tool: str
    arguments: dict[str, Any]
    result: str | None

    @property
    def python(self) -> str:
        return python(self.tool, self.arguments)


@dataclass
class Turn:
    """The turn that a user's message began; `steps` has the calls of each answer of the model."""

    text: str
    steps: dict[str, list[ToolCall]] = field(default_factory=dict)
    ended: bool = False
    """Whether the agent's last word was an answer without calls."""

    @property
    def calls(self) -> list[ToolCall]:
        return [call for step in self.steps.values() for call in step]


def judge(sample: Sample, objects: Objects) -> list[str]:
    """List the reasons why the conversation fails; empty if it passes."""
    return failures(sample, turns_of(parse_objects(objects)))


def failures(sample: Sample, turns: Sequence[Turn]) -> list[str]:
    """List the reasons why these turns fail."""
    unlike = list(check_sample(sample, turns))
    if unlike:
        return unlike
    made = [[[call.python for call in step] for step in turn.steps.values()] for turn in turns]
    refused = upstream.check(sample.entry, made, sample.truth)
    return [refused] if refused else list(check_results(sample, turns))


def turns_of(events: Sequence[StoredEvent]) -> list[Turn]:
    """The turns of a log; what comes before the first message of the user belongs to none."""
    results = {
        event.fields["action_id"]: _text(event.fields["observation"])
        for event in events
        if event.kind == "ObservationEvent"
    }
    turns: list[Turn] = []
    for event in events:
        if event.kind == "MessageEvent" and event.fields.get("source") == "user":
            turns.append(Turn(_text(event.fields["llm_message"])))
        elif turns and event.kind == "MessageEvent":
            turns[-1].ended = True
        elif turns and event.kind == "ActionEvent":
            step = turns[-1].steps.setdefault(event.fields["llm_response_id"], [])
            step.append(_made(event, results.get(event.id)))
            turns[-1].ended = False
    return turns


def turns_of_messages(messages: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The turns of a conversation in the results format."""
    history = list(messages)
    results = {item["tool_call_id"]: item["content"] for item in history if item["role"] == "tool"}
    turns: list[Turn] = []
    for at, item in enumerate(history):
        if item["role"] == "user":
            turns.append(Turn(item["content"]))
        elif turns and item["role"] == "assistant":
            calls = item["tool_calls"] or ()
            turns[-1].ended = not calls
            if calls:
                turns[-1].steps[str(at)] = [
                    _called(call, results.get(call["id"])) for call in calls
                ]
    return turns


def _made(action: StoredEvent, result: str | None) -> ToolCall:
    validated = action.fields.get("action") or {}
    call_id, tool = action.fields["tool_call_id"], action.fields["tool_name"]
    return ToolCall(call_id, tool, validated.get("data", {}), result)


def _called(call: Mapping[str, Any], result: str | None) -> ToolCall:
    """List the calls that were made; one with unreadable arguments was refused, and is left out."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        arguments = None
    arguments_by_name = arguments if isinstance(arguments, dict) else {}
    return ToolCall(call["id"], call["function"]["name"], arguments_by_name, result)


def check_sample(sample: Sample, turns: Sequence[Turn]) -> Iterator[str]:
    """Find whether the conversation is another sample's, so that no checker could judge it."""
    if len(turns) != len(sample.turns):
        yield f"The log has {len(turns)} messages of the user, the sample {len(sample.turns)}."
    for number, (turn, due) in enumerate(zip(turns, sample.turns, strict=False), 1):
        if turn.text != due:
            yield f"In turn {number} the user says {turn.text!r}, not {due!r}."
        if not turn.ended:
            yield f"Turn {number} has no last word of the agent."
        for tool in (call.tool for call in turn.calls):
            if class_of(tool) not in sample.classes:
                yield f"In turn {number} the agent calls {tool}, which it does not have."


def check_results(sample: Sample, turns: Sequence[Turn]) -> Iterator[str]:
    """Find results that differ from upstream's for the same calls in the same order."""
    calls = [call for turn in turns for call in turn.calls]
    results = upstream.execute(sample.entry, [call.python for call in calls])
    for call, due in zip(calls, results, strict=True):
        if call.result != due:
            yield f"Tool call {call.id} returned {call.result!r}; upstream gets {due!r}."


def _text(message: dict[str, list[dict[str, str]]]) -> str:
    return "\n".join(part["text"] for part in message.get("content", ()) if part["type"] == "text")
