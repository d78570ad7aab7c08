"""The activity that condenses the view requests summaries once, and reports failures."""

import asyncio
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from perdure.activities.condense import CondenseActivities
from perdure.activities.support.resources import Resources
from perdure.activities.support.transcript_cache import read_unforgotten
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.steps import Condense, Task
from perdure.agent.spec import (
    Agent,
    AmortizedCondenser,
    CondenserSpec,
    CustomCondenser,
    ModelSpec,
    NoCondenser,
    RecentCondenser,
    SummaryCondenser,
)
from perdure.agent.view.condense.plan import CondensationPlan
from perdure.agent.view.condense.thresholds import CondenseReason
from perdure.agent.view.seq_ranges import SeqRanges
from perdure.agent.view.view import View
from perdure.client.ids import new_conversation_id
from perdure.events.condensation import Condensation
from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.events.summary import EventSummary
from perdure.models.model import ContextOverflow, OnText, Request
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.storage.keys import conversation_prefix, event_key
from perdure.storage.log.event_log import EventLog
from tests.builders import opened_event, prompt, spec_event, user

SMALL = SummaryCondenser(max_size=10)


class RecordingModels(ModelRouter):
    """The models, and what they were asked; of a prompt longer than `most` they have no room."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[str] = []
        self.most = 10**9
        self.hanging: asyncio.Event | None = None

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.prompts.append(request.messages[0]["content"])
        if len(self.prompts[-1]) > self.most:
            raise ContextOverflow("The prompt is too long.")
        if self.hanging is not None and len(self.prompts) > 1:
            self.hanging.set()
            await asyncio.Event().wait()
        return await super().complete(request, on_text)


class Scene:
    """A conversation, and the step that condenses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = RecordingModels()
        self.store = FileStore(folder / "store")
        self.conversation_id = new_conversation_id()
        self.log = EventLog(self.store, "local", self.conversation_id)
        self.end = 0

    async def begin(self, condenser: CondenserSpec, *messages: str, **script: Any) -> None:
        """A conversation with these messages, after an opening of three events."""
        path = self.folder / "script.json"
        path.write_text(json.dumps({"answers": ["Hello."], **script}))
        spec = Agent(model=ModelSpec(name=f"scripted:{path}"), condenser=condenser)
        await self.append([opened_event(), spec_event(spec), prompt(), *map(user, messages)])

    async def append(self, events: Sequence[AnyEvent]) -> None:
        origin = Origin(run="before", activity=str(self.end))
        self.end += len(await self.log.append(events, base=self.end, origin=origin))

    async def condense(self, *, attempt: int = 1, **step: Any) -> list[EventSummary]:
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, attempt=attempt)
        task: Task[Any] = Task(
            conversation_id=self.conversation_id,
            user_id="local",
            base=self.end,
            step=Condense.model_validate({"spec_seq": 1, "forgotten_seqs": (), **step}),
        )
        return await self.run(environment, task)

    async def run(self, environment: ActivityEnvironment, task: Task[Any]) -> list[EventSummary]:
        self.environment = environment
        world = Resources(self.store, self.model, self.folder)
        summaries: list[EventSummary] = await environment.run(
            CondenseActivities(world).condense, task
        )
        return summaries

    async def events(self) -> list[AnyEvent]:
        """Return the events that the step wrote."""
        entries = await self.log.read(self.end, 100)
        return [entry.event for entry in entries]

    async def visible_events(self, forgotten: SeqRanges = ()) -> list[str]:
        """Return the kinds of the visible events, or the text of a summary."""
        view = View()
        view.add_entries(await read_unforgotten(self.log, 0, await self.log.end(), forgotten))
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


async def test_a_summary_replaces_the_forgotten_events(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12), summaries=["What was said."])
    [fact] = await scene.condense()
    [made] = await scene.events()
    assert isinstance(made, Condensation)
    assert made.forgotten_seqs == ((4, 12),)
    assert (made.summary, made.summary_offset) == ("What was said.", 2)
    assert made.forgotten_size is not None
    assert fact.usage is not None
    assert (fact.usage.purpose, fact.usage.model) == (
        "condense",
        scripted_model(scene).rpartition("/")[2],
    )
    expected = ["SystemPromptEvent", "MessageEvent", "What was said.", *["MessageEvent"] * 2]
    assert (
        await scene.visible_events() == await scene.visible_events(made.forgotten_seqs) == expected
    )


def scripted_model(scene: Scene) -> str:
    return f"scripted:{scene.folder / 'script.json'}"


