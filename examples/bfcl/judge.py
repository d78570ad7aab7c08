"""Whether the agent did what the sample asks for: upstream's checker, over the stored objects.

The calls are read from the log, made by upstream's own machinery on back-ends of its own, and
held against the ground truth turn by turn: the state of every back-end and the results. The
results in the log must be those that upstream gets. Every failure is a sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from examples.bfcl import upstream
from examples.bfcl.dataset import Sample, class_of
from examples.bfcl.objects import Objects, Stored, stored
from examples.bfcl.script import python


@dataclass
class Turn:
    """What one message of the user led to; `steps` has the actions of each answer of the model."""

    said: str
    steps: dict[str, list[Stored]] = field(default_factory=dict)
    ended: bool = False
    """Whether the agent's last word was an answer without calls."""

    @property
    def actions(self) -> list[Stored]:
        return [action for step in self.steps.values() for action in step]


def judge(sample: Sample, objects: Objects) -> list[str]:
    """Why the conversation does not pass; an empty list where it does."""
    events = stored(objects)
    turns = turns_of(events)
    unlike = list(_unlike(sample, turns))
    if unlike:
        return unlike
    made = [[list(map(_call, step)) for step in turn.steps.values()] for turn in turns]
    refused = upstream.check(sample.entry, made, sample.truth)
    return [refused] if refused else list(_other_results(sample, events, turns))


def turns_of(events: Sequence[Stored]) -> list[Turn]:
    """The turns of a log; what comes before the first message of the user belongs to none."""
    turns: list[Turn] = []
    for event in events:
        if event.kind == "MessageEvent" and event.fields.get("source") == "user":
            turns.append(Turn(_text(event.fields["llm_message"])))
        elif turns and event.kind == "MessageEvent":
            turns[-1].ended = True
        elif turns and event.kind == "ActionEvent":
            turns[-1].steps.setdefault(event.fields["llm_response_id"], []).append(event)
            turns[-1].ended = False
    return turns


def _unlike(sample: Sample, turns: Sequence[Turn]) -> Iterator[str]:
    """Where the conversation is not the sample's at all, so that no checker could judge it."""
    if len(turns) != len(sample.turns):
        yield f"The log has {len(turns)} messages of the user, the sample {len(sample.turns)}."
    for number, (turn, due) in enumerate(zip(turns, sample.turns, strict=False), 1):
        if turn.said != due:
            yield f"In turn {number} the user says {turn.said!r}, not {due!r}."
        if not turn.ended:
            yield f"Turn {number} has no last word of the agent."
        for tool in (action.fields["tool_name"] for action in turn.actions):
            if class_of(tool) not in sample.classes:
                yield f"In turn {number} the agent calls {tool}, which it does not have."


def _call(action: Stored) -> str:
    validated = action.fields.get("action") or {}
    return python(action.fields["tool_name"], validated.get("data", {}))


def _other_results(
    sample: Sample, events: Sequence[Stored], turns: Sequence[Turn]
) -> Iterator[str]:
    """Where a result in the log is not what upstream gets for the same calls in the same order."""
    actions = [action for turn in turns for action in turn.actions]
    answers = {
        event.fields["action_id"]: _text(event.fields["observation"])
        for event in events
        if event.kind == "ObservationEvent"
    }
    results = upstream.execute(sample.entry, list(map(_call, actions)))
    for action, due in zip(actions, results, strict=True):
        if (got := answers.get(action.id)) != due:
            call_id = action.fields["tool_call_id"]
            yield f"Tool call {call_id} returned {got!r}; upstream gets {due!r}."


def _text(said: dict[str, list[dict[str, str]]]) -> str:
    return "\n".join(part["text"] for part in said.get("content", ()) if part["type"] == "text")
