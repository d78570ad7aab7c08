"""The chat sets as a batch, and the scripted model that answers them."""

import json
from collections.abc import Sequence
from pathlib import Path

from examples.evals.model import Messages, texts
from examples.evals.rows import SCORERS, Row, question_of
from perdure.agent.spec import Agent, ModelSpec
from perdure.evaluation.spec import BatchSpec, DatasetSpec, FieldMap

NAME = "chat-sets"


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the dataset: a row a line, as upstream has them."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row.fields) + "\n" for row in rows)


def batch(dataset: Path, concurrency: int, model: str) -> BatchSpec:
    """The batch over this dataset; its model is at the URL `model`."""
    fields = FieldMap(target="ideal", metadata=("set", "graded"))
    return BatchSpec(
        name=NAME,
        dataset=DatasetSpec(path=str(dataset), fields=fields),
        agent=Agent(
            model=ModelSpec(name="openai/scripted", api_base=model, timeout=60.0), tools=()
        ),
        scorers=SCORERS,
        concurrency=concurrency,
    )


def question_of_request(messages: Messages) -> str:
    """The question that a request asks: the name of its script."""
    return question_of(texts(messages, "user"))
