"""Outcomes of conversations, as scorers get them."""

from pathlib import Path

import pytest

from perdure.activities.batch.outcomes import read_outcome
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.client.ids import new_conversation_id
from perdure.evaluation.result import AttemptResult
from perdure.evaluation.score import Outcome
from perdure.events.control import InterruptEvent, PauseEvent, StuckEvent
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.projection import summarize
from perdure.exports.results import messages
from perdure.storage.errors import Missing
from perdure.storage.files import FileStore
from perdure.storage.keys import conversation_prefix, event_key
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import last_agent_text
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    error,
    error_event,
    observation,
    opened_event,
    partial_message,
    prompt,
    spec_event,
    state_update,
    status_event,
    user,
)

OPENING = (opened_event(), spec_event(), prompt())


class Scene:
    """A conversation in a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = EventLog(FileStore(folder), "local", new_conversation_id())
        self.state = State()

    async def add(self, *events: AnyEvent) -> None:
        """Add the results one by one, so that each is answered by its own id."""
        for event in events:
            base = self.state.next_seq
            origin = Origin(run="run", activity=str(base))
            added = await self.log.append([event], base=base, origin=origin)
            self.state = fold(self.state, [summarize(item) for item in added])

    async def add_call(self, name: str = "look", call_id: str = "call_1") -> str:
        """The id of the action that was just begun."""
        await self.add(action(name, call_id, response=f"response-{call_id}"))
        return (await self.log.get(self.state.next_seq - 1)).event.id

    async def outcome(self) -> tuple[Outcome, AttemptResult]:
        return await read_outcome(self.log, self.state)

    async def result(self) -> AttemptResult:
        return (await self.outcome())[1]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_statistics_are_counted_and_the_last_text_is_the_answer(scene: Scene) -> None:
    await scene.add(*OPENING, user("Look."), agent("One moment.", "response-0"))
    await scene.add(observation(await scene.add_call()))
    await scene.add(error(await scene.add_call(call_id="call_2"), call_id="call_2"))
    bad = observation(await scene.add_call(call_id="call_3"), call_id="call_3")
    worse = bad.observation.model_copy(update={"is_error": True})
    late = {"observation": worse, "timestamp": "2026-03-01T09:01:30.500000"}
    await scene.add(bad.model_copy(update=late))
    await scene.add(agent("It is 42.").model_copy(update={"timestamp": late["timestamp"]}))
    outcome, result = await scene.outcome()
    assert (result.answer, outcome.text) == ("It is 42.", "It is 42.")
    assert (result.tool_calls, result.tool_errors) == (3, 2)
    assert result.turns == scene.state.response_count
    assert result.seconds == 90.5
    assert outcome.conversation_id == scene.log.conversation_id
    assert list(outcome.messages) == list(messages(await scene.log.read(0, 100)))
    assert [message["role"] for message in outcome.messages][:3] == ["system", "user", "assistant"]
    assert (result.failure, result.limit, result.stuck) == (None, None, False)


async def test_finish_is_an_answer(scene: Scene) -> None:
    await scene.add(*OPENING, user("Go."))
    await scene.add(observation(await scene.add_call("finish"), "finish", "All done."))
    outcome, result = await scene.outcome()
    assert result.answer == "All done."
    assert outcome.status == "finished"


async def test_example_messages_of_the_sample_are_no_answer(scene: Scene) -> None:
    example_message = agent("Paris.").llm_message
    example = MessageEvent(timestamp=TIMESTAMP, source="agent", llm_message=example_message)
    await scene.add(*OPENING, user("Capital of France?"), example, user("Of Italy?"), error_event())
    outcome, result = await scene.outcome()
    assert (result.answer, outcome.text) == (None, "")
    assert any(message["content"] == "Paris." for message in outcome.messages)
    assert await last_agent_text(scene.log, scene.state.next_seq) == ""
    await scene.add(partial_message("Ro"))
    assert (await scene.result()).answer == "Ro"
    assert await last_agent_text(scene.log, scene.state.next_seq) == "Ro"


async def test_events_after_the_state_do_not_count(scene: Scene) -> None:
    await scene.add(*OPENING, user("Go."), agent("First."))
    before = scene.state
    await scene.add(user("Again."), agent("Second.", "response-2"))
    outcome, result = await read_outcome(scene.log, before)
    assert result.answer == "First."
    assert len(outcome.messages) == 3


@pytest.mark.parametrize(
    ("code", "limit", "kind"),
    [
        ("max_iterations", "max_iterations", None),
        ("deadline", "deadline", None),
        ("context_overflow", "context_overflow", None),
        ("auth", None, "configuration"),
        ("content", None, "agent"),
        ("setup_failed", None, "sample"),
        ("something_new", None, "infrastructure"),
    ],
)
async def test_an_error_is_a_limit_or_a_failure(
    scene: Scene, code: str, limit: str | None, kind: str | None
) -> None:
    await scene.add(*OPENING, user("Go."), error_event(code, "It: was so."))
    result = await scene.result()
    assert result.limit == limit
    if kind is None:
        assert result.failure is None
    else:
        assert result.failure is not None
        assert (result.failure.kind, result.failure.code) == (kind, code)
        assert result.failure.detail == "It: was so."


async def test_a_stuck_agent_is_scored(scene: Scene) -> None:
    circles = StuckEvent(timestamp=TIMESTAMP, pattern="monologue", first_seq=1, last_seq=3, count=3)
    await scene.add(*OPENING, user("Go."), circles)
    result = await scene.result()
    assert (result.stuck, result.failure, result.limit) == (True, None, None)


@pytest.mark.parametrize(
    "last",
    [PauseEvent(timestamp=TIMESTAMP), InterruptEvent(timestamp=TIMESTAMP), status_event("closed")],
)
async def test_a_stopped_conversation_is_not_scored(scene: Scene, last: AnyEvent) -> None:
    await scene.add(*OPENING, user("Go."), last)
    result = await scene.result()
    assert result.failure is not None
    assert (result.failure.kind, result.failure.code) == ("infrastructure", "stopped")
    assert f"was {scene.state.status}" in result.failure.detail


async def test_an_idle_conversation_with_an_answer_is_scored(scene: Scene) -> None:
    await scene.add(*OPENING, user("Go."), agent("Done."))
    scene.state = scene.state.model_copy(update={"status": "idle", "response_count": 1})
    assert (await scene.result()).failure is None


async def test_only_the_last_messages_of_a_long_conversation_are_kept(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.activities.batch.outcomes.MAX_OUTCOME_BYTES", 2000)
    await scene.add(*OPENING, *(user(f"{nth} {'x' * 300}") for nth in range(20)), agent("Done."))
    messages = (await scene.outcome())[0].messages
    assert "are left out" in str(messages[0]["content"])
    assert len(messages) < 8
    assert [message["content"] for message in messages[-2:]] == [f"19 {'x' * 300}", "Done."]
    assert str(22 - len(messages[1:])) in str(messages[0]["content"])


@pytest.mark.parametrize("lost", [4, 5])
async def test_a_log_with_a_hole_is_not_scored_without_it(scene: Scene, lost: int) -> None:
    await scene.add(*OPENING, user("Go."), agent("Done."), state_update("title", "It"))
    prefix = conversation_prefix("local", scene.log.conversation_id)
    await scene.log.store.delete(prefix + event_key(scene.log.conversation_id, lost))
    with pytest.raises(Missing):
        await scene.outcome()


async def test_a_long_log_is_read_page_by_page_to_the_same_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.add(*OPENING, user("Go."))
    await scene.add(observation(await scene.add_call()), agent("Done."))
    after = scene.state
    await scene.add(user("More."))
    whole = await read_outcome(scene.log, after)
    monkeypatch.setattr("perdure.activities.batch.outcomes.MAX_EVENTS_AT_ONCE", 0)
    assert await read_outcome(scene.log, after) == whole
    assert (whole[1].answer, whole[1].tool_calls) == ("Done.", 1)
    prefix = conversation_prefix("local", scene.log.conversation_id)
    await scene.log.store.delete(prefix + event_key(scene.log.conversation_id, 5))
    with pytest.raises(Missing):
        await read_outcome(scene.log, after)


class Counting(FileStore):
    """A store that counts what it is asked."""

    requests = 0

    async def read(self, key: str) -> bytes | None:
        self.requests += 1
        return await super().read(key)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        self.requests += 1
        return await super().list(prefix, after, limit)


async def test_cached_entries_are_not_read_from_the_store(tmp_path: Path) -> None:
    store, scene = Counting(tmp_path), Scene(tmp_path)
    scene.log = EventLog(store, "local", scene.log.conversation_id, EntryCache(1 << 20))
    await scene.add(*OPENING, user("Go."), agent("Done."))
    store.requests = 0
    assert (await scene.result()).answer == "Done."
    assert store.requests == 0


async def test_the_last_text_is_found_far_from_the_end(scene: Scene) -> None:
    await scene.add(*OPENING, user("Go."), agent("Far away."))
    await scene.add(*(state_update("title", f"{nth}") for nth in range(60)))
    assert await last_agent_text(scene.log, scene.state.next_seq) == "Far away."
    assert await last_agent_text(scene.log, 4) == ""