async def test_the_summary_prompt_has_the_forgotten_events_and_no_others(scene: Scene) -> None:
    await scene.begin(SMALL, *words(10), "x" * 50_000, *words(1))
    await scene.condense()
    [summary_prompt] = scene.model.prompts
    assert [f"message {nth}\n" in summary_prompt for nth in range(12)] == [
        nth in range(1, 10) for nth in range(12)
    ]


async def test_a_retry_requests_no_summary_twice(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12), summaries=["One.", "Two."])
    first = await scene.condense()
    scene.lose(scene.end)
    assert await scene.condense(attempt=2) == first
    assert await scene.condense(attempt=3) == first
    assert len(scene.model.prompts) == 1
    assert len(await scene.events()) == 1


async def test_a_condenser_has_a_model_of_its_own(scene: Scene) -> None:
    other = scene.folder / "other.json"
    other.write_text(json.dumps({"answers": ["-"], "summaries": ["By another."]}))
    condenser = SummaryCondenser(max_size=10, model=ModelSpec(name=f"scripted:{other}"))
    await scene.begin(condenser, *words(12))
    [fact] = await scene.condense()
    assert fact.usage is not None
    assert fact.usage.model == other.name
    assert "By another." in await scene.visible_events()


async def condense_in_parts(scene: Scene, attempt: int = 1) -> list[EventSummary]:
    """A summary of what takes three prompts."""
    window = ModelSpec(name=scripted_model(scene), max_input_tokens=40)
    spec = Agent(model=window, condenser=SMALL)
    await scene.append([spec_event(spec)] if attempt == 1 else [])
    return await scene.condense(attempt=attempt, spec_seq=scene.end - 1)


