"""The activity that asks the model records one response, and asks for it once."""

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.activities.llm import ModelActivities
from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.steps import Task, Think
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.ids import new_conversation_id
from perdure.events.content import MessageToolCall
from perdure.events.entry import Entry, Origin
from perdure.events.event import AnyEvent
from perdure.events.summary import EventSummary
from perdure.events.usage import Usage
from perdure.models.model import ModelRefused, OnText, Request
from perdure.storage.errors import Fenced
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from tests.builders import SPEC, completion, opened_event, prompt, spec_event, user

BASE = 4


def think(name: str, **arguments: Any) -> MessageToolCall:
    text = f'{{"thought": "{arguments.get("thought", name)}"}}'
    return MessageToolCall(id=f"call-{name}", name="think", arguments=text)


def answer(name: str, *calls: MessageToolCall, **fields: Any) -> Completion:
    """A response of a model with a bill, as models give them."""
    usage = Usage(prompt_tokens=3, completion_tokens=2, model="m")
    return completion(*calls, words=name, response=name, usage=usage, **fields)


class Model:
    """A model that gives these answers, and each of them after it was let."""

    def __init__(self, answers: Sequence[Completion | ModelRefused]) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.gates = [asyncio.Event() for _ in answers]
        for gate in self.gates:
            gate.set()

    async def complete(self, request: Request, on_text: OnText) -> Completion:  # noqa: ARG002
        nth, self.asked = self.asked, self.asked + 1
        await self.gates[nth].wait()
        answer = self.answers[nth]
        if isinstance(answer, ModelRefused):
            raise answer
        return answer


class Scene:
    """A conversation before its first answer, and the step that asks for it."""

    def __init__(self, folder: Path, *answers: Completion | ModelRefused) -> None:
        self.model = Model(answers)
        self.resources = Resources(FileStore(folder / "store"), self.model, folder)
        self.log = EventLog(self.resources.store, "local", new_conversation_id())

    async def begin(self, spec: Agent = SPEC) -> None:
        spec = spec.model_copy(update={"tools": ("think",)})
        events: list[AnyEvent] = [opened_event(), spec_event(spec), prompt(), user()]
        await self.log.append(events, base=0, origin=Origin(run=self.run, activity="before"))

    @property
    def run(self) -> str:
        return str(ActivityEnvironment().info.workflow_run_id)

    async def chat(self, attempt: int = 1, activity_id: str = "") -> list[EventSummary]:
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(
            environment.info,
            attempt=attempt,
            activity_id=activity_id or environment.info.activity_id,
        )
        task: Task[Any] = Task(
            conversation_id=self.log.conversation_id,
            user_id="local",
            base=BASE,
            step=Think(spec_seq=1, prompt_seq=2),
        )
        resources = Resources(self.resources.store, self.model, self.resources.workspaces)
        summaries: list[EventSummary] = await environment.run(ModelActivities(resources).chat, task)
        return summaries

    async def written(self) -> list[Entry]:
        return await self.log.read(BASE, 100)

    async def responses(self) -> list[str]:
        return await self.resources.store.list(f"{self.log.prefix}responses/")


async def test_a_message_is_the_record_of_its_response(tmp_path: Path) -> None:
    scene = Scene(tmp_path, answer("done", finish_reason="stop"))
    await scene.begin()
    await scene.chat()
    [entry] = await scene.written()
    assert entry.usage is not None
    assert entry.usage.prompt_tokens == 3
    assert await scene.responses() == []


async def test_an_event_names_the_model_that_answered_where_another_was_asked(
    tmp_path: Path,
) -> None:
    dated = answer("done", finish_reason="stop").model_copy(update={"model": "m-2025-01-01"})
    scene = Scene(tmp_path, dated)
    await scene.begin()
    await scene.chat()
    [entry] = await scene.written()
    assert entry.usage is not None
    assert (entry.usage.model, entry.usage.served_model) == ("m", "m-2025-01-01")
    assert await scene.responses() == []


async def test_a_call_is_the_record_of_its_response(tmp_path: Path) -> None:
    scene = Scene(tmp_path, answer("so", think("a"), finish_reason="tool_calls"))
    await scene.begin()
    await scene.chat()
    assert [entry.event.kind for entry in await scene.written()] == ["ActionEvent"]
    assert await scene.responses() == []


@pytest.mark.parametrize(
    "response",
    [
        answer("two", think("a"), think("b")),
        answer("none", MessageToolCall(id="c", name="fly", arguments="{}")),
        answer("stopped", think("a"), finish_reason="content_filter"),
        answer("another", think("a"), finish_reason="stop"),
        answer("long", think("a", thought="x" * 30_000)),
        answer("half a pair: \ud83d"),
    ],
    ids=[
        "two calls",
        "an error",
        "filtered",
        "odd reason",
        "long",
        "no unicode",
    ],
)
async def test_a_response_with_more_than_one_event_says_is_recorded_as_received(
    tmp_path: Path, response: Completion
) -> None:
    scene = Scene(tmp_path, response)
    await scene.begin()
    await scene.chat()
    assert await scene.log.read_response(BASE) == response


