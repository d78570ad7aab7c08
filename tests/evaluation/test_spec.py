"""Batch specs are parsed, or refused with a sentence that says what to correct."""

import subprocess
import sys

import pytest

from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.datasets.batch import parse_batch_toml
from perdure.evaluation.limits import BatchLimits
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.scorers.exact import Exact
from perdure.evaluation.scorers.match import Match
from perdure.evaluation.spec import (
    BatchSpec,
    DatasetSpec,
    FieldMap,
    InvalidBatch,
    agent_with_limits,
    parse_batch,
    split_by_model,
)

WRITTEN = """
name = "sums"
dataset = { path = "tasks.jsonl", fields = { target = "answer", metadata = ["level"] } }
models = ["openai/big", { name = "openai/small", temperature = 0.5 }]
epochs = 3
scorers = ["exact", { kind = "match", name = "last", pattern = '(\\d+)' }, "mine.scorers:judge"]
reducers = ["mean", "pass@2"]
ids = [1, "b"]

[agent]
tools = ["terminal", "finish"]

[agent.limits]
max_iterations = 50
max_budget = 1.0

[limits]
messages = 30
cost = 2.0
time = 60

[batch_limits]
cost = 100
tokens = 5000
"""


def test_a_batch_spec_is_parsed_from_toml() -> None:
    batch = parse_batch_toml(WRITTEN)
    fields = FieldMap(target="answer", metadata=("level",))
    assert batch.dataset == DatasetSpec(path="tasks.jsonl", fields=fields)
    assert [model.name for model in batch.models] == ["openai/big", "openai/small"]
    assert batch.agent == Agent(
        model=ModelSpec(name="openai/big"),
        tools=("terminal", "finish"),
        limits=Limits(max_iterations=50, max_budget=1.0),
    )
    match = Match(name="last", pattern=r"(\d+)")
    assert batch.scorers == (Exact(), match, CustomScorer(function="mine.scorers:judge"))
    assert [scorer.score_name for scorer in batch.scorers] == ["exact", "last", "judge"]
    assert batch.ids == ("1", "b")
    assert batch.batch_limits == BatchLimits(cost=100.0, tokens=5000)
    assert (batch.concurrency, batch.seed, batch.shuffle, batch.limit) == (10, 0, False, None)
    assert batch.retries.on == ("infrastructure",)


def test_a_batch_comes_back_from_json() -> None:
    batch = parse_batch_toml(WRITTEN)
    assert BatchSpec.model_validate_json(batch.model_dump_json()) == batch


def test_a_batch_spec_needs_few_fields() -> None:
    batch = parse_batch({"name": "a", "dataset": "mine.tasks:rows", "model": "m"})
    assert batch.dataset == DatasetSpec(function="mine.tasks:rows")
    assert batch.agent.model.name == "m"
    assert split_by_model(batch) == (batch.model_copy(update={"models": ()}),)
    own = parse_batch({"name": "a", "dataset": "a.csv", "agent": {"model": {"name": "m"}}})
    assert split_by_model(own) == (own,)


def test_each_model_has_its_own_batch() -> None:
    big, small = split_by_model(parse_batch_toml(WRITTEN))
    assert (big.name, big.agent.model.name) == ("sums-openai-big", "openai/big")
    assert (small.name, small.agent.model.temperature) == ("sums-openai-small", 0.5)
    assert split_by_model(small) == (small,)


def test_the_narrower_limit_counts() -> None:
    limits = agent_with_limits(parse_batch_toml(WRITTEN), "2026-03-01T09:01:00.000000").limits
    assert limits == Limits(
        max_iterations=30, max_budget=1.0, deadline="2026-03-01T09:01:00.000000"
    )
    own = parse_batch({"name": "a", "dataset": "a.csv", "model": "m", "limits": {"tokens": 9}})
    assert agent_with_limits(own).limits == Limits(max_tokens=9)


