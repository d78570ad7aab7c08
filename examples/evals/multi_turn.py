"""The multi-turn conversations of BFCL as a batch: its rows, its agent, and what scores it.

Each turn is said once the one before is over. All samples share one agent, which has the tools of
every back-end; a system message tells which scenario a sample is about.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from examples.bfcl.backends import SCENARIO, find_sample
from examples.bfcl.dataset import samples
from examples.bfcl.judge import failures, turns_of_messages
from examples.bfcl.run import PROMPT
from examples.evals.model import Messages, texts
from perdure.agent.spec import Agent, ModelSpec
from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Outcome
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.spec import BatchSpec, DatasetSpec

NAME = "bfcl-multi-turn"
HERE = "examples.evals.multi_turn"

# Upstream's checker keeps what it works on in globals, which two threads must not change at once.
_CHECKING = threading.Lock()


def rows() -> Iterator[dict[str, Any]]:
    """A row for each sample of the benchmark, in the order of publication."""
    for sample in samples().values():
        prompt = PROMPT.format(scenario=SCENARIO, sample=sample.id)
        first, *later = sample.turns
        yield {
            "id": sample.id,
            "input": [{"role": "system", "content": prompt}, {"role": "user", "content": first}],
            "turns": later,
            "metadata": {"turns": len(sample.turns), "back_ends": " ".join(sorted(sample.classes))},
        }


def batch(ids: Sequence[str], concurrency: int, model: str) -> BatchSpec:
    """The batch of these samples; its model is at the URL `model`."""
    classes = sorted({name for sample in samples().values() for name in sample.classes})
    return BatchSpec(
        name=NAME,
        dataset=DatasetSpec(function=f"{HERE}:rows"),
        agent=Agent(
            model=ModelSpec(name="openai/scripted", api_base=model, timeout=60.0),
            tools=tuple(f"examples.bfcl.backends:{name}" for name in classes),
        ),
        scorers=(CustomScorer(function=f"{HERE}:score_sample"),),
        concurrency=concurrency,
        ids=tuple(ids),
    )


def score_sample(sample: Sample, outcome: Outcome) -> dict[str, Any]:
    """The score of upstream's checker, and why it is 0 where it is."""
    with _CHECKING:
        wrong = failures(samples()[sample.id], turns_of_messages(outcome.messages))
    return {"value": not wrong, "explanation": "\n".join(wrong) or None}


def sample_of_request(messages: Messages) -> str:
    """The sample that a request is about: the name of its script."""
    sample = find_sample("\n".join(texts(messages, "system")))
    return sample.id if sample else ""
