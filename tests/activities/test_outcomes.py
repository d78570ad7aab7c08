"""What a conversation came to, as a scorer is told."""

from pathlib import Path

import pytest

from activities.outcomes import Left, last_words, outcome_of
from agent.evolve import fold
from agent.state import State
from client.ids import new_conversation_id
from events.control import InterruptEvent, PauseEvent, StuckEvent
from events.entry import Origin
from events.event import AnyEvent
from events.messages import MessageEvent
from events.projection import digest
from exports.results import messages
from storage.cache import EntryCache
from storage.errors import Missing
from storage.files import FileStore
from storage.keys import conversation_prefix, event_key
from storage.log import EventLog
from tests.builders import (
    WHEN,
    action,
    agent,
    configured,
    error,
    failed,
    observation,
    opened,
    partial,
    prompt,
    status,
    updated,
    user,
)

BEGUN = (opened(), configured(), prompt())


class Scene:
    """A conversation in a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = EventLog(FileStore(folder), "local", new_conversation_id())
        self.state = State()

    async def add(self, *events: AnyEvent) -> None:
        """One by one, so that each is answered by the id that it got."""
        for event in events:
            base = self.state.next_seq
            origin = Origin(run="run", activity=str(base))
            added = await self.log.append([event], base=base, origin=origin)
            self.state = fold(self.state, [digest(one) for one in added])

    async def called(self, name: str = "look", call_id: str = "call_1") -> str:
        """The id of the action that was just begun."""
        await self.add(action(name, call_id, response=f"response-{call_id}"))
        return (await self.log.at(self.state.next_seq - 1)).event.id

    async def left(self) -> Left:
        return await outcome_of(self.log, self.state)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_everything_is_counted_and_the_last_words_are_the_answer(scene: Scene) -> None:
    await scene.add(*BEGUN, user("Look."), agent("One moment.", "response-0"))
    await scene.add(observation(await scene.called()))
    await scene.add(error(await scene.called(call_id="call_2"), call_id="call_2"))
    bad = observation(await scene.called(call_id="call_3"), call_id="call_3")
    worse = bad.observation.model_copy(update={"is_error": True})
    late = {"observation": worse, "timestamp": "2026-03-01T09:01:30.500000"}
    await scene.add(bad.model_copy(update=late))
    await scene.add(agent("It is 42.").model_copy(update={"timestamp": late["timestamp"]}))
    left = await scene.left()
    assert (left.answer, left.outcome.text) == ("It is 42.", "It is 42.")
    assert (left.tool_calls, left.tool_errors, left.turns) == (3, 2, scene.state.answers)
    assert left.seconds == 90.5
    assert left.outcome.conversation_id == scene.log.conversation_id
    assert list(left.outcome.messages) == list(messages(await scene.log.read(0, 100)))
    assert [one["role"] for one in left.outcome.messages][:3] == ["system", "user", "assistant"]
    assert (left.failure, left.limit, left.stuck) == (None, None, False)


async def test_finish_is_an_answer(scene: Scene) -> None:
    await scene.add(*BEGUN, user("Go."))
    await scene.add(observation(await scene.called("finish"), "finish", "All done."))
    left = await scene.left()
    assert left.answer == "All done."
    assert left.outcome.status == "finished"


async def test_words_that_the_sample_puts_into_its_mouth_are_no_answer(scene: Scene) -> None:
    said = agent("Paris.").llm_message
    told = MessageEvent(timestamp=WHEN, source="agent", llm_message=said)
    await scene.add(*BEGUN, user("Capital of France?"), told, user("Of Italy?"), failed())
    left = await scene.left()
    assert (left.answer, left.outcome.text) == (None, "")
    assert any(one["content"] == "Paris." for one in left.outcome.messages)
    assert await last_words(scene.log, scene.state.next_seq) == ""
    await scene.add(partial("Ro"))
    assert (await scene.left()).answer == "Ro"
    assert await last_words(scene.log, scene.state.next_seq) == "Ro"


async def test_what_came_after_the_state_is_not_looked_at(scene: Scene) -> None:
    await scene.add(*BEGUN, user("Go."), agent("First."))
    before = scene.state
    await scene.add(user("Again."), agent("Second.", "response-2"))
    left = await outcome_of(scene.log, before)
    assert left.answer == "First."
    assert len(left.outcome.messages) == 3


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
    await scene.add(*BEGUN, user("Go."), failed(code, "It: was so."))
    left = await scene.left()
    assert left.limit == limit
    if kind is None:
        assert left.failure is None
    else:
        assert left.failure is not None
        assert (left.failure.kind, left.failure.code) == (kind, code)
        assert left.failure.detail == "It: was so."


async def test_an_agent_in_circles_is_scored(scene: Scene) -> None:
    circles = StuckEvent(timestamp=WHEN, pattern="monologue", first_seq=1, last_seq=3, count=3)
    await scene.add(*BEGUN, user("Go."), circles)
    left = await scene.left()
    assert (left.stuck, left.failure, left.limit) == (True, None, None)


@pytest.mark.parametrize(
    "last", [PauseEvent(timestamp=WHEN), InterruptEvent(timestamp=WHEN), status("closed")]
)
async def test_who_was_stopped_is_not_scored(scene: Scene, last: AnyEvent) -> None:
    await scene.add(*BEGUN, user("Go."), last)
    left = await scene.left()
    assert left.failure is not None
    assert (left.failure.kind, left.failure.code) == ("infrastructure", "stopped")
    assert f"was {scene.state.status}" in left.failure.detail


async def test_an_answer_before_a_rest_is_scored(scene: Scene) -> None:
    await scene.add(*BEGUN, user("Go."), agent("Done."))
    scene.state = scene.state.model_copy(update={"status": "idle", "answers": 1})
    assert (await scene.left()).failure is None


async def test_of_too_many_messages_the_last_are_kept(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.outcomes.MOST", 2000)
    await scene.add(*BEGUN, *(user(f"{nth} {'x' * 300}") for nth in range(20)), agent("Done."))
    kept = (await scene.left()).outcome.messages
    assert "are left out" in str(kept[0]["content"])
    assert len(kept) < 8
    assert [one["content"] for one in kept[-2:]] == [f"19 {'x' * 300}", "Done."]
    assert str(22 - len(kept[1:])) in str(kept[0]["content"])


@pytest.mark.parametrize("lost", [4, 5])
async def test_a_log_with_a_hole_is_not_scored_without_it(scene: Scene, lost: int) -> None:
    await scene.add(*BEGUN, user("Go."), agent("Done."), updated("title", "It"))
    prefix = conversation_prefix("local", scene.log.conversation_id)
    await scene.log.store.delete(prefix + event_key(scene.log.conversation_id, lost))
    with pytest.raises(Missing):
        await scene.left()


async def test_a_long_log_is_read_page_by_page_to_the_same_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.add(*BEGUN, user("Go."))
    await scene.add(observation(await scene.called()), agent("Done."))
    after = scene.state
    await scene.add(user("More."))
    whole = await outcome_of(scene.log, after)
    monkeypatch.setattr("activities.outcomes.FEW", 0)
    assert await outcome_of(scene.log, after) == whole
    assert (whole.answer, whole.tool_calls) == ("Done.", 1)
    prefix = conversation_prefix("local", scene.log.conversation_id)
    await scene.log.store.delete(prefix + event_key(scene.log.conversation_id, 5))
    with pytest.raises(Missing):
        await outcome_of(scene.log, after)


class Counting(FileStore):
    """A store that counts what it is asked."""

    asked = 0

    async def read(self, key: str) -> bytes | None:
        self.asked += 1
        return await super().read(key)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        self.asked += 1
        return await super().list(prefix, after, limit)


async def test_of_what_the_worker_knows_the_store_is_asked_nothing(tmp_path: Path) -> None:
    store, scene = Counting(tmp_path), Scene(tmp_path)
    scene.log = EventLog(store, "local", scene.log.conversation_id, EntryCache(1 << 20))
    await scene.add(*BEGUN, user("Go."), agent("Done."))
    store.asked = 0
    assert (await scene.left()).answer == "Done."
    assert store.asked == 0


async def test_last_words_are_found_far_from_the_end(scene: Scene) -> None:
    await scene.add(*BEGUN, user("Go."), agent("Far away."))
    await scene.add(*(updated("title", f"{nth}") for nth in range(60)))
    assert await last_words(scene.log, scene.state.next_seq) == "Far away."
    assert await last_words(scene.log, 4) == ""
