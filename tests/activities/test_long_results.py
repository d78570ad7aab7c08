"""A model with `max_message_chars` is asked, and asked a question, with long results cut."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.activities.ask import AskActivities
from perdure.activities.llm import ModelActivities
from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.ask import Ask
from perdure.agent.loop.steps import Task, Think
from perdure.agent.spec import ModelSpec
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.models.model import OnText, Request
from perdure.storage.files import FileStore
from perdure.storage.keys import event_id
from perdure.storage.log.event_log import EventLog
from tests.builders import (
    SPEC,
    action,
    completion,
    observation,
    opened_event,
    prompt,
    spec_event,
    user,
)

NOTE = "\n[... Observation truncated due to length ...]\n"


class RecordingModel:
    """A model that keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:  # noqa: ARG002
        self.requests.append(request)
        return completion(words="Done.", finish_reason="stop")


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(None, "a" * 30 + "b" * 30), (60, "a" * 30 + "b" * 30), (20, "a" * 10 + NOTE + "b" * 10)],
)
async def test_the_model_is_shown_results_of_at_most_so_many_characters(
    tmp_path: Path, limit: int | None, shown: str
) -> None:
    model = RecordingModel()
    resources = Resources(FileStore(tmp_path / "store"), model, tmp_path)
    log = EventLog(resources.store, "local", new_conversation_id())
    spec = SPEC.model_copy(
        update={"tools": ("think",), "model": ModelSpec(name="m", max_message_chars=limit)}
    )
    seen = observation(event_id(log.conversation_id, 4), words="a" * 30 + "b" * 30)
    events: list[AnyEvent] = [opened_event(), spec_event(spec), prompt(), user(), action(), seen]
    environment = ActivityEnvironment()
    run = str(environment.info.workflow_run_id)
    await log.append(events, base=0, origin=Origin(run=run, activity="before"))
    place = {"conversation_id": log.conversation_id, "user_id": "local", "base": len(events)}
    think: Task[Any] = Task(**place, step=Think(spec_seq=1, prompt_seq=2))
    await environment.run(ModelActivities(resources).chat, think)
    ask: Task[Any] = Task(**place, step=Ask(question="What?"))
    await ActivityEnvironment().run(AskActivities(resources).ask, ask)
    results = [
        message["content"]
        for request in model.requests
        for message in request.messages
        if message["role"] == "tool"
    ]
    assert results == [shown, shown]