async def test_events_beyond_one_prompt_are_summarised_in_parts(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    facts = await condense_in_parts(scene)
    made = await scene.events()
    assert len(made) == len(facts) == len(scene.model.prompts) == 3
    assert [bool(fact.usage) for fact in facts] == [True] * 3
    assert "Summary of what came before" in scene.model.prompts[1]
    assert len(await scene.visible_events()) == 5
    texts = [f"message {nth}\n" for nth in range(1, 10)]
    assert [
        sum(text in summary_prompt for summary_prompt in scene.model.prompts) for text in texts
    ] == [1] * 9


async def test_a_retry_reuses_recorded_summaries(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    first = await condense_in_parts(scene)
    scene.lose(scene.end + 1)
    scene.lose(scene.end + 2)
    assert await condense_in_parts(scene, attempt=2) == first
    assert len(scene.model.prompts) == 3


async def test_a_stopped_step_keeps_its_finished_parts(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    scene.model.hanging = asyncio.Event()
    condensing = asyncio.create_task(condense_in_parts(scene))
    await scene.model.hanging.wait()
    scene.environment.cancel(ActivityCancellationDetails(cancel_requested=True))
    assert [fact.kind for fact in await condensing] == ["Condensation"]


async def test_a_prompt_that_is_too_long_is_shortened_until_it_fits(scene: Scene) -> None:
    await scene.begin(SMALL, *words(5), "x" * 20_000, *words(6), summaries=["Short."])
    scene.model.most = 8_000
    await scene.condense()
    assert "Short." in await scene.visible_events()
    assert len(scene.model.prompts) == 3
    assert "characters left out" in scene.model.prompts[-1]
    assert "message 1\n" in scene.model.prompts[-1]


# What stands in the way.


async def test_a_size_request_without_removable_events_writes_nothing(scene: Scene) -> None:
    await scene.begin(SMALL, *words(3))
    assert await scene.condense() == []
    assert await scene.events() == []


@pytest.mark.parametrize(
    ("condenser", "why"), [(SMALL, "nothing to condense yet"), (NoCondenser(), "no condenser")]
)
async def test_a_user_request_without_removable_events_gets_a_reason(
    scene: Scene, condenser: CondenserSpec, why: str
) -> None:
    await scene.begin(condenser, *words(1))
    await scene.condense(reason="user")
    [event] = await scene.events()
    assert isinstance(event, ConversationStateUpdateEvent)
    assert event.key == "not_condensed"
    assert why in event.value


@pytest.mark.parametrize(
    ("condenser", "count", "tries"), [(SMALL, 0, 1), (NoCondenser(), 20, 1), (SMALL, 20, 4)]
)
async def test_an_overflow_that_cannot_be_condensed_ends_the_turn(
    scene: Scene, condenser: CondenserSpec, count: int, tries: int
) -> None:
    await scene.begin(condenser, *words(count))
    await scene.condense(reason="overflow", overflows=tries)
    [event] = await scene.events()
    assert isinstance(event, ConversationErrorEvent)
    assert event.code == "context_overflow"
    assert "configure" in event.detail
    assert scene.model.prompts == []


async def test_a_second_overflow_leaves_the_prompt_and_a_summary(scene: Scene) -> None:
    await scene.begin(SMALL, *words(20), summaries=["All."])
    await scene.condense(reason="overflow", overflows=2)
    assert await scene.visible_events() == ["SystemPromptEvent", "All."]


@pytest.mark.parametrize("condenser", [AmortizedCondenser(), RecentCondenser()])
async def test_without_a_model_an_overflow_forgets_a_half(
    scene: Scene, condenser: CondenserSpec
) -> None:
    await scene.begin(condenser, *words(19))
    [fact] = await scene.condense(reason="overflow", overflows=1)
    assert fact.usage is None
    assert len(await scene.visible_events()) == 10
    assert scene.model.prompts == []


async def test_a_model_without_room_for_a_summary_condenses_nothing(scene: Scene) -> None:
    await scene.begin(SMALL, *words(12))
    scene.model.most = 0
    assert await scene.condense() == []
    await scene.condense(reason="overflow", overflows=1)
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
async def test_a_model_that_refuses_to_summarise_ends_the_turn(
    scene: Scene, summary: Any, code: str
) -> None:
    await scene.begin(SMALL, *words(12), summaries=[summary])
    await scene.condense()
    [event] = await scene.events()
    assert isinstance(event, ConversationErrorEvent)
    assert event.code == code


async def test_an_unavailable_model_is_retried_later(scene: Scene) -> None:
    failures = [{"status": 429, "retry_after": 3}]
    await scene.begin(SMALL, *words(12), summaries=[{"content": "S", "failures": failures}])
    with pytest.raises(ApplicationError) as raised:
        await scene.condense()
    assert not raised.value.non_retryable
    assert raised.value.next_retry_delay is not None
    assert await scene.events() == []
    assert len(await scene.condense(attempt=2)) == 1


# Condensers of a user's own.


def plan_early(
    view: View,
    tokens: Mapping[str, int],
    reason: CondenseReason,
    keep: int = 3,
) -> CondensationPlan | None:
    """Forget all but the newest `keep` events behind the prompt."""
    assert set(tokens) >= {event.id for event in view.events}
    if reason == "overflow":
        return CondensationPlan(1, 1, AmortizedCondenser())
    return CondensationPlan(1, len(view.events) - keep, AmortizedCondenser())


def raise_error(*_: Any) -> None:
    raise LookupError("no such plan")


def custom(name: str, **options: Any) -> CustomCondenser:
    return CustomCondenser(function=f"{__name__}:{name}", options=options, max_size=10)


async def test_a_custom_condenser_plans_what_is_forgotten(scene: Scene) -> None:
    await scene.begin(custom("plan_early", keep=2), *words(12))
    [fact] = await scene.condense()
    assert fact.kind == "Condensation"
    assert await scene.visible_events() == ["SystemPromptEvent", *["MessageEvent"] * 2]


async def test_a_custom_condenser_waits_for_its_threshold(scene: Scene) -> None:
    await scene.begin(custom("plan_early"), *words(9))
    assert await scene.condense() == []
    await scene.condense(reason="user")
    assert len(await scene.visible_events()) == 4


@pytest.mark.parametrize(
    ("condenser", "reason", "why"),
    [
        (custom("raise_error"), "size", "raised LookupError: no such plan"),
        (custom("custom"), "size", "raised TypeError"),
        (custom("words"), "size", "raised TypeError"),
        (custom("nothing"), "size", "has no attribute 'nothing'"),
        (custom("plan_early"), "overflow", "there is too little to forget"),
        (CustomCondenser(function="nobody", max_size=1), "size", "no package has 'nobody'"),
    ],
)
async def test_a_custom_condenser_that_fails_ends_the_turn_with_a_sentence(
    scene: Scene, condenser: CustomCondenser, reason: str, why: str
) -> None:
    await scene.begin(condenser, *words(12))
    await scene.condense(reason=reason, overflows=1)
    [event] = await scene.events()
    assert isinstance(event, ConversationErrorEvent)
    assert event.code == "condenser_failed"
    assert why in event.detail
