"""BFCL as a batch: its rows, how a request is known, and what the scorer makes of messages."""

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip(
    "bfcl_eval", reason="bfcl-eval is missing: pip install --no-deps bfcl-eval mpmath"
)

from examples.bfcl.backends import Worker
from examples.bfcl.dataset import samples
from examples.bfcl.judge import judge, turns_of, turns_of_messages
from examples.bfcl.objects import parse_objects
from examples.bfcl.script import script
from examples.evals import checks, multi_turn
from examples.evals.engine import Plan, run_batch
from perdure.datasets.dataset import read_dataset
from perdure.evaluation.sample import Sample, build_sample
from perdure.evaluation.score import Outcome
from perdure.exports.results import messages
from perdure.storage.files import FileStore
from tests.examples.playing import BenchmarkConversation

ONE = samples()["multi_turn_base_0"]
URL = "http://127.0.0.1:1/v1"


@pytest_asyncio.fixture
async def play(tmp_path: Path) -> BenchmarkConversation:
    store = FileStore(tmp_path)
    return await BenchmarkConversation(store, ONE, Worker()).play_all()


@pytest_asyncio.fixture
async def transcript(play: BenchmarkConversation) -> list[dict[str, Any]]:
    """The conversation in the results format."""
    return list(messages(await play.log.read(0, play.seq)))


def row(name: str) -> Sample:
    return build_sample(next(item for item in multi_turn.rows() if item["id"] == name))


def score(transcript: list[dict[str, Any]]) -> dict[str, Any]:
    return multi_turn.score_sample(row(ONE.id), Outcome(text="", messages=tuple(transcript)))


def test_every_sample_of_the_benchmark_is_a_row_that_says_its_turns_one_by_one() -> None:
    with read_dataset(multi_turn.batch([], 1, URL)) as dataset:
        rows = {item.id: item for item in dataset}
    assert list(rows) == list(samples())
    for name, item in samples().items():
        assert (rows[name].question, *rows[name].turns) == item.turns


def test_a_request_is_known_by_its_scenario() -> None:
    (scenario, _) = next(multi_turn.rows())["input"]
    assert multi_turn.sample_of_request([scenario, {"role": "user", "content": "Hello."}]) == ONE.id
    assert multi_turn.sample_of_request([{"role": "user", "content": scenario["content"]}]) == ""


async def test_messages_have_the_turns_that_the_log_has(
    play: BenchmarkConversation, transcript: list[dict[str, Any]]
) -> None:
    logged = turns_of(parse_objects(await play.objects()))
    turns = turns_of_messages(transcript)
    assert [turn.text for turn in turns] == list(ONE.turns)
    assert [turn.calls for turn in turns] == [turn.calls for turn in logged]
    assert [len(turn.steps) for turn in turns] == [len(turn.steps) for turn in logged]
    assert all(turn.ended for turn in turns)


async def test_the_benchmarks_own_solution_is_right(
    play: BenchmarkConversation, transcript: list[dict[str, Any]]
) -> None:
    assert score(transcript) == {"value": True, "explanation": None}
    assert judge(ONE, await play.objects()) == []


async def test_a_call_that_was_not_made_is_wrong(transcript: list[dict[str, Any]]) -> None:
    first = next(item for item in transcript if item["role"] == "assistant" and item["tool_calls"])
    first["tool_calls"] = first["tool_calls"][1:] or None
    assert score(transcript)["value"] is False


async def test_a_result_that_upstream_does_not_get_is_wrong(
    transcript: list[dict[str, Any]],
) -> None:
    next(item for item in transcript if item["role"] == "tool")["content"] = "all is well"
    verdict = score(transcript)
    assert verdict["value"] is False
    assert "returned 'all is well'; upstream gets" in verdict["explanation"]


async def test_arguments_that_cannot_be_read_are_wrong_and_no_error(
    transcript: list[dict[str, Any]],
) -> None:
    first = next(item for item in transcript if item["role"] == "assistant" and item["tool_calls"])
    first["tool_calls"][0]["function"]["arguments"] = "{cut o"
    assert score(transcript)["value"] is False


async def test_a_conversation_that_ended_early_is_wrong(transcript: list[dict[str, Any]]) -> None:
    turns = [at for at, item in enumerate(transcript) if item["role"] == "user"]
    assert "3 messages of the user, the sample 4" in score(transcript[: turns[3]])["explanation"]


@pytest.mark.long
@pytest.mark.timeout(300)  # each new worker probes the store, which takes seconds of a busy machine
async def test_a_batch_is_solved_while_workers_are_killed(tmp_path: Path) -> None:
    ids = ["multi_turn_base_0", "multi_turn_base_109"]
    scripts = {name: script(samples()[name]) for name in ids}
    plan = Plan(
        batch=lambda model: multi_turn.batch(ids, 2, model),
        scripts=scripts,
        name_of=multi_turn.sample_of_request,
        warm="examples.bfcl.warm",
        workers=2,
        kill_every=0.1,
    )
    answers = sum(len(each.answers) for each in scripts.values())
    async with run_batch(plan, tmp_path, lambda _: None) as done:
        assert list(checks.check_scores(done, dict.fromkeys(ids, 1.0))) == []
        # A slow machine may take a worker for lost that is not: then it is asked for again too.
        assert done.asked.answers == answers
        assert (
            await checks.check_logs(done, lambda item, held: judge(samples()[item.id], held)) == []
        )
        assert done.kills
