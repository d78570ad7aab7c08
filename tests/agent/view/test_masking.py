"""Masks hide events from a prompt without forgetting them."""

from typing import Any

from perdure.agent.spec import (
    BrowserMaskingCondenser,
    CondenserSpec,
    MaskingCondenser,
    PipelineCondenser,
    RecentCondenser,
)
from perdure.agent.view.condense.masking import OLD_RESULT_NOTE
from perdure.agent.view.transcript import Transcript
from perdure.events.event import AnyEvent
from tests.builders import action, agent, id_of, observation, prompt, user, with_ids
from tests.logs import add_events


def seen(condenser: CondenserSpec, *events: AnyEvent) -> list[Any]:
    transcript = Transcript(condenser)
    add_events(transcript.view, with_ids(events))
    return [message["content"] or "calls" for message in transcript.messages()]


STEPS: list[AnyEvent] = [
    prompt(),
    user("hi"),
    *(
        event
        for nth in range(3)
        for event in (
            action("look", f"c{nth}", f"r-{nth}"),
            observation(id_of(2 + 2 * nth), words=f"seen {nth}", call_id=f"c{nth}"),
        )
    ),
    agent("Done."),
]


def test_old_results_are_left_out() -> None:
    contents = seen(MaskingCondenser(attention_window=4), *STEPS)
    assert contents[2:] == ["calls", OLD_RESULT_NOTE, "calls", "seen 1", "calls", "seen 2", "Done."]


def test_long_results_are_left_out_at_any_age() -> None:
    contents = seen(MaskingCondenser(attention_window=99, max_chars=5), *STEPS)
    assert all("it has 6 characters, and 5 are shown" in contents[at] for at in (3, 5, 7))


def test_of_a_browsers_results_only_the_newest_are_shown() -> None:
    spec = BrowserMaskingCondenser(tools=("lo*",))
    assert seen(spec, *STEPS)[2:] == [
        "calls",
        OLD_RESULT_NOTE,
        "calls",
        OLD_RESULT_NOTE,
        "calls",
        "seen 2",
        "Done.",
    ]
    assert OLD_RESULT_NOTE not in seen(BrowserMaskingCondenser(), *STEPS)


def test_only_the_first_events_and_the_newest_are_shown() -> None:
    recent = RecentCondenser(keep_first=2, max_events=5)
    assert seen(recent, *STEPS) == ["Be careful.", "hi", "calls", "seen 2", "Done."]
    assert seen(RecentCondenser(keep_first=0, max_events=1), *STEPS) == ["Be careful.", "Done."]
    assert len(seen(RecentCondenser(), *STEPS)) == len(STEPS)


def test_what_cannot_be_taken_apart_is_shown_whole_though_it_is_long() -> None:
    recent = RecentCondenser(keep_first=2, max_events=3)
    assert seen(recent, *STEPS[:-1]) == ["Be careful.", "hi", "calls", "seen 2"]


def test_condensers_of_a_pipeline_work_one_after_the_other() -> None:
    recent, browser = RecentCondenser(max_events=7), BrowserMaskingCondenser(tools=("look",))
    contents = seen(PipelineCondenser(condensers=(recent, browser)), *STEPS)
    assert contents[2:] == ["calls", OLD_RESULT_NOTE, "calls", "seen 2", "Done."]
