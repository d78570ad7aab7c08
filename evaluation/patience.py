"""How long scorers may take, and what they look at."""

from agent.spec import ModelSpec
from evaluation.scorers.command import Command
from evaluation.scorers.custom import Custom
from evaluation.scorers.model_graded import ModelGraded
from evaluation.scorers.scorers import AnyScorer
from evaluation.spec import BatchSpec

TEXT = 60.0
"""Seconds for a scorer that reads the agent's words and nothing else."""

CUSTOM = 600.0
"""Seconds for somebody's own function."""

TRIES = 3
"""Replies of a grading model that are asked for until one of them has a grade."""

BESIDE = 60.0
"""Seconds for what is done beside the scoring."""


def patience(batch: BatchSpec) -> float:
    """Seconds that all scorers of an attempt may take together."""
    return sum(longest(one, batch.agent.model) for one in batch.scorers) + BESIDE


def longest(scorer: AnyScorer, model: ModelSpec) -> float:
    """Seconds that the scorer may take; `model` is the agent's."""
    match scorer:
        case Command():
            return scorer.timeout
        case ModelGraded():
            return TRIES * (scorer.model or model).timeout
        case Custom():
            return CUSTOM
        case _:
            return TEXT


def looks(batch: BatchSpec) -> bool:
    """Whether a scorer looks at what is in the workspace."""
    return any(isinstance(one, Command | Custom) for one in batch.scorers)