def test_the_format_follows_from_the_file_extension() -> None:
    kinds = [
        DatasetSpec(path=f"a.{text}").file_format for text in ("jsonl", "CSV", "parquet", "ndjson")
    ]
    assert kinds == ["jsonl", "csv", "parquet", "jsonl"]
    assert DatasetSpec(path="a.txt", format="csv").file_format == "csv"
    assert DatasetSpec(function="a:b").file_format is None


@pytest.mark.parametrize(
    ("written", "instead", "sentence"),
    [
        ("epochs = 3", "epochs = 0", "epochs: input should be greater than or equal to 1"),
        ("temperature", "temprature", "there is no key 'models.1.temprature'"),
        ("epochs = 3", "epoch = 3", "there is no key 'epoch'"),
        ("messages = 30", "message = 30", "there is no key 'limits.message'"),
        ("max_budget", "max_buget", "there is no key 'agent.limits.max_buget'"),
        ('target = "answer"', 'targets = "answer"', "no key 'dataset.fields.targets'"),
        ("pass@2", "pass@4", "'pass@4' needs 4 epochs, and there are 3"),
        ("pass@2", "mean", "reducers has 'mean' twice"),
        ("pass@2", "avg", "there is no reducer 'avg'"),
        ('"exact"', '"exakt"', "scorers.0: there is no scorer 'exakt': there are exact,"),
        ('"exact"', '"a:judge"', "scorers has 'judge' twice: give one of them a `name`"),
        ("(\\d+)", "(\\d+", "scorers.1: '(\\\\d+' is no regular expression"),
        ('kind = "match"', 'kind = "matches"', "scorers.1: input tag 'matches' found"),
        ("tasks.jsonl", "tasks.txt", "dataset: 'tasks.txt' does not end in .jsonl"),
        ('path = "tasks.jsonl",', "", "dataset: name a file in `path` or a `function`"),
        ("models", 'model = "a"\nmodels', "name `model` or `models`, not both"),
        ('"openai/big"', '"openai-small"', "models has 'openai-small' twice"),
        ('models = ["openai/big", ', "models = []\nx = [", "the key 'agent.model' is missing"),
        ('"sums"', '"../sums"', "name: string should match pattern"),
        ('"sums"', f'"{"s" * 195}"', "is over 200 characters: shorten `name`"),
        ("ids = [1", "ids = [true", "ids.0: input should be a valid string"),
        ("[agent]", '[agent]\nworkspace = "/x"', "agent: each sample works in a folder of its own"),
        ("[agent]", '[agent]\nconfirmation.policy = "always"', "agent: nobody is there to allow"),
        ("tokens = 5000", "tokens = 0", "batch_limits.tokens: input should be greater than"),
        ("cost = 100", "cost = -1", "batch_limits.cost: input should be greater than or equal"),
        ("name = ", "name ", "It is no TOML: Expected '=' after a key"),
        ('name = "sums"\n', "", "the key 'name' is missing"),
    ],
)
def test_an_invalid_batch_is_refused_with_the_key(
    written: str, instead: str, sentence: str
) -> None:
    assert written in WRITTEN
    with pytest.raises(InvalidBatch) as refused:
        parse_batch_toml(WRITTEN.replace(written, instead, 1))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_key_of_a_single_model_is_refused() -> None:
    with pytest.raises(InvalidBatch, match=r"there is no key 'model\.nme'"):
        parse_batch({"name": "a", "dataset": "a.csv", "model": {"name": "m", "nme": "m"}})


def test_a_workflow_can_parse_a_batch_spec() -> None:
    """The workflow sandbox forbids importing `regex`, which reads the locale."""
    modules = "perdure.evaluation.spec, perdure.evaluation.result"
    code = f"import sys, {modules}; sys.exit('regex' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_deeply_nested_toml_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="It is no TOML"):
        parse_batch_toml("a = " + "[" * 5000)
