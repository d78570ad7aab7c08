"""The prompt for a summary."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.spec import SummaryCondenser
from perdure.agent.view.condense.condensation import CondensationInput
from perdure.agent.view.condense.plan import CondensationPlan
from perdure.agent.view.condense.prompt import (
    build_summary_prompt,
    plan_first_part,
    render_event,
    shorten_longest,
)
from perdure.events.content import ImageContent, Message
from tests import builders
from tests.builders import action, agent, entries, error, id_of, observation, rejection, user
from tests.logs import recall_event
from tests.logs import system_message as notice


def test_a_model_is_told_of_whole_events() -> None:
    picture = Message(role="user", content=(ImageContent(image_urls=("data:a", "data:b")),))
    events: list[Any] = [
        user("Fix it."),
        agent("Yes."),
        notice("Two answers are left."),
        user().model_copy(update={"llm_message": picture}),
        action(arguments='{"a": 1}').model_copy(update={"thought": builders.text("So:")}),
        observation(id_of(0), words="x" * 5000),
        error(id_of(0)),
        rejection(id_of(0)),
        recall_event("Be brief."),
    ]
    assert list(map(render_event, events)) == [
        "The user says:\nFix it.",
        "The agent says:\nYes.",
        "A notice:\nTwo answers are left.",
        "The user says:\n\n[2 pictures]",
        'The agent says:\nSo:\nThe agent calls look with {"a": 1}',
        f"Result of look:\n{'x' * 5000}",
        "Error of look:\nno such tool",
        "The user did not allow look: not on a Friday",
        "Context that was called up:\nBe brief.",
    ]


def test_the_prompt_asks_for_what_must_not_be_lost() -> None:
    prompt = build_summary_prompt(["The user says:\nFix it."], 1000)
    sections = ("USER_CONTEXT", "TASK_TRACKING", "COMPLETED", "PENDING", "CURRENT_STATE")
    assert all(section in prompt for section in (*sections, "CODE_STATE", "TESTS", "CHANGES"))
    assert "<EVENT>\nThe user says:\nFix it.\n</EVENT>" in prompt


@given(st.lists(st.text("ab", max_size=300), min_size=1, max_size=9), st.integers(0, 2000))
def test_only_the_longest_texts_are_shortened(texts: list[str], room: int) -> None:
    short = shorten_longest(texts, room)
    if sum(map(len, texts)) <= room:
        assert short == texts
        return
    cut_lengths = [len(text) for text, left in zip(texts, short, strict=True) if text != left]
    whole_lengths = [len(text) for text, left in zip(texts, short, strict=True) if text == left]
    assert max(whole_lengths, default=0) <= min(cut_lengths)
    note = len("\n[1,234 characters left out]\n")
    assert sum(map(len, short)) <= room + note * len(cut_lengths)


def test_a_long_stretch_is_summarised_in_parts() -> None:
    material = CondensationInput(
        entries([builders.prompt(), *[user(f"{n:02}") for n in range(39)]])
    )
    plan = CondensationPlan(1, 40, SummaryCondenser())
    each = len(render_event(material.view.events[1]))
    part = plan_first_part(material.view, plan, 11 * each)
    assert (part.start, part.end) == (1, 12)
    assert plan_first_part(material.view, plan, 0).end == 3
    assert plan_first_part(material.view, plan, 10**6) == plan
