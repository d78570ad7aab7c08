"""Timeouts of scorers, and their need of a workspace."""

from perdure.agent.spec import ModelSpec
from perdure.evaluation.scorers.command import CommandScorer
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.scorers.model_graded import ModelGraded
from perdure.evaluation.scorers.scorers import AnyScorer
from perdure.evaluation.spec import BatchSpec

TEXT_SCORER_TIMEOUT = 60.0
"""Seconds for a scorer that needs only the agent's text."""

CUSTOM_SCORER_TIMEOUT = 600.0
"""Seconds for a user's function."""

MAX_GRADING_TRIES = 3
"""The most requests to a grading model until a reply has a grade."""

STORING_TIMEOUT = 60.0
"""Seconds for reading the log and storing the result."""


def scoring_timeout(batch: BatchSpec) -> float:
    """Return the timeout of all scorers of an attempt together, in seconds."""
    return (
        sum(scorer_timeout(scorer, batch.agent.model) for scorer in batch.scorers) + STORING_TIMEOUT
    )


def scorer_timeout(scorer: AnyScorer, model: ModelSpec) -> float:
    """Return the scorer's timeout in seconds; `model` is the agent's."""
    match scorer:
        case CommandScorer():
            return scorer.timeout
        case ModelGraded():
            return MAX_GRADING_TRIES * (scorer.model or model).timeout
        case CustomScorer():
            return CUSTOM_SCORER_TIMEOUT
        case _:
            return TEXT_SCORER_TIMEOUT


def needs_workspace(batch: BatchSpec) -> bool:
    """Tell whether a scorer needs the workspace."""
    return any(isinstance(scorer, CommandScorer | CustomScorer) for scorer in batch.scorers)