async def test_a_response_whose_actions_are_judged_is_recorded_before(tmp_path: Path) -> None:
    scene = Scene(tmp_path, answer("so", think("a"), finish_reason="tool_calls"))
    await scene.begin(Agent(model=ModelSpec(name="m"), confirmation=Confirmation(policy="risky")))
    await scene.chat()
    assert await scene.log.read_response(BASE) == scene.model.answers[0]


@pytest.mark.parametrize("calls", [(), (think("a"),), (think("a"), think("b"))])
async def test_a_retry_returns_the_response_that_was_recorded(
    tmp_path: Path, calls: tuple[MessageToolCall, ...]
) -> None:
    scene = Scene(tmp_path, answer("one", *calls))
    await scene.begin()
    first = await scene.chat()
    assert await scene.chat(attempt=2) == first
    assert scene.model.asked == 1
    assert len(await scene.written()) == max(1, len(calls))


ONE, TWO = answer("one", think("a")), answer("two", think("b"), think("c"))
OTHER, THREE = answer("other"), answer("three", think("d"), think("e"), think("f"))


@pytest.mark.parametrize("first", [ONE, OTHER, TWO])
@pytest.mark.parametrize("second", [ONE, OTHER, THREE])
async def test_attempts_with_different_responses_write_the_events_of_one(
    tmp_path: Path, first: Completion, second: Completion
) -> None:
    """An attempt that was given up may still be answered, after the one in its place or before."""
    second = second.model_copy(update={"id": f"{second.id} again"})
    scene = Scene(tmp_path, first, second)
    await scene.begin()
    scene.model.gates[0].clear()
    given_up = asyncio.create_task(scene.chat())
    while not scene.model.asked:
        await asyncio.sleep(0)
    summaries = await scene.chat(attempt=2)
    scene.model.gates[0].set()
    assert await given_up == summaries
    calls = second.message.tool_calls or ()
    stored = [getattr(entry.event, "llm_response_id", None) for entry in await scene.written()]
    assert stored == [second.id] * max(1, len(calls))
    assert await scene.chat(attempt=3) == summaries
    assert scene.model.asked == 2


REFUSED = ModelRefused("bad_request", "Not this.")


@pytest.mark.parametrize("second", [REFUSED, OTHER, ONE, THREE])
@pytest.mark.parametrize("later_step", [False, True])
async def test_a_response_that_an_attempt_began_to_write_is_written_whole(
    tmp_path: Path, second: Completion | ModelRefused, later_step: bool
) -> None:
    """The attempt that was given up writes the first of two events, and no more for a while."""
    scene = Scene(tmp_path, TWO)
    await scene.begin()
    await scene.chat()
    whole = await scene.written()
    torn = Scene(tmp_path / "torn", second)
    await torn.begin()
    torn.model.gates[0].clear()
    attempt = asyncio.create_task(
        torn.chat(attempt=1 if later_step else 2, activity_id="later" if later_step else "")
    )
    while not torn.model.asked:
        await asyncio.sleep(0)
    origin = whole[0].origin
    await torn.log.record_response(BASE, TWO, origin)
    await torn.log.append([whole[0].event], base=BASE, origin=origin, usage=whole[0].usage)
    torn.model.gates[0].set()
    summaries = await attempt
    stored = await torn.written()
    assert [getattr(it.event, "tool_call_id", None) for it in stored] == ["call-b", "call-c"]
    assert [it.usage for it in stored] == [whole[0].usage, None]
    assert len(summaries) == 2


async def test_a_response_that_lost_its_slot_to_another_is_not_continued(tmp_path: Path) -> None:
    """The answer of two calls was recorded, and another attempt's one event came first."""
    scene = Scene(tmp_path, ONE)
    await scene.begin()
    summaries = await scene.chat()
    origin = (await scene.written())[0].origin
    await scene.log.record_response(BASE, TWO, origin)
    assert await scene.chat(attempt=2) == summaries
    assert len(await scene.written()) == 1


async def test_a_retry_whose_slot_another_run_holds_is_fenced_and_asks_nobody(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, ONE)
    await scene.begin()
    await scene.log.append([opened_event()], base=BASE, origin=Origin(run="other", activity="1"))
    with pytest.raises(Exception, match="other") as caught:
        await scene.chat(attempt=2)
    assert isinstance(caught.value.__cause__, Fenced)
    assert scene.model.asked == 0
