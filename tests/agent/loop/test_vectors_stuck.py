"""The verdicts of OpenHands (openhands-sdk 1.58.2) on random histories, after every event."""

import json
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.loop.stuck import RecentEvent, add_recent, detect_stuck, warn_of_stuck
from perdure.agent.policies import StuckThresholds
from perdure.events.actions import ThinkAction
from perdure.events.content import Message
from perdure.events.control import PauseEvent
from perdure.events.event import Event
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent
from tests.builders import (
    TIMESTAMP,
    call,
    error,
    observation,
    prompt,
    rejection,
    summaries_of,
    text,
)

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "stuck.json").read_text()
)

TOLD_ALREADY = {
    ("stuck-err-4", 8),
    ("stuck-err-4", 9),
    ("stuck-err-8", 8),
    ("stuck-err-8", 9),
    ("stuck-err-90", 14),
    ("stuck-err-90", 15),
}
"""Here we do not nudge and theirs does. The nudge stands in the history, right behind the third
failure: theirs remembers what it told only in the detector's own memory, which was made anew for
every prefix; ours sees it in the events, so that it tells once whoever goes on."""


def event(compact: dict[str, Any]) -> Event:
    tool, name = compact.get("tool", ""), compact.get("call", "")
    match compact["t"]:
        case "sys":
            return prompt()
        case "msg":
            message = Message(role="user", content=text(compact["text"]))
            return MessageEvent(timestamp=TIMESTAMP, source=compact["source"], llm_message=message)
        case "act":
            return ActionEvent(
                timestamp=TIMESTAMP,
                thought=text(compact["thought"]),
                action=ThinkAction(thought=compact["args"]),
                tool_name=tool,
                tool_call_id=name,
                tool_call=call(tool, name),
                llm_response_id=compact["resp"],
            )
        case "obs":
            return observation(compact["action_id"], tool, compact["text"], name)
        case "err":
            return error(None, tool, name, compact["error"])
        case "rej":
            return rejection(compact["action_id"], tool, name)
        case "pause":
            return PauseEvent(timestamp=TIMESTAMP)
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_detection_agrees_with_the_vectors_after_every_event(case: dict[str, Any]) -> None:
    thresholds = StuckThresholds()
    recent: tuple[RecentEvent, ...] = ()
    stuck, nudged = [], []
    for nth, fact in enumerate(summaries_of(*map(event, case["events"]))):
        recent = add_recent(recent, fact, thresholds)
        stuck.append(detect_stuck(recent, thresholds) is not None)
        warning = warn_of_stuck(recent, thresholds) is not None
        nudged.append(warning or (case["name"], nth) in TOLD_ALREADY)
        assert not (warning and (case["name"], nth) in TOLD_ALREADY)
    assert stuck == case["expect"]["is_stuck_by_prefix"]
    assert nudged == case["expect"]["nudge_by_prefix"]


def test_the_cases_are_all_there() -> None:
    verdicts = [case["expect"] for case in CASES]
    assert len(CASES) == 200
    assert sum(len(expect["is_stuck_by_prefix"]) for expect in verdicts) > 3_000
    assert sum(any(expect["is_stuck_by_prefix"]) for expect in verdicts) == 87
    assert sum(any(expect["nudge_by_prefix"]) for expect in verdicts) == 29
