"""The views of OpenHands (openhands-sdk 1.58.2) on random histories, and the messages of them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from perdure.agent.view.transcript import ChatMessage, Transcript
from tests.logs import add_events, build_view
from tests.openhands import load_cases, translate

CASES = load_cases("view")

Brief: TypeAlias = tuple[str, int, str | None, str]
"""Role, number of calls, the call it answers, text."""

REJECTED = "Action rejected: no"
OURS = "The user did not allow this: not on a Friday"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_view_agrees_with_the_vectors(case: dict[str, Any]) -> None:
    view, expected = build_view(translate(case["events"])), case["expect"]
    assert [event.id for event in view.events] == expected["view"]
    assert list(view.cut_points) == expected["manipulation_indices"]
    assert view.condensation_requested == expected["unhandled_condensation_request"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_messages_agree_with_the_vectors_in_order(case: dict[str, Any]) -> None:
    """Four differences are meant, and in many cases there is none of them.

    * The system prompt stands first and stays in force: theirs goes where a condensation put a
      summary before it, and is lost where one forgot it.
    * The results stand right behind their calls, in the order of the calls: theirs in the order in
      which they came, with a summary between them where its offset says so, which in view-92 and
      view-122 even cuts a batch in two.
    * Messages of the user that follow each other stay apart: whoever wants one message of them
      (Anthropic, Gemini) gets it from litellm.
    * A rejection is worded otherwise.
    """
    transcript = Transcript()
    add_events(transcript.view, translate(case["events"]))
    ours = [brief(message) for message in transcript.messages()]
    calls = [
        [call["id"] for call in message["tool_calls"]]
        for message in transcript.messages()
        if message.get("tool_calls")
    ]
    theirs: list[Brief] = [tuple(item) for item in case["expect"]["messages"]]
    assert merged(ours) == merged(ordered(theirs, calls, case["events"]))


def test_all_vectors_are_present_and_most_messages_agree_unordered() -> None:
    assert len(CASES) == 200
    same = 0
    for case in CASES:
        transcript = Transcript()
        add_events(transcript.view, translate(case["events"]))
        ours = merged([brief(message) for message in transcript.messages()])
        same += ours == merged([tuple(item) for item in case["expect"]["messages"]])
    assert same == 110


def brief(message: ChatMessage) -> Brief:
    content = message["content"] or ""
    content = REJECTED if content == OURS else content.replace("Be careful.", "sys")
    return (
        message["role"],
        len(message.get("tool_calls", ())),
        message.get("tool_call_id"),
        content,
    )


def merged(messages: Sequence[Brief]) -> list[Brief]:
    """Messages of the user that follow each other as one."""
    briefs: list[Brief] = []
    for message in messages:
        if briefs and message[0] == briefs[-1][0] == "user":
            briefs[-1] = ("user", 0, None, briefs[-1][3] + message[3])
        else:
            briefs.append(message)
    return briefs


def ordered(
    theirs: Sequence[Brief], calls: Sequence[Sequence[str]], events: Sequence[dict[str, Any]]
) -> list[Brief]:
    """Their messages with the system prompt first, batches whole, their results behind them."""
    results = {their[2]: their for their in theirs if their[0] == "tool"}
    waiting = iter(calls)
    briefs: list[Brief] = []
    if any(event["t"] == "sys" for event in events):
        briefs.append(("system", 0, None, "sys"))
    due = 0
    for their in theirs:
        if their[1]:
            if not due:
                batch = next(waiting)
                due = len(batch)
                briefs += [("assistant", due, None, their[3]), *(results[call] for call in batch)]
            due -= their[1]
        elif their[0] not in ("system", "tool"):
            briefs.append(their)
    return briefs
