"""The step that makes the view smaller: it pays once, and says what it could not do."""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.condense import CondenseActivities
from activities.transcripts import live
from activities.world import World
from agent.completion import Completion
from agent.ranges import Ranges
from agent.spec import (
    AmortizedCondenser,
    CondenserSpec,
    ModelSpec,
    NoCondenser,
    RecentCondenser,
    Spec,
    SummaryCondenser,
)
from agent.steps import Condense, Task
from agent.view import View
from client.ids import new_conversation_id
from events.condensation import Condensation
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from events.digest import Digest
from events.entry import Origin
from events.event import AnyEvent
from models.model import ContextOverflow, OnText, Request
from models.models import Models
from storage.files import FileStore
from storage.keys import conversation_prefix, event_key
from storage.log import EventLog
from tests.builders import configured, opened, prompt, user

SMALL = SummaryCondenser(max_size=10)


class Listening(Models):
    """The models, and what they were asked; of a prompt longer than `most` they have no room."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.most = 10**9
        self.hanging: asyncio.Event | None = None

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.asked.append(request.messages[0]["content"])
        if len(self.asked[-1]) > self.most:
            raise ContextOverflow("The prompt is too long.")
        if self.hanging is not None and len(self.asked) > 1:
            self.hanging.set()
            await asyncio.Event().wait()
        return await super().complete(request, on_text)


class Scene:
    """A conversation, and the step that condenses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = Listening()
        self.store = FileStore(folder / "store")
        self.conversation_id = new_conversation_id()
        self.log = EventLog(self.store, "local", self.conversation_id)
        self.end = 0

    async def begin(self, condenser: CondenserSpec, *said: str, **script: Any) -> None:
        """A conversation with these messages, after an opening of three events."""
        path = self.folder / "script.json"
        path.write_text(json.dumps({"answers": ["Hello."], **script}))
        spec = Spec(model=ModelSpec(name=f"scripted:{path}"), condenser=condenser)
        await self.append([opened(), configured(spec), prompt(), *map(user, said)])

    async def append(self, events: Sequence[AnyEvent]) -> None:
        origin = Origin(run="before", activity=str(self.end))
        self.end += len(await self.log.append(events, base=self.end, origin=origin))

    async def condense(self, *, attempt: int = 1, **step: Any) -> list[Digest]:
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, attempt=attempt)
        task: Task[Any] = Task(
            conversation_id=self.conversation_id,
            user_id="local",
            base=self.end,
            step=Condense.model_validate({"spec": 1, "forgotten": (), **step}),
        )
        return await self.run(environment, task)

    async def run(self, environment: ActivityEnvironment, task: Task[Any]) -> list[Digest]:
        self.environment = environment
        world = World(self.store, self.model, self.folder)
        found: list[Digest] = await environment.run(CondenseActivities(world).condense, task)
        return found

    async def events(self) -> list[AnyEvent]:
        """What the step wrote."""
        entries = await self.log.read(self.end, 100)
        return [entry.event for entry in entries]

    async def shown(self, forgotten: Ranges = ()) -> list[str]:
        """The kinds of what the model is shown, or the text of a summary."""
        view = View()
        view.enter(await live(self.log, 0, await self.log.end(), forgotten))
        return [getattr(event, "summary", event.kind) or "" for event in view.events]

    def lose(self, seq: int) -> None:
        """The worker died before it wrote this event."""
        key = conversation_prefix("local", self.conversation_id)
        key += event_key(self.conversation_id, seq)
        (self.folder / "store" / key).unlink()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def words(count: int) -> list[str]:
    return [f"message {nth}" for nth in range(count)]


# Summaries.


async def test_a_summary_takes_the_place_of_what_is_forgotten(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12), summaries=["What was said."])
    [fact] = await scene.condense()
    [made] = await scene.events()
    assert isinstance(made, Condensation)
    assert made.forgotten_seqs == ((4, 12),)
    assert (made.summary, made.summary_offset) == ("What was said.", 2)
    assert made.forgotten_size is not None
    assert fact.usage is not None
    assert (fact.usage.purpose, fact.usage.model) == ("condense", made_by(scene).rpartition("/")[2])
    expected = ["SystemPromptEvent", "MessageEvent", "What was said.", *["MessageEvent"] * 2]
    assert await scene.shown() == await scene.shown(made.forgotten_seqs) == expected


def made_by(scene: Scene) -> str:
    return f"scripted:{scene.folder / 'script.json'}"


async def test_the_model_is_told_all_that_is_forgotten_and_nothing_else(scene: Scene) -> None:
    await scene.begin(SMALL, *words(10), "x" * 50_000, *words(1))
    await scene.condense()
    [asked] = scene.model.asked
    assert [f"message {nth}\n" in asked for nth in range(12)] == [
        nth in range(1, 10) for nth in range(12)
    ]


async def test_a_retry_pays_for_nothing_twice(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12), summaries=["One.", "Two."])
    first = await scene.condense()
    scene.lose(scene.end)
    assert await scene.condense(attempt=2) == first
    assert await scene.condense(attempt=3) == first
    assert len(scene.model.asked) == 1
    assert len(await scene.events()) == 1


async def test_a_condenser_has_a_model_of_its_own(scene: Scene) -> None:
    other = scene.folder / "other.json"
    other.write_text(json.dumps({"answers": ["-"], "summaries": ["By another."]}))
    condenser = SummaryCondenser(max_size=10, model=ModelSpec(name=f"scripted:{other}"))
    await scene.begin(condenser, *words(12))
    [fact] = await scene.condense()
    assert fact.usage is not None
    assert fact.usage.model == other.name
    assert "By another." in await scene.shown()


