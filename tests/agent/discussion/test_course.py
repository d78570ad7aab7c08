"""The course of discussions whose agents answer anything: it ends, and the log refuses nothing."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.activities.discussion.answers import make_drafts
from perdure.activities.discussion.turns import TurnAnswer
from perdure.agent.discussion.decide import decide, find_limit
from perdure.agent.discussion.evolve import end_early, evolve
from perdure.agent.discussion.log_state import LogState, apply_events, check_writer, is_over
from perdure.agent.discussion.logged import find_contributions
from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec, outline, parse_discussion
from perdure.agent.discussion.state import Contribution, DiscussionState
from perdure.agent.discussion.steps import (
    DiscussionStep,
    Draft,
    Prune,
    RecordResult,
    Write,
    step_event_id,
    step_name,
)
from perdure.agent.discussion.tally import Tally
from perdure.events.discussion import DiscussionEvent, system_content

NAMES = ("ada", "bob", "cyd")
KEY = DiscussionKey(user_id="local", session_id="s")

ANSWERS = (
    '{"speak": true, "urgency": 1, "line": "a"}',
    '{"speak": true, "urgency": 9, "line": "b"}',
    '{"speak": false}',
    '{"ballot": "yes"}',
    '{"ballot": "no"}',
    '{"grant": ["bob", "ada", "cyd"], "consensus": true}',
    '{"grant": []}',
    "words",
    "",
)


class Course:
    """A discussion whose models answer by `pick`, and its log.

    It may begin with the log of a run that was lost, whose models' answers were `answers`, by step
    and speaker.
    """

    def __init__(
        self,
        spec: DiscussionSpec,
        pick: Callable[[int], int],
        kept: Sequence[DiscussionEvent] = (),
        answers: dict[tuple[int, str], TurnAnswer] | None = None,
    ) -> None:
        self.spec, self.pick = spec, pick
        self.answers = {} if answers is None else answers
        self.events = list(kept)
        self.log = apply_events(LogState(), [(event, "") for event in kept])
        names = [agent.id for agent in spec.agents]
        opening = system_content("OPENED", agents=list(names))
        draft = Draft(type="SYSTEM", speaker="system", content=opening)
        [opened] = self.append("opening", [draft])
        logged = find_contributions(kept, names)
        self.state = DiscussionState(
            outline=outline(spec),
            end=opened.sequence,
            logged=tuple(logged),
            logged_end=len(kept),
            contributed={item.id: item.sequence for item in logged if item.id},
        )

    def append(self, name: str, drafts: Sequence[Draft]) -> list[DiscussionEvent]:
        """Write the events of a step; those that stand in the log already are found."""
        return [self._append(step_event_id(KEY, name, nth), it) for nth, it in enumerate(drafts)]

    def _append(self, event_id: str, draft: Draft) -> DiscussionEvent:
        for known in self.events:
            if known.event_id == event_id:
                return known
        check_writer(self.log, draft.type, draft.speaker)
        event = DiscussionEvent(
            event_id=event_id,
            type=draft.type,
            speaker=draft.speaker,
            content="digest" if draft.digest else draft.content,
            timestamp="2024-12-23T12:30:00.000Z",
            session_id="s",
            sequence=self.log.end + 1,
            meta=draft.meta or None,
        )
        self.log = apply_events(self.log, [(event, "")])
        self.events.append(event)
        return event

    def run(self, inbox: Sequence[Contribution] = ()) -> int:
        """Run to the end; return the number of steps."""
        waiting = [item for item in inbox if item.id not in self.state.contributed]
        for number in range(10_000):
            limit = find_limit(self.state, number)
            if limit and self.state.ending is None:
                self.state = end_early(self.state, limit)
            items = waiting[:1] if self.pick(3) == 0 else []
            step = decide(self.state, items)
            if step is None:
                return number
            self.state = evolve(self.state, step, self.perform(step), items)
            if isinstance(step, Write) and step.effect == "contribution":
                waiting.pop(0)
        raise AssertionError("the discussion does not end")

    def perform(self, step: DiscussionStep) -> RecordResult:
        if isinstance(step, Prune):
            return RecordResult(end=self.state.end)
        if isinstance(step, Write):
            events = self.append(step_name(step), step.drafts)
            tally = Tally.model_validate(events[-1].content) if step.effect == "tally" else None
            return self.result(events, summary="listed", tally=tally)
        texts = [self.answer_of(step.number, speaker) for speaker in step.speakers]
        answers, drafts = make_drafts(self.spec, step, texts)
        return self.result(
            self.append(step_name(step), drafts), answers=answers, summary="summed up"
        )

    def result(self, events: Sequence[DiscussionEvent], **fields: Any) -> RecordResult:
        end = events[-1].sequence if events else self.state.end
        first = events[0].sequence if events else 0
        return RecordResult(end=end, first=first, sequence=end, **fields)

    def answer_of(self, step: int, speaker: str) -> TurnAnswer:
        if (step, speaker) not in self.answers:
            self.answers[step, speaker] = self.answer()
        return self.answers[step, speaker]

    def answer(self) -> TurnAnswer:
        text = ANSWERS[self.pick(len(ANSWERS))]
        failure = "it failed" if not text else None
        return TurnAnswer(text=text, failure=failure, exists=True, total_cost=0.01)


def spec_of(**fields: Any) -> DiscussionSpec:
    agents = [{"id": name, "model": "m"} for name in NAMES]
    return parse_discussion({"topic": "t", "agents": agents, **fields})


PHASES = st.lists(
    st.fixed_dictionaries(
        {
            "rounds": st.integers(1, 4),
            "end": st.sampled_from(["rounds", "consensus", "vote"]),
            "speeches": st.none() | st.integers(1, 3),
            "speakers": st.lists(st.sampled_from(NAMES), unique=True),
        }
    ),
    min_size=1,
    max_size=3,
)
MODERATORS = st.sampled_from(
    [
        {"policy": "urgency"},
        {"policy": "round_robin"},
        {"policy": "urgency", "model": "m"},
        {"policy": "model", "model": "m"},
    ]
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={"turns": st.integers(1, 5), "time": st.integers(1, 30), "budget": st.floats(0, 0.1)},
)
CONTRIBUTIONS = st.lists(
    st.builds(
        Contribution,
        type=st.sampled_from(["SPEECH", "VOTE"]),
        content=st.sampled_from(["yes", "words"]),
        speaker=st.sampled_from(["eve", "fay"]),
        id=st.uuids().map(str),
    ),
    max_size=4,
    unique_by=lambda item: item.id,
)


@given(PHASES, MODERATORS, LIMITS, CONTRIBUTIONS, st.binary(max_size=400))
def test_every_discussion_ends_and_writes_only_what_the_log_takes(
    phases: list[dict[str, Any]],
    moderator: dict[str, str],
    limits: dict[str, Any],
    people: list[Contribution],
    choices: bytes,
) -> None:
    left = iter(choices)
    named = [{"name": f"p{nth}", **phase} for nth, phase in enumerate(phases)]
    spec = spec_of(phases=named, moderator=moderator, limits=limits)
    course = Course(spec, lambda most: next(left, 1) % most)
    course.run(people)
    events = course.events
    assert is_over(events[-1])
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert len({event.event_id for event in events}) == len(events)
    assert not course.log.grants or course.state.ending is not None
    summaries = [event for event in events if event.type == "SUMMARY"]
    transitions = [event for event in events if event.action == "PHASE_TRANSITION"]
    assert len(summaries) == len(transitions) <= len(spec.phases)
    if "turns" in limits:
        assert course.state.turns <= limits["turns"]
    spoken = [event for event in events if event.type == "SPEECH" and event.speaker in NAMES]
    assert len(spoken) == course.state.turns


@pytest.mark.parametrize("policy", ["urgency", "round_robin"])
def test_the_policy_decides_who_speaks_first(policy: str) -> None:
    """All want to speak, cyd most urgently; then in turn, or again by urgency."""
    phases = [{"name": "talk", "rounds": 2, "speeches": 1}]
    course = Course(spec_of(phases=phases, moderator=policy), lambda _: 1)
    answers = iter([0, 0, 1, 7, 0, 0, 1, 7])
    course.answer = lambda: TurnAnswer(text=ANSWERS[next(answers)])  # type: ignore[method-assign]
    course.run()
    speakers = [event.speaker for event in course.events if event.type == "SPEECH"]
    assert speakers == {"urgency": ["cyd", "cyd"], "round_robin": ["ada", "bob"]}[policy]
