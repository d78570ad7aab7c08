"""The back-ends of the benchmark as tools, and the judgement of what they did."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

pytest.importorskip(
    "bfcl_eval", reason="bfcl-eval is missing: pip install --no-deps bfcl-eval mpmath"
)

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import state_checker
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

from examples.bfcl.audit import audit
from examples.bfcl.backends import Backends, ReplayError, Worker
from examples.bfcl.dataset import Sample, samples
from examples.bfcl.judge import judge
from perdure.events.content import TextContent
from perdure.events.entry import Entry
from perdure.events.observations import MCPToolObservation
from perdure.storage.files import FileStore
from tests.examples.playing import BenchmarkConversation

# Between them they have all back-ends, random numbers, and turns of both kinds.
FEW = [samples()[f"multi_turn_base_{number}"] for number in (0, 33, 57, 109, 150, 180)]
few = pytest.mark.parametrize("sample", FEW, ids=lambda sample: sample.id)


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = FileStore(tmp_path)
    yield opened
    await opened.close()


@pytest.mark.parametrize("sample", samples().values(), ids=lambda sample: str(sample.number))
async def test_the_ground_truth_passes(store: FileStore, sample: Sample) -> None:
    worker = Worker()
    play = await BenchmarkConversation(store, sample, worker).play_all()
    objects = await play.objects()
    assert audit(play.id, objects) == []
    assert judge(sample, objects) == []
    assert _state_differs(sample, worker, play.id) is None


def _state_differs(sample: Sample, worker: Worker, conversation_id: str) -> str | None:
    """Compare our instances with those on which upstream made the same calls."""
    calls = [text for turn in sample.truth for text in turn]
    involved = list(sample.classes)
    _, theirs = execute_multi_turn_func_call(
        calls, sample.entry["initial_config"], involved, f"test_{conversation_id}", sample.id
    )
    ours = worker.conversation(conversation_id).backends
    assert ours is not None
    verdict = state_checker(ours.instances, theirs)
    return None if verdict["valid"] else str(verdict["details"]["differences"])


@few
async def test_another_worker_goes_on_wherever_the_first_one_was_lost(
    store: FileStore, sample: Sample
) -> None:
    undisturbed = (await BenchmarkConversation(store, sample, Worker()).play_all()).results

    class Cut(BenchmarkConversation):
        """Hands over to another worker before its call number `at`."""

        at = 0

        async def call(self, entry: Entry) -> MCPToolObservation:
            if len(self.results) == self.at:
                self.worker = Worker()
            return await super().call(entry)

    for at in range(len(undisturbed)):
        cut = Cut(store, sample, Worker())
        cut.at = at
        assert (await cut.play_all()).results == undisturbed


@few
async def test_a_call_whose_result_was_lost_is_applied_once(
    store: FileStore, sample: Sample
) -> None:
    class Lossy(BenchmarkConversation):
        """Makes every call three times, on this worker and at once, and records the last."""

        async def call(self, entry: Entry) -> MCPToolObservation:
            await asyncio.gather(super().call(entry), super().call(entry))
            return await super().call(entry)

    undisturbed = (await BenchmarkConversation(store, sample, Worker()).play_all()).results
    lossy = await Lossy(store, sample, Worker()).play_all()
    assert lossy.results == undisturbed
    assert judge(sample, await lossy.objects()) == []


async def test_conversations_a_worker_has_no_room_for_are_made_anew(store: FileStore) -> None:
    worker = Worker(most=2)
    plays = await asyncio.gather(
        *(BenchmarkConversation(store, sample, worker).play_all() for sample in FEW)
    )
    for play in plays:
        assert judge(play.sample, await play.objects()) == []


async def test_a_worker_forgets_the_conversation_unused_for_longest(store: FileStore) -> None:
    worker = Worker(most=2)
    first, *later = [
        await BenchmarkConversation(store, sample, worker).play_all() for sample in FEW[:3]
    ]
    assert all(worker.conversation(play.id).backends for play in later)
    assert worker.conversation(first.id).backends is None


def test_a_call_that_does_not_fit_is_told_as_upstream_tells_it() -> None:
    backends = Backends(samples()["multi_turn_base_0"])
    complaint = backends.apply("sort", "an id", {"name": "report.pdf"})
    assert complaint.startswith("Error during execution: ")
    assert "unexpected keyword argument 'name'" in complaint


async def test_a_conversation_without_a_scenario_is_refused_in_a_sentence(
    store: FileStore,
) -> None:
    play = BenchmarkConversation(store, FEW[0], Worker())
    await play.send_message("There was no system prompt.", "message")
    with pytest.raises(ReplayError, match=r"no line .*Scenario: ID.*add it\.$"):
        await play.respond()


async def test_a_log_that_replays_differently_is_refused_in_a_sentence(store: FileStore) -> None:
    class Invented(BenchmarkConversation):
        """Records other results than the tools gave."""

        async def call(self, entry: Entry) -> MCPToolObservation:
            observation = await super().call(entry)
            self.worker = Worker()
            return observation.model_copy(update={"content": (TextContent(text="all is well"),)})

    with pytest.raises(ReplayError, match=r"returned 'all is well' and returns"):
        await Invented(store, FEW[0], Worker()).play_all()
