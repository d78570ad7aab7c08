"""The verdicts of OpenHands (openhands-sdk 1.58.2) on random histories, after every event."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.spec import StuckThresholds
from agent.stuck import Trace, nudge, remember, verdict
from events.actions import ThinkAction
from events.content import Message
from events.control import PauseEvent
from events.event import Event
from events.messages import MessageEvent
from events.tools import ActionEvent
from tests.builders import (
    WHEN,
    call,
    digests,
    error,
    observation,
    prompt,
    rejection,
    text,
)

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "stuck.json").read_text()
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
            said = Message(role="user", content=text(compact["text"]))
            return MessageEvent(timestamp=WHEN, source=compact["source"], llm_message=said)
        case "act":
            return ActionEvent(
                timestamp=WHEN,
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
            return PauseEvent(timestamp=WHEN)
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_verdict_is_theirs_after_every_event(case: dict[str, Any]) -> None:
    thresholds = StuckThresholds()
    recent: tuple[Trace, ...] = ()
    stuck, nudged = [], []
    for nth, fact in enumerate(digests(*map(event, case["events"]))):
        recent = remember(recent, fact, thresholds)
        stuck.append(verdict(recent, thresholds) is not None)
        told = nudge(recent, thresholds) is not None
        nudged.append(told or (case["name"], nth) in TOLD_ALREADY)
        assert not (told and (case["name"], nth) in TOLD_ALREADY)
    assert stuck == case["expect"]["is_stuck_by_prefix"]
    assert nudged == case["expect"]["nudge_by_prefix"]


def test_the_cases_are_all_there() -> None:
    verdicts = [case["expect"] for case in CASES]
    assert len(CASES) == 200
    assert sum(len(expect["is_stuck_by_prefix"]) for expect in verdicts) > 3_000
    assert sum(any(expect["is_stuck_by_prefix"]) for expect in verdicts) == 87
    assert sum(any(expect["nudge_by_prefix"]) for expect in verdicts) == 29