async def in_parts(scene: Scene, attempt: int = 1) -> list[Digest]:
    """A summary of what takes three prompts."""
    window = ModelSpec(name=made_by(scene), max_input_tokens=40)
    spec = Spec(model=window, condenser=SMALL)
    await scene.append([configured(spec)] if attempt == 1 else [])
    return await scene.condense(attempt=attempt, spec=scene.end - 1)


async def test_what_is_too_much_for_one_prompt_is_summarised_in_parts(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    facts = await in_parts(scene)
    made = await scene.events()
    assert len(made) == len(facts) == len(scene.model.asked) == 3
    assert [bool(fact.usage) for fact in facts] == [True] * 3
    assert "Summary of what came before" in scene.model.asked[1]
    assert len(await scene.shown()) == 5
    told = [f"message {nth}\n" for nth in range(1, 10)]
    assert [sum(one in asked for asked in scene.model.asked) for one in told] == [1] * 9


async def test_a_retry_goes_on_with_the_parts_that_are_paid_for(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    first = await in_parts(scene)
    scene.lose(scene.end + 1)
    scene.lose(scene.end + 2)
    assert await in_parts(scene, attempt=2) == first
    assert len(scene.model.asked) == 3


async def test_a_step_that_is_stopped_keeps_the_parts_it_has(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    scene.model.hanging = asyncio.Event()
    condensing = asyncio.create_task(in_parts(scene))
    await scene.model.hanging.wait()
    scene.environment.cancel(ActivityCancellationDetails(cancel_requested=True))
    assert [fact.kind for fact in await condensing] == ["Condensation"]


async def test_a_prompt_that_is_too_long_is_shortened_until_it_fits(scene: Scene) -> None:
    await scene.begin(SMALL, *words(5), "x" * 20_000, *words(6), summaries=["Short."])
    scene.model.most = 8_000
    await scene.condense()
    assert "Short." in await scene.shown()
    assert len(scene.model.asked) == 3
    assert "characters left out" in scene.model.asked[-1]
    assert "message 1\n" in scene.model.asked[-1]


# What stands in the way.


async def test_nothing_is_done_where_only_the_size_asks_and_nothing_can_go(scene: Scene) -> None:
    await scene.begin(SMALL, *words(3))
    assert await scene.condense() == []
    assert await scene.events() == []


@pytest.mark.parametrize(
    ("condenser", "why"), [(SMALL, "nothing to condense yet"), (NoCondenser(), "no condenser")]
)
async def test_a_user_is_told_why_nothing_happens(
    scene: Scene, condenser: CondenserSpec, why: str
) -> None:
    await scene.begin(condenser, *words(1))
    await scene.condense(asked="user")
    [event] = await scene.events()
    assert isinstance(event, ConversationStateUpdateEvent)
    assert event.key == "not_condensed"
    assert why in event.value


@pytest.mark.parametrize(
    ("condenser", "count", "tries"), [(SMALL, 0, 1), (NoCondenser(), 20, 1), (SMALL, 20, 4)]
)
async def test_an_overflow_that_cannot_be_met_ends_the_turn(
    scene: Scene, condenser: CondenserSpec, count: int, tries: int
) -> None:
    await scene.begin(condenser, *words(count))
    await scene.condense(asked="overflow", tries=tries)
    [event] = await scene.events()
    assert isinstance(event, ConversationErrorEvent)
    assert event.code == "context_overflow"
    assert "configure" in event.detail
    assert scene.model.asked == []


async def test_a_second_overflow_leaves_the_prompt_and_a_summary(scene: Scene) -> None:
    await scene.begin(SMALL, *words(20), summaries=["All."])
    await scene.condense(asked="overflow", tries=2)
    assert await scene.shown() == ["SystemPromptEvent", "All."]


@pytest.mark.parametrize("condenser", [AmortizedCondenser(), RecentCondenser()])
async def test_without_a_model_an_overflow_forgets_a_half(
    scene: Scene, condenser: CondenserSpec
) -> None:
    await scene.begin(condenser, *words(19))
    [fact] = await scene.condense(asked="overflow", tries=1)
    assert fact.usage is None
    assert len(await scene.shown()) == 10
    assert scene.model.asked == []


async def test_no_room_at_all_for_a_summary_is_no_condensation(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    scene.model.most = 0
    assert await scene.condense() == []
    await scene.condense(asked="overflow", tries=1)
    [event] = await scene.events()
    assert isinstance(event, ConversationErrorEvent)
    assert event.code == "context_overflow"


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ("", "content"),
        ({"failures": [{"status": 401}]}, "auth"),
    ],
)
async def test_a_model_that_will_not_ends_the_turn(scene: Scene, summary: Any, code: str) -> None:
    await scene.begin(SMALL, *words(12), summaries=[summary])
    await scene.condense()
    [event] = await scene.events()
    assert isinstance(event, ConversationErrorEvent)
    assert event.code == code


async def test_a_model_that_cannot_now_is_asked_again_later(scene: Scene) -> None:
    failures = [{"status": 429, "retry_after": 3}]
    await scene.begin(SMALL, *words(12), summaries=[{"content": "S", "failures": failures}])
    with pytest.raises(ApplicationError) as raised:
        await scene.condense()
    assert not raised.value.non_retryable
    assert raised.value.next_retry_delay is not None
    assert await scene.events() == []
    assert len(await scene.condense(attempt=2)) == 1
