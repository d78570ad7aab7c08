"""Recorded events that a start is given: their answers come before the model's."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.spec import Agent
from perdure.errors import Invalid
from perdure.storage.log.event_log import EventLog
from perdure.testing.replay import RecordedAnswers, Recording, build_recording

RecordedEvents: TypeAlias = Iterable[Mapping[str, Any]]
"""Events as `perdure show ID -o jsonl` prints them, or as OpenHands has them."""


def parse_recording(events: RecordedEvents) -> Recording:
    """Parse recorded events. Raises Invalid for what is none."""
    recording = build_recording(events)
    if recording is None:
        raise Invalid(
            "What is to be replayed has neither an answer nor a message of a user in it.",
            "Give events as `perdure show ID -o jsonl` prints them, or as OpenHands has them.",
        )
    return recording


async def store_recording(log: EventLog, recording: Recording, agent: Agent) -> Agent:
    """Store the answers of a recording beside a log, and return the agent that replays them."""
    answers = RecordedAnswers(answers=recording.answers)
    key = await log.store_blob(answers.model_dump_json(exclude_none=True).encode())
    return agent.model_copy(update={"replay": key})


def first_message(recording: Recording) -> UserMessage | None:
    """Return the message with which a recorded conversation began."""
    return next(iter(recording.user_messages), None)
